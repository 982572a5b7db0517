//! `starpo show`: the resolved experiment.

use clap::Args;

use super::{CliError, Common, root, say};
use crate::experiment;
use crate::record::{Disk, RunDir, RunError, reader};

/// An experiment and how it differs from its file.
#[derive(Clone, Debug, Args)]
pub(super) struct Show {
    /// A name in `experiments/`, or a path to a `.kdl` file; or else a run, whose lock is shown
    experiment: String,
    /// `path=value`
    overrides: Vec<String>,
}

impl Show {
    pub(super) fn run(self, common: &Common) -> Result<(), CliError> {
        if let Some(lock) = self.lock(common)? {
            say(experiment::read_lock(&lock)?.trim_end());
            return Ok(());
        }
        let resolved = experiment::resolve_with(&self.experiment, &self.overrides, &common.outside())?;
        if common.json {
            say(&resolved.show_json().to_string())
        } else {
            say(resolved.show().trim_end())
        }
        Ok(())
    }

    /// The lock of the run that the name says, if it says no experiment.
    fn lock(&self, common: &Common) -> Result<Option<String>, CliError> {
        let disk = Disk::default();
        if experiment::exists(&self.experiment, &root()) || !self.overrides.is_empty() || common.json {
            return Ok(None);
        }
        match reader::find(&disk, &common.runs_dir, &self.experiment) {
            Err(RunError::Unknown { .. }) => Ok(None),
            run => Ok(Some(RunDir::open(&disk, &run?).lock()?)),
        }
    }
}
