//! `starpo weights`: a run's weights as a Hugging Face folder, which other programs load.

use std::fs;
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
            let start = folder_of_start(config);
            start.map(unchanged).transpose()?;
            // In full, so that it is found from any folder.
            let base = std::path::absolute(start.map_or_else(|| self.out.join("base"), |folder| folder.path.clone()));
            let base = base.map_err(|error| CliError::Agent(format!("{}: {error}", self.out.display())))?;
            self.make(|folder| {
                if start.is_none() {
                    let agent = subject.agent()?;
                    let start = subject.start(&agent, common)?;
                    agent.model.with(start).write(&folder.join("base")).map_err(CliError::Agent)?;
                }
                policy::write_adapter(folder, lora, &adapter, &base).map_err(CliError::Agent)
            })?;
            self.told(common, Some(&base));
            return Ok(());
        }
        let agent = subject.agent()?;
        let weights = subject.weights(&agent, common)?;
        let model = agent.model.with(weights);
        self.make(|folder| model.write_as(folder, self.dtype.into()).map_err(CliError::Agent))?;
        self.told(common, None);
        Ok(())
    }

    /// Has `write` fill the folder: it is there whole, or not at all.
    fn make(&self, write: impl FnOnce(&Path) -> Result<(), CliError>) -> Result<(), CliError> {
        let name = self.out.file_name().unwrap_or_default().to_string_lossy();
        let draft = self.out.with_file_name(format!(".tmp-{name}-{}-0", std::process::id()));
        let renamed = |()| {
            let said = |error| CliError::Agent(format!("{}: {error}", self.out.display()));
            fs::rename(&draft, &self.out).map_err(said)
        };
        let made = write(&draft).and_then(renamed);
        if made.is_err() {
            let _ = fs::remove_dir_all(&draft);
        }
        made
    }

    fn told(&self, common: &Common, base: Option<&Path>) {
        match common.json {
            true => say(&json!({ "folder": self.out, "base": base }).to_string()),
            false => say(&self.out.display().to_string()),
        }
    }
}

/// The folder that holds a run's start as it is, if there is one.
fn folder_of_start(config: &ResolvedConfig) -> Option<&Folder> {
    match (&config.model, &config.warm_start) {
        (ModelConfig::Pretrained(model), WarmStartConfig::None(_)) if !is_run(&model.path.path) => Some(&model.path),
        _ => None,
    }
}
