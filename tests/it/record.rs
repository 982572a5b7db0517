//! The run store: what is on disk after races, kills and damage.

#![expect(clippy::unwrap_used, reason = "clippy takes functions that tests share for no tests")]

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use miette::Diagnostic;
use serde_json::{Value, json};
use starpo::record::checkpoint::{self, Checkpoint, MANIFEST};
use starpo::record::lease::{Holder, Lease, SILENCE};
use starpo::record::timings::unix_time;
use starpo::record::{Begun, Disk, Facts, RunDir, RunError, State, digest, reader, signals};
use tempfile::TempDir;

const NAME: &str = "sokoban-k3v9q0m2c7xw4t1h";

fn facts() -> Facts {
    Facts { command: "starpo run sokoban".into(), device: "cpu".into(), threads: 2 }
}

fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

fn open(disk: &Disk, runs: &Path) -> Result<RunDir, RunError> {
    RunDir::open_or_create(disk, runs, NAME, "lock\n", "canon 1\na = 1\n")
}

/// A run whose learner is one number, with a checkpoint every other step; gives its digest, or none if it was done.
fn run(disk: &Disk, runs: &Path, steps: usize) -> Result<Option<String>, RunError> {
    let Some(Begun { attempt, checkpoint, .. }) = open(disk, runs)?.begin(&facts())? else { return Ok(None) };
    let weights = |value: u64| vec![("model.safetensors".to_owned(), value.to_le_bytes().repeat(9))];
    let (mut value, first) = match checkpoint {
        Some(found) => (u64::from_le_bytes(found.files[0].1[..8].try_into().unwrap()), found.step + 1),
        None => {
            attempt.write_evals(0, "{\"eval\":0}\n")?;
            (7, 1)
        }
    };
    for step in first..=steps {
        value = value.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(step as u64);
        attempt.write_rollouts(step, &format!("{{\"step\":{step},\"value\":{value}}}\n"))?;
        attempt
            .append_metrics(&json!({"step": step, "rollout": {"success": value as f64 / 3e19, "entropy": f64::NAN}}))?;
        attempt.append_timings(&json!({"step": step, "attempt": attempt.number()}))?;
        if step % 2 == 0 || step == steps {
            attempt.write_evals(step, &format!("{{\"eval\":{step}}}\n"))?;
            attempt.save_checkpoint(step, weights(value), json!({"empty": 0.1}), 2, None)?;
        }
    }
    attempt.finish(steps, &json!({"rollout": {"success": 0.5}, "kl": null}), None, None).map(Some)
}

fn flip(path: &Path, at: usize) {
    let mut bytes = fs::read(path).unwrap();
    bytes[at] ^= 1;
    fs::write(path, bytes).unwrap();
}

#[test]
fn two_makers_of_a_directory_both_get_it() {
    for _ in 0..20 {
        let runs = folder();
        std::thread::scope(|scope| {
            let makers: Vec<_> = (0..2).map(|_| scope.spawn(|| open(&Disk::default(), runs.path()))).collect();
            makers.into_iter().for_each(|maker| drop(maker.join().unwrap().unwrap()));
        });
        assert_eq!(Disk::default().names(runs.path()).unwrap(), [NAME]);
        assert_eq!(Disk::default().names(&runs.path().join(NAME)).unwrap(), ["canon.txt", "run.lock.kdl"]);
    }
}

#[test]
fn another_canonical_text_is_a_clash() {
    let (disk, runs) = (Disk::default(), folder());
    open(&disk, runs.path()).unwrap();
    let error = RunDir::open_or_create(&disk, runs.path(), NAME, "lock\n", "canon 1\na = 2\n").unwrap_err();
    assert!(matches!(error, RunError::Clash { line: 2, .. }), "{error}");
}

