//! What goes out of a run: archives, pages, tables, weights; and what is said where a file of it is damaged.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use starpo::record::{Disk, reader};

use super::{answer, folder, refusal, run, starpo};

/// What a killed process left beside a file that it was writing goes with the next one; errors name the option.
#[test]
fn files_go_where_the_command_line_says() {
    let folder = folder();
    let folder = folder.path();
    let name = run(folder, &["steps=1"]);
    let (left, mine) =
        (format!(".tmp-{name}.tar.zst-999999999-0"), format!(".tmp-{name}.tar.zst-{}-0", std::process::id()));
    let others = [mine.as_str(), ".tmp-other.tar.zst-999999999-0"];
    for file in others.iter().chain([&left.as_str()]) {
        fs::write(folder.join(file), "half").unwrap();
    }
    answer(folder, &["export", &name]);
    assert!(!folder.join(&left).exists() && others.iter().all(|file| folder.join(file).exists()));
    for (verb, option) in [("export", "--output"), ("report", "--output"), ("metrics", "--csv")] {
        let (code, error) = refusal(folder, &[verb, &name, option, "no/such/file"]);
        assert!(code == 1 && error.contains("cannot write no/such/file: "), "{error}");
        assert!(error.contains(&format!("make its folder first, or name another place with {option}")), "{error}");
    }
}

/// What a run keeps is not written over, however it is spelt, and nothing is put among it; files beside it are.
#[test]
fn no_output_is_part_of_a_record() {
    let folder = folder();
    let folder = folder.path();
    let name = run(folder, &["steps=1"]);
    answer(folder, &["tag", &name, "best"]);
    let own = [
        "metrics.jsonl",
        "checkpoints/../state",
        "attempts/0001.kdl",
        "evals/new",
        "../tags/best",
        "../.naming",
        "../attic",
        "../sweeps",
    ];
    let own = own.map(|own| format!("runs/{name}/{own}"));
    let before = own.each_ref().map(|own| fs::read(folder.join(own)).ok());
    for own in &own {
        for (verb, option) in
            [("export", "--output"), ("report", "--output"), ("metrics", "--csv"), ("metrics", "--tensorboard")]
        {
            let (code, error) = refusal(folder, &[verb, &name, option, own]);
            assert!(code == 1 && error.contains("it is part of a record"), "{error}");
        }
        let (_, error) = refusal(folder, &["tokenizer", own, "bandit", "--episodes", "1", "--vocab", "300"]);
        assert!(error.contains("it is part of a record"), "{error}");
    }
    for new in ["checkpoints/000099", "rollouts/a/b/c"] {
        let (_, error) = refusal(folder, &["weights", &name, &format!("runs/{name}/{new}")]);
        assert!(error.contains("would be part of a record"), "{error}");
    }
    assert!(!folder.join("runs").join(&name).join("rollouts/a").exists());
    // A link leads to where it leads, even to nothing.
    std::os::unix::fs::symlink("runs/tags/keep", folder.join("link")).unwrap();
    assert!(refusal(folder, &["report", &name, "-o", "link"]).1.contains("it is part of a record"));
    assert!(own.each_ref().map(|own| fs::read(folder.join(own)).ok()) == before);
    // A person's own folders may be called as ours are.
    fs::write(folder.join("sweep.kdl"), "mine").unwrap();
    for own in ["output", "tags", "sweeps/of/output"] {
        fs::create_dir_all(folder.join(own)).unwrap();
        answer(folder, &["report", &name, "-o", &format!("{own}/page.html")]);
    }
    (0..2).for_each(|_| drop(answer(folder, &["report", &name, "-o", &format!("runs/{name}/mine")])));
}

/// A finished run that is asked for again, with copies for other tools, gets them.
#[test]
fn a_finished_run_gets_its_events_later() {
    let folder = folder();
    let folder = folder.path();
    let name = run(folder, &["steps=2"]);
    let events = folder.join("runs").join(&name).join("tensorboard");
    assert!(!events.exists());
    assert_eq!(run(folder, &["steps=2", "logging.tensorboard=true"]), name);
    let names = Disk::default().names(&events).unwrap();
    answer(folder, &["metrics", &name, "--tensorboard", "again"]);
    let length = |path: PathBuf| fs::metadata(path).unwrap().len();
    assert_eq!(names, Disk::default().names(&folder.join("again")).unwrap());
    assert_eq!(length(events.join(&names[0])), length(folder.join("again").join(&names[0])));
}

