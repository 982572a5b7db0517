//! Checkpoints: folders that are there whole or not at all, and verify themselves.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::record::{Disk, RunError};

const SCHEMA: &str = "starpo.checkpoint/";
/// The version of the manifest's form that is written. 1 had no digests of what was recorded.
const FORMAT: i128 = 2;
/// The file of a checkpoint that lists the others; written last.
pub const MANIFEST: &str = "manifest.json";

/// Everything that the steps after `step` depend on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Checkpoint {
    /// The last step that it contains; 0 before the first.
    pub step: usize,
    /// What [`Learner::save`](crate::policy::Learner::save) gave.
    pub files: Vec<(String, Vec<u8>)>,
    /// Lengths of the run's append-only files, in bytes, by name.
    pub offsets: BTreeMap<String, u64>,
    /// Digests of what the run had recorded by then, by file and folder; none from versions that wrote none.
    pub recorded: BTreeMap<String, String>,
    /// The counters of the training loop.
    pub counters: Value,
}

/// What [`latest`] found.
#[derive(Debug, Default)]
pub struct Found {
    pub checkpoint: Option<Checkpoint>,
    /// What was wrong with newer ones, and what cannot be known of this one, a line each.
    pub warnings: Vec<String>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Manifest {
    schema: String,
    step: usize,
    files: BTreeMap<String, Entry>,
    offsets: BTreeMap<String, u64>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    recorded: BTreeMap<String, String>,
    counters: Value,
    /// BLAKE3 of this manifest with an empty seal, as compact JSON.
    seal: String,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Entry {
    bytes: u64,
    blake3: String,
}

impl Entry {
    fn of(bytes: &[u8]) -> Self {
        Self { bytes: bytes.len() as u64, blake3: blake3::hash(bytes).to_hex().to_string() }
    }
}

/// The folder of step `step`'s checkpoint in the folder `run`.
#[must_use]
pub fn folder(run: &Path, step: usize) -> PathBuf {
    checkpoints(run).join(format!("{step:06}"))
}

/// Saves a checkpoint of the run in the folder `run`, then removes all but the newest `keep` (at least 1) of it and
/// those before it, that of step `best` aside, and those of later steps, which an attempt that fell back left behind.
///
/// # Errors
/// The system's; the checkpoints before it are then still there.
pub fn save(
    disk: &Disk,
    run: &Path,
    attempt: u32,
    checkpoint: &Checkpoint,
    keep: usize,
    best: Option<usize>,
) -> Result<(), RunError> {
    let target = folder(run, checkpoint.step);
    let draft = checkpoints(run).join(format!(".tmp-{:06}-{attempt}", checkpoint.step));
    disk.ensure_folder(&checkpoints(run))?;
    disk.remove(&draft)?;
    disk.create_folder(&draft)?;
    let mut files = BTreeMap::new();
    for (name, bytes) in &checkpoint.files {
        assert!(is_plain(name), "a checkpoint's file is called {name:?}");
        disk.write_new(&draft.join(name), bytes)?;
        assert!(files.insert(name.clone(), Entry::of(bytes)).is_none(), "two files of a checkpoint are called {name}");
    }
    let mut manifest = Manifest {
        schema: format!("{SCHEMA}{FORMAT}"),
        step: checkpoint.step,
        files,
        offsets: checkpoint.offsets.clone(),
        recorded: checkpoint.recorded.clone(),
        counters: checkpoint.counters.clone(),
        seal: String::new(),
    };
    let text = sealed(&mut manifest).map_err(|error| corrupt(&draft.join(MANIFEST))(error.to_string()))?;
    disk.write_new(&draft.join(MANIFEST), &text)?;
    disk.sync_folder(&draft)?;
    if disk.exists(&target)? {
        // Only one that did not verify is in the way: this attempt started before it.
        let aside = checkpoints(run).join(format!(".tmp-{:06}-{attempt}-old", checkpoint.step));
        disk.rename(&target, &aside)?;
    }
    disk.rename(&draft, &target)?;
    disk.sync_folder(&checkpoints(run))?;
    prune(disk, run, checkpoint.step, keep, best)
}

/// The newest checkpoint of the run in the folder `run` that verifies; why newer ones do not.
///
/// # Errors
/// If the folder of checkpoints cannot be listed; [`RunError::Later`] for one that only a later version can read.
pub fn latest(disk: &Disk, run: &Path) -> Result<Found, RunError> {
    let mut warnings = Vec::new();
    for step in steps(disk, run)?.into_iter().rev() {
        match load(disk, run, step) {
            Ok(checkpoint) => {
                if checkpoint.recorded.is_empty() {
                    let what = "is of a version that wrote no digests: a record changed before it would not be noticed";
                    warnings.push(format!("checkpoint {step} {what}"));
                }
                return Ok(Found { checkpoint: Some(checkpoint), warnings });
            }
            Err(error @ RunError::Later { .. }) => return Err(error),
            Err(error) => warnings.push(format!("checkpoint {step} is passed over: {error}")),
        }
    }
    Ok(Found { checkpoint: None, warnings })
}

/// One checkpoint, verified.
///
/// # Errors
/// The system's; [`RunError::Corrupt`] for a file that is not what its manifest says, or an offset beyond its file;
/// [`RunError::Later`].
pub fn load(disk: &Disk, run: &Path, step: usize) -> Result<Checkpoint, RunError> {
    let folder = folder(run, step);
    let path = folder.join(MANIFEST);
    let text = disk.read(&path)?;
    if let Some(format) = later(&text) {
        return Err(RunError::Later { path, format, known: FORMAT });
    }
    let manifest = unsealed(&text).map_err(corrupt(&path))?;
    match format_of(&manifest.schema) {
        Some(1) => {}
        Some(FORMAT) if !manifest.recorded.is_empty() => {}
        Some(FORMAT) => return Err(corrupt(&path)("it has no digests of what was recorded".to_owned())),
        _ => return Err(corrupt(&path)(format!("its schema is {}", manifest.schema))),
    }
    if manifest.step != step {
        return Err(corrupt(&path)(format!("it is of step {}", manifest.step)));
    }
    let mut files = Vec::new();
    for (name, entry) in &manifest.files {
        let path = folder.join(name);
        if !is_plain(name) {
            return Err(corrupt(&path)("a name outside the checkpoint".to_owned()));
        }
        let bytes = disk.read(&path)?;
        if Entry::of(&bytes) != *entry {
            return Err(corrupt(&path)("its bytes are not those that were written".to_owned()));
        }
        files.push((name.clone(), bytes));
    }
    for (name, offset) in &manifest.offsets {
        let path = run.join(name);
        if disk.length(&path)? < *offset {
            return Err(corrupt(&path)(format!("it is shorter than at the checkpoint, {offset} bytes")));
        }
    }
    let Manifest { offsets, recorded, counters, .. } = manifest;
    Ok(Checkpoint { step, files, offsets, recorded, counters })
}

/// Steps of the checkpoints that are there, ascending, verified or not.
///
/// # Errors
/// The system's.
pub fn steps(disk: &Disk, run: &Path) -> Result<Vec<usize>, RunError> {
    // What is called otherwise, if only by a zero, is not ours.
    let step = |name: &String| name.parse().ok().filter(|step| folder(run, *step).ends_with(name));
    let mut steps: Vec<usize> = disk.names(&checkpoints(run))?.iter().filter_map(step).collect();
    steps.sort_unstable();
    Ok(steps)
}

/// Removes what a killed attempt left half written.
///
/// # Errors
/// The system's.
pub fn remove_drafts(disk: &Disk, run: &Path) -> Result<(), RunError> {
    let names = disk.names(&checkpoints(run))?;
    let mut drafts = names.iter().filter(|name| name.starts_with(".tmp-"));
    drafts.try_for_each(|name| disk.remove(&checkpoints(run).join(name)))
}

fn prune(disk: &Disk, run: &Path, step: usize, keep: usize, best: Option<usize>) -> Result<(), RunError> {
    remove_drafts(disk, run)?;
    let steps = steps(disk, run)?;
    let upto = steps.iter().filter(|s| **s <= step).count();
    let kept = upto.saturating_sub(keep.max(1))..upto;
    let mut stale = steps.iter().enumerate().filter(|(i, step)| !kept.contains(i) && best != Some(**step));
    stale.try_for_each(|(_, step)| disk.discard(&folder(run, *step)))
}

/// The manifest as text that holds the digest of itself without it.
fn sealed(manifest: &mut Manifest) -> serde_json::Result<Vec<u8>> {
    manifest.seal.clear();
    manifest.seal = blake3::hash(&serde_json::to_vec(manifest)?).to_hex().to_string();
    let mut text = serde_json::to_vec_pretty(manifest)?;
    text.push(b'\n');
    Ok(text)
}

fn unsealed(bytes: &[u8]) -> Result<Manifest, String> {
    let mut manifest: Manifest = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    let again = sealed(&mut manifest).map_err(|error| error.to_string())?;
    if again == bytes { Ok(manifest) } else { Err("its seal is not that of its text".to_owned()) }
}

/// The version of a manifest that is whole and of a form that is not known here.
fn later(text: &[u8]) -> Option<i128> {
    let mut manifest: Value = serde_json::from_slice(text).ok()?;
    let format = format_of(manifest["schema"].as_str()?).filter(|format| *format > FORMAT)?;
    let seal = manifest.get_mut("seal")?.take();
    manifest["seal"] = Value::String(String::new());
    let hash = blake3::hash(&serde_json::to_vec(&manifest).ok()?);
    (seal == hash.to_hex().as_str()).then_some(format)
}

fn format_of(schema: &str) -> Option<i128> {
    schema.strip_prefix(SCHEMA)?.parse().ok()
}

fn is_plain(name: &str) -> bool {
    !name.is_empty() && !name.starts_with('.') && !name.contains(['/', '\\', '\0']) && name != MANIFEST
}

fn corrupt(path: &Path) -> impl Fn(String) -> RunError {
    move |what| RunError::Corrupt { path: path.to_owned(), what }
}

pub(super) fn checkpoints(run: &Path) -> PathBuf {
    run.join("checkpoints")
}
