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
    #![proptest_config(ProptestConfig { cases: 700, failure_persistence: None, ..ProptestConfig::default() })]

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