#[test]
fn a_lease_is_held_by_the_living() {
    let (disk, runs) = (Disk::default(), folder());
    let (run, me) = (runs.path(), Holder::this_process());
    let held = Lease::take(&disk, run).unwrap();
    let error = Lease::take(&disk, run).unwrap_err();
    assert!(matches!(&error, RunError::RunningElsewhere { pid, .. } if *pid == me.pid), "{error}");
    assert_eq!(error.exit_code(), 75);
    assert!(Holder::of(&disk, run).unwrap().is_some());
    drop(held);
    assert_eq!(Holder::of(&disk, run).unwrap(), None);

    let mut child = Command::new("sleep").arg("60").spawn().unwrap();
    let started = starpo::record::lease::start_of(child.id()).unwrap();
    let living = Holder { pid: child.id(), started, ..me.clone() };
    let cases = [
        ("a living process", living.clone(), true),
        ("a later process of that number", Holder { started: started + 1, ..living.clone() }, false),
        ("before the machine was started again", Holder { boot: "other".into(), ..living.clone() }, false),
        ("heard of on another host", Holder { host: "other".into(), ..me.clone() }, true),
        ("silent on another host", Holder { host: "other".into(), heartbeat: unix_time() - SILENCE - 1, ..me }, false),
    ];
    for (case, holder, held) in cases {
        fs::write(run.join("lease"), holder.to_text()).unwrap();
        assert_eq!(Lease::take(&disk, run).is_err(), held, "{case}");
    }
    // Killed and not yet waited for: a zombie holds nothing.
    child.kill().unwrap();
    while starpo::record::lease::start_of(child.id()).is_some() {
        std::thread::yield_now();
    }
    fs::write(run.join("lease"), living.to_text()).unwrap();
    assert!(Lease::take(&disk, run).is_ok());
    child.wait().unwrap();
}

#[test]
fn states_follow_one_another() {
    let (disk, runs) = (Disk::default(), folder());
    let dir = open(&disk, runs.path()).unwrap();
    let shown = || reader::summary(&disk, dir.path()).unwrap();
    let begin = || dir.begin(&facts()).unwrap().unwrap().attempt;
    assert_eq!(shown().state, State::New);

    let attempt = begin();
    assert_eq!((shown().state, shown().attempt, shown().finished), (State::Running, 1, None));
    assert!(matches!(dir.begin(&facts()), Err(RunError::RunningElsewhere { .. })));
    attempt.interrupt("signal 15").unwrap();
    drop(attempt);
    assert_eq!(shown().state, State::Interrupted);
    assert!(shown().finished.is_some_and(|time| time.ends_with('Z')));

    begin().fail("no \"space\"\nleft").unwrap();
    assert_eq!(shown().state, State::Failed("no \"space\"\nleft".into()));
    assert_eq!(fs::read_to_string(dir.path().join("state")).unwrap().lines().count(), 1);

    drop(begin());
    assert_eq!(fs::read_to_string(dir.path().join("state")).unwrap(), "running 3\n");
    assert_eq!(shown().state, State::Interrupted);

    let digest = run(&disk, runs.path(), 2).unwrap().unwrap();
    assert_eq!((shown().state, shown().step, shown().attempt), (State::Done, 2, 4));
    assert_eq!(reader::digest(&disk, dir.path()).unwrap(), Some(digest));
    assert!(dir.begin(&facts()).unwrap().is_none());
    let described = fs::read_to_string(dir.path().join("attempts/0002.kdl")).unwrap();
    for part in
        ["attempt 2", "device \"cpu\"", "threads 2", "cargo-lock \"blake3:", "reason \"no \\\"space\\\"\\nleft\""]
    {
        assert!(described.contains(part), "{part} in {described}");
    }
}

#[test]
fn a_checkpoint_comes_back_as_it_was() {
    let (disk, run) = (Disk::default(), folder());
    let saved = |step| Checkpoint {
        step,
        files: vec![("a.safetensors".into(), vec![1, 2, step as u8]), ("b.bin".into(), Vec::new())],
        offsets: [("metrics.jsonl".to_owned(), 0)].into(),
        recorded: [("metrics.jsonl".to_owned(), "digest".to_owned())].into(),
        counters: json!({"z": 1e-7, "a": [0.1, null], "seed": u64::MAX}),
    };
    for step in [10, 20, 30] {
        checkpoint::save(&disk, run.path(), 1, &saved(step), 2, None).unwrap();
        assert_eq!(checkpoint::latest(&disk, run.path()).unwrap().checkpoint, Some(saved(step)));
    }
    assert_eq!(checkpoint::steps(&disk, run.path()).unwrap(), [20, 30]);
    // An attempt that fell back: what is later is not its own.
    checkpoint::save(&disk, run.path(), 2, &saved(25), 2, None).unwrap();
    assert_eq!(checkpoint::steps(&disk, run.path()).unwrap(), [20, 25]);
    checkpoint::save(&disk, run.path(), 2, &saved(25), 2, None).unwrap();
    assert_eq!(Disk::default().names(&run.path().join("checkpoints")).unwrap(), ["000020", "000025"]);
    // That of the best step stays until another is better.
    for (step, best, kept) in [(30, 20, &[20, 30][..]), (40, 20, &[20, 40]), (50, 40, &[40, 50]), (60, 60, &[60])] {
        checkpoint::save(&disk, run.path(), 3, &saved(step), 1, Some(best)).unwrap();
        assert_eq!(checkpoint::steps(&disk, run.path()).unwrap(), kept);
    }
}

