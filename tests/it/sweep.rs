//! Sweeps as a person meets them: carried out, killed, gone on with, compared.

use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use starpo::record::{Disk, Progress, State};
use starpo::sweep::{CellResult, Comparison, Job, Launcher, Pool, Room, SweepEnded, drive};

/// Runs of a second or two that share a warm start.
const TINY: [&str; 14] = [
    "warm-start.episodes=4",
    "warm-start.steps=2",
    "warm-start.batch=4",
    "width=16",
    "layers=1",
    "ffn=16",
    "groups=2",
    "group-size=2",
    "max-turns=1",
    "max-response-tokens=60",
    "eval.tasks=4",
    "eval.every=2",
    "checkpoint-every=1",
    "train.steps=4",
];

const SWEEP: &str = "sweep \"tiny\" {
    experiment \"repro\"
    grid { seed \"1..=2\" }
    case \"none\" { filter \"none\" }
    case \"top-p\" { filter \"top-p\" { value 0.9 } }
    case \"the | same\" { filter \"none\" }
    baseline \"none\"
    noise \"again\" shift=50
}
";

fn command(folder: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_starpo"));
    command.args(words).current_dir(folder).env("NO_COLOR", "1");
    command
}

fn starpo(folder: &Path, words: &[&str]) -> Output {
    command(folder, words).output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// A folder with the sweep in it.
fn project() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(folder.path().join("experiments/sweeps")).unwrap();
    std::fs::write(folder.path().join("experiments/sweeps/tiny.kdl"), SWEEP).unwrap();
    folder
}

fn words<'w>(more: &[&'w str]) -> Vec<&'w str> {
    [&["sweep", "tiny"], &TINY[..], more].concat()
}

/// Runs and digests of a sweep's cells.
fn digests(output: &Output) -> Vec<(String, String)> {
    let document: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", text(&output.stderr)));
    let cells = document["cells"].as_array().unwrap();
    cells.iter().map(|cell| (cell["run"].to_string(), cell["digest"].to_string())).collect()
}

fn attempts(folder: &Path) -> usize {
    let runs = std::fs::read_dir(folder.join("runs")).unwrap().map(|entry| entry.unwrap().path().join("attempts"));
    runs.filter_map(|attempts| std::fs::read_dir(attempts).ok()).map(Iterator::count).sum()
}

