//! Names that people give to runs: a file each in the folder `tags` beside the runs, which holds the run's name.

use std::path::{Path, PathBuf};

use crate::config::names_a_directory;
use crate::record::disk::Found;
use crate::record::garbage::naming;
use crate::record::{Disk, RunError, SWEEPS, reader};

/// The folder of tags in a folder of runs.
pub const FOLDER: &str = "tags";

/// Gives the run called `run` the name `tag`.
///
/// # Errors
/// [`RunError::Unknown`] if the run is gone; [`RunError::NoTag`] if it cannot be a name; [`RunError::Tagged`] if
/// another run bears it; [`RunError::Shadows`] if the name or the id of a run, or the name of a sweep, begins with it;
/// the system's.
pub fn add(disk: &Disk, runs: &Path, tag: &str, run: &str) -> Result<(), RunError> {
    let _naming = naming(disk, runs)?;
    if !disk.exists(&runs.join(run).join("run.lock.kdl"))? {
        return Err(RunError::Unknown { name: run.to_owned(), runs: runs.to_owned() });
    }
    if !names_a_directory(tag) || disk.exists(&runs.join(tag))? {
        return Err(RunError::NoTag { tag: tag.to_owned() });
    }
    match find(disk, runs, tag)? {
        Some(other) if other != run => Err(RunError::Tagged { tag: tag.to_owned(), run: other }),
        Some(_) => Ok(()),
        None => {
            let begins = |run: &String| run.starts_with(tag) || reader::split(run).1.starts_with(tag);
            let sweeps = disk.names(&runs.join(SWEEPS))?;
            let sweep = sweeps.into_iter().find(|sweep| sweep.starts_with(tag));
            if let Some(run) = reader::names(disk, runs)?.into_iter().find(begins).or(sweep) {
                return Err(RunError::Shadows { tag: tag.to_owned(), run });
            }
            disk.ensure_folder(&runs.join(FOLDER))?;
            disk.replace(&runs.join(FOLDER).join(tag), format!("{run}\n").as_bytes())
        }
    }
}

/// Takes a name away: the run that bore it.
///
/// # Errors
/// [`RunError::Unknown`]; the system's.
pub fn remove(disk: &Disk, runs: &Path, tag: &str) -> Result<String, RunError> {
    let run = find(disk, runs, tag)?;
    let run = run.ok_or_else(|| RunError::Unknown { name: tag.to_owned(), runs: runs.join(FOLDER) })?;
    disk.remove_file(&runs.join(FOLDER).join(tag))?;
    Ok(run)
}

/// The name of the run that bears a tag.
///
/// # Errors
/// The system's.
pub fn find(disk: &Disk, runs: &Path, tag: &str) -> Result<Option<String>, RunError> {
    if tag.is_empty() || tag.contains('/') || tag.starts_with('.') {
        return Ok(None);
    }
    let path = runs.join(FOLDER).join(tag);
    // What others put there is no tag; a damaged one must still be listed, and can be taken away.
    match disk.look(&path)? {
        Some(Found::File(_)) => Ok(Some(String::from_utf8_lossy(&disk.read(&path)?).trim().to_owned())),
        _ => Ok(None),
    }
}

/// Tags that name no run, though they may have.
///
/// # Errors
/// The system's.
pub fn damaged(disk: &Disk, runs: &Path) -> Result<Vec<PathBuf>, RunError> {
    let folder = runs.join(FOLDER);
    let mut damaged = Vec::new();
    for tag in disk.names(&folder)?.into_iter().filter(|tag| !tag.starts_with('.')) {
        let names = |run: String| {
            let id = reader::split(&run).1;
            id.len() == 16 && id.bytes().all(|byte| byte.is_ascii_alphanumeric())
        };
        // What others put there, such as a folder, is no tag at all.
        let sound = find(disk, runs, &tag)?.is_none_or(names);
        damaged.extend((!sound).then(|| folder.join(tag)));
    }
    Ok(damaged)
}

/// Every tag with its run's name, by tag.
///
/// # Errors
/// The system's.
pub fn list(disk: &Disk, runs: &Path) -> Result<Vec<(String, String)>, RunError> {
    let mut tags = Vec::new();
    for tag in disk.names(&runs.join(FOLDER))? {
        tags.extend(find(disk, runs, &tag)?.map(|run| (tag, run)));
    }
    Ok(tags)
}
