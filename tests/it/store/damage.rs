//! Sweeps and warm starts of which something is damaged, and what is said of it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use starpo::record::{Disk, garbage};

use super::{QUICK, answer, folder, refusal, run, starpo};

/// A sweep of two runs, and what it printed.
#[track_caller]
fn sweep(folder: &Path) -> String {
    answer(folder, &words(&["seed=1,2"]))
}

fn words<'w>(more: &[&'w str]) -> Vec<&'w str> {
    [&["sweep", "bandit", "steps=1"], &QUICK[..], more].concat()
}

fn written(folder: &Path) -> PathBuf {
    fs::read_dir(folder.join("runs/sweeps")).unwrap().next().unwrap().unwrap().path()
}

fn runs(folder: &Path) -> Vec<PathBuf> {
    let all = fs::read_dir(folder.join("runs")).unwrap().map(|entry| entry.unwrap().path());
    let mut runs: Vec<PathBuf> = all.filter(|path| path.join("run.lock.kdl").exists()).collect();
    runs.sort();
    runs
}

/// What a finished run answers with is what it came to.
#[test]
fn a_finished_run_with_other_files_does_not_answer() {
    let folder = folder();
    let folder = folder.path();
    let run = folder.join("runs").join(run(folder, &["steps=2"]));
    let again = [&["run", "bandit", "steps=2"], &QUICK[..]].concat();
    let weights = "checkpoints/000002/model.safetensors";
    for (file, from, to) in [("metrics.jsonl", "success", "succezz"), (weights, "model", "mod_l")] {
        let path = run.join(file);
        let whole = fs::read(&path).unwrap();
        let at = whole.windows(from.len()).position(|part| part == from.as_bytes()).unwrap();
        fs::write(&path, [&whole[..at], to.as_bytes(), &whole[at + to.len()..]].concat()).unwrap();
        let (code, error) = refusal(folder, &again);
        assert!(code == 1 && error.contains("its files are not those of its digest"), "{file}: {error}");
        fs::write(&path, whole).unwrap();
    }
    assert!(answer(folder, &again).contains("finished before"));
    fs::remove_file(run.join("run.lock.kdl")).unwrap();
    assert!(answer(folder, &["ls"]).contains(run.file_name().unwrap().to_str().unwrap()));
}

/// Its list of cells is damaged, and still names them.
#[test]
fn a_damaged_sweep_keeps_its_runs() {
    let folder = folder();
    let folder = folder.path();
    sweep(folder);
    let list = written(folder).join("sweep.kdl");
    fs::write(&list, [&fs::read(&list).unwrap()[..], b"\xff"].concat()).unwrap();
    fs::remove_file(written(folder).join("report.html")).unwrap();
    fs::remove_dir_all(written(folder).join("output")).unwrap();
    assert!(answer(folder, &["gc", "--yes"]).starts_with("0 folders"));
    assert_eq!(runs(folder).len(), 2);
}

/// A list that was cut short, or grew, is not the sweep of its name.
#[test]
fn a_list_is_that_of_its_name() {
    let folder = folder();
    let folder = folder.path();
    sweep(folder);
    let name = written(folder).file_name().unwrap().to_str().unwrap().to_owned();
    let list = written(folder).join("sweep.kdl");
    fs::remove_file(written(folder).join("report.html")).unwrap();
    fs::remove_dir_all(written(folder).join("output")).unwrap();
    let text = fs::read_to_string(&list).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let last = lines[lines.len() - 1];
    for altered in [lines[..lines.len() - 1].join("\n"), format!("{text}{last}\n"), text.replace("seed=2", "seed=3")] {
        assert_ne!(altered, text);
        fs::write(&list, altered).unwrap();
        for verb in ["sweep", "compare", "report"] {
            let (code, error) = refusal(folder, &[verb, &name]);
            assert!(code == 1 && error.contains("it is not the list that the id"), "{verb}: {error}");
        }
        let output = starpo(folder, &["gc", "--yes"]);
        assert!(String::from_utf8(output.stderr).unwrap().contains("is damaged, and may have named it"));
        assert_eq!(runs(folder).len(), 2);
    }
    // Given anew it is written anew.
    assert!(sweep(folder).contains("2 of 2 cells done"));
    std::os::unix::fs::symlink(written(folder), folder.join("link")).unwrap();
    for spelt in [&name, &format!("runs/sweeps/{name}/"), &format!("runs/sweeps/{name}/."), "link", "link/"] {
        answer(folder, &["sweep", spelt]);
    }
    for lost in [runs(folder)[0].join("run.lock.kdl"), runs(folder)[1].join("run.lock.kdl")] {
        let lock = fs::read(&lost).unwrap();
        fs::remove_file(&lost).unwrap();
        let (code, error) = refusal(folder, &["sweep", &name]);
        assert!(code == 1 && error.contains("its run.lock.kdl is missing"), "{error}");
        fs::write(&lost, lock).unwrap();
    }
}

