//! Runs that are killed, lose power or run out of disk at any call, and end as if nothing had happened.

#![expect(clippy::unwrap_used, reason = "clippy takes functions that tests share for no tests")]

use std::cell::Cell;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use proptest::prelude::*;
use serde_json::{Value, json};
use starpo::experiment::{ExecutionConfig, LoggingConfig};
use starpo::record::archive::archive;
use starpo::record::checkpoint::{self, MANIFEST};
use starpo::record::{Disk, Facts, Progress, RunDir, RunError, State, Timings, digest, garbage, reader};
use starpo::rng::Stream;
use starpo::stage::{Ended, Report, Stage, StageError, drive};

use crate::disk::{End, Fault, Memory};

const NAME: &str = "number-k3v9q0m2c7xw4t1h";
const STEPS: usize = 3;

/// A learner that is one number, driven as all are.
#[derive(Default)]
struct Number {
    weights: u64,
    /// Counts what it was taught, beside the weights.
    taught: u64,
    /// The step that it is at, and the last one that it was asked to save.
    step: usize,
    saved: Cell<Option<usize>>,
    /// The last step that can never be lost, since the next one was begun.
    kept: Option<usize>,
}

impl Stage for Number {
    fn steps(&self) -> usize {
        STEPS
    }

    fn step(&mut self, step: usize, _: &mut Timings) -> Result<Report, String> {
        (self.kept, self.step) = (self.saved.get(), step);
        if step > 0 {
            self.weights = self.weights.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(step as u64);
            self.taught += 1;
        }
        Ok(Report {
            metrics: json!({ "step": step, "weights": self.weights, "taught": self.taught }),
            rollouts: (step > 0).then(|| format!("{{\"step\":{step}}}\n").repeat(3)),
            evals: step.is_multiple_of(2).then(|| format!("{{\"eval\":{step}}}\n")),
            score: (step == 1).then_some(0.5),
            ..Report::default()
        })
    }

    fn save(&self) -> (Vec<(String, Vec<u8>)>, Value) {
        self.saved.set(Some(self.step));
        let weights = self.weights.to_le_bytes();
        let files = [("model.safetensors", weights.repeat(5)), ("optimizer.safetensors", weights.repeat(2))];
        (files.map(|(name, bytes)| (name.to_owned(), bytes)).into(), json!({ "taught": self.taught }))
    }

    fn restore(&mut self, files: &[(String, Vec<u8>)], counters: &Value) -> Result<(), String> {
        self.weights = u64::from_le_bytes(files[0].1[..8].try_into().unwrap());
        self.taught = counters["taught"].as_u64().ok_or("no count")?;
        Ok(())
    }
}

fn runs() -> PathBuf {
    "home/runs".into()
}

fn path() -> PathBuf {
    runs().join(NAME)
}

/// One attempt. `kept` is the last step that attempts before it made sure of; it becomes this one's.
fn attempt(disk: &Disk, every: usize, kept: &mut Option<usize>) -> Result<String, StageError> {
    let run = RunDir::open_or_create(disk, &runs(), NAME, "lock\n", "canon 1\na = 1\n")?;
    let facts = Facts { command: "test".into(), device: "cpu".into(), threads: 1 };
    let Some(begun) = run.begin(&facts)? else { return Ok(reader::digest(disk, run.path())?.unwrap()) };
    let found = begun.checkpoint.as_ref().map(|checkpoint| checkpoint.step);
    assert!(found >= *kept, "step {kept:?} was saved, and {found:?} is what is left");
    let execution = ExecutionConfig {
        device: "cpu".into(),
        threads: None,
        activation_mib: 0,
        cache_mib: None,
        checkpoint_every: every,
        checkpoints: 2,
        log: "info".into(),
    };
    let mut number = Number { saved: Cell::new(found), ..Number::default() };
    let logging = LoggingConfig { tensorboard: false, parquet: false };
    let ended = drive(&mut number, begun, &execution, &logging, &Progress::new("test", 0, STEPS, true));
    *kept = number.kept.max(*kept);
    match ended? {
        Ended::Done { digest } => {
            *kept = Some(STEPS);
            Ok(digest)
        }
        Ended::Interrupted(signal) => panic!("signal {signal}"),
    }
}

