//! What of a folder of runs nothing names any more.
//!
//! A run is kept if a tag, a sweep or a golden names it, if it is running, or if a run that is kept needs it: its warm
//! start, or a run whose weights it starts from. Texts are searched for the run's name, so what an older or a newer
//! version wrote counts too.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use crate::record::disk::{Found, LockedFile, parent};
use crate::record::lease::{Holder, Lease, start_of};
use crate::record::run_dir::ATTIC;
use crate::record::{Disk, RunDir, RunError, SWEEPS, State, reader, tags};

/// The file that is locked while runs get names or lose them.
pub(super) const NAMING: &str = ".naming";
/// How often, in hundredths of a second, one process looks whether another that names or removes runs has ended.
const PATIENCE: usize = 60_000;

/// A folder that nothing names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Garbage {
    pub path: PathBuf,
    pub bytes: u64,
    pub what: What,
}

/// What a piece of garbage is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// A run in this state, or one that is damaged.
    Run(Option<State>),
    /// What another run took the place of.
    MovedAside,
    /// What a killed process left half made.
    LeftOver,
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Run(state) => state.as_ref().map_or("damaged", State::name),
            Self::MovedAside => "moved aside",
            Self::LeftOver => "left over",
        })
    }
}

/// What [`find`] found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Finding {
    /// Runs first.
    pub garbage: Vec<Garbage>,
    /// What is left alone since nobody can say whether it is garbage, a line each.
    pub passed_over: Vec<String>,
}

/// All of it. `goldens` is a folder of texts that may name runs. A run whose config cannot be read is kept, and a
/// symbolic link is left alone, whatever it leads to.
///
/// # Errors
/// The system's.
pub fn find(disk: &Disk, runs: &Path, goldens: &Path) -> Result<Finding, RunError> {
    let all = reader::names(disk, runs)?;
    let Finding { garbage: mut found, mut passed_over } = Finding::default();
    let kept = kept(disk, runs, goldens, &all, &mut passed_over)?;
    for run in all.iter().filter(|run| !kept.contains(*run)) {
        let path = runs.join(run);
        if disk.is_link(&path)? {
            passed_over.push(link(&path));
            continue;
        }
        let what = What::Run(reader::summary(disk, &path).ok().map(|summary| summary.state));
        found.push(Garbage { bytes: size(disk, &path)?, path, what });
    }
    let mut nameless = |path: PathBuf, what: What| {
        if disk.is_link(&path)? {
            passed_over.push(link(&path));
            return Ok(());
        }
        found.push(Garbage { bytes: size(disk, &path)?, path, what });
        Ok::<(), RunError>(())
    };
    for name in disk.names(&runs.join(ATTIC))? {
        nameless(runs.join(ATTIC).join(name), What::MovedAside)?;
    }
    let sweeps = runs.join(SWEEPS);
    let mut folders = vec![runs.to_owned(), runs.join(tags::FOLDER)];
    folders.extend(disk.names(&sweeps)?.iter().map(|sweep| sweeps.join(sweep)));
    folders.push(sweeps);
    for folder in folders {
        let names = if disk.look(&folder)? == Some(Found::Folder) { disk.names(&folder)? } else { Vec::new() };
        for name in names {
            if is_left_over(disk, &folder, &name)? {
                nameless(folder.join(name), What::LeftOver)?;
            }
        }
    }
    Ok(Finding { garbage: found, passed_over })
}

fn link(path: &Path) -> String {
    format!("{} is a symbolic link", path.display())
}

/// The right to give runs names, or to take away what has none: while it lasts, nobody else does either. It is waited
/// for, and ends with the value or the process.
///
/// # Errors
/// The system's; among them, that somebody has had it for ten minutes.
pub fn naming(disk: &Disk, runs: &Path) -> Result<LockedFile, RunError> {
    let path = runs.join(NAMING);
    for _ in 0..PATIENCE {
        if let Some(file) = disk.lock(&path)? {
            return Ok(file);
        }
        thread::sleep(Duration::from_millis(10));
    }
    let why = "another process has been naming or removing runs there for minutes";
    Err(RunError::io("lock", &path)(io::Error::new(io::ErrorKind::TimedOut, why)))
}

/// Removes it, unless it is in use by now: whether it is gone.
///
/// # Errors
/// The system's.
pub fn remove(disk: &Disk, garbage: &Garbage) -> Result<bool, RunError> {
    match disk.look(&garbage.path)? {
        None => return Ok(true),
        Some(Found::File(_) | Found::Other) => return disk.remove_file(&garbage.path).map(|()| true),
        Some(Found::Folder) => {}
    }
    let _lease = match Lease::take(disk, &garbage.path) {
        Err(RunError::RunningElsewhere { .. }) => return Ok(false),
        lease => lease?,
    };
    disk.discard(&garbage.path).map(|()| true)
}

