//! What can go wrong with a run on disk, and what to do about it.

use std::io;
use std::path::{Path, PathBuf};

use miette::Diagnostic;
use thiserror::Error;

use crate::record::timings::utc;

/// An error at the edge between a run and the disk.
#[derive(Debug, Error, Diagnostic)]
pub enum RunError {
    /// The operating system said no.
    #[error("cannot {doing} {}: {}", path.display(), cause(source))]
    #[diagnostic(help("{}", remedy(doing, source)))]
    Io {
        /// What was tried, as a verb: `write`, `read`, `rename`, …
        doing: &'static str,
        path: PathBuf,
        source: io::Error,
    },

    /// A file that was to go where the command line says.
    #[error("cannot write {}: {}", path.display(), cause(source))]
    #[diagnostic(help("{}, or name another place with {option}", amends(source)))]
    Output {
        path: PathBuf,
        /// The option that says where.
        option: &'static str,
        source: io::Error,
    },

    /// A directory of this name holds another run.
    #[error("{} holds another run than the one asked for: its canon.txt differs, first in line {line}", path.display())]
    #[diagnostic(help("the directory was edited or damaged (or two keys share their first 80 bits): move it away"))]
    Clash {
        path: PathBuf,
        /// First differing line of canon.txt, from 1.
        line: usize,
    },

    /// Another process runs it.
    #[error("{} is running elsewhere: process {pid} on {host}, since {}", path.display(), utc(*since))]
    #[diagnostic(help("wait for it, or end that process: the run can then be resumed by the same command"))]
    RunningElsewhere {
        path: PathBuf,
        host: String,
        pid: u32,
        /// Seconds since 1970.
        since: u64,
    },

    /// Another process took the run over, so nothing more may be written.
    #[error("{} was taken over by another process, after this one was silent for too long", path.display())]
    #[diagnostic(help("nothing is lost: the other process goes on from the last checkpoint"))]
    LeaseLost { path: PathBuf },

    /// A file does not read as what it should be.
    #[error("{} is damaged: {what}", path.display())]
    #[diagnostic(help("{}", mend(path)))]
    Corrupt { path: PathBuf, what: String },

    /// A run's record is not what the run wrote.
    #[error("{} was altered: {what}", path.display())]
    #[diagnostic(help("put back what was there and run the same command again; or {}", mend(path)))]
    Altered { path: PathBuf, what: String },

    /// A file of a form that this program does not know yet.
    #[error(
        "{} was written by a later version: its format is {format}, and this program reads up to {known}",
        path.display()
    )]
    #[diagnostic(help("take the starpo that wrote it, or a newer one"))]
    Later { path: PathBuf, format: i128, known: i128 },

    /// No run of that name.
    #[error("no run called {name} in {}", runs.display())]
    #[diagnostic(help(
        "starpo ls lists the runs and their tags; any unique prefix of an id or of a directory's name will do"
    ))]
    Unknown { name: String, runs: PathBuf },

    /// A word that can be no tag.
    #[error("a run cannot be called \"{tag}\"")]
    #[diagnostic(help("take letters, digits, `-`, `_` and `.`, and no name of a directory or an experiment"))]
    NoTag { tag: String },

    /// A tag that another run bears.
    #[error("{tag} is another run's name: {run}")]
    #[diagnostic(help("starpo untag {tag} takes it away"))]
    Tagged { tag: String, run: String },

    /// A word that already says a run, as the beginning of its name or id.
    #[error("a run cannot be called \"{tag}\": {run} is called so, in short")]
    #[diagnostic(help("take a word that no run's or sweep's name and no id begins with"))]
    Shadows { tag: String, run: String },

    /// More than one run of that name.
    #[error("{name} could be any of: {}", some(candidates))]
    #[diagnostic(help("give more of the name"))]
    Ambiguous { name: String, candidates: Vec<String> },
}

impl RunError {
    /// Wraps an operating system's error; for `map_err`.
    pub(crate) fn io(doing: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { doing, path: path.to_owned(), source }
    }

    /// The same of a file that goes to `path`, as `option` of the command line says.
    #[must_use]
    pub(crate) fn output(self, path: &Path, option: &'static str) -> Self {
        match self {
            Self::Io { source, .. } => Self::Output { path: path.to_owned(), option, source },
            error => error,
        }
    }

    /// The process's exit code: 75 running elsewhere, 2 a name that says no run, else 1.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::RunningElsewhere { .. } | Self::LeaseLost { .. } => 75,
            Self::Unknown { .. } | Self::Ambiguous { .. } | Self::NoTag { .. } | Self::Tagged { .. } => 2,
            Self::Shadows { .. } => 2,
            Self::Io { .. } | Self::Output { .. } | Self::Clash { .. } => 1,
            Self::Corrupt { .. } | Self::Altered { .. } | Self::Later { .. } => 1,
        }
    }
}

/// What makes a damaged file anew.
fn mend(path: &Path) -> &'static str {
    match path.file_name() {
        Some(name) if name == "sweep.kdl" => "move its directory away and give the sweep again: its runs are kept",
        _ if is_warm_start(path) => {
            "move the directory of this warm start away: whichever run needs it makes it again, to the same bytes"
        }
        _ => "move the run's directory away (`starpo run … --fresh` does) and run it again: it comes to the same bytes",
    }
}

/// Whether a path is in the directory of a warm start: directories of runs end in an id.
fn is_warm_start(path: &Path) -> bool {
    let names = path.components().rev().map(|part| part.as_os_str().to_string_lossy().into_owned());
    let is_run = |name: &String| name.rsplit_once('-').is_some_and(|(_, id)| id.len() == 16);
    names.into_iter().find(is_run).is_some_and(|name| name.starts_with("warm-"))
}

/// The first few of a list, and how many more there are.
pub(crate) fn some(candidates: &[String]) -> String {
    let shown = candidates.len().min(8);
    let more = match candidates.len() - shown {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{}{more}", candidates[..shown].join(", "))
}

/// The system's words without its error number.
fn cause(source: &io::Error) -> String {
    let text = source.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_owned()
}

fn remedy(doing: &str, source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "free space and run the same command again: it resumes"
        }
        io::ErrorKind::PermissionDenied if doing == "read" || doing == "list" => {
            "make it readable, or choose another folder of runs with --runs-dir"
        }
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            "make the folder writable, or choose another with --runs-dir"
        }
        io::ErrorKind::NotFound => "was the directory moved or removed meanwhile?",
        _ if doing == "read" || doing == "list" => "once that is mended, run the same command again",
        _ => "once that is mended, run the same command again: it resumes from the last checkpoint",
    }
}

/// What would let a file be written.
fn amends(source: &io::Error) -> &'static str {
    match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "free space",
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => "make the folder writable",
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => "make its folder first",
        _ => "mend that",
    }
}