#[test]
fn an_archive_is_the_run_wherever_it_is_unpacked() {
    let [folder, other] = [folder(), folder()];
    let (folder, other) = (folder.path(), other.path());
    let name = run(folder, &["steps=1"]);
    assert_eq!(answer(folder, &["export", &name]), format!("{name}.tar.zst\n"));
    answer(folder, &["export", &name, "-o", "again.tar.zst"]);
    let again = folder.join("again.tar.zst");
    assert!(fs::read(folder.join(format!("{name}.tar.zst"))).unwrap() == fs::read(&again).unwrap());
    // A link stays one.
    std::os::unix::fs::symlink("linked", folder.join("link")).unwrap();
    answer(folder, &["export", &name, "-o", "link"]);
    assert!(folder.join("link").is_symlink() && fs::read(folder.join("linked")).unwrap() == fs::read(&again).unwrap());
    // Made elsewhere, at another time: the same bytes.
    run(other, &["steps=1"]);
    answer(other, &["export", &name]);
    let theirs = fs::read(other.join(format!("{name}.tar.zst"))).unwrap();
    assert!(theirs == fs::read(&again).unwrap());
    fs::remove_dir_all(other.join("runs").join(&name)).unwrap();
    let tar = zstd::decode_all(&theirs[..]).unwrap();
    fs::write(other.join("run.tar"), &tar).unwrap();
    let unpacked = Command::new("tar").args(["-xf", "../run.tar"]).current_dir(other.join("runs")).status().unwrap();
    assert!(unpacked.success());
    assert!(answer(other, &["ls"]).contains("done"));
    let tables = [folder, other].map(|folder| answer(folder, &["compare", &name]));
    assert!(tables[0] == tables[1] && tables[1].contains("1 of 1 cells done"), "{}", tables[1]);
    let readme = fs::read_to_string(other.join("runs").join(&name).join("README")).unwrap();
    assert!(readme.contains("starpo run bandit steps=1 warm-start=none"), "{readme}");
    assert!(readme.contains(&format!("starpo verify {name}")));
    let verified = starpo(other, &["verify", &name]);
    let said = String::from_utf8(verified.stderr).unwrap();
    assert!(verified.stdout.starts_with(b"same") && said.contains("its weights are not here"), "{said}");
    assert_eq!(
        reader::digest(&Disk::default(), &folder.join("runs").join(&name)).unwrap(),
        reader::digest(&Disk::default(), &other.join("runs").join(&name)).unwrap()
    );
}

/// Without its weights a folder is compared by all that it has.
#[test]
fn a_forged_archive_is_not_the_same() {
    let folder = folder();
    let folder = folder.path();
    let name = run(folder, &["steps=1"]);
    let path = folder.join("runs").join(&name);
    fs::remove_dir_all(path.join("checkpoints")).unwrap();
    assert!(answer(folder, &["verify", &name]).starts_with("same"));
    let episodes = path.join("rollouts/step-000001.jsonl.zst");
    let (bytes, text) = (fs::read(&episodes).unwrap(), reader::episodes(&Disk::default(), &episodes).unwrap());
    let line = text.lines().count();
    fs::write(&episodes, zstd::encode_all(format!("{text}{{}}\n").as_bytes(), 1).unwrap()).unwrap();
    let error = refusal(folder, &["verify", &name]).1;
    let place = format!("first of all differs rollouts/step-000001.jsonl, line {}", line + 1);
    assert!(error.contains("its files are not those of then: ") && error.contains(&place), "{error}");
    fs::write(&episodes, bytes).unwrap();
    let metrics = path.join("metrics.jsonl");
    let forged = fs::read_to_string(&metrics).unwrap().replacen("\"kept\":2", "\"kept\":1", 1);
    fs::write(&metrics, forged).unwrap();
    let error = refusal(folder, &["verify", &name]).1;
    assert!(error.contains("metrics.jsonl, step 1: filter.kept is 1, and 2"), "{error}");
    assert_eq!(Disk::default().names(&folder.join("runs")).unwrap(), [name.as_str()], "nothing is left of it");
}

