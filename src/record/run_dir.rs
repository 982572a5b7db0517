//! A run's directory: made whole, found again by its name, moved aside when a fresh one is wanted.

use std::ffi::OsStr;
use std::fs::DirEntry;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::record::attempt::{Attempt, Begun, Facts};
use crate::record::disk::parent;
use crate::record::lease::Lease;
use crate::record::state::{State, Status};
use crate::record::{Disk, RunError, SWEEPS, garbage, tags};

/// What a run writes into its directory.
const OWN: [&str; 13] = [
    "attempts",
    "canon.txt",
    "checkpoints",
    "evals",
    "lease",
    "log.txt",
    "metrics.jsonl",
    "result.kdl",
    "rollouts",
    "run.lock.kdl",
    "state",
    "tensorboard",
    "timings.jsonl",
];

/// Runs that others took the place of, in a folder of runs.
pub(super) const ATTIC: &str = "attic";
/// Symbolic links that lead to one another.
const LINKS_MAX: usize = 40;

/// The directory of one key.
#[derive(Clone, Debug)]
pub struct RunDir {
    pub(super) disk: Disk,
    path: PathBuf,
}

impl RunDir {
    /// The directory `name` (`<experiment>-<id>`) in the folder `runs`, made if it is not there: with the resolved
    /// config `lock` in `run.lock.kdl` and the hashed text `canon` in `canon.txt`. Of two processes that make it at
    /// once, one makes it and both get it.
    ///
    /// # Errors
    /// [`RunError::Clash`] if it is there with another canonical text, [`RunError::Corrupt`] without its lock; the
    /// system's.
    pub fn open_or_create(disk: &Disk, runs: &Path, name: &str, lock: &str, canon: &str) -> Result<Self, RunError> {
        let run = Self { disk: disk.clone(), path: runs.join(name) };
        if !disk.exists(&run.path)? {
            run.create(lock, canon)?;
        }
        let found = run.canon()?;
        if found != canon {
            let same = found.split('\n').zip(canon.split('\n')).take_while(|(found, asked)| found == asked).count();
            return Err(RunError::Clash { path: run.path, line: same + 1 });
        }
        if !disk.exists(&run.path.join("run.lock.kdl"))? {
            return Err(RunError::Corrupt { path: run.path, what: "its run.lock.kdl is missing".to_owned() });
        }
        Ok(run)
    }

    /// A directory that is there, as [`reader::find`](crate::record::reader::find) gives it.
    #[must_use]
    pub fn open(disk: &Disk, path: &Path) -> Self {
        Self { disk: disk.clone(), path: path.to_owned() }
    }

    /// Whether what is at a path, or would be, is part of what a run or a folder of runs keeps.
    #[must_use]
    pub fn holds(path: &Path) -> bool {
        let Some(there) = real(path, LINKS_MAX) else { return false };
        there.ancestors().skip(1).any(|folder| {
            let rest: Vec<_> = there.strip_prefix(folder).into_iter().flatten().filter_map(OsStr::to_str).collect();
            let among_runs = match rest[..] {
                [garbage::NAMING | tags::FOLDER | ATTIC, ..] | [SWEEPS] | [SWEEPS, _] => true,
                [SWEEPS, _, inner, ..] => matches!(inner, "sweep.kdl" | "output"),
                _ => false,
            };
            let of_a_run = rest.first().is_some_and(|first| OWN.contains(first));
            among_runs && is_of_runs(folder) || of_a_run && folder.join("run.lock.kdl").exists()
        })
    }

    fn create(&self, lock: &str, canon: &str) -> Result<(), RunError> {
        static DRAFTS: AtomicU64 = AtomicU64::new(0);
        let (disk, runs) = (&self.disk, parent(&self.path));
        disk.ensure_folder(runs)?;
        let number = DRAFTS.fetch_add(1, Ordering::Relaxed);
        let draft = runs.join(format!(".tmp-{}-{}-{number}", self.name(), std::process::id()));
        // Left by a killed process that had our number.
        disk.remove(&draft)?;
        disk.create_folder(&draft)?;
        disk.write_new(&draft.join("run.lock.kdl"), lock.as_bytes())?;
        disk.write_new(&draft.join("canon.txt"), canon.as_bytes())?;
        disk.sync_folder(&draft)?;
        match disk.rename(&draft, &self.path) {
            Ok(()) => disk.sync_folder(runs),
            // Another process was faster.
            Err(_) if disk.exists(&self.path.join("canon.txt"))? => disk.remove(&draft),
            Err(error) => Err(error),
        }
    }

