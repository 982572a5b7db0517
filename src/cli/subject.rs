//! What a verb is about: an experiment, or a run of one.

use super::agent::{Agent, checkpoint_file, locked};
use super::run::warm_start;
use super::{CliError, Common};
use crate::experiment::{self, Resolved};
use crate::policy::{self, Weights};
use crate::record::{Disk, RunDir, reader};

/// An experiment with overrides, or a run with the config that it has.
pub(super) struct Subject {
    pub(super) resolved: Resolved,
    run: Option<RunDir>,
}

impl Subject {
    /// An experiment of that name; or else a run's directory, or the run whose name or id begins so.
    pub(super) fn find(name: &str, overrides: &[String], common: &Common) -> Result<Self, CliError> {
        let outside = common.outside();
        if experiment::exists(name, &outside) {
            return Ok(Self { resolved: experiment::resolve_with(name, overrides, &outside)?, run: None });
        }
        let disk = Disk::default();
        let run = RunDir::open(&disk, &reader::find(&disk, &common.runs_dir, name)?);
        if !overrides.is_empty() {
            return Err(fixed(name));
        }
        Ok(Self { resolved: locked(&run)?, run: Some(run) })
    }

    /// The adapter in a run's newest checkpoint.
    pub(super) fn adapter(&self) -> Result<Vec<u8>, CliError> {
        let run = self.run.as_ref().ok_or_else(|| {
            CliError::usage(
                "an experiment has no adapter yet",
                "name a run with `adapter \"lora\"`, or leave out --adapter",
            )
        })?;
        checkpoint_file(&Disk::default(), run.path(), policy::ADAPTER)
    }

    /// The weights before reinforcement learning: a run's warm start is beside it.
    pub(super) fn start(&self, agent: &Agent, common: &Common) -> Result<Weights, CliError> {
        let mut common = common.clone();
        if let Some(beside) = self.run.as_ref().and_then(|run| run.path().parent()) {
            common.runs_dir = beside.to_owned();
        }
        warm_start(&Disk::default(), &self.resolved, agent, &common)
    }

    /// A run's newest weights, or an experiment's after its warm start.
    pub(super) fn weights(&self, agent: &Agent, common: &Common) -> Result<Weights, CliError> {
        let disk = Disk::default();
        match &self.run {
            Some(run) => agent.checkpoint(&disk, run.path()),
            None => self.start(agent, common),
        }
    }
}

/// That a run takes no overrides.
pub(super) fn fixed(name: &str) -> CliError {
    CliError::usage(&format!("{name} is a run: its config is fixed"), "overrides go with an experiment's name")
}
