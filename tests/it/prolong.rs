//! Longer runs: what they take from shorter ones, and that nobody can tell.

use std::path::Path;

use serde_json::{Value, json};
use starpo::experiment::Resolved;
use starpo::record::digest::digest;
use starpo::record::{Disk, Facts, Progress, RunDir, Timings, checkpoint, reader};
use starpo::schedule::ScheduleConfig;
use starpo::stage::{Report, Stage, drive};

use crate::disk::{End, Fault, Memory};
use crate::run::{SMALL, attempt, resolve};

const RUNS: &str = "runs";

fn run(steps: usize, more: &[&str]) -> Resolved {
    let steps = format!("steps={steps}");
    resolve(
        "bandit",
        &[
            &SMALL[..],
            &["groups=2", "group-size=2", "eval.tasks=2", "checkpoint-every=3", "schedule=constant", &steps],
            more,
        ]
        .concat(),
    )
}

/// Every file of a run, with its bytes.
fn files(disk: &Disk, folder: &Path) -> Vec<(String, Vec<u8>)> {
    let inner = |name: &String| {
        let path = folder.join(name);
        match disk.names(&path) {
            Ok(_) => files(disk, &path),
            Err(_) => vec![(path.display().to_string(), disk.read(&path).unwrap())],
        }
    };
    // A restart writes leases.
    disk.names(folder).unwrap().iter().filter(|name| *name != "lease").flat_map(inner).collect()
}

fn directory(resolved: &Resolved) -> std::path::PathBuf {
    Path::new(RUNS).join(resolved.id().to_string())
}

/// The step of `short` after which `long` goes on, if it does.
fn goes_on_after(disk: &Disk, long: &Resolved) -> Option<usize> {
    let run = RunDir::open_or_create(disk, Path::new(RUNS), &long.id().to_string(), &long.lock(), &long.canon).unwrap();
    let facts = Facts { command: "test".into(), device: "cpu".into(), threads: 1 };
    run.begin(&facts).unwrap().unwrap().prolong().unwrap().map(|(_, step)| step)
}

/// Ten steps, then twenty, killed twice on the way: twenty.
#[test]
fn ten_steps_then_twenty_are_twenty() {
    let (ten, twenty) = (run(10, &["eval.every=5"]), run(20, &["eval.every=5"]));
    let (calm, memory) = (Memory::new(), Memory::new());
    let expected = attempt(&calm.disk(), Path::new(RUNS), &twenty).unwrap();
    let disk = memory.disk();
    attempt(&disk, Path::new(RUNS), &ten).unwrap();
    let before = files(&disk, &directory(&ten));

    let calls = memory.calls();
    assert_eq!(goes_on_after(&disk, &twenty), Some(10));
    let copying = memory.calls() - calls;
    // While the steps are copied, and while the next ones are made.
    disk.remove(&directory(&twenty)).unwrap();
    for call in [copying / 2, copying + 60] {
        memory.fault(call, Fault::Kill);
        assert!(attempt(&disk, Path::new(RUNS), &twenty).is_err());
        memory.restart(End::Process);
    }
    assert_eq!(attempt(&disk, Path::new(RUNS), &twenty).unwrap(), expected);
    assert!(files(&disk, &directory(&ten)) == before, "the shorter run is as it was");
    let result = |disk: &Disk| reader::result(disk, &directory(&twenty)).unwrap();
    assert_eq!(result(&disk), result(&calm.disk()));
    let metrics = |disk: &Disk| disk.read(&directory(&twenty).join("metrics.jsonl")).unwrap();
    assert_eq!(metrics(&disk), metrics(&calm.disk()));
}

/// What knew the length of the run is made again: a final evaluation, the steps of a schedule that falls.
#[test]
fn a_longer_run_takes_what_did_not_know_the_length() {
    let cases: [(&[&str], Option<usize>); 7] = [
        (&["eval.every=5"], Some(10)),
        // The evaluation after step 10 is there because the run ends.
        (&["eval.every=4"], Some(9)),
        (&["eval.every=4", "eval.tasks=0"], Some(10)),
        (&["schedule=linear"], Some(0)),
        (&["schedule=cosine", "schedule.floor=0.1"], Some(0)),
        (&["schedule=cosine", "schedule.warmup=8"], Some(6)),
        (&["filter=top-p", "filter.value=0.9", "mini-batch=2"], Some(10)),
    ];
    for (more, expected) in cases {
        let more = [&["eval.every=5", "checkpoints=1000"], more].concat();
        let (ten, twenty) = (run(10, &more), run(20, &more));
        let (calm, memory) = (Memory::new(), Memory::new());
        attempt(&memory.disk(), Path::new(RUNS), &ten).unwrap();
        assert_eq!(goes_on_after(&memory.disk(), &twenty), expected, "{more:?}");
        let both = [&calm, &memory].map(|memory| attempt(&memory.disk(), Path::new(RUNS), &twenty).unwrap());
        assert_eq!(both[0], both[1], "{more:?}");
    }
    assert_eq!(ScheduleConfig::NAMES, ["constant", "linear", "cosine"], "each is among the cases");
}