#[test]
fn a_sweep_is_carried_out_once_and_goes_on_after_a_kill() {
    let (calm, killed) = (project(), project());
    let first = starpo(calm.path(), &words(&["--json"]));
    assert!(first.status.success(), "{}", text(&first.stderr));
    let whole = digests(&first);
    assert_eq!(whole.len(), 8);
    assert_eq!(whole[0], whole[4], "equal cells are one run");
    let runs = attempts(calm.path());
    assert_eq!(runs, 7, "six runs and their warm start");
    let again = starpo(calm.path(), &words(&[]));
    assert!(again.status.success() && attempts(calm.path()) == runs, "nothing is done twice");
    let table = text(&again.stdout);
    assert!(table.contains("8 of 8 cells done") && table.contains("A/A: two equal settings, 2 pairs"), "{table}");

    let sweep = std::fs::read_dir(calm.path().join("runs/sweeps")).unwrap().next().unwrap().unwrap();
    let page = std::fs::read_to_string(sweep.path().join("report.html")).unwrap();
    assert!(page.contains("again") && page.contains("eval.success"), "the page of the sweep");

    let list = starpo(killed.path(), &words(&["--dry-run"]));
    assert_eq!(text(&list.stdout).lines().filter(|line| line.starts_with("new")).count(), 8, "{}", text(&list.stderr));
    // The locks are written: what the documents say from here on changes nothing.
    std::fs::write(killed.path().join("experiments/sweeps/tiny.kdl"), "sweep \"tiny\" { nonsense }").unwrap();
    let name = std::fs::read_dir(killed.path().join("runs/sweeps")).unwrap().next().unwrap().unwrap().file_name();
    let name = name.to_str().unwrap();
    for steps in [1, 5] {
        let mut sweep =
            command(killed.path(), &["sweep", name, "--retries", "0"]).stderr(Stdio::null()).spawn().unwrap();
        let lines = || {
            let runs = std::fs::read_dir(killed.path().join("runs")).unwrap();
            let metrics = runs.map(|entry| std::fs::read_to_string(entry.unwrap().path().join("metrics.jsonl")));
            metrics.map(|text| text.unwrap_or_default().lines().count()).sum::<usize>()
        };
        while lines() < steps && sweep.try_wait().unwrap().is_none() {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        sweep.kill().unwrap();
        sweep.wait().unwrap();
    }
    let last = starpo(killed.path(), &["sweep", name, "--json"]);
    assert!(last.status.success(), "{}", text(&last.stderr));
    assert_eq!(digests(&last), whole);
    let tables =
        [(&calm, "tiny-"), (&killed, name)].map(|(folder, name)| starpo(folder.path(), &["compare", name]).stdout);
    assert_eq!(text(&tables[0]), text(&tables[1]));
    let md = starpo(calm.path(), &["compare", "tiny-", "repro-", "--md"]);
    assert_eq!(md.status.code(), Some(2), "the prefix of several runs");
    let runs = digests(&first).into_iter().map(|(run, _)| run.trim_matches('"').to_owned()).collect::<Vec<_>>();
    let md = starpo(calm.path(), &["compare", &runs[0], &runs[2], "tiny-", "--md", "--metric", "eval.reward"]);
    assert!(md.status.success(), "{}", text(&md.stderr));
    assert_eq!(text(&md.stdout).lines().filter(|line| line.starts_with("| ")).count(), 2 + 2 + 4);
    // A case says more than its overrides do.
    let readme = |run: &str| {
        assert!(starpo(calm.path(), &["export", run, "-o", "run.tar.zst"]).status.success());
        let tar = zstd::decode_all(&std::fs::read(calm.path().join("run.tar.zst")).unwrap()[..]).unwrap();
        String::from_utf8_lossy(&tar[512..1536]).into_owned()
    };
    let case = readme(&runs[1]);
    assert!(!case.contains("starpo run") && case.contains(&format!("starpo verify {}", runs[1])), "{case}");
    assert!(
        text(&md.stdout).contains("| tiny-") && text(&md.stdout).contains(" the \\| same | 2 |"),
        "{}",
        text(&md.stdout)
    );
    let list = starpo(calm.path(), &["ls"]);
    assert_eq!(text(&list.stdout).lines().count(), 1 + 7, "{}", text(&list.stdout));
    what_is_gone_is_named(calm.path(), &runs[2]);
}

/// What is left of a sweep is compared without a run that somebody removed; a later version's list is no damage.
fn what_is_gone_is_named(folder: &Path, run: &str) {
    std::fs::remove_dir_all(folder.join("runs").join(run)).unwrap();
    let told = format!("7 of 8 cells done\nmissing: the directory of {run} is not there\n");
    let table = starpo(folder, &["compare", "tiny-"]);
    assert!(text(&table.stdout).contains(&told), "{}{}", text(&table.stdout), text(&table.stderr));
    let json: Value = serde_json::from_slice(&starpo(folder, &["compare", "tiny-", "--json"]).stdout).unwrap();
    assert_eq!(json["missing"], serde_json::json!([run]));
    assert!(starpo(folder, &["report", "tiny-", "-o", "page.html"]).status.success());
    let page = std::fs::read_to_string(folder.join("page.html")).unwrap();
    assert!(page.contains(&format!("<code>{run}</code> is not there")));
    for words in [&["sweep", "tiny-"][..], &["sweep", "tiny-", "--dry-run"]] {
        let gone = starpo(folder, words);
        let error: String = text(&gone.stderr).split_whitespace().filter(|word| *word != "│").collect();
        assert!(gone.status.code() == Some(2) && error.contains(&format!("aregone:{run}")), "{error}");
    }
    let sweep =
        std::fs::read_dir(folder.join("runs/sweeps")).unwrap().next().unwrap().unwrap().path().join("sweep.kdl");
    let list = std::fs::read_to_string(&sweep).unwrap();
    std::fs::write(&sweep, list.replacen("format=1", "format=2", 1)).unwrap();
    let later = starpo(folder, &["compare", "tiny-"]);
    let error: String = text(&later.stderr).split_whitespace().filter(|word| *word != "│").collect();
    assert!(error.contains("writtenbyalaterversion:itsformatis2") && !error.contains("damaged"), "{error}");
}

#[test]
fn a_signal_reaches_every_run_and_the_same_command_goes_on() {
    let folder = project();
    let long = words(&["train.steps=400", "--json"]);
    let long: Vec<&str> = long.into_iter().filter(|word| *word != "train.steps=4").collect();
    let mut sweep = command(folder.path(), &long).stderr(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
    let begun = || {
        let runs = std::fs::read_dir(folder.path().join("runs")).into_iter().flatten().flatten();
        runs.filter(|run| run.file_name().to_str().is_some_and(|name| name.starts_with("repro-")))
            .filter(|run| run.path().join("metrics.jsonl").exists())
            .count()
    };
    while begun() < 1 && sweep.try_wait().unwrap().is_none() {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let interrupt = Command::new("kill").args(["-INT", &sweep.id().to_string()]).status().unwrap();
    assert!(interrupt.success());
    let status = sweep.wait_with_output().unwrap().status;
    assert_eq!(status.code(), Some(130));
    let list = starpo(folder.path(), &["ls"]);
    let states: Vec<&str> = text(&list.stdout).lines().filter_map(|line| line.split_whitespace().nth(1)).collect();
    assert!(states.contains(&"interrupted") && states.contains(&"new") && !states.contains(&"running"), "{states:?}");
}

#[test]
fn what_fails_is_tried_again_and_then_told() {
    let folder = project();
    // This build knows no such device.
    let failing = words(&["device=wgpu", "numerics=gpu-f32", "--retries", "1"]);
    let output = starpo(folder.path(), &failing);
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stderr));
    let error = text(&output.stderr);
    assert!(error.contains("begins again: it never began"), "{error}");
    assert!(error.contains("7 runs failed") && error.contains("its warm start"), "{error}");
    let bad = starpo(folder.path(), &words(&["seed=5..5"]));
    assert_eq!(bad.status.code(), Some(2));
    let several = starpo(folder.path(), &["run", "repro", "seed=1,2"]);
    assert!(text(&several.stderr).contains("starpo sweep"), "{}", text(&several.stderr));
    let unknown = starpo(folder.path(), &["sweep", "tinny"]);
    assert!(text(&unknown.stderr).contains("sweeps/tiny"), "{}", text(&unknown.stderr));
}

/// Runs that nobody asks after any more are told to end.
#[test]
fn a_pool_that_goes_takes_its_processes_along() {
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("program");
    let script = "#!/bin/sh\ntrap 'touch \"$0.ended\"; exit' TERM\ntouch \"$0.begun\"\nwhile :; do sleep 0.02; done\n";
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let wait = |name: &str| {
        while !folder.path().join(name).exists() {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    };
    let here = || folder.path().to_owned();
    let mut pool = Pool::new(program.clone(), here(), here(), Room::new(Some(1), Some(1), 1));
    pool.start(&[Job { run: "a".to_owned(), after: None }]).unwrap();
    wait("program.begun");
    drop(pool);
    wait("program.ended");
}

/// Ends what it is given at once, runs before the warm start that they came after.
#[derive(Default)]
struct Backwards {
    given: Vec<String>,
    starts: usize,
}

impl Launcher for Backwards {
    fn start(&mut self, jobs: &[Job]) -> std::io::Result<()> {
        self.given.extend(jobs.iter().map(|job| job.run.clone()));
        self.starts += 1;
        Ok(())
    }

    fn poll(&mut self) -> std::io::Result<Vec<String>> {
        Ok(self.given.drain(..).rev().collect())
    }

    fn stop(&mut self, _: i32) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_failed_warm_start_is_judged_before_what_came_after_it() {
    let folder = tempfile::tempdir().unwrap();
    let job = |run: &str, after: Option<&str>| Job { run: run.to_owned(), after: after.map(str::to_owned) };
    let jobs = [job("warm-1", None), job("a-1", Some("warm-1")), job("b-1", Some("warm-1"))];
    let (mut launcher, progress) = (Backwards::default(), Progress::new("test", 0, 3, true));
    let ended = drive(&Disk::default(), folder.path(), &jobs, &mut launcher, 0, &progress).unwrap();
    let SweepEnded::Failed(failed) = ended else { panic!("{ended:?}") };
    assert_eq!((failed.len(), launcher.starts), (3, 1), "{failed:?}");
}

/// A finished run that solved these of two tasks.
fn cell(case: &str, seed: u64, solved: [f64; 2]) -> CellResult {
    let tasks = solved.iter().enumerate().map(|(group, value)| ((group, "x".to_owned(), group as u64), *value));
    let mean = (solved[0] + solved[1]) / 2.0;
    CellResult {
        case: case.to_owned(),
        axes: Vec::new(),
        seed,
        run: format!("{case}-{seed}"),
        path: "x".into(),
        state: State::Done,
        digest: None,
        metrics: vec![serde_json::json!({"eval": {"success": mean, "turns": 2.0 * seed as f64}})],
        tasks: [("eval.success".to_owned(), tasks.collect())].into(),
    }
}

/// Worked by hand. Seeds 1, 2, 3; tasks a, b. Baseline solves (1, 0), (0, 0), (1, 0); the other (1, 1), (0, 1), (1, 0).
/// By seed the differences are 0.5, 0.5, 0: mean 1/3, deviation √(1/12), error 1/6. By task, averaged over seeds: a 0,
/// b 2/3: deviation √2/3, error 1/3. Means are 1/3 and 2/3; deviation of the baseline √(1/12).
#[test]
fn differences_are_paired_by_seed_and_by_task() {
    let mut cells = vec![cell("base", 1, [1.0, 0.0]), cell("base", 2, [0.0, 0.0]), cell("base", 3, [1.0, 0.0])];
    // In another order: seeds pair, not places.
    cells.extend([cell("other", 3, [1.0, 0.0]), cell("other", 1, [1.0, 1.0]), cell("other", 2, [0.0, 1.0])]);
    cells.extend([cell("again", 11, [1.0, 1.0]), cell("again", 12, [0.0, 0.0])]);
    cells.push(CellResult { state: State::Interrupted, ..cell("other", 4, [1.0, 1.0]) });
    let metrics = vec!["eval.success".to_owned(), "eval.turns".to_owned()];
    let Comparison { arms, .. } = Comparison::new(&cells, metrics, Some("base"), Some("again"), 0.5);
    let near = |a: f64, b: f64| (a - b).abs() < 1e-12;
    let [base, other, again] = &arms[..] else { panic!("{arms:?}") };
    let success = &base.measured[0];
    assert!(near(success.mean, 1.0 / 3.0) && near(success.error.unwrap(), 1.0 / 6.0), "{success:?}");
    // 2 · (2.801585 · 0.288675 / 0.5)² = 5.23.
    assert_eq!((success.needed, &success.paired), (Some(6), &None));
    let paired = other.measured[0].paired.as_ref().unwrap();
    assert!(near(other.measured[0].mean, 2.0 / 3.0) && near(paired.mean, 1.0 / 3.0), "{paired:?}");
    assert!(near(paired.error.unwrap(), 1.0 / 6.0), "{paired:?}");
    let (tasks, error) = paired.tasks.unwrap();
    assert!(tasks == 2 && near(error, 1.0 / 3.0), "{paired:?}");
    assert_eq!((paired.interval, paired.needed), (Some((0.0, 0.5)), Some(3)));
    assert_eq!((other.done, other.cells.len(), paired.differences.as_slice()), (3, 4, &[0.0, 0.5, 0.5][..]));
    let noise = again.measured[0].paired.as_ref().unwrap();
    assert!(again.is_noise && noise.differences == [0.5, 0.0], "{noise:?}");
    let turns = other.measured[1].paired.as_ref().unwrap();
    assert_eq!((turns.mean, turns.error, turns.tasks), (0.0, Some(0.0), None));
}

/// A run counts once in an arm; noise pairs by place, whatever is done; a baseline without an axis is that of all
/// values of the axis.
#[test]
fn arms_count_runs_and_pair_what_belongs_together() {
    let [solved, half, failed] = [[1.0, 1.0], [1.0, 0.0], [0.0, 0.0]];
    let undone = CellResult { state: State::Interrupted, ..cell("base", 2, failed) };
    let mut cells = vec![cell("base", 1, solved), undone, cell("base", 3, failed), cell("base", 3, failed)];
    cells.extend([cell("again", 11, half), cell("again", 12, solved), cell("again", 13, solved)]);
    let axes = vec![("filter.value".to_owned(), "0.5".to_owned())];
    cells.push(CellResult { axes, ..cell("low", 1, half) });
    let Comparison { arms, .. } =
        Comparison::new(&cells, vec!["eval.success".to_owned()], Some("base"), Some("again"), 0.5);
    let [base, again, low] = &arms[..] else { panic!("{arms:?}") };
    assert_eq!((base.done, base.measured[0].values.as_slice()), (2, &[1.0, 0.0][..]));
    assert_eq!(again.measured[0].paired.as_ref().unwrap().differences, [-0.5, 1.0]);
    assert_eq!(low.measured[0].paired.as_ref().unwrap().differences, [-0.5]);
    assert_eq!([base, again, low].map(|arm| arm.baseline), [None, Some(0), Some(0)]);
    // Crossed by an axis, each arm has the baseline of its own value.
    let at =
        |case: &str, value: &str| CellResult { axes: vec![("a".to_owned(), value.to_owned())], ..cell(case, 1, half) };
    let cells = [at("base", "1"), at("base", "2"), at("other", "1"), at("other", "2")];
    let arms = Comparison::new(&cells, Vec::new(), Some("base"), None, 0.5).arms;
    assert_eq!(arms.iter().map(|arm| arm.baseline).collect::<Vec<_>>(), [None, None, Some(0), Some(1)]);
}
