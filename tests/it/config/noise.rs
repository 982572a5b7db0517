//! No input panics.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use starpo::config::{Field, Kind, fields};
use starpo::experiment::{self, FIELDS};

use super::{Files, body};

/// Pieces of the language, right and wrong.
fn token() -> impl Strategy<Value = String> {
    let words = [
        "experiment",
        "\"test\"",
        "extends",
        "use",
        "\"base\"",
        "\"test\"",
        "alias",
        "defaults",
        "task",
        "filter",
        "\"top-p\"",
        "\"none\"",
        "value",
        "0.9",
        "seed",
        "1",
        "-1",
        "1e999",
        "#true",
        "#null",
        "{",
        "}",
        ";",
        "\n",
        "=",
        "(ref)",
        "(file)",
        "(dir)",
        "(unset)",
        "(local)",
        "seed",
        "rollout",
        "train.steps",
        "\"sokoban\"",
        "size",
        "6",
        "/-",
        "\"",
        "#\"",
        "//",
        "/*",
        "*/",
        "model",
        "\"pretrained\"",
        "path",
        "execution",
        "task.0.size",
        "\u{feff}",
        "√",
        "r",
        "eval",
        "steps",
    ];
    prop_oneof![4 => prop::sample::select(words.to_vec()).prop_map(str::to_owned), 1 => any::<String>()]
}

fn tokens() -> impl Strategy<Value = String> {
    prop::collection::vec(token(), 0..40).prop_map(|tokens| tokens.join(" "))
}

/// A node or an override of a value that there is, with a fitting value or another.
fn fitting() -> impl Strategy<Value = (String, String)> {
    let all: Vec<(String, &'static Field)> = fields(FIELDS);
    let value = |field: &'static Field| {
        let names = choices(field.kind);
        let number =
            field.range.map_or("3".to_owned(), |(low, high)| if low >= 0.0 { high.min(2.0) } else { low }.to_string());
        prop_oneof![
            6 => match names.as_slice() {
                [] => Just(number).boxed(),
                _ => prop::sample::select(names).prop_map(str::to_owned).boxed(),
            },
            1 => token().boxed(),
            1 => prop::num::f64::ANY.prop_map(|value| value.to_string()).boxed(),
        ]
    };
    prop::sample::select(all).prop_flat_map(move |(path, field)| (Just(path), value(field)))
}