/// Whoever names a run and whoever removes runs wait for each other.
#[test]
fn a_name_is_not_given_while_runs_are_removed() {
    let folder = folder();
    let folder = folder.path();
    let one = run(folder, &["steps=1"]);
    let naming = garbage::naming(&Disk::default(), &folder.join("runs")).unwrap();
    let tag = Command::new(env!("CARGO_BIN_EXE_starpo")).args(["tag", &one, "best"]).current_dir(folder).spawn();
    let mut tag = tag.unwrap();
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert!(tag.try_wait().unwrap().is_none(), "it waits");
    fs::remove_dir_all(folder.join("runs").join(&one)).unwrap();
    drop(naming);
    assert_eq!(tag.wait().unwrap().code(), Some(2));
    assert!(!folder.join("runs/tags/best").exists());
}

/// A run that says it is done and lacks a part of its record is named, by the sweep as by itself, and counts nowhere.
#[test]
fn a_damaged_run_is_not_counted() {
    let folder = folder();
    let folder = folder.path();
    sweep(folder);
    let name = written(folder).file_name().unwrap().to_str().unwrap().to_owned();
    let one = &runs(folder)[0];
    let cases = [
        ("result.kdl", &b""[..], "its result.kdl is missing or damaged"),
        ("metrics.jsonl", b"", "metrics.jsonl ends at step 0, and result.kdl is of step 1"),
        ("canon.txt", b"", "canon.txt"),
    ];
    for (file, content, told) in cases {
        let file = one.join(file);
        let before = fs::read(&file).unwrap();
        fs::write(&file, content).unwrap();
        for words in [vec!["sweep", &name], words(&["seed=1,2"]), vec!["compare", &name]] {
            let (code, error) = refusal(folder, &words);
            assert!(code == 1 && error.contains(told), "{words:?}: {error}");
        }
        fs::write(&file, before).unwrap();
    }
    let lock = fs::read(one.join("run.lock.kdl")).unwrap();
    fs::remove_file(one.join("run.lock.kdl")).unwrap();
    let (code, error) = refusal(folder, &words(&["seed=1,2"]));
    assert!(code == 1 && error.contains("its run.lock.kdl is missing"), "{error}");
    fs::write(one.join("run.lock.kdl"), lock).unwrap();
    assert!(sweep(folder).contains("2 of 2 cells done"));
    fs::remove_dir_all(one).unwrap();
    assert!(answer(folder, &["compare", &name]).contains("1 of 2 cells done"));
    assert!(sweep(folder).contains("2 of 2 cells done"), "it is made again");
}

/// The table does not depend on the page.
#[test]
fn a_table_is_shown_without_a_page() {
    let folder = folder();
    let folder = folder.path();
    sweep(folder);
    let page = written(folder).join("report.html");
    fs::remove_file(&page).unwrap();
    fs::create_dir(&page).unwrap();
    let output = starpo(folder, &words(&["seed=1,2"]));
    let table = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.code() == Some(1) && table.contains("2 of 2 cells done"), "{table}");
    assert!(String::from_utf8(output.stderr).unwrap().contains("report.html"));
}