/// Longer than the header of an archive has room for.
#[test]
fn a_run_of_a_long_name_is_exported() {
    let folder = folder();
    let folder = folder.path();
    let (name, runs) = (run(folder, &["steps=1"]), folder.join("runs"));
    for length in [146, 155, 156, 200] {
        let long = format!("{}-{name}", "x".repeat(length - name.len() - 1));
        fs::rename(runs.join(&name), runs.join(&long)).unwrap();
        answer(folder, &["export", &long, "-o", "long.tar.zst"]);
        let tar = zstd::decode_all(&fs::read(folder.join("long.tar.zst")).unwrap()[..]).unwrap();
        fs::write(folder.join("long.tar"), tar).unwrap();
        assert!(Command::new("tar").args(["-xf", "long.tar"]).current_dir(folder).status().unwrap().success());
        let text = |path: PathBuf| reader::episodes(&Disk::default(), &path).unwrap();
        let unpacked = text(folder.join(&long).join("rollouts/step-000001.jsonl"));
        assert_eq!(unpacked, text(runs.join(&long).join("rollouts/step-000001.jsonl.zst")), "{length}");
        fs::rename(runs.join(&long), runs.join(&name)).unwrap();
    }
}

/// Files of episodes that the metrics tell of and that are not there are told, or refused where all are needed.
#[test]
fn lost_episodes_are_told() {
    let folder = folder();
    let folder = folder.path();
    let name = run(folder, &["steps=3"]);
    let path = folder.join("runs").join(&name);
    fs::remove_file(path.join("rollouts/step-000002.jsonl.zst")).unwrap();
    fs::remove_file(path.join("evals/step-000003.jsonl.zst")).unwrap();
    let lost = "rollouts/ lacks steps 2; evals/ lacks steps 3";
    for verb in ["export", "verify"] {
        let (code, error) = refusal(folder, &[verb, &name]);
        assert!(code == 1 && error.contains(lost), "{error}");
    }
    let metrics = starpo(folder, &["metrics", &name, "--turns"]);
    let said = String::from_utf8(metrics.stderr).unwrap();
    assert!(metrics.status.success() && said.contains(&format!("warning: episodes are missing: {lost}")), "{said}");
    answer(folder, &["report", &name, "-o", "page.html"]);
    let page = fs::read_to_string(folder.join("page.html")).unwrap().replace("&#x2f;", "/");
    assert!(page.contains(&format!("Episodes are missing: {lost}")));
    assert!(refusal(folder, &["compare", &name]).1.contains("evals/ lacks steps 3"));
}

/// Whatever it is called, standard output takes the file alone, after what was there.
#[test]
fn standard_output_takes_a_file_alone() {
    let folder = folder();
    let folder = folder.path();
    let name = run(folder, &["steps=1"]);
    answer(folder, &["export", &name]);
    let archive = fs::read(folder.join(format!("{name}.tar.zst"))).unwrap();
    let into = |file: &str, arguments: &[&str]| {
        let output = fs::File::options().create(true).append(true).open(folder.join(file)).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_starpo"));
        assert!(command.args(arguments).current_dir(folder).stdout(output).status().unwrap().success());
        fs::read(folder.join(file)).unwrap()
    };
    assert!(into("a.tar.zst", &["export", &name, "-o", "/dev/stdout"]) == archive);
    assert!(into("b.tar.zst", &["export", &name, "-o", "b.tar.zst"]) == archive);
    assert!(starpo(folder, &["export", &name, "-o", "/dev/stdout"]).stdout == archive, "through a pipe");
    assert!(starpo(folder, &["export", &name, "-o", "-"]).stdout == archive, "as `-`");
    assert!(!folder.join("-").exists());
    let page = into("page.html", &["report", &name, "-o", "/dev/stdout"]);
    assert!(page.starts_with(b"<!doctype html>") && page.trim_ascii_end().ends_with(b"</html>"));
    let full = |words: &[&str]| {
        let output = fs::File::options().write(true).open("/dev/full").unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_starpo"));
        let done = command.args(words).current_dir(folder).stdout(output).output().unwrap();
        assert_eq!(done.status.code(), Some(1), "{words:?}");
        assert!(String::from_utf8(done.stderr).unwrap().contains("No space left on device"));
    };
    full(&["metrics", &name]);
    full(&["show", "bandit", "--json"]);
    full(&["report", &name, "-o", "/dev/stdout"]);
    let alone = starpo(folder, &["metrics", &name, "--csv", "/dev/stdout", "--json"]).stdout;
    assert!(alone.starts_with(b"step,") && !alone.contains(&b'{'));
    fs::write(folder.join("log"), "before\n").unwrap();
    let table = String::from_utf8(into("log", &["metrics", &name, "--csv", "/dev/stdout"])).unwrap();
    assert!(table.starts_with("before\nstep,") && table.lines().count() == 4, "{table}");
}

