//! Records in the files of other tools. `.ci/sinks` has those tools read them.

use std::path::Path;

use starpo::experiment::Resolved;
use starpo::record::Disk;

use crate::disk::{End, Memory};
use crate::run::{SMALL, attempt, resolve};

/// The steps of an event file's summaries, in its order.
fn steps(mut file: &[u8]) -> Vec<u64> {
    let mut steps = Vec::new();
    while let Some((length, rest)) = file.split_first_chunk::<8>() {
        let (event, rest) = rest[4..].split_at(u64::from_le_bytes(*length) as usize);
        file = &rest[4..];
        // After the time comes a small step, if there is one.
        if let [0x10, step @ 0..0x80, ..] = event[9..] {
            steps.push(u64::from(step));
        }
    }
    steps
}

fn events(disk: &Disk, run: &Path) -> Vec<u64> {
    let folder = run.join("tensorboard");
    let names = disk.names(&folder).unwrap();
    let [file] = &names[..] else { panic!("one event file, not {names:?}") };
    steps(&disk.read(&folder.join(file)).unwrap())
}

/// The events of a run that is killed at call `call` as `first` has it, and resumed as `then` has it.
fn resumed(call: usize, first: &Resolved, then: &Resolved) -> Vec<u64> {
    let (memory, runs) = (Memory::killed_at(call), Path::new("runs"));
    let _ = attempt(&memory.disk(), runs, first);
    memory.restart(End::Everything);
    attempt(&memory.disk(), runs, then).unwrap();
    events(&memory.disk(), &runs.join(then.id().to_string()))
}

#[test]
fn a_resumed_run_has_each_step_once_in_its_events_and_the_same_key() {
    let plain = resolve("bandit", &SMALL);
    let logged = resolve("bandit", &[&SMALL[..], &["logging.tensorboard=true"]].concat());
    assert_eq!(plain.id(), logged.id());
    let calm = Memory::new();
    attempt(&calm.disk(), Path::new("runs"), &logged).unwrap();
    for call in (0..calm.calls()).step_by(29) {
        assert_eq!(resumed(call, &logged, &logged), [0, 1, 2, 3, 4, 5], "killed at call {call}");
    }
    // A run that did not begin with events has them all once it does.
    assert_eq!(resumed(calm.calls() / 2, &plain, &logged), [0, 1, 2, 3, 4, 5]);
}
