//! The language, the canonical text and the key.
#![expect(clippy::unwrap_used, reason = "helpers of tests, too, fail by panicking")]

mod epochs;
mod errors;
mod foreign;
mod keys;
mod lists;
mod noise;
mod sweeps;

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use starpo::config::tree::spots;
use starpo::config::{Diagnostics, Reader};
use starpo::experiment::{self, EMBEDDED, FIELDS, Outside, Resolved};

use crate::golden;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn outside() -> Outside {
    Outside::new(root())
}

fn strings(overrides: &[&str]) -> Vec<String> {
    overrides.iter().map(|text| (*text).to_owned()).collect()
}

fn sokoban(overrides: &[&str]) -> Resolved {
    experiment::resolve("sokoban", &strings(overrides), root()).unwrap()
}

/// The embedded documents and some more, in memory.
pub(crate) struct Files(BTreeMap<String, Vec<u8>>);

impl Files {
    pub(crate) fn with(more: &[(&str, &str)]) -> Self {
        let all = EMBEDDED.iter().chain(more).map(|(path, text)| ((*path).to_owned(), text.as_bytes().to_vec()));
        Self(all.collect())
    }
}

impl Reader for Files {
    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        self.0.get(path).cloned().ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "no such file"))
    }

    fn carried(&self, path: &str) -> Option<&'static str> {
        let (_, text) = EMBEDDED.iter().find(|(name, _)| *name == path)?;
        self.0.get(path).filter(|bytes| *bytes == text.as_bytes()).map(|_| *text)
    }

    fn list(&self, folder: &str) -> Vec<String> {
        let sweep = |path: &str| folder == "experiments" && path.starts_with("experiments/sweeps/");
        let below = |path: &&String| path.starts_with(folder) && path.ends_with(".kdl") && !sweep(path);
        self.0.keys().filter(below).cloned().collect()
    }

    fn folder(&self, path: &str) -> io::Result<String> {
        self.read(path).map(|bytes| blake3::hash(&bytes).to_hex().to_string())
    }
}

/// Resolves `experiments/test.kdl`, an experiment on the base with this body and head.
fn body(text: &str, overrides: &[&str]) -> Result<Resolved, Diagnostics> {
    document(&format!("experiment \"test\" {{\n    extends \"base\"\n    task \"bandit\"\n{text}\n}}\n"), overrides)
}

fn document(text: &str, overrides: &[&str]) -> Result<Resolved, Diagnostics> {
    let files = Files::with(&[
        ("experiments/test.kdl", text),
        ("prompts/rules.txt", "Push the boxes."),
        ("over.kdl", "note \"no\""),
    ]);
    experiment::resolve_with("test", &strings(overrides), &files)
}

#[test]
fn resolved_configs() {
    golden("config", "sokoban", &sokoban(&[]).show());
    let run = sokoban(&["top_p=0.9"]);
    let short: String = run.short_names.iter().map(|name| format!("// {name}\n")).collect();
    golden("config", "sokoban-top-p", &(short + &run.show()));
    golden("config", "sokoban-lock", &sokoban(&["top_p=0.9", "rollout.instruction=Push."]).lock());
}

#[test]
fn every_experiment_resolves() {
    let experiment = |path: &str| path.starts_with("experiments/") && !path.starts_with("experiments/sweeps/");
    for (path, _) in EMBEDDED.iter().filter(|(path, _)| experiment(path)) {
        experiment::resolve(path, &[], root()).unwrap();
    }
    assert!(experiment::resolve_rules(None, &strings(&["filter=top-p", "filter.value=0.5"]), &outside()).is_ok());
}

#[test]
fn the_binary_carries_every_document() {
    let mut found = BTreeMap::new();
    for folder in ["configs", "experiments"] {
        collect(&root().join(folder), folder, &mut found);
    }
    let embedded: BTreeMap<String, String> =
        EMBEDDED.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect();
    assert_eq!(embedded.keys().collect::<Vec<_>>(), found.keys().collect::<Vec<_>>());
    assert_eq!(embedded, found);
    // Away from the project, the embedded ones answer.
    let nowhere = tempfile::tempdir().unwrap();
    let away = experiment::resolve("sokoban", &[], nowhere.path()).unwrap();
    assert_eq!(away.id(), sokoban(&[]).id());
}

