//! `starpo show`: the resolved experiment, or a part of it.

use clap::Args;
use serde_json::json;

use super::subject::fixed;
use super::{CliError, Common, run, say};
use crate::config::show::quoted;
use crate::experiment::{self, Home, Outside, Resolved};
use crate::record::{Disk, RunDir, RunError, reader};

/// An experiment and how it differs from its file.
#[derive(Clone, Debug, Args)]
pub(super) struct Show {
    /// A name in `experiments/`, or a path to a `.kdl` file; or else a run, whose lock is shown
    experiment: String,
    /// `path=value`, `list+=value` or `@overlay.kdl`
    overrides: Vec<String>,
    /// Only what is at this path, or at paths that end so, as KDL that an overlay could hold
    #[arg(long, value_name = "PATH")]
    path: Option<String>,
}

impl Show {
    pub(super) fn run(self, common: &Common) -> Result<(), CliError> {
        if let Some(lock) = self.lock(common)? {
            if self.path.is_none() && !common.json {
                say(experiment::read_lock(&lock)?.trim_end());
                return Ok(());
            }
            return self.say(&experiment::to_show(&lock)?, None, common);
        }
        let outside = common.outside();
        let resolved = experiment::resolve_with(&self.experiment, &self.overrides, &outside)?;
        run::warn(common, &resolved);
        self.say(&resolved, Some(&outside.outside), common)
    }

    /// Prints what was asked for, with the documents that it was made of, if they are not those of a lock.
    fn say(&self, resolved: &Resolved, outside: Option<&Outside>, common: &Common) -> Result<(), CliError> {
        match (&self.path, common.json) {
            (Some(path), true) => say(&resolved.show_path_json(path)?.to_string()),
            (Some(path), false) => say(resolved.show_path(path)?.trim_end()),
            (None, true) => {
                let mut document = resolved.show_json();
                if let Some(outside) = outside {
                    let one = |(path, home): (&str, Option<String>)| json!({"path": path, "file": home});
                    document["documents"] = homes(resolved, outside).map(one).collect();
                }
                say(&document.to_string());
            }
            (None, false) => {
                let documents = outside.map(|outside| documents(resolved, outside)).unwrap_or_default();
                say(&format!("{}{}", resolved.show(), documents.trim_end()));
            }
        }
        Ok(())
    }

    /// The lock of the run that the name says, if it says no experiment.
    fn lock(&self, common: &Common) -> Result<Option<String>, CliError> {
        let disk = Disk::default();
        if experiment::exists(&self.experiment, &common.outside()) {
            return Ok(None);
        }
        match reader::find(&disk, &common.runs_dir, &self.experiment) {
            Err(RunError::Unknown { .. }) => Ok(None),
            Ok(_) if !self.overrides.is_empty() => Err(fixed(&self.experiment)),
            run => Ok(Some(RunDir::open(&disk, &run?).lock()?)),
        }
    }
}

/// Each document with the file that it is; None is the binary.
fn homes<'r>(resolved: &'r Resolved, outside: &'r Outside) -> impl Iterator<Item = (&'r str, Option<String>)> {
    resolved.documents.iter().map(|path| match outside.home(path) {
        Some(Home::File(file)) => (path.as_str(), Some(file.display().to_string())),
        _ => (path.as_str(), None),
    })
}

/// Where each document was read, the lowest layer first.
pub(super) fn documents(resolved: &Resolved, outside: &Outside) -> String {
    let line = |(path, home): (&str, Option<String>)| match home {
        Some(file) => format!("    {} file={}\n", quoted(path), quoted(&file)),
        None => format!("    {} // the one of this version of starpo\n", quoted(path)),
    };
    let lines: String = homes(resolved, outside).map(line).collect();
    format!("documents {{\n{lines}}}\n")
}
