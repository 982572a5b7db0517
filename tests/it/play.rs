//! `starpo env` and `starpo metrics`, as a person meets them.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::golden;

fn starpo(folder: &Path, arguments: &[&str], input: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_starpo"));
    command.args(arguments).current_dir(folder).env("NO_COLOR", "1");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

fn says(arguments: &[&str], input: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let output = starpo(folder.path(), arguments, input);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The same text as on a terminal, where the lines after `> ` are typed.
#[test]
fn a_person_sees_what_the_model_sees() {
    let lake = ["env", "play", "coord-frozen-lake", "--split", "validation", "--task", "1"];
    let mut text = format!("$ starpo {}\n", lake.join(" "));
    let whole = "<think>both down</think><answer>Down || Down</answer>";
    text += &says(&lake, &format!("?\nfly\nLeft || jump\n{whole}\nRight || Right\n"));
    for (words, input) in
        [("countdown rollout.think=false", "29 + 28\n"), ("number-line rollout.window=single-turn", "+\n")]
    {
        let words: Vec<&str> = ["env", "play"].into_iter().chain(words.split(' ')).collect();
        text += &format!("\n$ starpo {}\n{}", words.join(" "), says(&words, input));
    }
    golden("cli", "play", &text);
}

#[test]
fn a_played_episode_is_a_record() {
    let record = says(&["env", "play", "bandit", "--json"], "?\nnothing\n");
    let record: serde_json::Value = serde_json::from_str(&record).unwrap();
    assert_eq!(record["schema"], "starpo.episode/1");
    assert_eq!(record["turns"][0]["text"], "<think></think><answer>nothing</answer>");
    assert_eq!((&record["turns"][0]["valid"], &record["end"]), (&false.into(), &"turn-limit".into()));
}

#[test]
fn environments_are_listed_and_shown() {
    let list = says(&["env", "ls"], "");
    assert!(list.lines().count() > 20 && list.contains("\nsimple-sokoban "), "{list}");
    let shown = says(&["env", "render", "2048", "--task", "3"], "");
    assert!(shown.contains("You are playing 2048") && shown.contains("Score: 0"), "{shown}");
    let page = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/environments.md")).unwrap();
    let first = says(&["env", "render", "simple-sokoban", "--split", "validation", "--json"], "");
    let first: serde_json::Value = serde_json::from_str(&first).unwrap();
    let board = first["prompt"].as_str().unwrap().split("user\n").nth(1).unwrap();
    assert!(page.contains(board.split("<|im_end|>").next().unwrap()), "{board}");
    let folder = tempfile::tempdir().unwrap();
    let unknown = starpo(folder.path(), &["env", "play", "chess"], "");
    assert_eq!(unknown.status.code(), Some(2));
    // An experiment's own words.
    let bare = says(&["env", "render", "experiments/sokoban.kdl"], "");
    assert!(!bare.contains("You are solving"), "{bare}");
}

#[test]
fn a_runs_records_are_tables() {
    let folder = tempfile::tempdir().unwrap();
    let quick = ["warm-start=none", "steps=2", "width=16", "layers=1", "ffn=16", "groups=2", "group-size=2"];
    let short = ["max-turns=1", "max-response-tokens=4", "eval.tasks=2", "threads=1", "logging.tensorboard=true"];
    let run = starpo(folder.path(), &[&["run", "bandit"], &quick[..], &short].concat(), "");
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
    let say = |words: &[&str]| {
        let output = starpo(folder.path(), &[&["metrics", "bandit-"], words].concat(), "");
        (output.status.code(), String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, csv, _) = say(&[]);
    assert_eq!((code, csv.lines().count()), (Some(0), 4), "{csv}");
    assert!(csv.starts_with("step,") && csv.lines().next().unwrap().contains(",rollout.success,"), "{csv}");
    let (_, turns, _) = say(&["--turns", "--json"]);
    let turns: serde_json::Value = serde_json::from_str(&turns).unwrap();
    assert_eq!((turns.as_array().unwrap().len(), &turns[7]["step"], &turns[7]["turn"]), (8, &2.into(), &1.into()));
    assert_eq!(say(&["--tensorboard", "events"]).0, Some(0));
    assert!(folder.path().join("events/events.out.tfevents.0000000001.starpo").is_file());
    if cfg!(not(feature = "parquet")) {
        let (code, _, error) = say(&["--parquet", "x.parquet"]);
        assert_eq!(code, Some(2));
        assert!(error.contains("built without Parquet"), "{error}");
    }
}