fn kept(
    disk: &Disk,
    runs: &Path,
    goldens: &Path,
    all: &[String],
    passed_over: &mut Vec<String>,
) -> Result<BTreeSet<String>, RunError> {
    let mut texts = tags::list(disk, runs)?.into_iter().map(|(_, run)| run).collect::<Vec<_>>().join("\n");
    for folder in [&runs.join(SWEEPS), goldens] {
        read_all(disk, folder, &mut texts)?;
    }
    let mut kept = BTreeSet::new();
    for run in all {
        let dir = RunDir::open(disk, &runs.join(run));
        if let Err(error) = dir.lock().and_then(|_| dir.canon()) {
            passed_over.push(format!("{run} is damaged: {error}"));
            kept.insert(run.clone());
        } else if texts.contains(run.as_str()) || Holder::of(disk, &runs.join(run))?.is_some() {
            kept.insert(run.clone());
        }
    }
    let mut starts = BTreeMap::new();
    for run in all.iter().filter(|run| !kept.contains(*run)) {
        let canon = RunDir::open(disk, &runs.join(run)).canon()?;
        starts.extend(is_start(&canon).then_some((run, canon)));
    }
    let mut new: Vec<String> = kept.iter().cloned().collect();
    while let Some(run) = new.pop() {
        let [lock, canon] = ["run.lock.kdl", "canon.txt"].map(|name| words(disk, &runs.join(&run).join(name)));
        let (lock, canon) = (lock?, canon?);
        let lines: BTreeSet<&str> = canon.lines().collect();
        let is_part = |start: &String| start.lines().skip(1).all(|line| lines.contains(line));
        for other in all {
            if !kept.contains(other) && (lock.contains(other) || starts.get(other).is_some_and(is_part)) {
                kept.insert(other.clone());
                new.push(other.clone());
            }
        }
    }
    Ok(kept)
}

/// A file that may name runs, whatever else stands in it. What is not there, or no file, names none; what cannot be
/// read might.
fn words(disk: &Disk, path: &Path) -> Result<String, RunError> {
    match disk.read(path) {
        Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        Err(RunError::Io { source, .. })
            if matches!(
                source.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::IsADirectory | io::ErrorKind::InvalidData
            ) =>
        {
            Ok(String::new())
        }
        Err(error) => Err(error),
    }
}

/// Whether a canonical text is that of a warm start, which has lines of its runs'.
fn is_start(canon: &str) -> bool {
    canon.lines().next().is_some_and(|header| header.ends_with(" warm-start"))
}

/// Adds the texts of a folder and the folders in it. Links to folders are not followed: they may lead round in circles.
fn read_all(disk: &Disk, folder: &Path, texts: &mut String) -> Result<(), RunError> {
    for name in disk.names(folder)? {
        let path = folder.join(name);
        match disk.look(&path)? {
            Some(Found::Folder) if disk.is_link(&path)? => {}
            Some(Found::Folder) => read_all(disk, &path, texts)?,
            Some(Found::File(_)) => texts.push_str(&words(disk, &path)?),
            Some(Found::Other) | None => {}
        }
    }
    Ok(())
}

/// Whether a name is that of something half made or half removed whose maker is gone: its number stands in the name, or
/// a run in it says who it is.
fn is_left_over(disk: &Disk, folder: &Path, name: &str) -> Result<bool, RunError> {
    let maker = name.rsplit('-').nth(1).and_then(|number| number.parse().ok());
    if !name.starts_with(".tmp-") || maker.is_some_and(|maker| start_of(maker).is_some()) {
        return Ok(false);
    }
    let path = folder.join(name);
    if disk.look(&path)? != Some(Found::Folder) {
        return Ok(true);
    }
    for inner in disk.names(&path)?.iter().map(|inner| path.join(inner)) {
        if disk.look(&inner)? == Some(Found::Folder) && Holder::of(disk, &inner)?.is_some() {
            return Ok(false);
        }
    }
    Ok(Holder::of(disk, &path)?.is_none())
}

/// Removes what killed processes left beside a file or a folder that they were writing.
///
/// # Errors
/// The system's.
pub fn clear(disk: &Disk, path: &Path) -> Result<(), RunError> {
    let (folder, name) = (parent(path), path.file_name().unwrap_or_default().to_string_lossy());
    let draft = format!(".tmp-{name}-");
    // What people call `.tmp-…` is theirs: drafts end in their maker's number and a count.
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let numbers = |rest: &str| rest.split_once('-').is_some_and(|(maker, count)| is_number(maker) && is_number(count));
    for found in disk.names(folder)?.iter().filter(|found| found.strip_prefix(&draft).is_some_and(numbers)) {
        let path = folder.join(found);
        if is_left_over(disk, folder, found)? && !disk.is_link(&path)? {
            disk.remove(&path)?;
        }
    }
    Ok(())
}

/// The bytes that would be free without it: a link is removed, and what it leads to stays.
fn size(disk: &Disk, path: &Path) -> Result<u64, RunError> {
    if disk.is_link(path)? {
        return Ok(0);
    }
    match disk.look(path)? {
        Some(Found::File(bytes)) => Ok(bytes),
        Some(Found::Folder) => disk.names(path)?.iter().map(|name| size(disk, &path.join(name))).sum(),
        Some(Found::Other) | None => Ok(0),
    }
}
