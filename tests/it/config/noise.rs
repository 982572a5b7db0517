//! No input panics.

use proptest::prelude::*;
use starpo::experiment;

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

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let mut files = Files::with(&[]);
        files.0.insert("experiments/test.kdl".to_owned(), bytes);
        if let Err(errors) = experiment::resolve_with("test", &[], &files) {
            prop_assert!(!errors.render(false).is_empty() && errors.json().is_array());
        }
    }

    #[test]
    fn random_documents(text in tokens()) {
        if let Err(errors) = body(&text, &[]) {
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

    #[test]
    fn random_overrides(arguments in prop::collection::vec((token(), token()), 0..5)) {
        let arguments: Vec<String> = arguments.into_iter().map(|(key, value)| format!("{key}={value}")).collect();
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        match body("", &arguments) {
            Ok(run) => prop_assert_eq!(experiment::from_lock(&run.lock()).unwrap().canon, run.canon),
            Err(errors) => prop_assert!(!errors.render(false).is_empty()),
        }
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

#[test]
fn braces_in_texts_and_comments_are_no_depth() {
    let open = "{".repeat(100);
    let texts = format!("note \"\\\"{open}\" #\"\"{open}\"#\nnote \"\"\"\n{open}\n\"\"\"");
    let comments = format!("// {open}\n/* {open} /* */ {open} */");
    body(&format!("{texts}\n{comments}"), &[]).unwrap();
}