fn collect(folder: &Path, name: &str, found: &mut BTreeMap<String, String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = format!("{name}/{}", path.file_name().unwrap().to_str().unwrap());
        if path.is_dir() {
            collect(&path, &name, found);
        } else {
            found.insert(name, std::fs::read_to_string(path).unwrap());
        }
    }
}

#[test]
fn a_lock_makes_the_same_run() {
    let odd = "rollout.instruction=two\nlines, \"quoted\" \\ # \u{202e}\u{feff}\t\r\n";
    for overrides in [&[][..], &["top_p=0.9"], &[odd, "seed=18446744073709551615", "train.steps=0"]] {
        let run = sokoban(overrides);
        let again = experiment::from_lock(&run.lock()).unwrap();
        assert_eq!((again.id(), &again.config, &again.canon), (run.id(), &run.config, &run.canon));
        assert_eq!((&again.overrides, again.lock()), (&run.overrides, run.lock()), "origins and all");
    }
    let run = body("note \"two\\nlines\"", &["@over.kdl"]).unwrap();
    assert_eq!((run.note.as_deref(), run.key), (Some("two\nlines"), body("", &[]).unwrap().key));
    assert_eq!(experiment::from_lock(&run.lock()).unwrap().note, run.note);
    let run = body(
        "rollout { instruction (file)\"prompts/rules.txt\" }\nmodel \"pretrained\" { path (dir)\"prompts/rules.txt\" }",
        &[],
    );
    let run = run.unwrap();
    let again = experiment::from_lock(&run.lock()).unwrap();
    assert_eq!((again.id(), &again.config, &again.canon), (run.id(), &run.config, &run.canon));
}

#[test]
fn a_lock_of_other_versions_is_refused() {
    let lock = sokoban(&[]).lock();
    let moved = lock.replacen("seed 1 ", "seed 2 ", 1);
    assert_ne!(lock, moved);
    let error = experiment::from_lock(&moved).unwrap_err();
    assert!(error.to_string().contains("that of its config"), "{error}");
    for (ours, theirs) in [("lock=1", "lock=2"), ("canon=1", "canon=2"), (" canon=1", "")] {
        let error = experiment::from_lock(&lock.replacen(ours, theirs, 1)).unwrap_err().to_string();
        assert!(error.contains("this program reads up to 1"), "{error}");
    }
    assert!(experiment::from_lock("run \"x\"").is_err());
    assert!(experiment::from_lock("").is_err());
}

#[test]
fn layers() {
    let origin = |run: &Resolved, path: &str| run.show_json()["values"][path]["origin"].as_str().unwrap().to_owned();
    // The own body wins over what it uses, and that over what it extends, whatever stands below.
    let files = Files::with(&[
        ("configs/long.kdl", "train { steps 7 }\nupdate { epochs 3 }\ndefaults { filter \"top-p\" { value 0.25 } }"),
        (
            "experiments/parent.kdl",
            "experiment \"parent\" { extends \"base\"; alias \"t\" \"train.steps\"
                task \"bandit\"; task \"frozen-lake\" }",
        ),
        (
            "experiments/test.kdl",
            "experiment \"test\" { extends \"parent\"; use \"long\"; update { epochs 4 }; filter \"top-p\" }",
        ),
    ]);
    let run = experiment::resolve_with("test", &[], &files).unwrap();
    assert_eq!((run.config.train.steps, run.config.update.epochs, run.config.task.len()), (7, 4, 2));
    assert_eq!(origin(&run, "filter.value"), "configs/long.kdl:3");
    assert_eq!(origin(&run, "update.mini-batch"), "configs/base.kdl:43");
    let run = experiment::resolve_with("test", &strings(&["t=9", "task.1.size=5"]), &files).unwrap();
    assert_eq!((run.config.train.steps, origin(&run, "task.1.size").as_str()), (9, "override 2"));
    // A layer that writes one node of a list replaces the list.
    assert_eq!(body("task \"frozen-lake\"; task \"sokoban\"", &[]).unwrap().config.task.len(), 3);
    let run = body("eval { task \"sokoban\" boxes=2 share=3 { size 8 8 } }", &[]).unwrap();
    assert_eq!((run.config.eval.task.len(), run.config.eval.task[0].share), (1, 3));
    // Choosing what is chosen keeps its fields; another choice begins anew.
    let kept = "model \"tiny\" { width 256 }";
    assert_eq!(body(kept, &["model=tiny"]).unwrap().show_json()["values"]["model.width"]["value"], 256);
}