#[test]
fn no_tag_is_a_sweep() {
    let folder = folder();
    let folder = folder.path();
    sweep(folder);
    let one = runs(folder)[0].file_name().unwrap().to_str().unwrap().to_owned();
    let name = written(folder).file_name().unwrap().to_str().unwrap().to_owned();
    for tag in [&name[..], &name[..9]] {
        let (code, error) = refusal(folder, &["tag", &one, tag]);
        assert!(code == 2 && error.contains("is called so, in short"), "{error}");
    }
    fs::create_dir_all(folder.join("experiments/sweeps")).unwrap();
    let later = "sweep \"later\" { experiment \"bandit\"; grid { seed 1 2 } }";
    fs::write(folder.join("experiments/sweeps/later.kdl"), later).unwrap();
    answer(folder, &["tag", &one, "later"]);
    let words = [&["sweep", "later", "steps=1"], &QUICK[..]].concat();
    let (code, error) = refusal(folder, &words);
    assert!(code == 2 && error.contains("later is another run's name"), "{error}");
    answer(folder, &["untag", "later"]);
    answer(folder, &words);
    let list = runs_of(folder, "sweeps").into_iter().find(|name| name.starts_with("later-")).unwrap();
    fs::remove_dir_all(folder.join("runs/sweeps").join(&list)).unwrap();
    answer(folder, &["tag", &one, &list]);
    assert!(refusal(folder, &words).1.contains("is another run's name"));
}

fn runs_of(folder: &Path, inner: &str) -> Vec<String> {
    Disk::default().names(&folder.join("runs").join(inner)).unwrap()
}

/// A tag that is damaged may have named any run.
#[test]
fn a_damaged_tag_keeps_all_runs() {
    let folder = folder();
    let folder = folder.path();
    let one = run(folder, &["steps=1"]);
    answer(folder, &["tag", &one, "best"]);
    let tag = folder.join("runs/tags/best");
    for damage in [&b""[..], &one.as_bytes()[..one.len() - 2], b"\xff"] {
        fs::write(&tag, damage).unwrap();
        let told = answer(folder, &["gc", "--yes", "--json"]);
        assert!(
            told.contains("tags/best is damaged, and may have named it") && told.contains("\"garbage\":[]"),
            "{told}"
        );
    }
    assert!(answer(folder, &["ls"]).contains(&one));
    answer(folder, &["untag", "best"]);
    assert!(answer(folder, &["gc", "--yes"]).contains("1 folders"));
}

/// An error that cannot be shown has its exit code all the same.
#[test]
fn no_error_needs_its_words() {
    let folder = folder();
    let mute = |words: &[&str]| {
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_starpo"));
        command.args(words).current_dir(folder.path()).stderr(full).output().unwrap().status.code()
    };
    assert_eq!(mute(&["run", "nope"]), Some(2));
    assert_eq!(mute(&["show", "bandit", "x=1"]), Some(2));
    assert_eq!(mute(&["show", "bandit"]), Some(0));
}

/// `--fresh` does not reach a warm start: it is moved away by hand.
#[test]
fn a_damaged_warm_start_is_made_again() {
    let folder = folder();
    let folder = folder.path();
    let warm =
        ["warm-start=expert", "warm-start.episodes=2", "warm-start.steps=1", "max-response-tokens=40", "steps=1"];
    let words = |seed| [&warm[..], &[seed]].concat();
    run(folder, &words("seed=1"));
    let start = runs(folder).into_iter().find(|run| run.to_str().unwrap().contains("/warm-")).unwrap();
    let newest = fs::read_dir(start.join("checkpoints")).unwrap().map(|entry| entry.unwrap().path()).max();
    let file = newest.unwrap().join("model.safetensors");
    let mut bytes = fs::read(&file).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&file, bytes).unwrap();
    let quick = QUICK.iter().filter(|word| !word.starts_with("warm-start") && !word.starts_with("max-response"));
    let all = [&["run", "bandit"], &words("seed=2")[..], &quick.copied().collect::<Vec<_>>()].concat();
    let (_, error) = refusal(folder, &all);
    assert!(error.contains("move the directory of this warm start away"), "{error}");
    fs::rename(&start, folder.join("away")).unwrap();
    run(folder, &words("seed=2"));
}
