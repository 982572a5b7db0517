//! Where documents come from, and what a run would do.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use super::{QUICK, starpo, text};

/// An experiment of that many steps in `folder/experiments/mine.kdl`.
fn project(folder: &Path, steps: usize) {
    fs::create_dir_all(folder.join("experiments")).unwrap();
    let body = format!(
        "experiment \"mine\" {{\n    extends \"base\"\n    task \"bandit\"\n    train {{ steps {steps} }}\n}}\n"
    );
    fs::write(folder.join("experiments/mine.kdl"), body).unwrap();
}

fn steps(output: &Output) -> &str {
    let line =
        text(&output.stdout).lines().find(|line| line.contains(" steps ")).unwrap_or_else(|| text(&output.stderr));
    line.split_whitespace().nth(1).unwrap_or("")
}

#[test]
fn documents_are_found_in_order() {
    let [here, there, home] = [1, 2, 3].map(|_| tempfile::tempdir().unwrap());
    project(there.path(), 22);
    project(home.path(), 33);
    let show = |more: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_starpo"));
        command.args(["show", "mine", "--path", "train"]).args(more).current_dir(here.path());
        command.env("STARPO_HOME", home.path()).output().unwrap()
    };
    let there = there.path().to_str().unwrap();
    assert_eq!((steps(&show(&[])), steps(&show(&["--config-dir", there]))), ("33", "22"));
    project(here.path(), 11);
    assert_eq!((steps(&show(&[])), steps(&show(&["--config-dir", there]))), ("11", "22"));
    let nowhere = show(&["--config-dir", "nowhere"]);
    assert_eq!(nowhere.status.code(), Some(2), "{}", text(&nowhere.stderr));
    // It says from where.
    let shown = starpo(here.path(), &["show", "mine"]);
    let documents = text(&shown.stdout).split("documents {").nth(1).unwrap();
    assert!(documents.contains("\"configs/base.kdl\" // the one of this version"), "{documents}");
    assert!(documents.contains("\"experiments/mine.kdl\" file="), "{documents}");
}

#[test]
fn a_dry_run_says_what_would_happen() {
    let folder = tempfile::tempdir().unwrap();
    let run = [&["run", "sokoban"], &QUICK[..]].concat();
    let dry = |more: &[&str]| {
        let output = starpo(folder.path(), &[&run[..], &["--dry-run"], more].concat());
        let line = text(&output.stdout).lines().last().unwrap_or_else(|| text(&output.stderr)).to_owned();
        line.trim_start_matches("would").trim().to_owned()
    };
    assert_eq!(dry(&[]), "start anew");
    assert!(fs::read_dir(folder.path()).unwrap().next().is_none(), "nothing is written");
    assert!(starpo(folder.path(), &run).status.success());
    assert_eq!(dry(&[]), "answer at once: it is done, step 1");
    assert_eq!(dry(&["--fresh"]), "move aside what is there, and start anew");
    let directory = fs::read_dir(folder.path().join("runs")).unwrap().next().unwrap().unwrap().path();
    fs::write(directory.join("state"), "interrupted 1\n").unwrap();
    assert_eq!(dry(&[]), "go on: it is interrupted, step 1");
    let json = starpo(folder.path(), &["run", "sokoban", "seed=9", "--dry-run", "--json"]);
    let json: serde_json::Value = serde_json::from_str(text(&json.stdout)).unwrap();
    assert_eq!(
        (json["would"].as_str(), json["warm_start"]["state"].as_str()),
        (Some("start anew"), Some("to be made"))
    );
}