/// One that a later version wrote is no damage, to be passed over with what was learnt since.
/// A checkpoint that knows of nothing but its record.
fn saved(step: usize) -> Checkpoint {
    let recorded = [("metrics.jsonl".to_owned(), "digest".to_owned())].into();
    Checkpoint { step, recorded, ..Checkpoint::default() }
}

/// One that should know its record and does not is damaged; of the first version, none did.
#[test]
fn a_checkpoint_knows_its_record() {
    let (disk, run) = (Disk::default(), folder());
    checkpoint::save(&disk, run.path(), 1, &Checkpoint { step: 1, ..Checkpoint::default() }, 2, None).unwrap();
    let found = checkpoint::latest(&disk, run.path()).unwrap();
    assert!(found.checkpoint.is_none() && found.warnings[0].contains("no digests of what was recorded"));
}

#[test]
fn a_later_checkpoint_is_left_to_its_version() {
    let (disk, run) = (Disk::default(), folder());
    for step in [1, 2] {
        checkpoint::save(&disk, run.path(), 1, &saved(step), 2, None).unwrap();
    }
    let path = checkpoint::folder(run.path(), 2).join(MANIFEST);
    let mut manifest: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    manifest["schema"] = json!("starpo.checkpoint/9");
    manifest["news"] = json!({"of": 2.5});
    manifest["seal"] = json!("");
    let seal = blake3::hash(&serde_json::to_vec(&manifest).unwrap()).to_hex();
    fs::write(&path, serde_json::to_vec(&manifest).unwrap()).unwrap();
    assert_eq!(checkpoint::latest(&disk, run.path()).unwrap().checkpoint.unwrap().step, 1, "without its seal");
    manifest["seal"] = json!(seal.as_str());
    fs::write(&path, serde_json::to_vec(&manifest).unwrap()).unwrap();
    let error = checkpoint::latest(&disk, run.path()).unwrap_err();
    assert!(matches!(error, RunError::Later { format: 9, .. }), "{error}");
}

#[test]
fn any_flipped_byte_falls_back_to_the_checkpoint_before() {
    let (disk, run) = (Disk::default(), folder());
    let files = vec![("model.safetensors".to_owned(), vec![5; 40]), ("optimizer.bin".to_owned(), vec![6; 3])];
    let saved = |step| Checkpoint { files: files.clone(), counters: json!({"n": 3}), ..saved(step) };
    for name in ["model.safetensors", "optimizer.bin", MANIFEST] {
        let length = {
            for step in [1, 2] {
                checkpoint::save(&disk, run.path(), 1, &saved(step), 2, None).unwrap();
            }
            fs::read(checkpoint::folder(run.path(), 2).join(name)).unwrap().len()
        };
        for at in 0..length {
            let path = checkpoint::folder(run.path(), 2).join(name);
            flip(&path, at);
            let found = checkpoint::latest(&disk, run.path()).unwrap();
            assert_eq!(found.checkpoint.map(|found| found.step), Some(1), "{name} byte {at}");
            assert!(found.warnings[0].starts_with("checkpoint 2 is passed over: "), "{:?}", found.warnings);
            flip(&path, at);
        }
    }
    assert_eq!(checkpoint::latest(&disk, run.path()).unwrap().checkpoint.map(|found| found.step), Some(2));
    fs::remove_file(checkpoint::folder(run.path(), 2).join("optimizer.bin")).unwrap();
    assert_eq!(checkpoint::latest(&disk, run.path()).unwrap().checkpoint.map(|found| found.step), Some(1));
}

