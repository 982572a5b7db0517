//! What a config may name: documents, files and folders, and finished runs, from whose weights another starts.

use std::io;
use std::path::{Path, PathBuf};

use crate::config::Reader;
use crate::experiment::Outside;
use crate::record::{Disk, RunDir, State, digest, reader};

/// The project's files, and the runs in the folder `runs`.
#[derive(Debug)]
pub(super) struct WithRuns {
    pub(super) outside: Outside,
    pub(super) runs: PathBuf,
}

impl Reader for WithRuns {
    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        self.outside.read(path)
    }

    fn carried(&self, path: &str) -> Option<&'static str> {
        self.outside.carried(path)
    }

    fn list(&self, folder: &str) -> Vec<String> {
        self.outside.list(folder)
    }

    fn folder(&self, path: &str) -> io::Result<String> {
        content(&self.outside, path)
    }

    fn run(&self, name: &str) -> io::Result<String> {
        let disk = Disk::default();
        let found = reader::find(&disk, &self.runs, name).map_err(io::Error::other)?;
        let run = RunDir::open(&disk, &found);
        match run.status().map_err(io::Error::other)?.state {
            State::Done => Ok(found.display().to_string()),
            state => Err(io::Error::other(format!("run {} is {}, not done", run.name(), state.name()))),
        }
    }

    fn hides(&self, path: &str) -> bool {
        self.outside.hides(path)
    }

    fn foreign(&self, argument: &str) -> Option<String> {
        self.outside.foreign(argument)
    }
}

/// The digest of a folder's content; of a run's directory, that of its last weights and of the model that they are of.
pub(super) fn content(outside: &Outside, path: &str) -> io::Result<String> {
    match is_run(Path::new(path)) {
        true => digest::weights(&Disk::default(), path.as_ref()).map_err(io::Error::other),
        false => outside.folder(path),
    }
}

/// Whether a folder is a run's directory.
pub(super) fn is_run(path: &Path) -> bool {
    Disk::default().exists(&path.join("run.lock.kdl")).unwrap_or(false)
}
