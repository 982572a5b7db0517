//! Completion, as bash asks for it.

use std::process::Command;

use super::{starpo, text};

fn complete(words: &[&str]) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let output = starpo(folder.path(), &[&["complete", "--"], words].concat());
    text(&output.stdout).lines().map(str::to_owned).collect()
}

#[test]
fn words_are_completed() {
    assert_eq!(complete(&["sh"]), ["show"]);
    assert_eq!(complete(&["run", "soko"]), ["sokoban"]);
    assert_eq!(complete(&["run", "sokoban", "rollout.group-"]), ["rollout.group-size="]);
    assert_eq!(complete(&["run", "sokoban", "filter=top-k"]), ["filter=top-k", "filter=top-k-abs"]);
    assert!(complete(&["run", "sokoban", "filter=min-p", "filter."]).contains(&"filter.value=".to_owned()));
    assert!(complete(&["run", "sokoban", "filter."]).is_empty(), "filter none has no fields");
    assert_eq!(complete(&["run", "sokoban", "stop+=rule,val"]), ["stop+=rule,validation-floor"]);
    assert_eq!(complete(&["run", "sokoban", "--dry"]), ["--dry-run"]);
    assert_eq!(complete(&["explain", "filter.includ"]), ["filter.include-zero"]);
    assert!(complete(&["run", "sokoban", "p="]).is_empty(), "no value is called so");
    assert_eq!(complete(&["--runs-dir", "here", "sh"]), ["show"]);
    assert!(complete(&["run", "--from", ""]).is_empty(), "a value of the option");
    assert!(complete(&["show", "sokoban", "--path", "upd"]).contains(&"update.mini-batch".to_owned()));
}

#[test]
fn tags_are_completed_where_runs_are() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(folder.path().join("runs/tags")).unwrap();
    std::fs::write(folder.path().join("runs/tags/best"), "bandit-x\n").unwrap();
    for words in [&["exec", "b"][..], &["untag", "b"], &["report", "be"]] {
        let output = starpo(folder.path(), &[&["complete", "--"], words].concat());
        assert_eq!(text(&output.stdout), "best\n", "{words:?}");
    }
}

/// Overrides reach the program as they are typed, and the script completes, in bash.
#[test]
fn bash_takes_overrides_and_completes() {
    let words = r"a=1,2,3 seed=1..=5 lr=1e-7..1e-5:log5 @over.kdl stop+=rule stop=";
    let plain: Vec<&str> = words.split(' ').collect();
    let bash = |script: &str| {
        let output = Command::new("bash").args(["--norc", "-c", script]).output().unwrap();
        text(&output.stdout).lines().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(bash(&format!("printf '%s\\n' {}", plain.join(" "))), plain);
    let binary = env!("CARGO_BIN_EXE_starpo");
    let ask = |line: &str| {
        bash(&format!(
            "source <({binary} completions bash); COMP_LINE='{binary} {line}'; COMP_POINT=${{#COMP_LINE}}; \
             compopt() {{ :; }}; _starpo; printf '%s\\n' \"${{COMPREPLY[@]}}\""
        ))
    };
    assert_eq!(ask("run soko"), ["sokoban"]);
    assert_eq!(ask("run sokoban filter=top-k"), ["top-k", "top-k-abs"]);
    assert_eq!(ask("run sokoban train.s"), ["train.steps="]);
}