#[test]
fn resuming_cuts_away_what_came_after_the_checkpoint() {
    let (disk, runs) = (Disk::default(), folder());
    let dir = open(&disk, runs.path()).unwrap();
    let attempt = dir.begin(&facts()).unwrap().unwrap().attempt;
    for step in 1..=3 {
        attempt.append_metrics(&json!({"step": step})).unwrap();
        attempt.write_rollouts(step, "{}\n").unwrap();
        attempt.write_evals(step, "{}\n").unwrap();
        if step == 2 {
            attempt.save_checkpoint(step, Vec::new(), Value::Null, 2, None).unwrap();
        }
    }
    drop(attempt);
    let metrics = dir.path().join("metrics.jsonl");
    fs::OpenOptions::new().append(true).open(&metrics).unwrap().write_all(b"{\"step\":4,\"roll").unwrap();
    fs::write(dir.path().join("rollouts/.tmp-step-000004.jsonl.zst"), b"half").unwrap();
    fs::create_dir(dir.path().join("checkpoints/.tmp-000004-1")).unwrap();
    fs::write(dir.path().join(".tmp-state-1-0"), b"half").unwrap();
    fs::write(dir.path().join("attempts/.tmp-0001.kdl-1-1"), b"half").unwrap();
    assert_eq!(reader::metrics(&disk, dir.path()).unwrap().len(), 3, "a torn line is no step");

    let begun = dir.begin(&facts()).unwrap().unwrap();
    assert_eq!(begun.checkpoint.map(|found| found.step), Some(2));
    assert_eq!(fs::read_to_string(&metrics).unwrap(), "{\"step\":1}\n{\"step\":2}\n");
    for folder in ["rollouts", "evals"] {
        let names = disk.names(&dir.path().join(folder)).unwrap();
        assert_eq!(names, ["step-000001.jsonl.zst", "step-000002.jsonl.zst"]);
    }
    assert_eq!(disk.names(&dir.path().join("checkpoints")).unwrap(), ["000002"]);
    for folder in [dir.path().to_owned(), dir.path().join("attempts")] {
        let left = disk.names(&folder).unwrap();
        assert!(left.iter().all(|name| !name.starts_with(".tmp-")), "{left:?}");
    }
    drop(begun.attempt);

    // Shorter than its checkpoint says: the checkpoint is worth nothing.
    fs::write(&metrics, "{\"step\":1}\n").unwrap();
    let begun = dir.begin(&facts()).unwrap().unwrap();
    assert_eq!((begun.checkpoint, begun.warnings.len()), (None, 2), "that, and what is made again");
    assert_eq!(fs::read(&metrics).unwrap(), b"");
}

/// Nothing is made anew that the run has begun to write: not even its directory.
#[test]
fn a_record_that_vanishes_meanwhile_fails_the_run() {
    let cases = [
        ("metrics.jsonl", None, "metrics.jsonl: No such file or directory"),
        ("metrics.jsonl", Some(""), "metrics.jsonl was altered: it holds 24 bytes, and the run wrote 48"),
        ("metrics.jsonl", Some("{\"step\":1,\"rollout\":[]}\n"), "metrics.jsonl was altered: it does not hold"),
        ("rollouts/step-000001.jsonl.zst", None, "was altered: rollouts/ lacks steps 1"),
        ("rollouts", None, "was altered: rollouts/ lacks steps 1"),
        ("", None, "rollouts: No such file or directory"),
    ];
    for (file, content, words) in cases {
        let (disk, runs) = (Disk::default(), folder());
        let dir = open(&disk, runs.path()).unwrap();
        let attempt = dir.begin(&facts()).unwrap().unwrap().attempt;
        let step = |step: usize| {
            attempt.write_rollouts(step, "{}\n")?;
            attempt.append_metrics(&json!({"step": step, "rollout": {}}))?;
            attempt.save_checkpoint(step, Vec::new(), Value::Null, 2, None)
        };
        step(1).unwrap();
        let path = dir.path().join(file);
        match content {
            Some(text) => fs::write(&path, text).unwrap(),
            None if path.is_dir() => fs::remove_dir_all(&path).unwrap(),
            None => fs::remove_file(&path).unwrap(),
        }
        let error = step(2).and_then(|()| attempt.finish(2, &json!({}), None, None)).unwrap_err().to_string();
        assert!(error.contains(words), "{file:?}: {error}");
        let _ = attempt.fail(&error);
        assert_eq!(dir.path().exists(), !file.is_empty(), "{file:?}");
        assert!(!dir.path().join("result.kdl").exists(), "{file:?}");
    }
}

