//! Where two runs that should be equal part.

use std::path::Path;

use serde_json::Value;

use crate::record::attempt::step_of;
use crate::record::values::leaves;
use crate::record::{Disk, RunError, checkpoint, reader};

/// The first difference of what two runs hold that their key determines (texts, records, episodes, last weights), for a
/// person; None if there is none.
///
/// # Errors
/// The system's; [`RunError::Corrupt`].
pub fn difference(disk: &Disk, a: &Path, b: &Path) -> Result<Option<String>, RunError> {
    if !same_text(disk, a, b, "canon.txt")? {
        return Ok(Some("canon.txt".to_owned()));
    }
    let (ours, theirs) = (reader::metrics(disk, a)?, reader::metrics(disk, b)?);
    for (one, other) in ours.iter().zip(&theirs) {
        if let Some(what) = values(one, other) {
            return Ok(Some(format!("metrics.jsonl, step {}: {what}", one["step"])));
        }
    }
    if ours.len() != theirs.len() {
        return Ok(Some(format!("metrics.jsonl has {} records, and {}", ours.len(), theirs.len())));
    }
    for folder in ["rollouts", "evals"] {
        let names = [a, b].map(|run| disk.names(&run.join(folder)));
        let [names, others] = names.map(|names| names.map(plain));
        let (names, others) = (names?, others?);
        if names.iter().map(|(name, _)| name).ne(others.iter().map(|(name, _)| name)) {
            return Ok(Some(format!("{folder}/ has {} files, and {}", names.len(), others.len())));
        }
        for ((name, one), (_, other)) in names.iter().zip(&others) {
            let [one, other] = [a.join(folder).join(one), b.join(folder).join(other)];
            let (one, other) = (reader::episodes(disk, &one)?, reader::episodes(disk, &other)?);
            if one != other {
                let same = one.lines().zip(other.lines()).take_while(|(one, other)| one == other).count();
                return Ok(Some(format!("{folder}/{name}, line {}", same + 1)));
            }
        }
    }
    match weights(disk, a, b)? {
        None if !same_text(disk, a, b, "result.kdl")? => Ok(Some("result.kdl".to_owned())),
        weights => Ok(weights),
    }
}

/// Whether two runs' files of that name hold the same bytes.
///
/// # Errors
/// The system's.
pub fn same_text(disk: &Disk, a: &Path, b: &Path, name: &str) -> Result<bool, RunError> {
    Ok(disk.read(&a.join(name))? == disk.read(&b.join(name))?)
}

/// What is wrong with the checkpoints of a run, if it has the folder for them: they stay behind when it is archived.
///
/// # Errors
/// If the folder cannot be listed.
pub fn damaged(disk: &Disk, run: &Path) -> Result<Option<String>, RunError> {
    let steps = checkpoint::steps(disk, run)?;
    if steps.is_empty() {
        return Ok(disk.exists(&checkpoint::checkpoints(run))?.then(|| "checkpoints/ holds none".to_owned()));
    }
    let wrong = |step| Some(format!("checkpoint {step}: {}", checkpoint::load(disk, run, step).err()?));
    Ok(steps.into_iter().find_map(wrong))
}

/// The first difference of two runs' last checkpoints; a damaged one differs from any.
fn weights(disk: &Disk, a: &Path, b: &Path) -> Result<Option<String>, RunError> {
    for run in [a, b] {
        if let Some(damaged) = damaged(disk, run)? {
            return Ok(Some(damaged));
        }
    }
    let [one, other] = [a, b].map(|run| checkpoint::latest(disk, run).map(|found| found.checkpoint));
    let files = |found: Option<checkpoint::Checkpoint>| found.map(|found| found.files).unwrap_or_default();
    let (one, other) = (files(one?), files(other?));
    let differs = one.iter().zip(&other).find(|(one, other)| one != other);
    Ok(differs.map(|((name, _), _)| format!("{name} of the last checkpoint")))
}

/// Names of files of episodes without the mark of compression, each with itself.
fn plain(names: Vec<String>) -> Vec<(String, String)> {
    let own = names.into_iter().filter(|name| step_of(name).is_some());
    own.map(|name| (name.trim_end_matches(".zst").to_owned(), name)).collect()
}

/// The first of the values in two records that differ.
fn values(a: &Value, b: &Value) -> Option<String> {
    let (ours, theirs) = (leaves(a), leaves(b));
    match ours.iter().zip(&theirs).find(|(one, other)| one != other) {
        Some(((path, a), (other, b))) if path == other => Some(format!("{path} is {a}, and {b}")),
        Some(((path, _), (other, _))) => Some(format!("{path} stands where the other has {other}")),
        None if ours.len() == theirs.len() => None,
        None => Some(format!("it has {} values, and {}", ours.len(), theirs.len())),
    }
}