fn choices(kind: &'static Kind) -> Vec<&'static str> {
    match kind {
        Kind::Bool => vec!["true", "false"],
        Kind::Choice(names) => names.to_vec(),
        Kind::Variant { alternatives, .. } => alternatives.iter().map(|member| member.name).collect(),
        Kind::Optional(inner) | Kind::List(inner) => choices(inner),
        _ => Vec::new(),
    }
}

/// The nodes around a value: `rollout { groups 3 }` for `rollout.groups`.
fn nodes((path, value): &(String, String)) -> String {
    let literal = match value.parse::<f64>() {
        Ok(number) if number.is_finite() => value.clone(),
        _ if value == "true" || value == "false" => format!("#{value}"),
        _ => format!("{value:?}"),
    };
    let (open, close) = path.split('.').fold((String::new(), 0), |(text, depth), part| {
        (if depth == 0 { part.to_owned() } else { format!("{text} {{ {part}") }, depth + 1)
    });
    format!("{open} {literal}{}", " }".repeat(close - 1))
}

fn argument() -> impl Strategy<Value = String> {
    let odd = vec!["@over.kdl", "@no.kdl", "@", "~x", "+a=1", "top_p=0.9", "stop=rule,rule", "task="];
    let signs = prop::sample::select(vec!["=", "=", "=", "+="]);
    prop_oneof![
        6 => (fitting(), signs).prop_map(|((path, value), sign)| format!("{path}{sign}{value}")),
        2 => (token(), token()).prop_map(|(key, value)| format!("{key}={value}")),
        1 => prop::sample::select(odd).prop_map(str::to_owned),
        1 => any::<String>(),
    ]
}

/// A value, or values as an axis on the command line has them.
fn axis() -> impl Strategy<Value = (String, String)> {
    let ranges =
        vec!["1..=3", "0.1..0.9:lin3", "1e-7..1e-5:log2", "5..5", "1,2", "none,top-p", "1..=9999999999", "..", ","];
    let range = prop::sample::select(ranges).prop_map(str::to_owned);
    (fitting(), prop_oneof![3 => Just(String::new()), 2 => range]).prop_map(|((path, value), range)| {
        match range.as_str() {
            "" => (path, value),
            _ => (path, range),
        }
    })
}

fn grid(word: &'static str) -> impl Strategy<Value = String> {
    let line = |(path, values): (String, Vec<String>)| {
        let values: Vec<String> = values.iter().map(|value| format!("{value:?}")).collect();
        format!("{path} {}", values.join(" "))
    };
    let several = (axis(), prop::collection::vec(axis(), 0..2)).prop_map(|((path, one), more)| {
        (path, [one].into_iter().chain(more.into_iter().map(|(_, text)| text)).collect())
    });
    let seeds =
        prop::sample::select(vec!["seed 1 2", "seed 1", "seed \"2..=3\"", "case \"a\"", "filter \"none\" \"top-p\""]);
    prop::collection::vec(prop_oneof![1 => several.prop_map(line), 2 => seeds.prop_map(str::to_owned)], 0..3)
        .prop_map(move |lines| format!("{word} {{ {} }}", lines.join("; ")))
}

/// The body of a sweep's document.
fn cases_and_axes() -> impl Strategy<Value = String> {
    let case = (
        prop::sample::select(vec!["a", "b", "a b", "top-p", ""]),
        prop::collection::vec(fitting(), 0..2),
        grid("grid"),
    )
        .prop_map(|(name, fitting, grid)| {
            let fitting: String = fitting.iter().map(|one| nodes(one) + "\n").collect();
            format!("case {name:?} {{ {fitting}{grid} }}")
        });
    let words = vec![
        "baseline \"a\"",
        "noise \"again\" shift=7",
        "report \"eval.success\"",
        "report \"loss\"",
        "experiment \"no\"",
    ];
    let part = prop_oneof![
        4 => case,
        2 => grid("grid"),
        2 => grid("exclude"),
        2 => prop::sample::select(words).prop_map(str::to_owned),
        1 => tokens(),
    ];
    prop::collection::vec(part, 0..5).prop_map(|parts| parts.join("\n"))
}

/// As `told` says, within a second: of several tries, since a machine may have other things to do. One that is so busy
/// that nothing helps takes as much longer for an empty experiment.
#[expect(clippy::disallowed_methods, reason = "it is about time")]
fn soon(told: &dyn Fn() -> Result<(), TestCaseError>) -> Result<(), TestCaseError> {
    let (slow, mut took) = (Duration::from_secs(1), Duration::MAX);
    for _ in 0..5 {
        let begun = Instant::now();
        told()?;
        took = took.min(begun.elapsed());
        if took < slow {
            return Ok(());
        }
    }
    let begun = Instant::now();
    experiment_told("", &[])?;
    let empty = begun.elapsed();
    prop_assert!(took < 300 * empty, "it took {took:?}, and an empty experiment {empty:?}");
    Ok(())
}

/// Whatever is given, it is a run that its lock makes again, or mistakes that can be shown: a place is part of each.
fn experiment_told(text: &str, overrides: &[String]) -> Result<(), TestCaseError> {
    let test = format!("experiment \"test\" {{\n    extends \"base\"\n    task \"bandit\"\n{text}\n}}\n");
    // A lock holds its inputs: a small one is read in a third of the time.
    let files = Files::with(&[
        ("experiments/test.kdl", &test),
        ("over.kdl", "train { steps 7 }\nfilter \"top-p\"\n"),
        ("configs/model/tiny-tokenizer.json", "{\"small\": \"#\\\"\"}\n"),
    ]);
    match experiment::resolve_with("test", overrides, &files) {
        Ok(run) => {
            let again = experiment::from_lock(&run.lock()).map_err(|error| TestCaseError::fail(error.to_string()))?;
            prop_assert_eq!((again.key, again.canon), (run.key, run.canon));
        }
        Err(errors) => {
            prop_assert!(!errors.render(false).is_empty() && errors.json().is_array());
        }
    }
    Ok(())
}

/// The same of a sweep, all of whose runs their locks make again.
fn sweep_told(text: &str, overrides: &[String]) -> Result<(), TestCaseError> {
    let sweep = format!("sweep \"s\" {{\n    experiment \"test\"\n{text}\n}}\n");
    let files = Files::with(&[
        ("experiments/test.kdl", "experiment \"test\" {\n    extends \"base\"\n    task \"bandit\"\n}\n"),
        ("experiments/sweeps/s.kdl", &sweep),
        ("configs/model/tiny-tokenizer.json", "{\"small\": \"#\\\"\"}\n"),
    ]);
    let (mut runs, mut wrong) = (BTreeSet::new(), None);
    let mut visit = |run: experiment::Resolved| {
        match experiment::from_lock(&run.lock()) {
            Ok(again) if (again.key, &again.canon) == (run.key, &run.canon) => {}
            Ok(again) => wrong = Some(format!("{} is not {}", again.canon, run.canon)),
            Err(error) => wrong = Some(error.to_string()),
        }
        runs.insert(run.id().to_string());
        Ok::<(), ()>(())
    };
    match experiment::sweep("s", overrides, &files, &|_| true, &mut |_| Ok(()), &mut visit) {
        Ok(cells) => {
            let named = cells.map_err(|()| TestCaseError::fail("nothing was written"))?.cells;
            let named: BTreeSet<String> = named.into_iter().map(|cell| cell.run).collect();
            prop_assert!(wrong.is_none() && !named.is_empty() && named == runs, "{wrong:?} {named:?} {runs:?}");
        }
        Err(errors) => prop_assert!(!errors.render(false).is_empty() && errors.json().is_array()),
    }
    Ok(())
}

/// More of them by `STARPO_FUZZ=1000000 cargo test --test it whatever`.
fn cases() -> u32 {
    std::env::var("STARPO_FUZZ").ok().and_then(|count| count.parse().ok()).unwrap_or(300)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_given(
        fitting in prop::collection::vec(fitting(), 0..4),
        tokens in prop_oneof![3 => Just(String::new()), 1 => tokens()],
        overrides in prop::collection::vec(argument(), 0..4),
    ) {
        let text: String = fitting.iter().map(|one| nodes(one) + "\n").chain([tokens]).collect();
        soon(&|| experiment_told(&text, &overrides))?;
    }

    #[test]
    fn whatever_a_sweep_is_given(
        text in cases_and_axes(),
        overrides in prop::collection::vec(
            prop_oneof![2 => axis().prop_map(|(path, text)| format!("{path}={text}")), 1 => argument()], 0..3,
        ),
    ) {
        soon(&|| sweep_told(&text, &overrides))?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let mut files = Files::with(&[]);
        files.0.insert("experiments/test.kdl".to_owned(), bytes);
        if let Err(errors) = experiment::resolve_with("test", &[], &files) {
            prop_assert!(!errors.render(true).is_empty());
        }
    }

    #[test]
    fn every_value_survives_its_lock(
        text in any::<String>(), penalty in -1000.0..=0.0, rate in 0.0..=1.0, seed in any::<u64>(),
    ) {
        let typed = [
            format!("rollout.system={text}"),
            format!("action-separator=|{}", text.replace(['<', '>'], "")),
            format!("format-penalty={penalty:e}"),
            format!("update.learning-rate={rate}"),
            format!("seed={seed}"),
        ];
        let run = experiment::resolve("bandit", &typed, super::root()).unwrap();
        prop_assert_eq!((run.config.rollout.format_penalty, run.config.update.learning_rate), (penalty, rate));
        let again = experiment::from_lock(&run.lock()).unwrap();
        prop_assert_eq!((again.config, again.canon, again.overrides), (run.config, run.canon, run.overrides));
    }
}

#[test]
fn long_nonsense() {
    let pieces =
        ["\"", "}", "{}", "a {}", "*", "/", "a ", "/-a ", "(a)", "a=1;", "#\"", "\"\"\"\n", "\\\n", "\u{0}", "true\n"];
    for piece in pieces {
        for text in [piece.repeat(4_000), format!("/*{}*/", piece.repeat(60_000))] {
            if let Err(errors) = body(&text, &[]) {
                assert!(!errors.render(false).is_empty());
            }
        }
    }
}

/// Thousands of mistakes, references or values are answered as fast as one.
#[test]
#[expect(clippy::disallowed_methods, reason = "it is about time")]
fn much_of_everything() {
    let many = |piece: &dyn Fn(usize) -> String, count: usize| (0..count).map(piece).collect::<String>();
    let texts = [
        many(&|n| format!("unknown{n} 1\n"), 4000),
        many(&|n| format!("alias \"a{n}\" \"filter.valu{n}\"\n"), 3000),
        many(&|n| format!("eval {{ task \"sokoban\" {{ boxes (ref)task.{n}.boxes }} }}\n"), 1500),
        many(&|n| format!("task \"sokoban\" {{ boxes (ref)task.{}.boxes }}\n", n + 2), 1500),
        format!("gradients {{ buckets \"edges\" {{ edges {} }} }}", "1.0 ".repeat(9000)),
        many(&|n| format!("stop \"rule\" {{ when \"a{n}\"; above 1.0 }}\n"), 2000),
    ];
    for text in texts {
        let begun = Instant::now();
        let shown = body(&text, &[]).map_or_else(|errors| errors.render(false), |run| run.show());
        let took = begun.elapsed();
        assert!(!shown.is_empty() && took < Duration::from_secs(5), "{took:?} for {}", &text[..60]);
    }
}

#[test]
fn braces_in_texts_and_comments_are_no_depth() {
    let open = "{".repeat(100);
    let texts = format!("note #\"\"{open}\"#\nrollout {{ system \"\"\"\n\\\"{open}\n\"\"\" }}");
    let comments = format!("// {open}\n/* {open} /* */ {open} */");
    body(&format!("{texts}\n{comments}"), &[]).unwrap();
}
