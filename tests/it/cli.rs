//! The binary, as a person meets it: what it prints and how it ends.

mod complete;
mod outside;

use std::path::Path;
use std::process::{Command, Output};

use starpo::stop::is_metric;

use crate::golden;

fn starpo(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_starpo"));
    command.args(arguments).current_dir(folder).env("NO_COLOR", "1").output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// Runs of a second: no warm start, one step, a model of a few thousand parameters.
const QUICK: [&str; 12] = [
    "warm-start=none",
    "steps=1",
    "width=16",
    "layers=1",
    "ffn=16",
    "groups=2",
    "group-size=2",
    "max-turns=1",
    "max-response-tokens=4",
    "eval.tasks=2",
    "checkpoint-every=1",
    "threads=1",
];

#[test]
fn a_run_answers_from_its_directory_the_second_time() {
    let folder = tempfile::tempdir().unwrap();
    let run = [&["run", "sokoban"], &QUICK[..]].concat();
    let first = starpo(folder.path(), &run);
    assert!(first.status.success(), "{}", text(&first.stderr));
    let second = starpo(folder.path(), &run);
    assert!(second.status.success());
    let digest =
        |output: &Output| text(&output.stdout).lines().find(|line| line.starts_with("digest")).unwrap().to_owned();
    assert_eq!(digest(&first), digest(&second));
    assert!(text(&second.stdout).starts_with("finished before"), "{}", text(&second.stdout));
    let list = starpo(folder.path(), &["ls"]);
    assert!(text(&list.stdout).contains("done"), "{}", text(&list.stdout));
    let fresh = starpo(folder.path(), &[&run[..], &["--fresh"]].concat());
    assert_eq!(digest(&first), digest(&fresh));
    assert!(folder.path().join("runs/attic").is_dir());
    let two: Vec<&str> = run.iter().map(|word| if *word == "threads=1" { "threads=2" } else { word }).collect();
    let other = starpo(folder.path(), &two);
    assert_eq!(digest(&first), digest(&other), "threads are not in the key");
    let eval = starpo(folder.path(), &["eval", "sokoban-", "--show", "0"]);
    assert!(text(&eval.stdout).contains("2 held-out tasks"), "{}", text(&eval.stderr));
}

/// Holds that every number of a record is a name that a stop may look at.
fn named(path: &str, value: &serde_json::Value) {
    match value {
        serde_json::Value::Object(members) => {
            for (name, value) in members {
                named(&format!("{path}{}{name}", if path.is_empty() { "" } else { "." }), value);
            }
        }
        serde_json::Value::Number(_) => assert!(path == "step" || is_metric(path), "{path}"),
        _ => {}
    }
}

/// A reference is made again from the warm start, a critic read from the checkpoint; an evaluation needs neither.
#[test]
fn a_run_with_company_goes_on_where_it_stood() {
    let folder = tempfile::tempdir().unwrap();
    let quick: Vec<&str> = QUICK.iter().filter(|word| !word.starts_with("warm-start")).copied().collect();
    let company = ["warm-start=expert", "warm-start.episodes=4", "warm-start.steps=1", "max-response-tokens=60"];
    let k1 =
        ["gradients.every=1", "objective.kl.coef=0.1", "objective.kl.estimator=k1", "train.steps=2", "advantage=gae"];
    for critic in ["critic=own", "critic=shared"] {
        let quick = quick.iter().filter(|word| !word.starts_with("max-response") && !word.starts_with("steps"));
        let run = [&["run", "bandit"], &quick.copied().collect::<Vec<_>>()[..], &company, &k1, &[critic]].concat();
        let first = starpo(folder.path(), &run);
        assert!(first.status.success(), "{}", text(&first.stderr));
        assert!(text(&first.stderr).contains("whose expected gradient is 0"), "{}", text(&first.stderr));
        let line = |start| text(&first.stdout).lines().find_map(|line: &str| line.strip_prefix(start)).unwrap().trim();
        let directory = Path::new(line("directory"));
        assert!(std::fs::read_to_string(directory.join("log.txt")).unwrap().contains("whose expected gradient is 0"));
        for line in std::fs::read_to_string(directory.join("metrics.jsonl")).unwrap().lines() {
            named("", &serde_json::from_str(line).unwrap());
        }
        std::fs::write(directory.join("state"), "interrupted 1\n").unwrap();
        std::fs::remove_dir_all(directory.join("checkpoints/000002")).unwrap();
        let again = starpo(folder.path(), &run);
        assert!(again.status.success(), "{}", text(&again.stderr));
        assert!(text(&again.stdout).contains(line("digest")), "{}", text(&again.stdout));
        let eval = starpo(folder.path(), &["eval", directory.to_str().unwrap(), "--show", "0"]);
        assert!(eval.status.success(), "{}", text(&eval.stderr));
    }
}

#[test]
fn ends_say_what_happened() {
    let folder = tempfile::tempdir().unwrap();
    let code = |arguments: &[&str]| starpo(folder.path(), arguments).status.code().unwrap();
    assert_eq!(code(&["run", "sokobann"]), 2);
    assert_eq!(code(&["run", "sokoban", "topp=0.9"]), 2);
    assert_eq!(code(&["exec", "nothing"]), 2);
    let warm = ["warm-start.episodes=4", "warm-start.steps=1", "max-response-tokens=60", "warm-start=expert"];
    let quick = QUICK.iter().filter(|word| !word.starts_with("warm-start") && !word.starts_with("max-response"));
    assert_eq!(code(&[&["run", "sokoban"], &quick.copied().collect::<Vec<_>>()[..], &warm].concat()), 0);
    assert_eq!(code(&["exec", "warm-"]), 0, "a warm start that is made");
    assert_eq!(code(&["replay", "nothing.jsonl"]), 3);
    std::fs::write(folder.path().join("bad.jsonl"), "{}\n").unwrap();
    assert_eq!(code(&["replay", "bad.jsonl"]), 3);
    assert_eq!(code(&[&["run", "sokoban", "device=cuda:0", "numerics=gpu-f32"], &QUICK[..]].concat()), 2);
    std::fs::write(folder.path().join("empty.jsonl"), "").unwrap();
    let episodes = concat!(env!("CARGO_MANIFEST_DIR"), "/golden/episodes/gigpo-tc12.jsonl");
    let gigpo = ["filter=top-p", "filter.value=0.25", "advantage=gigpo", "advantage.mode=mean-std", "--json"];
    assert_eq!(code(&[&["replay", episodes], &gigpo[..]].concat()), 0, "without an experiment");
    assert_eq!(code(&["replay", episodes, "advantage=gae"]), 3, "there are no values");
    assert_eq!(code(&["replay", episodes, "reward.penalty-to=row"]), 2, "against the unit");
    let empty = starpo(folder.path(), &["replay", "empty.jsonl", "--json"]);
    assert!(empty.status.success() && text(&empty.stdout).contains("\"loss\":null"), "{}", text(&empty.stderr));
}

#[test]
fn errors_are_documents_with_a_place() {
    let folder = tempfile::tempdir().unwrap();
    let output = starpo(folder.path(), &["run", "sokoban", "filter.valeu=0.9"]);
    let error = text(&output.stderr);
    assert!(error.contains("filter.valeu"), "{error}");
    let json = starpo(folder.path(), &["show", "sokoban", "filter.valeu=0.9", "--json"]);
    let document: serde_json::Value = serde_json::from_str(text(&json.stdout)).unwrap();
    assert!(document.to_string().contains("valeu"), "{document}");
    for unreadable in [&["run"][..], &["run", "bandit", "--bogus"], &["eval", "bandit", "--player", "nope"], &[]] {
        let output = starpo(folder.path(), &[&["--json"], unreadable].concat());
        let document: serde_json::Value = serde_json::from_str(text(&output.stdout)).unwrap();
        assert!(output.status.code() == Some(2) && output.stderr.is_empty(), "{unreadable:?}");
        assert!(document["error"].as_str().is_some_and(|error| !error.starts_with("error")), "{document}");
    }
}

#[test]
fn values_explain_themselves() {
    let folder = tempfile::tempdir().unwrap();
    let asked: [&[&str]; 6] = [
        &["filter", "sokoban"],
        &["filter.value", "sokoban", "top_p=0.5"],
        &["task.size", "frozen-lake"],
        &["sampling.temperature", "sokoban"],
        &["execution.threads"],
        &["task.0.size.1", "sokoban"],
    ];
    let answers = asked.map(|words| {
        let output = starpo(folder.path(), &[&["explain"], words].concat());
        format!("$ starpo explain {}\n{}", words.join(" "), text(&output.stdout))
    });
    golden("config", "explain", &answers.join("\n"));
    let unknown = starpo(folder.path(), &["explain", "filtr.value"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(text(&unknown.stderr).contains("did you mean `filter.value`"), "{}", text(&unknown.stderr));
}

#[test]
fn two_runs_say_what_they_differ_in() {
    let folder = tempfile::tempdir().unwrap();
    let same = starpo(folder.path(), &["why", "sokoban", "sokoban", "seed=2"]);
    assert_eq!(text(&same.stdout), "nothing: they are the same run\n", "{}", text(&same.stderr));
    let run = [&["run", "sokoban"], &QUICK[..]].concat();
    assert!(starpo(folder.path(), &run).status.success());
    let output =
        starpo(folder.path(), &[&["why", "sokoban-", "sokoban", "seed=2", "filter=top-p"], &QUICK[1..]].concat());
    let answer = text(&output.stdout);
    let line = |path: &str| answer.lines().find(|line| line.split_whitespace().next() == Some(path)).unwrap_or("");
    assert_eq!(line("seed").split_whitespace().collect::<Vec<_>>(), ["seed", "u64", "1", "u64", "2"], "{answer}");
    assert_eq!(line("filter.value").split_whitespace().collect::<Vec<_>>(), ["filter.value", "-", "f64", "9e-1"]);
    assert!(line("warm-start").contains("variant none"), "{answer}");
}

#[test]
fn a_replay_refuses_what_it_would_not_read() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("e.jsonl"), include_str!("../../golden/episodes/mask-t13.jsonl")).unwrap();
    let refused = |word: &str| {
        let output = starpo(folder.path(), &["replay", "e.jsonl", word]);
        assert_eq!(output.status.code(), Some(2), "{word}");
        text(&output.stderr).to_owned()
    };
    assert!(refused("update.epochs=2").contains("`update.epochs` changes nothing in a replay"));
    assert!(refused("rollout.think=false").contains("`rollout.think` changes nothing"));
    let words =
        ["replay", "e.jsonl", "filter=top-k", "filter.value=0.25", "advantage=gigpo", "advantage.mode=mean-std"];
    let output = starpo(folder.path(), &[&words[..], &["--json"]].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let refill = starpo(folder.path(), &["replay", "e.jsonl", "filter=equal-rewards", "filter.empty=refill"]);
    assert!(text(&refill.stderr).contains("filters each round on its own"), "{}", text(&refill.stderr));
}
