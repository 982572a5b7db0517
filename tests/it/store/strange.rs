//! What a run goes on from, and what opens nothing: lost and altered records, pipes, endless inputs, odd neighbours.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use starpo::record::{Disk, digest, reader};

use super::{QUICK, answer, folder, refusal, run, starpo};

/// Ends by itself, or the test fails.
#[track_caller]
fn ends(folder: &Path, arguments: &[&str]) {
    let mut command = Command::new("timeout");
    command.arg("60").arg(env!("CARGO_BIN_EXE_starpo")).args(arguments).current_dir(folder).env("NO_COLOR", "1");
    assert_ne!(command.output().unwrap().status.code(), Some(124), "{arguments:?} hangs");
}

fn pipe(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

/// It ends with its digest or not at all.
#[test]
fn a_run_goes_on_from_its_whole_record_alone() {
    let folder = folder();
    let folder = folder.path();
    let name = run(folder, &["steps=3"]);
    let path = folder.join("runs").join(&name);
    let digest = || reader::digest(&Disk::default(), &path).unwrap();
    let expected = digest();
    let interrupt = || {
        fs::write(path.join("state"), "interrupted 1\n").unwrap();
        let _ = fs::remove_file(path.join("result.kdl"));
    };
    let altered = "was altered: it does not hold what the run wrote there";
    let cases = [
        ("rollouts/step-000001.jsonl.zst", None, "was altered: rollouts/ lacks steps 1"),
        ("evals/step-000000.jsonl.zst", None, "was altered: evals/ lacks steps 0"),
        ("rollouts/step-000002.jsonl.zst", Some("{}\n"), altered),
        ("metrics.jsonl", Some("\"kept\":1"), altered),
    ];
    for (file, content, words) in cases {
        let bytes = fs::read(path.join(file)).unwrap();
        match content {
            None => fs::remove_file(path.join(file)).unwrap(),
            Some(digit) if file == "metrics.jsonl" => {
                let text = String::from_utf8(bytes.clone()).unwrap().replacen("\"kept\":2", digit, 1);
                assert_ne!(text.as_bytes(), bytes);
                fs::write(path.join(file), text).unwrap();
            }
            Some(lines) => fs::write(path.join(file), zstd::encode_all(lines.as_bytes(), 1).unwrap()).unwrap(),
        }
        interrupt();
        let (code, error) = refusal(folder, &["exec", &name]);
        assert!(code == 1 && error.contains(words) && error.contains("put back what was there"), "{file}: {error}");
        assert!(fs::read_to_string(path.join("state")).unwrap().starts_with("failed "), "{file}");
        assert_eq!(digest(), None, "{file}");
        fs::write(path.join(file), bytes).unwrap();
        answer(folder, &["exec", &name]);
        assert_eq!(digest(), expected, "{file}");
    }
}

/// Whoever opened one would wait for its other end.
#[test]
fn pipes_in_a_run_hang_nobody() {
    let folder = folder();
    let folder = folder.path();
    let name = run(folder, &["steps=1"]);
    let path = folder.join("runs").join(&name);
    for file in ["run.lock.kdl", "state", "metrics.jsonl", "attempts/0001.kdl", "canon.txt", "result.kdl", "lease"] {
        let bytes = fs::read(path.join(file)).unwrap();
        fs::remove_file(path.join(file)).unwrap();
        pipe(&path.join(file));
        for arguments in [&["gc"][..], &["ls"], &["compare", &name], &["exec", &name], &["report", &name]] {
            ends(folder, arguments);
        }
        fs::remove_file(path.join(file)).unwrap();
        fs::write(path.join(file), bytes).unwrap();
    }
    fs::remove_file(path.join("metrics.jsonl")).unwrap();
    pipe(&path.join("metrics.jsonl"));
    let said = "metrics.jsonl: it is a pipe, a socket or a device, and no file";
    assert!(refusal(folder, &["compare", &name]).1.contains(said));
    // It would be written to.
    fs::write(path.join("state"), "interrupted 1\n").unwrap();
    fs::remove_dir_all(path.join("checkpoints")).unwrap();
    ends(folder, &["exec", &name]);
    let (code, error) = refusal(folder, &["exec", &name]);
    assert!(code == 1 && error.contains(said), "{error}");
}

/// What a person names may be a pipe, and has an end.
#[test]
fn inputs_may_be_pipes_and_not_endless() {
    let folder = folder();
    let folder = folder.path();
    for word in ["@/dev/zero", "model.tokenizer=(file)/dev/zero"] {
        ends(folder, &["show", "bandit", word]);
        let (code, error) = refusal(folder, &["show", "bandit", word]);
        assert!(code == 2 && error.contains("does not end within 16 MiB"), "{word}: {error}");
    }
    let name = run(folder, &["steps=1"]);
    let episodes = folder.join("runs").join(name).join("rollouts/step-000001.jsonl.zst");
    let script = format!("\"$0\" replay <(cat '{}') advantage=grpo --json", episodes.display());
    let mut piped = Command::new("bash");
    piped.args(["-c", &script, env!("CARGO_BIN_EXE_starpo")]).current_dir(folder);
    let piped = piped.output().unwrap();
    assert!(piped.status.success(), "{}", String::from_utf8_lossy(&piped.stderr));
    let plain = starpo(folder, &["replay", episodes.to_str().unwrap(), "advantage=grpo", "--json"]);
    assert_eq!(piped.stdout, plain.stdout);
}

#[test]
fn strange_neighbours_stop_no_list() {
    let folder = folder();
    let folder = folder.path();
    let name = run(folder, &["steps=1"]);
    let runs = folder.join("runs");
    for inner in ["tags", "sweeps"] {
        fs::create_dir(runs.join(inner)).unwrap();
        symlink("self", runs.join(inner).join("self")).unwrap();
    }
    symlink("b", runs.join("a")).unwrap();
    symlink("a", runs.join("b")).unwrap();
    for verb in ["ls", "gc"] {
        assert!(answer(folder, &[verb]).contains(&name), "{verb}");
    }
    // A name that is too long for the system stands for all that cannot be looked into.
    symlink("x".repeat(300), runs.join("odd")).unwrap();
    let output = starpo(folder, &["ls"]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && said.contains("left out: cannot read runs/odd"), "{said}");
    assert!(String::from_utf8(output.stdout).unwrap().contains(&name));
}

/// A file without anything in it is no text of a run.
#[test]
fn an_empty_file_of_a_run_is_told() {
    let folder = folder();
    let folder = folder.path();
    let name = run(folder, &["steps=1"]);
    let path = folder.join("runs").join(&name);
    let cases = [
        ("evals/step-000001.jsonl.zst", "compare", "jsonl.zst is damaged: it is empty"),
        ("canon.txt", "report", "canon.txt: it is empty"),
        ("run.lock.kdl", "verify", "run.lock.kdl: it is empty"),
    ];
    for (file, verb, words) in cases {
        let bytes = fs::read(path.join(file)).unwrap();
        fs::write(path.join(file), "").unwrap();
        let (code, error) = refusal(folder, &[verb, &name]);
        assert!(code == 1 && error.contains(words), "{file}: {error}");
        assert!(starpo(folder, &["gc"]).status.success(), "{file}");
        fs::write(path.join(file), bytes).unwrap();
    }
}

/// What others lay beside the episodes is no part of what the run came to.
#[test]
fn a_stranger_among_the_episodes_changes_no_digest() {
    let folder = folder();
    let folder = folder.path();
    let name = run(folder, &["steps=2"]);
    let path = folder.join("runs").join(&name);
    fs::write(path.join("evals/notes.txt"), "mine").unwrap();
    let digest = digest::digest(&Disk::default(), &path).unwrap();
    assert_eq!(reader::digest(&Disk::default(), &path).unwrap(), Some(digest));
    answer(folder, &["verify", &name]);
}

/// Nor is it lost, and no link's end is touched.
#[test]
fn strangers_stay_where_they_are() {
    let folder = folder();
    let folder = folder.path();
    let name = run(folder, &["steps=4"]);
    let path = folder.join("runs").join(&name);
    let expected = reader::digest(&Disk::default(), &path).unwrap();
    let (mine, checkpoints) = (folder.join("mine"), path.join("checkpoints"));
    fs::create_dir_all(mine.join("inner")).unwrap();
    fs::write(mine.join("inner/file"), "mine").unwrap();
    for link in [".tmp-000002-1", "000002", "000099"] {
        let _ = fs::remove_dir_all(checkpoints.join(link));
        symlink(&mine, checkpoints.join(link)).unwrap();
    }
    pipe(&checkpoints.join("000098"));
    let names = ["checkpoints/99", "checkpoints/+3", "rollouts/notes", "evals/notes", "evals/step-000009.d"];
    let strangers = names.map(|name| path.join(name));
    strangers.iter().for_each(|stranger| fs::create_dir(stranger).unwrap());
    let files = ["notes.txt", "step-000001.txt", "step-9.jsonl"].map(|name| path.join("rollouts").join(name));
    files.iter().for_each(|file| fs::write(file, "mine").unwrap());
    fs::create_dir(checkpoints.join(".tmp-x")).unwrap();
    fs::write(checkpoints.join(".tmp-x").join(OsStr::from_bytes(b"\xff")), "mine").unwrap();
    fs::remove_dir_all(checkpoints.join("000004")).unwrap();
    fs::write(path.join("state"), "interrupted 1\n").unwrap();
    fs::remove_file(path.join("result.kdl")).unwrap();
    answer(folder, &["exec", &name]);
    assert_eq!(reader::digest(&Disk::default(), &path).unwrap(), expected);
    assert!(strangers.iter().all(|stranger| stranger.is_dir()) && files.iter().all(|file| file.is_file()));
    assert_eq!(fs::read_to_string(mine.join("inner/file")).unwrap(), "mine");
    answer(folder, &["verify", &name]);
    answer(folder, &["export", &name]);
}

/// Steps that are made a second time are told.
#[test]
fn lost_checkpoints_are_told() {
    let folder = folder();
    let folder = folder.path();
    let name = run(folder, &["steps=4"]);
    let path = folder.join("runs").join(&name);
    let expected = reader::digest(&Disk::default(), &path).unwrap();
    for (lost, told) in [("checkpoints/000004", "steps 4 to 4 were recorded"), ("checkpoints", "steps 1 to 4 were")] {
        fs::remove_dir_all(path.join(lost)).unwrap();
        fs::write(path.join("state"), "interrupted 1\n").unwrap();
        fs::remove_file(path.join("result.kdl")).unwrap();
        let said = String::from_utf8(starpo(folder, &["exec", &name]).stderr).unwrap();
        assert!(said.contains(told), "{said}");
        assert_eq!(reader::digest(&Disk::default(), &path).unwrap(), expected);
    }
}

/// A shorter run whose record no longer fits its checkpoints is passed over.
#[test]
fn an_altered_shorter_run_is_not_gone_on_from() {
    let folder = folder();
    let folder = folder.path();
    let calm = folder.join("calm");
    fs::create_dir(&calm).unwrap();
    let long = ["steps=4", "schedule=constant"];
    let name = run(&calm, &long);
    let short = folder.join("runs").join(run(folder, &["steps=2", "schedule=constant"]));
    // The same episodes in other bytes: the digest, which is of the text, is as it was.
    let file = short.join("rollouts/step-000001.jsonl.zst");
    let whole = fs::read(&file).unwrap();
    let text = zstd::decode_all(&whole[..]).unwrap();
    let again = zstd::encode_all(&text[..], 9).unwrap();
    let other = zstd::encode_all(&b"{}\n"[..], 9).unwrap();
    let cases = [(again, "its record is not what its checkpoint"), (other, "its files are not those of its digest")];
    let quick = QUICK.iter().copied().chain(long);
    let words: Vec<&str> = ["run", "bandit"].into_iter().chain(quick).collect();
    let digest = |folder: &Path| reader::digest(&Disk::default(), &folder.join("runs").join(&name)).unwrap();
    for (bytes, why) in cases {
        fs::write(&file, bytes).unwrap();
        let said = String::from_utf8(starpo(folder, &words).stderr).unwrap();
        assert!(said.contains(&format!("is not gone on from: {why}")), "{said}");
        assert!(digest(folder).is_some() && digest(folder) == digest(&calm));
        fs::remove_dir_all(folder.join("runs").join(&name)).unwrap();
    }
    fs::write(&file, whole).unwrap();
    fs::remove_dir_all(short.join("checkpoints")).unwrap();
    let said = String::from_utf8(starpo(folder, &words).stderr).unwrap();
    assert!(said.contains("is not gone on from: its files are not those of its digest"), "{said}");
}
