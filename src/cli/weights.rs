//! `starpo weights`: a run's weights as a Hugging Face folder, which other programs load.

use std::path::PathBuf;

use clap::Args;

use super::agent::Agent;
use super::subject::Subject;
use super::{CliError, Common, say};
use crate::experiment::{AdapterConfig, ModelConfig};
use crate::policy;

/// A run or an experiment, and where to.
#[derive(Clone, Debug, Args)]
pub(super) struct Weights {
    /// A run's directory, or a unique prefix of its name or id; or an experiment, whose start it is then
    subject: String,
    /// The folder to make
    out: PathBuf,
    /// `path=value`, for an experiment
    overrides: Vec<String>,
    /// The low-rank adapter alone, as PEFT loads it; without this it is merged into the weights
    #[arg(long)]
    adapter: bool,
}

impl Weights {
    pub(super) fn run(self, common: &Common) -> Result<(), CliError> {
        if self.out.exists() {
            return Err(CliError::usage(&format!("{} is there already", self.out.display()), "name a folder to make"));
        }
        let subject = Subject::find(&self.subject, &self.overrides, common)?;
        let config = &subject.resolved.config;
        if self.adapter {
            let AdapterConfig::Lora(lora) = &config.adapter else {
                return Err(CliError::usage("the run has no adapter", "leave out --adapter to write all weights"));
            };
            let base = match &config.model {
                ModelConfig::Pretrained(model) => Some(model.path.path.as_path()),
                ModelConfig::Tiny(_) => None,
            };
            let written = policy::write_adapter(&self.out, lora, &subject.adapter()?, base);
            written.map_err(CliError::Agent)?;
            say(&self.out.display().to_string());
            return Ok(());
        }
        let agent = Agent::new(config)?;
        let weights = subject.weights(&agent, common)?;
        agent.model.with(weights).write(&self.out).map_err(CliError::Agent)?;
        say(&self.out.display().to_string());
        Ok(())
    }
}