/// A run that nothing happens to: its digest, its metrics, and how many calls it takes.
fn calm(every: usize) -> (String, Vec<u8>, usize) {
    let memory = Memory::new();
    let digest = attempt(&memory.disk(), every, &mut None).unwrap();
    (digest, memory.disk().read(&path().join("metrics.jsonl")).unwrap(), memory.calls())
}

/// Written past the capture of tests: CI shows it.
fn tell(text: &str) {
    std::io::stderr().write_all(format!("{text}\n").as_bytes()).unwrap();
}

#[test]
fn every_call_of_a_run_is_a_crash_point() {
    let mut points = 0;
    for every in [1, 2] {
        let (expected, metrics, calls) = calm(every);
        let ends = [End::Process, End::Everything, End::Some(1), End::Some(2), End::Some(3)];
        for (call, end) in (0..calls).flat_map(|call| ends.map(|end| (call, end))) {
            let (memory, mut kept) = (Memory::killed_at(call), None);
            let disk = memory.disk();
            let _ = attempt(&disk, every, &mut kept);
            assert!(memory.is_dead(), "call {call} of {calls}");
            memory.restart(end);
            // A second time, somewhere in the attempt that goes on; or, if that is short, nowhere.
            let second = Stream::new("second", call as u64, &[]).below(calls);
            memory.fault(second, Fault::Kill);
            let _ = attempt(&disk, every, &mut kept);
            memory.restart(ends[call % ends.len()]);
            let digest = attempt(&disk, every, &mut kept);
            let digest = digest.unwrap_or_else(|error| panic!("{end:?} at call {call}, then at {second}: {error}"));
            assert_eq!(digest, expected, "{end:?} at call {call}, then at {second}");
            assert_eq!(disk.read(&path().join("metrics.jsonl")).unwrap(), metrics);
            // What was announced as done stays done.
            memory.restart(End::Everything);
            let calls = memory.calls();
            assert_eq!(
                attempt(&disk, every, &mut kept).unwrap(),
                expected,
                "{end:?} at call {call}, and after the end"
            );
            assert_eq!(memory.calls(), calls + 1, "a finished run is forced, and not written");
            points += 1 + usize::from(second < calls);
        }
    }
    tell(&format!("{points} crash points"));
    assert!(points > 1000, "{points} crash points");
}

/// The run says why it failed, and goes on from what it had.
#[test]
fn every_call_that_fails_is_the_run_s_reason() {
    let (expected, _, calls) = calm(1);
    let mut failures = 0;
    for (call, fault) in (0..calls).flat_map(|call| [Fault::NoSpace, Fault::SyncFails, Fault::Short].map(|f| (call, f)))
    {
        let (memory, mut kept) = (Memory::new(), None);
        let disk = memory.disk();
        memory.fault(call, fault);
        if let Err(error) = attempt(&disk, 1, &mut kept) {
            assert_ne!(fault, Fault::Short, "{error}");
            let summary = reader::list(&disk, &runs()).unwrap().0.pop();
            // Before anything was begun there is nobody to fail.
            if let Some(summary) = summary.filter(|summary| summary.state != State::New) {
                assert_eq!(summary.state, State::Failed(error.to_string()), "{fault:?} at call {call}");
                failures += 1;
            }
        }
        memory.restart(End::Everything);
        assert_eq!(attempt(&disk, 1, &mut kept).unwrap(), expected, "{fault:?} at call {call}");
    }
    assert!(failures > 100, "{failures} failures");
}

