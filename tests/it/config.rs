//! The language, the canonical text and the key.

use std::path::Path;

use starpo::experiment::{self, Resolved};

use crate::golden;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn strings(overrides: &[&str]) -> Vec<String> {
    overrides.iter().map(|text| (*text).to_owned()).collect()
}

fn sokoban(overrides: &[&str]) -> Resolved {
    experiment::resolve("sokoban", &strings(overrides), root()).unwrap()
}

#[test]
fn resolved_configs() {
    golden("config", "sokoban", &sokoban(&[]).show());
    let run = sokoban(&["top_p=0.9"]);
    let short: String = run.short_names.iter().map(|name| format!("// {name}\n")).collect();
    golden("config", "sokoban-top-p", &(short + &run.show()));
}

#[test]
fn a_lock_makes_the_same_run() {
    for overrides in [&[][..], &["top_p=0.9"], &["rollout.instruction=two\nlines \"quoted\" \\ #", "seed=18446744073709551615"]] {
        let run = sokoban(overrides);
        let again = experiment::from_lock(&run.lock()).unwrap();
        assert_eq!((again.id(), &again.config, &again.canon), (run.id(), &run.config, &run.canon));
        assert_eq!(again.overrides, run.overrides);
    }
}