#[test]
fn a_lock_of_nobody_is_waited_for() {
    let (disk, runs) = (Disk::default(), folder());
    let dir = open(&disk, runs.path()).unwrap();
    let lease = fs::File::create(dir.path().join("lease")).unwrap();
    lease.lock().unwrap();
    let held = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(50));
        drop(lease);
    });
    assert!(dir.begin(&facts()).unwrap().is_some());
    held.join().unwrap();
}

#[test]
fn fresh_moves_the_old_run_aside_unless_it_runs() {
    let (disk, runs) = (Disk::default(), folder());
    assert_eq!(RunDir::set_aside(&disk, runs.path(), NAME).unwrap(), None);
    for number in 1..=2 {
        run(&disk, runs.path(), 1).unwrap();
        let place = RunDir::set_aside(&disk, runs.path(), NAME).unwrap().unwrap();
        assert_eq!(place, runs.path().join(format!("attic/{NAME}-{number}")));
        assert!(place.join("result.kdl").exists() && !runs.path().join(NAME).exists());
    }
    let begun = open(&disk, runs.path()).unwrap().begin(&facts()).unwrap();
    assert!(matches!(RunDir::set_aside(&disk, runs.path(), NAME), Err(RunError::RunningElsewhere { .. })));
    drop(begun);
    assert_eq!(reader::list(&disk, runs.path()).unwrap().0.len(), 1, "the attic is no run");
}

#[test]
fn a_run_is_found_by_any_unique_prefix() {
    let (disk, runs) = (Disk::default(), folder());
    let names = ["sokoban-k3v9q0m2c7xw4t1h", "sokoban-k3aaaaaaaaaaaaaa", "frozen-lake-zzzzzzzzzzzzzzzz"];
    for name in names {
        RunDir::open_or_create(&disk, runs.path(), name, "lock", "canon").unwrap();
    }
    let find = |name: &str| reader::find(&disk, runs.path(), name);
    let path = |i: usize| -> PathBuf { runs.path().join(names[i]) };
    assert_eq!(find("k3v").unwrap(), path(0));
    assert_eq!(find("sokoban-k3a").unwrap(), path(1));
    assert_eq!(find("frozen").unwrap(), path(2));
    assert_eq!(find(path(2).to_str().unwrap()).unwrap(), path(2));
    let error = find("k3").unwrap_err();
    assert_eq!(error.to_string(), format!("k3 could be any of: {}, {}", names[1], names[0]));
    assert!(matches!(find("q0"), Err(RunError::Unknown { .. })) && matches!(find(""), Err(RunError::Unknown { .. })));
    let listed = reader::list(&disk, runs.path()).unwrap().0;
    assert_eq!((listed[0].experiment.as_str(), listed[0].id.as_str()), ("frozen-lake", "zzzzzzzzzzzzzzzz"));
}

#[test]
fn the_digest_is_of_metrics_episodes_and_weights_alone() {
    let (disk, runs) = (Disk::default(), folder());
    let digest_of = |run: &Path| digest::digest(&disk, run).unwrap();
    let expected = run(&disk, runs.path(), 3).unwrap().unwrap();
    let path = runs.path().join(NAME);
    assert_eq!(digest_of(&path), expected);
    assert!(fs::read_to_string(path.join("result.kdl")).unwrap().contains(&format!("digest \"{expected}\"")));

    for name in ["timings.jsonl", "log.txt", "state", "attempts/0001.kdl", "checkpoints/000002/model.safetensors"] {
        fs::write(path.join(name), "other").unwrap();
        assert_eq!(digest_of(&path), expected, "{name}");
    }
    for name in ["metrics.jsonl", "checkpoints/000003/model.safetensors"] {
        for at in 0..fs::read(path.join(name)).unwrap().len() {
            flip(&path.join(name), at);
            assert_ne!(digest_of(&path), expected, "{name} byte {at}");
            flip(&path.join(name), at);
        }
    }
    for name in ["rollouts/step-000001.jsonl.zst", "evals/step-000000.jsonl.zst"] {
        let (name, plain) = (path.join(name), path.join(name.trim_end_matches(".zst")));
        let text = reader::episodes(&disk, &name).unwrap();
        let compressed = fs::read(&name).unwrap();
        fs::write(&name, zstd::encode_all(text.as_bytes(), 19).unwrap()).unwrap();
        assert_eq!(digest_of(&path), expected, "compression is no part of it");
        fs::remove_file(&name).unwrap();
        assert_ne!(digest_of(&path), expected, "{name:?} removed");
        fs::write(&plain, &text).unwrap();
        assert_eq!(digest_of(&path), expected, "plain text is the same episodes");
        assert_eq!(reader::episodes(&disk, &plain).unwrap(), text);
        flip(&plain, text.len() / 2);
        assert_ne!(digest_of(&path), expected, "{plain:?} flipped");
        fs::remove_file(&plain).unwrap();
        fs::write(&name, compressed).unwrap();
    }
    assert_eq!(digest_of(&path), expected);
}