    /// Moves the directory `name` in the folder `runs`, if it is there, to `attic/<name>-<n>` there: where it went.
    ///
    /// # Errors
    /// [`RunError::RunningElsewhere`] if a live process runs it; the system's.
    pub fn set_aside(disk: &Disk, runs: &Path, name: &str) -> Result<Option<PathBuf>, RunError> {
        let path = runs.join(name);
        if !disk.exists(&path)? {
            return Ok(None);
        }
        let _lease = Lease::take(disk, &path)?;
        let attic = runs.join(ATTIC);
        disk.ensure_folder(&attic)?;
        let taken = disk.names(&attic)?;
        let mut places = (1..).map(|n: u64| format!("{name}-{n}"));
        let Some(place) = places.find(|place| !taken.contains(place)) else { return Ok(None) };
        let place = attic.join(place);
        disk.relocate(&path, &place)?;
        disk.sync_folder(&attic)?;
        disk.sync_folder(runs)?;
        Ok(Some(place))
    }

    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The directory's name, `<experiment>-<id>`.
    #[must_use]
    pub fn name(&self) -> String {
        self.path.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// The resolved config that it was made with, as `run.lock.kdl`.
    ///
    /// # Errors
    /// The system's; among them, that it is empty.
    pub fn lock(&self) -> Result<String, RunError> {
        self.text("run.lock.kdl")
    }

    /// The hashed text of its config, as `canon.txt`.
    ///
    /// # Errors
    /// The system's; among them, that it is empty.
    pub fn canon(&self) -> Result<String, RunError> {
        self.text("canon.txt")
    }

    /// A file's text, of which there is some.
    fn text(&self, name: &str) -> Result<String, RunError> {
        let path = self.path.join(name);
        match self.disk.read_text(&path)? {
            text if text.is_empty() => {
                let empty = io::Error::new(io::ErrorKind::InvalidData, "it is empty");
                Err(RunError::io("read", &path)(empty))
            }
            text => Ok(text),
        }
    }

    /// Where the run stands, as its last attempt left it: one that was killed still says that it runs.
    ///
    /// # Errors
    /// The system's; [`RunError::Corrupt`].
    pub fn status(&self) -> Result<Status, RunError> {
        let path = self.path.join("state");
        let Some(text) = self.disk.find_text(&path)? else { return Ok(Status::NEW) };
        let begin: String = text.chars().take(60).collect();
        Status::parse(&text).ok_or_else(|| RunError::Corrupt { path, what: format!("it reads {begin:?}") })
    }

    pub(super) fn set_status(&self, status: &Status) -> Result<(), RunError> {
        self.disk.replace(&self.path.join("state"), status.to_text().as_bytes())
    }

    /// Begins an attempt: takes the lease, finds the newest checkpoint that verifies, and cuts away everything that
    /// came after it. None if the run is done.
    ///
    /// # Errors
    /// [`RunError::RunningElsewhere`]; the system's; [`RunError::Corrupt`].
    pub fn begin(&self, facts: &Facts) -> Result<Option<Begun>, RunError> {
        if self.status()?.state != State::Done {
            let lease = Lease::take(&self.disk, &self.path)?;
            let before = self.status()?;
            // Whoever held the lease until now may have finished it.
            if before.state != State::Done {
                return Attempt::begin(self, lease, before.attempt, facts).map(Some);
            }
        }
        // Whoever finished it may have been killed before that was forced, and what is told of it has to stay. A disk
        // that nobody may write to has nothing to force.
        let _ = self.disk.sync_folder(&self.path);
        Ok(None)
    }
}

/// Whether a folder is one of runs.
fn is_of_runs(folder: &Path) -> bool {
    let is_run = |entry: io::Result<DirEntry>| entry.is_ok_and(|entry| entry.path().join("run.lock.kdl").exists());
    folder.join(garbage::NAMING).exists() || folder.read_dir().is_ok_and(|mut entries| entries.any(is_run))
}

/// Where a path leads, whether or not anything is there, through so many links at most.
fn real(path: &Path, links: usize) -> Option<PathBuf> {
    if let Ok(there) = path.canonicalize() {
        return Some(there);
    }
    match path.read_link() {
        Ok(target) => real(&parent(path).join(target), links.checked_sub(1)?),
        Err(_) => Some(real(parent(path), links)?.join(path.file_name()?)),
    }
}