/// A read that fails is told with its file, or does not matter; it never makes another result.
#[test]
fn every_read_that_fails_names_its_file() {
    let (expected, _, calls) = calm(1);
    let (mut told, mut reads) = (0, 0);
    // A run that is killed at several places, and goes on where one read fails.
    for killed in (0..calls).step_by(calls / 9) {
        for read in 0.. {
            let (memory, mut kept) = (Memory::killed_at(killed), None);
            let disk = memory.disk();
            let _ = attempt(&disk, 1, &mut kept);
            memory.restart(End::Process);
            memory.fail_read(read);
            let before = memory.reads();
            // An unread checkpoint is passed over for the one before it.
            match attempt(&disk, 1, &mut None) {
                Ok(digest) => assert_eq!(digest, expected, "read {read} after a kill at {killed}"),
                Err(error) => told += usize::from(names_a_file(&error.to_string())),
            }
            let done = memory.reads() - before <= read;
            memory.restart(End::Process);
            assert_eq!(attempt(&disk, 1, &mut None).unwrap(), expected, "read {read} after a kill at {killed}");
            reads += 1;
            if done {
                break;
            }
        }
    }
    assert!(told > 100, "{told} of {reads}");
}

#[track_caller]
fn names_a_file(error: &str) -> bool {
    let path = error.strip_suffix(": input/output error").and_then(|error| error.split(' ').nth(2));
    assert!(error.starts_with("cannot ") && path.is_some_and(|path| !path.is_empty()), "{error}");
    true
}

#[test]
fn every_verb_that_cannot_read_names_the_file() {
    let memory = Memory::new();
    let disk = memory.disk();
    attempt(&disk, 1, &mut None).unwrap();
    let golden = Path::new("golden");
    type Verb = fn(&Disk) -> Result<String, RunError>;
    let verbs: [(&str, Verb); 8] = [
        ("ls", |disk| reader::summary(disk, &path()).map(|found| format!("{found:?}"))),
        ("metrics", |disk| reader::metrics(disk, &path()).map(|found| format!("{found:?}"))),
        ("report", |disk| reader::lost(disk, &path()).map(|found| format!("{found:?}"))),
        ("result", |disk| reader::result(disk, &path()).map(|found| format!("{found:?}"))),
        ("digest", |disk| digest::digest(disk, &path())),
        ("export", |disk| archive(disk, &RunDir::open(disk, &path()), "x").map(|found| format!("{found:?}"))),
        ("find", |disk| reader::find(disk, &runs(), &NAME[..9]).map(|found| format!("{found:?}"))),
        ("gc", |disk| garbage::find(disk, &runs(), Path::new("golden")).map(|found| format!("{found:?}"))),
    ];
    disk.ensure_folder(golden).unwrap();
    disk.write_new(&golden.join("figure.txt"), NAME.as_bytes()).unwrap();
    for (verb, act) in verbs {
        let before = memory.reads();
        let calm = act(&disk).unwrap();
        let reads = memory.reads() - before;
        for read in 0..reads {
            memory.fail_read(read);
            match act(&disk) {
                Err(error) => assert!(names_a_file(&error.to_string())),
                // Beside what is judged stands what could not be.
                Ok(found) => {
                    let kept = found == calm || verb == "gc" && found.contains("input/output error");
                    assert!(kept, "{verb}, read {read} of {reads}: {found}");
                }
            }
        }
        assert!(reads > 0, "{verb}");
    }
}

#[test]
fn a_full_disk_keeps_everything_up_to_the_last_checkpoint() {
    let (expected, _, _) = calm(1);
    let memory = Memory::new();
    RunDir::open_or_create(&memory.disk(), &runs(), NAME, "lock\n", "canon 1\na = 1\n").unwrap();
    let (mut failures, mut saved) = (0, 0);
    for capacity in (memory.used()..).step_by(61) {
        let (memory, mut kept) = (Memory::new(), None);
        let disk = memory.disk();
        RunDir::open_or_create(&disk, &runs(), NAME, "lock\n", "canon 1\na = 1\n").unwrap();
        memory.set_capacity(Some(capacity));
        let Err(error) = attempt(&disk, 1, &mut kept) else { break };
        assert!(error.to_string().contains("no storage space"), "{error}");
        let state = reader::summary(&disk, &path()).unwrap().state;
        // Too little for a word is too little for anything.
        assert!(state == State::Failed(error.to_string()) || state == State::New, "{capacity}: {state:?}");
        let found = checkpoint::latest(&disk, &path()).unwrap();
        assert!(found.warnings.is_empty() && found.checkpoint.map(|found| found.step) >= kept, "{capacity}");
        failures += usize::from(state != State::New);
        saved += usize::from(kept.is_some());
        memory.restart(End::Process);
        memory.set_capacity(None);
        assert_eq!(attempt(&disk, 1, &mut kept).unwrap(), expected, "{capacity}");
    }
    assert!(failures > 30 && saved > 10, "{failures} failures, {saved} of them after a checkpoint");
}