#[test]
fn records_are_canonical() {
    let (disk, runs) = (Disk::default(), folder());
    run(&disk, runs.path(), 1).unwrap();
    let path = runs.path().join(NAME);
    let metrics = fs::read_to_string(path.join("metrics.jsonl")).unwrap();
    assert!(metrics.starts_with("{\"step\":1,\"rollout\":{\"success\":") && metrics.contains("\"entropy\":null}}\n"));
    let result = fs::read_to_string(path.join("result.kdl")).unwrap();
    let lines: Vec<&str> = result.lines().collect();
    assert_eq!(lines[..5], ["step 1", "metrics {", "    rollout.success 0.5", "    kl #null", "}"]);
    assert_eq!(reader::timings(&disk, &path).unwrap(), [json!({"step": 1, "attempt": 1})]);
}

#[test]
fn a_full_disk_says_so_and_what_to_do() {
    let full = Path::new("/dev/full");
    let source = fs::File::options().write(true).open(full).unwrap().write_all(b"x").unwrap_err();
    let error = RunError::Io { doing: "write", path: full.to_owned(), source };
    assert_eq!(error.to_string(), "cannot write /dev/full: No space left on device");
    let help = error.help().unwrap().to_string();
    assert_eq!((help.as_str(), error.exit_code()), ("free space and run the same command again: it resumes", 1));

    let runs = folder();
    fs::write(runs.path().join("file"), "").unwrap();
    let error = open(&Disk::default(), &runs.path().join("file")).unwrap_err().to_string();
    assert_eq!(error, format!("cannot create {}: File exists", runs.path().join("file").display()));
}

/// The process that the next test starts and sends signals to; passes at once for everybody else.
#[test]
#[expect(clippy::print_stdout, reason = "it talks to the next test")]
fn waits_for_signals() {
    if std::env::var_os("WAITS_FOR_SIGNALS").is_none() {
        return;
    }
    signals::catch().unwrap();
    println!("\nready");
    while signals::interrupted().is_none() {
        std::thread::yield_now();
    }
    println!("asked by {:?}", signals::interrupted());
    std::thread::sleep(std::time::Duration::from_secs(60));
}

#[test]
fn the_first_signal_asks_and_the_second_ends() {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "record::waits_for_signals", "--nocapture"])
        .env("WAITS_FOR_SIGNALS", "1")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let pid = child.id().to_string();
    let send = |signal: &str| assert!(Command::new("kill").args([signal, pid.as_str()]).status().unwrap().success());
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.any(|line| line.ends_with("ready")));
    send("-TERM");
    assert_eq!(lines.next().as_deref(), Some("asked by Some(15)"));
    send("-INT");
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

/// Nobody's half-written file is in another's way, and one that fails leaves nothing.
#[test]
fn many_replace_a_file_at_once() {
    let folder = TempDir::new().unwrap();
    let (disk, path) = (Disk::default(), folder.path().join("tag"));
    std::thread::scope(|scope| {
        for writer in 0..8_u8 {
            let (disk, path) = (&disk, &path);
            scope.spawn(move || (0..25).for_each(|_| disk.replace(path, &[writer; 100]).unwrap()));
        }
    });
    let bytes = fs::read(&path).unwrap();
    assert!(bytes.len() == 100 && bytes.iter().all(|byte| *byte == bytes[0]));
    let taken = folder.path().join("folder");
    fs::create_dir(&taken).unwrap();
    assert!(disk.replace(&taken, b"x").is_err());
    assert_eq!(disk.names(folder.path()).unwrap(), ["folder", "tag"]);
}