/// A run that was cut off while it wrote events, and ended without, has some of them.
#[test]
fn events_that_stop_halfway_are_written_anew() {
    let folder = folder();
    let folder = folder.path();
    let name = run(folder, &["steps=3", "logging.tensorboard=true"]);
    let events = folder.join("runs").join(&name).join("tensorboard");
    let file = events.join(&Disk::default().names(&events).unwrap()[0]);
    let whole = fs::read(&file).unwrap();
    let theirs = ["events.out.tfevents.1.theirs", "events.out.tfevents.1768800000.host.starpo.0"];
    theirs.iter().for_each(|name| fs::write(events.join(name), "kept").unwrap());
    fs::create_dir(events.join("events.out.tfevents.0000000009.starpo")).unwrap();
    let pipe = events.join("events.out.tfevents.0000000008.starpo");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let mut flipped = whole.clone();
    flipped[60] ^= 1;
    for damaged in [&whole[..whole.len() - 1], &whole[..60], &[], &flipped] {
        fs::write(&file, damaged).unwrap();
        run(folder, &["steps=3", "logging.tensorboard=true"]);
        let again = fs::read(&file).unwrap();
        assert!(again.len() == whole.len() && again != damaged);
        theirs.iter().for_each(|name| assert_eq!(fs::read(events.join(name)).unwrap(), b"kept"));
    }
}

/// An archive says that the run must come to its digest, so it holds no other files.
#[test]
fn what_was_altered_is_not_exported() {
    let folder = folder();
    let folder = folder.path();
    let name = run(folder, &["steps=1"]);
    let path = folder.join("runs").join(&name);
    let metrics = fs::read_to_string(path.join("metrics.jsonl")).unwrap();
    fs::write(path.join("metrics.jsonl"), metrics.replacen("\"kept\":2", "\"kept\":1", 1)).unwrap();
    let (code, error) = refusal(folder, &["export", &name]);
    assert!(code == 1 && error.contains("its files are not those of its digest"), "{error}");
    fs::write(path.join("metrics.jsonl"), metrics).unwrap();
    let altered = [
        ("run.lock.kdl", "seed 1", "seed 2", "the lock was edited or damaged"),
        ("canon.txt", "seed\tu64\t1", "seed\tu64\t2", "canon.txt is not that of its name"),
        ("checkpoints/000000/manifest.json", "\"step\": 0", "\"step\": 1", "checkpoint 0: "),
    ];
    for (file, from, to, words) in altered {
        let text = fs::read_to_string(path.join(file)).unwrap();
        assert!(text.contains(from), "{file}");
        fs::write(path.join(file), text.replacen(from, to, 1)).unwrap();
        let (code, error) = refusal(folder, &["export", &name]);
        assert!(code != 0 && error.contains(words), "{file}: {error}");
        fs::write(path.join(file), text).unwrap();
    }
    fs::write(path.join("rollouts/step-000001.jsonl"), "{}\n").unwrap();
    for verb in ["export", "report", "metrics"] {
        let (code, error) = refusal(folder, &[verb, &name]);
        assert!(code == 1 && error.contains("it holds two files of step 1"), "{verb}: {error}");
    }
    fs::remove_file(path.join("rollouts/step-000001.jsonl")).unwrap();
    fs::remove_file(path.join("result.kdl")).unwrap();
    for verb in ["export", "verify"] {
        let (code, error) = refusal(folder, &[verb, &name]);
        assert!(code == 1 && error.contains("result.kdl is damaged: the run is done"), "{verb}: {error}");
    }
}