#[test]
fn references_unset_and_slashdash() {
    let run = body("train { steps 12 }; eval { every (ref)train.steps }; /-seed 4\nrollout max-turns=3", &[]).unwrap();
    assert_eq!((run.config.eval.every, run.config.seed, run.config.rollout.max_turns), (12, 1, 3));
    let run = body("rollout { sampling { top-k 5 }; system \"be brief\" }", &["rollout.system="]).unwrap();
    assert_eq!((run.config.rollout.sampling.top_k, run.config.rollout.system.0.as_str()), (Some(5), ""));
    let run = body("rollout { sampling { top-k 5 } }", &["rollout.sampling.top-k=null"]).unwrap();
    assert_eq!(run.config.rollout.sampling.top_k, None);
    assert_eq!(body("(local)execution { (unset)threads }", &[]).unwrap().config.execution.threads, None);
}

#[test]
fn overrides() {
    // Variants first, then fields, whatever their order; `_` is `-`; a list is given whole.
    let run = sokoban(&["filter.value=0.4", "task.size=7,8", "filter=top-p", "rollout.group_size=3", "mini-batch=9"]);
    let values = &run.show_json()["values"];
    assert_eq!(values["filter.value"]["value"], 0.4);
    assert_eq!(values["task.0.size"]["value"], serde_json::json!([7, 8]));
    assert_eq!((run.config.rollout.group_size, run.config.update.mini_batch), (3, 9));
    assert_eq!(run.short_names.len(), 1, "{:?}", run.short_names);
    // What an alias chooses besides gives way to what is chosen by name.
    let error = experiment::resolve("sokoban", &strings(&["top_p=0.9", "filter=none"]), root()).unwrap_err();
    assert_eq!(error.iter().map(|one| one.code()).collect::<Vec<_>>(), ["other-variant"]);
    // A text is taken as it is.
    let run = sokoban(&["action-separator=a=b,c", "device=cpu"]);
    assert_eq!(run.config.rollout.action_separator, "a=b,c");
    assert_eq!(sokoban(&["task=frozen-lake"]).config.task[0].env.name(), "frozen-lake");
}

#[test]
fn every_value_explains_itself_and_every_rule_names_its_source() {
    for spot in spots(FIELDS, &sokoban(&["top_p=0.9"]).tree) {
        let path: Vec<&str> = spot.path.split('.').filter(|part| part.parse::<usize>().is_err()).collect();
        let found = experiment::explain(&path.join("."), &outside()).unwrap();
        assert!(found.iter().all(|explained| !explained.field.doc.trim().is_empty()), "{}", spot.path);
    }
    for family in ["filter", "advantage", "objective"] {
        let [explained] = &experiment::explain(family, &outside()).unwrap()[..] else {
            panic!("{family} is one value")
        };
        for (name, doc) in explained.choices().filter(|(name, _)| *name != "none") {
            assert!(
                ["arXiv:", "VAGEN", "Williams"].iter().any(|source| doc.contains(source)),
                "{family} {name}: {doc}"
            );
        }
    }
}
