//! `starpo weights`: a run's weights as a Hugging Face folder, which other programs load.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use serde_json::json;

use super::agent::unchanged;
use super::outside::is_run;
use super::subject::Subject;
use super::{CliError, Common, say};
use crate::config::Folder;
use crate::experiment::{AdapterConfig, ModelConfig, ResolvedConfig, WarmStartConfig};
use crate::policy::{self, Precision};

/// A run or an experiment, and where to.
#[derive(Clone, Debug, Args)]
pub(super) struct Weights {
    /// A run's directory, or a unique prefix of its name or id; or an experiment, whose start it is then
    subject: String,
    /// The folder to make
    out: PathBuf,
    /// `path=value`, for an experiment
    overrides: Vec<String>,
    /// The low-rank adapter alone, as PEFT loads it; without this it is merged into the weights. What it changes is
    /// written beside it as `base`, unless that is just the folder `model.path`
    #[arg(long)]
    adapter: bool,
    /// What the weights are stored as; bf16 is rounded to nearest, and half as large
    #[arg(long, value_enum, default_value_t = Dtype::F32, conflicts_with = "adapter")]
    dtype: Dtype,
}

/// What weights are stored as.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Dtype {
    F32,
    Bf16,
}

impl From<Dtype> for Precision {
    fn from(dtype: Dtype) -> Self {
        match dtype {
            Dtype::F32 => Self::F32,
            Dtype::Bf16 => Self::Bf16,
        }
    }
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
            let adapter = subject.adapter()?;
            let base = match folder_of_start(config) {
                Some(folder) => {
                    unchanged(folder)?;
                    folder.path.clone()
                }
                None => self.write_start(&subject, common)?,
            };
            // In full, so that it is found from any folder.
            let base = std::path::absolute(&base);
            let base = base.map_err(|error| CliError::Agent(format!("{}: {error}", self.out.display())))?;
            policy::write_adapter(&self.out, lora, &adapter, &base).map_err(CliError::Agent)?;
            self.told(common, Some(&base));
            return Ok(());
        }
        let agent = subject.agent()?;
        let weights = subject.weights(&agent, common)?;
        agent.model.with(weights).write_as(&self.out, self.dtype.into()).map_err(CliError::Agent)?;
        self.told(common, None);
        Ok(())
    }

    fn told(&self, common: &Common, base: Option<&Path>) {
        match common.json {
            true => say(&json!({ "folder": self.out, "base": base }).to_string()),
            false => say(&self.out.display().to_string()),
        }
    }

    /// Writes what a run's adapter changes, and says where.
    fn write_start(&self, subject: &Subject, common: &Common) -> Result<PathBuf, CliError> {
        let agent = subject.agent()?;
        let start = subject.start(&agent, common)?;
        let base = self.out.join("base");
        agent.model.with(start).write(&base).map_err(CliError::Agent)?;
        Ok(base)
    }
}

/// The folder that holds a run's start as it is, if there is one.
fn folder_of_start(config: &ResolvedConfig) -> Option<&Folder> {
    match (&config.model, &config.warm_start) {
        (ModelConfig::Pretrained(model), WarmStartConfig::None(_)) if !is_run(&model.path.path) => Some(&model.path),
        _ => None,
    }
}
