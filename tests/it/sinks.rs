//! Records in the files of other tools. `.ci/sinks` has those tools read them.

use std::path::Path;

use starpo::record::Disk;

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

fn events(run: &Path) -> Vec<u64> {
    let files: Vec<_> =
        std::fs::read_dir(run.join("tensorboard")).unwrap().map(|entry| entry.unwrap().path()).collect();
    let [file] = &files[..] else { panic!("one event file, not {files:?}") };
    steps(&std::fs::read(file).unwrap())
}

#[test]
fn a_resumed_run_has_each_step_once_in_its_events_and_the_same_key() {
    let plain = resolve("bandit", &SMALL);
    let logged = resolve("bandit", &[&SMALL[..], &["logging.tensorboard=true"]].concat());
    assert_eq!(plain.id(), logged.id());
    for kills in [0, 30, 60, 90, 120, 150] {
        let runs = tempfile::tempdir().unwrap();
        let run = runs.path().join(plain.id().to_string());
        let _ = attempt(&Disk::dying_after(kills), runs.path(), &logged);
        let _ = std::fs::remove_file(run.join("lease"));
        attempt(&Disk::default(), runs.path(), &logged).unwrap();
        assert_eq!(events(&run), [0, 1, 2, 3, 4, 5], "killed at change {kills}");
    }
}

/// A run that did not begin with events has them all once it does.
#[test]
fn events_begin_whenever_they_are_asked_for() {
    let runs = tempfile::tempdir().unwrap();
    let (plain, logged) =
        (resolve("bandit", &SMALL), resolve("bandit", &[&SMALL[..], &["logging.tensorboard=true"]].concat()));
    let run = runs.path().join(plain.id().to_string());
    let _ = attempt(&Disk::dying_after(100), runs.path(), &plain);
    let _ = std::fs::remove_file(run.join("lease"));
    attempt(&Disk::default(), runs.path(), &logged).unwrap();
    assert_eq!(events(&run), [0, 1, 2, 3, 4, 5]);
}