#[test]
fn a_flipped_bit_of_any_class_falls_back_to_the_checkpoint_before() {
    let (expected, metrics, calls) = calm(1);
    // Killed after the checkpoint of step 2 and before that of step 3.
    let interrupted = || {
        (0..calls).rev().map(Memory::killed_at).find(|memory| {
            let _ = attempt(&memory.disk(), 1, &mut None);
            checkpoint::steps(&memory.disk(), &path()).unwrap() == [1, 2]
        })
    };
    let newest = checkpoint::folder(&path(), 2);
    let manifest = String::from_utf8(interrupted().unwrap().disk().read(&newest.join(MANIFEST)).unwrap()).unwrap();
    let inside = |word: &str| manifest.find(word).unwrap() + word.len() + 2;
    let classes = [
        ("weights", "model.safetensors", 17),
        ("optimizer", "optimizer.safetensors", 3),
        ("a file's digest", MANIFEST, inside("\"blake3\": ")),
        ("a file's length", MANIFEST, inside("\"bytes\"")),
        ("the step", MANIFEST, inside("\"step\"")),
        ("an offset", MANIFEST, inside("\"metrics.jsonl\"")),
        ("a counter", MANIFEST, inside("\"taught\"")),
        ("the best step", MANIFEST, inside("\"score\"")),
        ("the seal", MANIFEST, inside("\"seal\": ")),
        ("the schema", MANIFEST, inside("\"schema\": ")),
    ];
    for (class, file, at) in classes {
        let memory = interrupted().unwrap();
        memory.restart(End::Process);
        memory.flip(&newest.join(file), at);
        let disk = memory.disk();
        let found = checkpoint::latest(&disk, &path()).unwrap();
        assert_eq!(found.checkpoint.map(|found| found.step), Some(1), "{class}");
        assert!(found.warnings[0].starts_with("checkpoint 2 is passed over: "), "{class}: {:?}", found.warnings);
        assert_eq!(attempt(&disk, 1, &mut None).unwrap(), expected, "{class}");
        assert_eq!(disk.read(&path().join("metrics.jsonl")).unwrap(), metrics, "{class}");
    }
}

fn misfortune() -> impl Strategy<Value = (Vec<(usize, Fault)>, End)> {
    let fault = prop_oneof![
        3 => Just(Fault::Kill), 2 => Just(Fault::NoSpace), 2 => Just(Fault::SyncFails), 1 => Just(Fault::Short)
    ];
    let end = prop_oneof![Just(End::Process), Just(End::Everything), any::<u64>().prop_map(End::Some)];
    (prop::collection::vec((0..250_usize, fault), 0..4), end)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_run_of_bad_luck_ends_well(attempts in prop::collection::vec(misfortune(), 1..6), every in 1..4_usize) {
        let (memory, mut kept) = (Memory::new(), None);
        let disk = memory.disk();
        for (faults, end) in attempts {
            faults.into_iter().for_each(|(call, fault)| memory.fault(call, fault));
            let _ = attempt(&disk, every, &mut kept);
            memory.restart(end);
        }
        prop_assert_eq!(attempt(&disk, every, &mut kept).unwrap(), calm(every).0);
    }
}