/// Its evaluations come out as told; that after step 10 does best, and is there only where the run ends.
#[derive(Default)]
struct Scored {
    steps: usize,
    foreseen: bool,
}

impl Stage for Scored {
    fn steps(&self) -> usize {
        self.steps
    }

    fn step(&mut self, step: usize, _: &mut Timings) -> Result<Report, String> {
        self.foreseen |= step == 10 && step == self.steps;
        let score = match step {
            4 => Some(0.5),
            10 if self.foreseen => Some(0.9),
            _ => None,
        };
        Ok(Report { metrics: json!({ "step": step }), score, ..Report::default() })
    }

    fn save(&self) -> (Vec<(String, Vec<u8>)>, Value) {
        (vec![("model.safetensors".to_owned(), vec![1])], json!({ "foreseen": self.foreseen }))
    }

    fn restore(&mut self, _: &[(String, Vec<u8>)], counters: &Value) -> Result<(), String> {
        self.foreseen = counters["foreseen"] == true;
        Ok(())
    }
}

/// The checkpoints that such a run of that length ends with.
fn scored(disk: &Disk, steps: usize) -> Vec<usize> {
    let (name, canon) = (format!("scored-{steps}"), format!("canon 1\ntrain.steps\tu64\t{steps}\n"));
    let run = RunDir::open_or_create(disk, Path::new(RUNS), &name, "lock\n", &canon).unwrap();
    let mut begun = run.begin(&Facts { command: "test".into(), device: "cpu".into(), threads: 1 }).unwrap().unwrap();
    begun.prolong().unwrap();
    let config = self::run(steps, &["checkpoints=2"]).config;
    let progress = Progress::new("test", 0, steps, true);
    let mut stage = Scored { steps, ..Scored::default() };
    drive(&mut stage, begun, &config.execution, &config.logging, &progress).unwrap();
    checkpoint::steps(disk, run.path()).unwrap()
}

/// Where a shorter run's final evaluation did best, the checkpoint that the longer run needs may be gone.
#[test]
fn a_longer_run_has_its_best_checkpoint() {
    let (calm, memory) = (Memory::new(), Memory::new());
    assert_eq!(scored(&memory.disk(), 10), [9, 10]);
    assert_eq!(scored(&calm.disk(), 20), [4, 18, 20]);
    assert_eq!(scored(&memory.disk(), 20), [4, 18, 20]);
}

#[test]
fn a_shorter_run_that_was_tampered_with_or_is_not_done_gives_nothing() {
    let (ten, twenty) = (run(10, &["eval.every=5"]), run(20, &["eval.every=5"]));
    let memory = Memory::new();
    let disk = memory.disk();
    attempt(&disk, Path::new(RUNS), &ten).unwrap();
    memory.flip(&directory(&ten).join("metrics.jsonl"), 40);
    assert_eq!(goes_on_after(&disk, &twenty), None);
    memory.flip(&directory(&ten).join("metrics.jsonl"), 40);
    // One of an earlier version, which lost a file before its digest was made.
    let [lost, result] = ["rollouts/step-000002.jsonl.zst", "result.kdl"].map(|name| directory(&ten).join(name));
    let [bytes, text] = [&lost, &result].map(|path| disk.read(path).unwrap());
    disk.remove_file(&lost).unwrap();
    let digests = [reader::digest(&disk, &directory(&ten)).unwrap().unwrap(), digest(&disk, &directory(&ten)).unwrap()];
    let forged = String::from_utf8(text.clone()).unwrap().replace(&digests[0], &digests[1]);
    disk.replace(&result, forged.as_bytes()).unwrap();
    assert_eq!(goes_on_after(&disk, &twenty), None);
    disk.replace(&lost, &bytes).unwrap();
    disk.replace(&result, &text).unwrap();
    disk.replace(&directory(&ten).join("state"), b"interrupted 1\n").unwrap();
    assert_eq!(goes_on_after(&disk, &twenty), None);
    disk.replace(&directory(&ten).join("state"), b"done 1\n").unwrap();
    assert_eq!(goes_on_after(&disk, &run(5, &["eval.every=5"])), None, "a shorter one is no longer one");
    assert_eq!(goes_on_after(&disk, &run(20, &["eval.every=5", "seed=2"])), None, "another run");
    assert_eq!(goes_on_after(&disk, &twenty), Some(10));
}
