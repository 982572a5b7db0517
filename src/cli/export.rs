//! `starpo export`: a run's weights as a Hugging Face folder, which other programs load.

use std::path::PathBuf;

use clap::Args;

use super::agent::Agent;
use super::subject::Subject;
use super::{CliError, Common, say};

/// A run or an experiment, and where to.
#[derive(Clone, Debug, Args)]
pub(super) struct Export {
    /// A run's directory, or a unique prefix of its name or id; or an experiment, whose start it is then
    subject: String,
    /// The folder to make
    out: PathBuf,
    /// `path=value`, for an experiment
    overrides: Vec<String>,
}

impl Export {
    pub(super) fn run(self, common: &Common) -> Result<(), CliError> {
        if self.out.exists() {
            return Err(CliError::usage(&format!("{} is there already", self.out.display()), "name a folder to make"));
        }
        let subject = Subject::find(&self.subject, &self.overrides, common)?;
        let agent = Agent::new(&subject.resolved.config)?;
        let weights = subject.weights(&agent, common)?;
        agent.model.with(weights).write(&self.out).map_err(CliError::Agent)?;
        say(&format!("{}", self.out.display()));
        Ok(())
    }
}