/// The attic may be on another disk: a run that is moved there is at any moment at one of the two places, whole.
#[test]
fn a_run_is_moved_aside_to_another_file_system() {
    let place = runs().join(format!("attic/{NAME}-1"));
    let ready = |call| {
        let memory = Memory::new();
        attempt(&memory.disk(), 1, &mut None).unwrap();
        memory.disk().ensure_folder(&runs().join("attic")).unwrap();
        memory.mount("attic");
        memory.fault(call, Fault::Kill);
        memory
    };
    let calls = {
        let memory = ready(usize::MAX / 2);
        let before = memory.calls();
        assert_eq!(RunDir::set_aside(&memory.disk(), &runs(), NAME).unwrap(), Some(place.clone()));
        memory.calls() - before
    };
    let (expected, ..) = calm(1);
    for (call, end) in (0..calls).flat_map(|call| [End::Process, End::Everything, End::Some(7)].map(|end| (call, end)))
    {
        let memory = ready(call);
        let disk = memory.disk();
        let _ = RunDir::set_aside(&disk, &runs(), NAME);
        memory.restart(end);
        let there = |run: &PathBuf| disk.exists(&run.join("run.lock.kdl")).unwrap();
        let found: Vec<PathBuf> = [path(), place.clone()].into_iter().filter(there).collect();
        let whole = |run: &PathBuf| digest::digest(&disk, run).is_ok_and(|digest| digest == expected);
        assert!(!found.is_empty() && found.iter().all(whole), "{end:?} at call {call}: {found:?}");
    }
    assert!(calls > 50, "{calls} calls");
}

/// Kills a real process fifty times, each time a little after it has got on by a step.
#[test]
fn fifty_kills_of_a_process_change_nothing() {
    const KILLS: usize = 50;
    let folder = tempfile::tempdir().unwrap();
    let model = "model \"tiny\" { width 8; layers 1; heads 1; kv-heads 1; ffn 8 }";
    let experiment = format!("experiment \"kills\" {{\n    extends \"bandit\"\n    {model}\n}}\n");
    fs::create_dir(folder.path().join("experiments")).unwrap();
    fs::write(folder.path().join("experiments/kills.kdl"), experiment).unwrap();
    let start = |runs: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_starpo"));
        command.args(["run", "kills", "warm-start=none", "steps=200", "groups=2", "group-size=2", "eval.tasks=0"]);
        command.args(["max-response-tokens=4", "checkpoint-every=1", "threads=1", "collapse.every=0"]);
        command.args(["--runs-dir", runs]).current_dir(folder.path()).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().unwrap()
    };
    let lines = |runs: &str| {
        let found = reader::list(&Disk::default(), &folder.path().join(runs)).unwrap().0;
        found
            .first()
            .map_or(0, |run| fs::read_to_string(run.path.join("metrics.jsonl")).map_or(0, |t| t.lines().count()))
    };
    assert!(start("calm").wait().unwrap().success());
    for kill in 0..KILLS {
        let (before, mut child) = (lines("killed"), start("killed"));
        while lines("killed") <= before && child.try_wait().unwrap().is_none() {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        let late = Stream::new("late", kill as u64, &[]).below(8000);
        std::thread::sleep(std::time::Duration::from_micros(late as u64));
        child.kill().unwrap();
        assert!(!child.wait().unwrap().success(), "it ended before kill {kill}");
    }
    assert!(start("killed").wait().unwrap().success());
    let digest = |runs: &str| {
        let run = reader::list(&Disk::default(), &folder.path().join(runs)).unwrap().0.remove(0).path;
        (reader::digest(&Disk::default(), &run).unwrap().unwrap(), fs::read(run.join("metrics.jsonl")).unwrap())
    };
    assert!(digest("calm") == digest("killed"));
    let attempts = folder.path().join("killed");
    let run: &Path = &reader::list(&Disk::default(), &attempts).unwrap().0[0].path;
    tell(&format!("{} attempts after {KILLS} kills", fs::read_dir(run.join("attempts")).unwrap().count()));
}