/// Where the last checkpoint or a text of the key is damaged, that is what differs.
#[test]
fn verify_names_the_damaged_file() {
    let folder = folder();
    let folder = folder.path();
    let name = run(folder, &["steps=2"]);
    let path = folder.join("runs").join(&name);
    let damaged = [
        ("checkpoints/000002/optimizer.safetensors", "optimizer.safetensors is damaged: its bytes are not those"),
        ("checkpoints/000002/manifest.json", "manifest.json is damaged"),
        ("checkpoints/000000/optimizer.safetensors", "checkpoint 0: "),
        ("canon.txt", "first of all differs canon.txt"),
        ("result.kdl", "first of all differs result.kdl"),
    ];
    for (file, words) in damaged {
        let bytes = fs::read(path.join(file)).unwrap();
        let mut other = bytes.clone();
        // In the result a letter of a metric's name, which nothing else reads.
        let at = if file == "result.kdl" { position(&bytes, b"metrics") } else { bytes.len() - 8 };
        other[at] ^= 1;
        fs::write(path.join(file), other).unwrap();
        let (code, error) = refusal(folder, &["verify", &name]);
        assert!(code == 1 && error.contains(words), "{file}: {error}");
        fs::write(path.join(file), bytes).unwrap();
    }
    assert!(answer(folder, &["verify", &name]).starts_with("same"));
}

fn position(bytes: &[u8], word: &[u8]) -> usize {
    bytes.windows(word.len()).position(|window| window == word).unwrap()
}

/// A folder of weights is there whole or not at all; an archive has none.
#[test]
fn weights_are_written_whole() {
    let folder = folder();
    let folder = folder.path();
    let name = run(folder, &["steps=1"]);
    fs::create_dir(folder.join(".tmp-out-999999999-0")).unwrap();
    fs::write(folder.join(".tmp-out-999999999-0/model.safetensors"), "half").unwrap();
    answer(folder, &["weights", &name, "out"]);
    std::os::unix::fs::symlink("nowhere", folder.join("dangling")).unwrap();
    let places = [("dangling", "is there already"), ("new/..", "has no name"), ("new/../w", "is not there")];
    for (place, words) in places {
        let (code, error) = refusal(folder, &["weights", &name, place]);
        assert!(code == 2 && error.contains(words) && !folder.join("new").exists(), "{place}: {error}");
    }
    let adapted = run(folder, &["steps=1", "adapter=lora"]);
    answer(folder, &["weights", &adapted, "out/../adapted", "--adapter"]);
    let config = fs::read_to_string(folder.join("adapted/adapter_config.json")).unwrap();
    let base = folder.canonicalize().unwrap().join("adapted/base");
    assert!(config.contains(base.to_str().unwrap()) && base.join("config.json").exists(), "{config}");
    assert!(Disk::default().names(folder).unwrap().iter().all(|name| !name.starts_with(".tmp-")));
    assert!(folder.join("out/model.safetensors").exists());
    let (code, error) = refusal(folder, &["weights", &name, "out/config.json/in"]);
    assert!(code == 1 && error.contains("Not a directory"), "{error}");
    fs::remove_dir_all(folder.join("runs").join(&name).join("checkpoints")).unwrap();
    let (code, error) = refusal(folder, &["weights", &name, "other"]);
    assert!(code == 2 && error.contains("are not here: an archive is without them"), "{error}");
}

/// A run is called as its folder, from within it too.
#[test]
fn a_run_is_named_from_within() {
    let folder = folder();
    let folder = folder.path();
    let name = run(folder, &["steps=1"]);
    let within = folder.join("runs").join(&name);
    assert!(answer(&within, &["report", ".", "--runs-dir", ".."]).starts_with(&format!("{name}.html")));
    answer(&within, &["tag", ".", "best", "--runs-dir", ".."]);
    assert!(answer(folder, &["ls"]).contains("best"));
}
