//! The folder of runs as a person keeps it: names, what is freed, verified, exported, started from; and old runs.

mod damage;
mod files;
mod strange;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use starpo::record::{Disk, reader};

/// Runs of less than a second, of a few thousand parameters.
const QUICK: [&str; 13] = [
    "warm-start=none",
    "width=8",
    "layers=1",
    "heads=1",
    "kv-heads=1",
    "ffn=8",
    "groups=2",
    "group-size=2",
    "max-response-tokens=4",
    "eval.tasks=2",
    "checkpoint-every=1",
    "threads=1",
    "collapse.every=0",
];

fn starpo(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_starpo"));
    command.args(arguments).current_dir(folder).env("NO_COLOR", "1").output().unwrap()
}

/// What it prints where it succeeds.
#[track_caller]
fn answer(folder: &Path, arguments: &[&str]) -> String {
    let output = starpo(folder, arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The exit code, and what it says on standard error, on one line, where it does not.
#[track_caller]
fn refusal(folder: &Path, arguments: &[&str]) -> (i32, String) {
    let output = starpo(folder, arguments);
    assert!(!output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stdout));
    let text = String::from_utf8(output.stderr).unwrap();
    let words: Vec<&str> = text.split_whitespace().filter(|word| !matches!(*word, "│" | "|")).collect();
    (output.status.code().unwrap(), words.join(" "))
}

/// Runs it in `runs`: its directory's name.
#[track_caller]
fn run(folder: &Path, words: &[&str]) -> String {
    let quick = QUICK.iter().filter(|quick| {
        let name = |word: &str| word.split('=').next().unwrap().to_owned();
        !words.iter().any(|word| {
            name(word) == name(quick)
                || *word == "--from"
                    && ["width", "layers", "heads", "kv-heads", "ffn", "warm-start"].contains(&name(quick).as_str())
        })
    });
    let printed = answer(folder, &[&["run", "bandit"], words, &quick.copied().collect::<Vec<_>>()[..]].concat());
    let line = printed.lines().find_map(|line| line.strip_prefix("directory")).unwrap();
    Path::new(line.trim()).file_name().unwrap().to_str().unwrap().to_owned()
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

#[test]
fn tags_name_runs_and_keep_them() {
    let folder = folder();
    let folder = folder.path();
    let (one, two) = (run(folder, &["steps=1"]), run(folder, &["steps=1", "seed=2"]));
    let warm = [
        "steps=1",
        "seed=3",
        "warm-start=expert",
        "warm-start.episodes=4",
        "warm-start.steps=1",
        "max-response-tokens=60",
    ];
    let three = run(folder, &warm);
    let fresh = run(folder, &["steps=1", "--fresh"]);
    assert_eq!(fresh, one);
    answer(folder, &["tag", &two, "best"]);
    answer(folder, &["tag", "best", "also"]);
    assert!(refusal(folder, &["tag", &one, "best"]).1.contains("best is another run's name"));
    for word in ["", ".x", "a/b", "a b", &one, "bandit", &one[..one.len() - 3], &two["bandit-".len()..][..5]] {
        assert_eq!(refusal(folder, &["tag", &one, word]).0, 2, "{word:?}");
    }
    assert!(refusal(folder, &["tag", &one, "ban"]).1.contains("cannot be called \"ban\": bandit-"));
    assert_eq!(answer(folder, &["tag", &two, "spare", "--json"]), format!("{{\"tag\":\"spare\",\"run\":\"{two}\"}}\n"));
    assert_eq!(answer(folder, &["untag", "spare", "--json"]), format!("{{\"tag\":\"spare\",\"run\":\"{two}\"}}\n"));
    let there = folder.join("runs").join(&one);
    fs::create_dir(folder.join("other")).unwrap();
    let elsewhere = refusal(folder, &["tag", there.to_str().unwrap(), "x", "--runs-dir", "other"]);
    assert!(elsewhere.0 == 2 && elsewhere.1.contains("is not in other"), "{}", elsewhere.1);
    let fixed = refusal(folder, &["why", &one, &two, "top_p=0.9"]);
    assert!(fixed.0 == 2 && fixed.1.contains("its config is fixed"), "{}", fixed.1);
    let list = answer(folder, &["ls"]);
    assert!(list.lines().any(|line| line.starts_with(&two) && line.ends_with("also best")), "{list}");
    assert_eq!(answer(folder, &["why", "best", &two[..two.len() - 2]]), "nothing: they are the same run\n");
    assert!(answer(folder, &["eval", "best", "--show", "0"]).contains("2 held-out tasks"));

    // A sweep names a run by its name; a warm start is kept by the run that needs it.
    fs::create_dir_all(folder.join("runs/sweeps/s-1/output")).unwrap();
    fs::write(folder.join("runs/sweeps/s-1/output/jobs.txt"), format!("cell \"x\" run=\"{three}\"\n")).unwrap();
    let listed = answer(folder, &["gc"]);
    assert!(listed.contains(&one) && listed.contains("moved aside") && listed.contains("2 folders"), "{listed}");
    assert!(listed.contains("nothing is removed without --yes") && folder.join("runs").join(&one).exists());
    fs::create_dir(folder.join("golden")).unwrap();
    fs::write(folder.join("golden/figure.txt"), &one).unwrap();
    assert!(answer(folder, &["gc"]).contains("1 folders"));
    fs::remove_dir_all(folder.join("golden")).unwrap();
    fs::create_dir(folder.join("runs/.tmp-x-999999999-0")).unwrap();
    assert!(answer(folder, &["gc", "--yes"]).contains("3 folders"));
    let mut left = Disk::default().names(&folder.join("runs")).unwrap();
    left.retain(|name| name != ".naming");
    let warm = left.iter().find(|name| name.starts_with("warm-")).unwrap();
    assert_eq!(
        left,
        ["attic", &two, &three, "sweeps", "tags", warm]
            .map(str::to_owned)
            .into_iter()
            .collect::<std::collections::BTreeSet<_>>()
            .into_iter()
            .collect::<Vec<_>>()
    );
    answer(folder, &["untag", "best"]);
    answer(folder, &["untag", "also"]);
    assert_eq!(refusal(folder, &["untag", "also"]).0, 2);
    assert!(answer(folder, &["gc", "--json", "--yes"]).contains(&two));
    assert!(!folder.join("runs").join(&two).exists());
}

/// What cannot be judged is left alone and named, and the rest goes on.
#[test]
fn gc_goes_on_beside_what_is_damaged() {
    let folder = folder();
    let folder = folder.path();
    let seeds = ["seed=1", "seed=2", "seed=3"];
    let [damaged, garbage, linked] = seeds.map(|seed| run(folder, &["steps=1", seed]));
    let runs = folder.join("runs");
    fs::remove_file(runs.join(&damaged).join("canon.txt")).unwrap();
    fs::rename(runs.join(&linked), folder.join("elsewhere")).unwrap();
    std::os::unix::fs::symlink("../elsewhere", runs.join(&linked)).unwrap();
    std::os::unix::fs::symlink("../../elsewhere", runs.join(&garbage).join("link")).unwrap();
    std::os::unix::fs::symlink("../..", runs.join(&garbage).join("round")).unwrap();
    std::os::unix::fs::symlink(".", runs.join(&garbage).join("loop")).unwrap();
    fs::write(runs.join(".tmp-stray"), "half").unwrap();
    fs::create_dir(runs.join(".tmp-draft-999999999-0")).unwrap();
    fs::write(runs.join(".tmp-draft-999999999-0/run.lock.kdl"), "half").unwrap();
    fs::create_dir(runs.join("tags")).unwrap();
    fs::write(runs.join("tags/.tmp-best-999999999-3"), "half").unwrap();
    fs::create_dir(runs.join("tags/folder")).unwrap();
    assert!(Command::new("mkfifo").arg(runs.join("tags/pipe")).status().unwrap().success());
    let output = starpo(folder, &["gc", "--yes"]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
    assert!(said.contains(&format!("left alone: {damaged} is damaged: cannot read")), "{said}");
    assert!(said.contains(&format!("{linked} is a symbolic link")), "{said}");
    let mut left = vec![damaged, linked, "tags".to_owned()];
    left.sort();
    let shown = |names: Vec<String>| names.into_iter().filter(|name| name != ".naming").collect::<Vec<_>>();
    assert_eq!(shown(Disk::default().names(&runs).unwrap()), left);
    assert!(answer(folder, &["ls"]).contains(&left[0]));
    assert_eq!(Disk::default().names(&runs.join("tags")).unwrap(), ["folder", "pipe"]);
    assert!(folder.join("elsewhere/canon.txt").exists() && folder.join("elsewhere/checkpoints/000001").exists());
}

/// One that cannot be removed keeps no other, and whoever asked is told of all.
#[test]
fn gc_goes_on_past_what_it_cannot_remove() {
    let folder = folder();
    let folder = folder.path();
    let stuck = ["runs/attic/a-1", "runs/attic/a-2"].map(|name| folder.join(name));
    stuck.iter().for_each(|stuck| fs::create_dir_all(stuck.join("lease")).unwrap());
    for arguments in [&["gc", "--yes"][..], &["gc", "--yes", "--json"]] {
        let free = folder.join("runs").join(run(folder, &["steps=1"]));
        let output = starpo(folder, arguments);
        let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        assert!(output.status.code() == Some(1) && said.contains("freed 0."), "{said}");
        if arguments.contains(&"--json") {
            let one: serde_json::Value = serde_json::from_str(&said).unwrap();
            assert_eq!(one["garbage"].as_array().unwrap().len(), 3, "{one}");
        }
        assert!([1, 2].iter().all(|n| said.contains(&format!("attic/a-{n}/lease: Is a directory"))), "{said}");
        assert!(stuck.iter().all(|stuck| stuck.exists()) && !free.exists());
    }
}

#[test]
fn a_run_is_made_again_and_compared() {
    let folder = folder();
    let folder = folder.path();
    let name = run(folder, &["steps=2"]);
    let same = answer(folder, &["verify", &name]);
    assert!(same.starts_with(&format!("same       {name}\ndigest     blake3:")), "{same}");
    assert_eq!(Disk::default().names(&folder.join("runs")).unwrap(), [name.as_str()], "nothing is left of it");

    // Not even a shorter or a longer run beside it is asked.
    let longer = run(folder, &["steps=3"]);
    let metrics = folder.join("runs").join(&longer).join("metrics.jsonl");
    let (result, as_made) = (
        folder.join("runs").join(&longer).join("result.kdl"),
        ["metrics.jsonl", "result.kdl"].map(|name| fs::read(folder.join("runs").join(&longer).join(name)).unwrap()),
    );
    let forged = fs::read_to_string(&metrics).unwrap().replacen("\"kept\":2", "\"kept\":1", 1);
    fs::write(&metrics, forged).unwrap();
    assert!(refusal(folder, &["verify", &longer]).1.contains("its files are not those of then"));
    let forge = |result: &Path| {
        let text = fs::read_to_string(result).unwrap();
        fs::write(result, text.replace("digest \"blake3:", "digest \"blake3:0")).unwrap();
    };
    forge(&result);
    let (code, error) = refusal(folder, &["verify", &longer]);
    assert!(code == 1 && error.contains("metrics.jsonl, step 1: filter.kept is 1, and 2"), "{error}");
    // What it left says nothing of the next time.
    forge(&folder.join(format!("runs/.tmp-verify-{longer}/{longer}/result.kdl")));
    fs::write(&metrics, &as_made[0]).unwrap();
    fs::write(&result, &as_made[1]).unwrap();
    assert!(answer(folder, &["verify", &longer]).starts_with("same"));
    fs::write(folder.join("runs").join(&longer).join("state"), "interrupted 1\n").unwrap();
    fs::remove_file(&result).unwrap();
    assert!(refusal(folder, &["verify", &longer]).1.contains("is not finished"));
}

#[test]
fn a_run_is_shown_as_an_experiment_is() {
    let folder = folder();
    let folder = folder.path();
    let name = run(folder, &["steps=2", "top_p=0.5"]);
    let document = |words: &[&str]| -> serde_json::Value { serde_json::from_str(&answer(folder, words)).unwrap() };
    let shown = document(&["show", &name, "--json"]);
    assert_eq!((&shown["id"], &shown["values"]["filter.value"]["value"]), (&name.as_str().into(), &0.5.into()));
    assert_eq!(shown["values"]["filter.value"]["origin"], "override 2");
    assert!(shown["values"]["rollout.groups"]["origin"].as_str().unwrap().starts_with("override "));
    assert_eq!(
        shown["values"]["update.epochs"]["origin"],
        document(&["show", "bandit", "--json"])["values"]["update.epochs"]["origin"]
    );
    assert_eq!(
        document(&["show", &name, "--path", "filter.value", "--json"])["filter.value"],
        shown["values"]["filter.value"]
    );
    let part = answer(folder, &["show", &name, "--path", "filter.value"]);
    assert!(part.split_whitespace().collect::<Vec<_>>().join(" ").contains("value 0.5 // override 2"), "{part}");
    assert!(refusal(folder, &["show", &name, "seed=2"]).1.contains("its config is fixed"));
    assert!(refusal(folder, &["show", &name, "--path", "nothing.here"]).1.contains("there is no value"));
}

#[test]
fn a_warm_start_is_made_again_and_exported() {
    let folder = folder();
    let folder = folder.path();
    let warm = ["warm-start=expert", "warm-start.episodes=4", "warm-start.steps=1", "max-response-tokens=60"];
    run(folder, &[&["steps=1"], &warm[..]].concat());
    let runs = folder.join("runs");
    let names = Disk::default().names(&runs).unwrap();
    let warm = names.iter().find(|name| name.starts_with("warm-")).unwrap();
    assert!(answer(folder, &["verify", warm]).starts_with(&format!("same       {warm}\n")));
    assert_eq!(Disk::default().names(&runs).unwrap(), names, "nothing is left of it");
    answer(folder, &["export", warm]);
    fs::remove_dir_all(runs.join(warm)).unwrap();
    fs::write(
        folder.join("run.tar"),
        zstd::decode_all(&fs::read(folder.join(format!("{warm}.tar.zst"))).unwrap()[..]).unwrap(),
    )
    .unwrap();
    assert!(Command::new("tar").args(["-xf", "../run.tar"]).current_dir(&runs).status().unwrap().success());
    assert!(answer(folder, &["verify", warm]).starts_with("same"));
}

#[test]
fn a_run_that_has_no_weights_yet_says_so() {
    let folder = folder();
    let folder = folder.path();
    let name = run(folder, &["steps=1"]);
    let path = folder.join("runs").join(&name);
    for gone in ["checkpoints", "rollouts", "evals", "attempts"] {
        fs::remove_dir_all(path.join(gone)).unwrap();
    }
    for gone in ["state", "metrics.jsonl", "result.kdl"] {
        fs::remove_file(path.join(gone)).unwrap();
    }
    for verb in [&["eval", &name][..], &["weights", &name, "out"]] {
        let (code, error) = refusal(folder, verb);
        assert!(code == 2 && error.contains("it is not begun") && error.contains("starpo exec"), "{error}");
    }
}

#[test]
fn a_run_starts_from_the_weights_of_another() {
    let folder = folder();
    let folder = folder.path();
    let first = run(folder, &["steps=1", "update.learning-rate=1e-2"]);
    let second = run(folder, &["steps=1", "--from", &first[..first.len() - 1]]);
    let shown = answer(folder, &["show", &second]);
    assert!(shown.contains(&format!("path (dir)\"runs/{first}\"")), "{shown}");
    assert!(!shown.contains("\"type\": \"BPE\""), "texts of inputs are left out");
    let typed = format!("model.path=(run){first}");
    let asked = ["show", "bandit", "model=pretrained", &typed, "--json"];
    let document: serde_json::Value = serde_json::from_str(&answer(folder, &asked)).unwrap();
    assert_eq!(document["values"]["model.path"]["value"], format!("runs/{first}"));

    let of_folder = typed.replace("(run)", "(dir)runs/");
    let same: serde_json::Value =
        serde_json::from_str(&answer(folder, &["show", "bandit", "model=pretrained", &of_folder, "--json"])).unwrap();
    assert_eq!(same["values"]["model.path"]["value"], format!("runs/{first}"));

    // The key has the weights, not the run's name: those of another run of equal weights are the same.
    let digest = |run: &str| starpo::record::digest::weights(&Disk::default(), &folder.join("runs").join(run)).unwrap();
    let twin = run(folder, &["steps=1", "update.learning-rate=1e-2", "eval.every=7"]);
    assert!(twin != first && digest(&twin) == digest(&first));
    assert_eq!(run(folder, &["steps=1", "--from", &twin]), second);
    assert!(answer(folder, &["verify", &second]).starts_with("same"));

    let page = |run: &str| {
        answer(folder, &["report", run, "-o", "page.html"]);
        fs::read_to_string(folder.join("page.html")).unwrap()
    };
    let vocabulary = |page: String| page.split_once("id=\"vocabulary\">").unwrap().1.split('<').next().unwrap().len();
    assert!(vocabulary(page(&second)) > 2 && vocabulary(page(&first)) > 2, "tokens are spelt");

    // Without learning, the weights that go in come out; the run of a run of a run has their shape and tokenizer.
    let third = run(folder, &["steps=1", "update.learning-rate=0", "--from", &second]);
    let weights =
        |run: &str| fs::read(folder.join("runs").join(run).join("checkpoints/000001/model.safetensors")).unwrap();
    assert!(weights(&third) == weights(&second) && weights(&second) != weights(&first));

    // Nothing that a kept run started from is garbage.
    answer(folder, &["tag", &third, "third"]);
    answer(folder, &["gc", "--yes"]);
    let kept = |run: &str| folder.join("runs").join(run).exists();
    assert!(kept(&first) && kept(&second) && !kept(&twin));

    let absent = refusal(folder, &["show", "bandit", "model=pretrained", "model.path=(run)nothing"]).1;
    assert!(absent.contains("no run called nothing"), "{absent}");
    fs::write(folder.join("runs").join(&first).join("state"), "interrupted 1\n").unwrap();
    let unfinished = refusal(folder, &["show", "bandit", "model=pretrained", &typed]).1;
    assert!(unfinished.contains("is interrupted, not done"), "{unfinished}");
}

/// Two processes at once: of the same run one is told where it runs, and both come to the same; a warm start that both
/// need is made once.
#[test]
fn two_processes_share_a_folder_of_runs() {
    let folder = folder();
    let warm = ["warm-start=expert", "warm-start.episodes=40", "warm-start.steps=20", "max-response-tokens=60"];
    let quick: Vec<&str> =
        QUICK.iter().filter(|word| !word.starts_with("warm") && !word.starts_with("max-r")).copied().collect();
    let start = |seed: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_starpo"));
        command.args(["run", "bandit", "--json", "steps=2", seed]).args(warm).args(&quick).current_dir(folder.path());
        command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::null()).spawn().unwrap()
    };
    let mut others: Vec<_> = ["seed=1", "seed=2", "seed=1"].map(start).into_iter().collect();
    let ends: Vec<Option<i32>> = others.iter_mut().map(|child| child.wait().unwrap().code()).collect();
    assert!(ends.iter().all(|end| matches!(end, Some(0 | 75))) && ends[1] == Some(0), "{ends:?}");
    for seed in ["seed=1", "seed=2"] {
        assert!(start(seed).wait().unwrap().success());
    }
    let runs = reader::list(&Disk::default(), &folder.path().join("runs")).unwrap();
    assert!(runs.0.len() == 3 && runs.1.is_empty(), "{runs:?}");
    let warm = runs.0.iter().find(|run| run.name.starts_with("warm-")).unwrap();
    assert_eq!(warm.attempt, 1, "made once");
    for run in runs.0.iter().filter(|run| !run.name.starts_with("warm-")) {
        assert!(answer(folder.path(), &["verify", &run.name]).starts_with("same"));
    }
}

/// Directories that earlier versions wrote, as they wrote them: never made anew. They must open for ever.
#[test]
fn old_runs_open() {
    let versions = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("golden/run");
    let mut opened = 0;
    for version in Disk::default().names(&versions).unwrap() {
        let runs = versions.join(&version);
        let (runs, here) = (runs.to_str().unwrap(), folder());
        let here = here.path();
        for name in Disk::default().names(Path::new(runs)).unwrap() {
            let path = Path::new(runs).join(&name);
            let list = answer(here, &["ls", "--runs-dir", runs]);
            assert!(list.lines().any(|line| line.starts_with(&name) && line.contains("done")), "{list}");
            let shown = answer(here, &["show", &name, "--runs-dir", runs]);
            assert!(shown.contains("learning-rate") && shown.contains(&name), "{shown}");
            assert_eq!(answer(here, &["why", &name, &name, "--runs-dir", runs]), "nothing: they are the same run\n");
            assert!(answer(here, &["why", &name, "bandit", "--runs-dir", runs]).contains("model.width"));
            let disk = Disk::default();
            let (metrics, times) = (reader::metrics(&disk, &path).unwrap(), reader::timings(&disk, &path).unwrap());
            assert!(metrics.len() == 3 && times.len() == 3 && metrics[2]["rollout"]["success"].is_f64());
            assert!(reader::result(&disk, &path).unwrap().is_some_and(|result| result.digest.starts_with("blake3:")));
            let found = starpo::record::checkpoint::latest(&disk, &path).unwrap();
            assert!(found.checkpoint.is_some_and(|found| found.step == 2));
            let first = |warning: &String| warning.starts_with("checkpoint 2 is of a version that wrote no digests");
            assert!(found.warnings.len() == 1 && found.warnings.iter().all(first), "{:?}", found.warnings);
            let digest = starpo::record::digest::digest(&disk, &path).unwrap();
            assert_eq!(Some(digest), reader::digest(&disk, &path).unwrap());
            let episodes = path.join("rollouts/step-000002.jsonl.zst");
            let replayed = answer(here, &["replay", episodes.to_str().unwrap(), "advantage=grpo", "--json"]);
            assert!(replayed.contains("\"loss\""), "{replayed}");
            answer(here, &["export", &name, "--runs-dir", runs]);
            answer(here, &["report", &name, "--runs-dir", runs]);
            for verb in ["eval", "exec", "verify"] {
                let (code, error) = refusal(here, &[verb, &name, "--runs-dir", runs]);
                assert!(code == 2 && error.contains("update was at 1, and is at"), "{verb}: {error}");
            }
            opened += 1;
        }
    }
    assert!(opened > 0);
}

#[test]
fn a_lock_of_a_later_version_says_so() {
    let folder = folder();
    let folder = folder.path();
    let name = run(folder, &["steps=1"]);
    let path = folder.join("runs").join(&name).join("run.lock.kdl");
    let lock = fs::read_to_string(&path).unwrap();
    for (now, later) in [("lock=1", "lock=2"), ("canon=1", "canon=7")] {
        fs::write(&path, lock.replacen(now, later, 1)).unwrap();
        for verb in ["show", "eval", "verify", "exec"] {
            let error = refusal(folder, &[verb, &name]).1;
            let (form, version) = later.split_once('=').unwrap();
            let message = format!("this lock has {form} version {version}, and this program reads up to 1");
            assert!(error.contains(&message), "{verb}: {error}");
        }
        assert!(answer(folder, &["ls"]).contains(&name), "its other files are what they were");
    }
}

/// Whoever reads a run needs nothing that only its end would.
#[test]
fn a_run_with_parquet_is_read_by_every_build() {
    let folder = folder();
    let folder = folder.path();
    let name = run(folder, &["steps=1"]);
    let path = folder.join("runs").join(&name);
    let lock = fs::read_to_string(path.join("run.lock.kdl")).unwrap();
    fs::write(path.join("run.lock.kdl"), lock.replacen("parquet #false", "parquet #true", 1)).unwrap();
    assert!(answer(folder, &["eval", &name, "--show", "0"]).contains("2 held-out tasks"));
    assert!(answer(folder, &["verify", &name]).starts_with("same"));
    answer(folder, &["report", &name, "-o", "page.html"]);
    assert!(!fs::read_to_string(folder.join("page.html")).unwrap().contains("Not known from records"));
    fs::write(path.join("state"), "interrupted 1\n").unwrap();
    fs::remove_dir_all(path.join("checkpoints")).unwrap();
    if cfg!(feature = "parquet") {
        answer(folder, &["exec", &name]);
    } else {
        let (code, error) = refusal(folder, &["exec", &name]);
        assert!(code == 2 && error.contains("was built without Parquet"), "{error}");
        let (code, error) = refusal(folder, &["metrics", &name, "--parquet", "x"]);
        assert!(code == 2 && error.contains("was built without Parquet"), "{error}");
    }
}

/// What cannot be begun leaves the run that is there.
#[test]
fn a_fresh_run_that_cannot_begin_moves_nothing() {
    let folder = folder();
    let folder = folder.path();
    let words = [&["bandit", "device=wgpu", "numerics=gpu-f32"], &QUICK[..]].concat();
    let shown = answer(folder, &[&["show", "--json"], &words[..]].concat());
    let id = serde_json::from_str::<serde_json::Value>(&shown).unwrap()["id"].as_str().unwrap().to_owned();
    let there = folder.join("runs").join(id);
    fs::create_dir_all(&there).unwrap();
    if cfg!(not(feature = "wgpu")) {
        assert_eq!(refusal(folder, &[&["run", "--fresh"], &words[..]].concat()).0, 2);
        assert!(there.exists() && !folder.join("runs/attic").exists());
    }
}
