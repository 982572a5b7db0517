//! `starpo weights`: a run's weights as a Hugging Face folder, which other programs load.

use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

use clap::{Args, ValueEnum};
use serde_json::json;

use super::agent::unchanged;
use super::outside::is_run;
use super::subject::Subject;
use super::{CliError, Common, say};
use crate::config::Folder;
use crate::experiment::{AdapterConfig, ModelConfig, ResolvedConfig, WarmStartConfig};
use crate::policy::{self, Precision};
use crate::record::{Disk, RunDir, garbage};

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
        let out = self.place()?;
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
            let base = match start {
                Some(folder) => folder.path.canonicalize().map_err(|error| self.failed(&error))?,
                None => out.join("base"),
            };
            self.make(&out, |folder| {
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
        self.make(&out, |folder| model.write_as(folder, self.dtype.into()).map_err(CliError::Agent))?;
        self.told(common, None);
        Ok(())
    }

    /// Where the folder is to be, in full: its name is free, and what it stands in is there, made if need be.
    fn place(&self) -> Result<PathBuf, CliError> {
        let to_make =
            |message: &str| CliError::usage(&format!("{} {message}", self.out.display()), "name a folder to make");
        if self.out.symlink_metadata().is_ok() {
            return Err(to_make("is there already"));
        }
        if RunDir::holds(&self.out) {
            return Err(to_make("would be part of a record"));
        }
        let Some(name) = self.out.file_name() else { return Err(to_make("has no name of its own")) };
        let folder = self.out.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        if !folder.exists() {
            if folder.components().any(|part| part == Component::ParentDir) {
                return Err(to_make("leads through a folder that is not there"));
            }
            fs::create_dir_all(folder).map_err(|error| self.failed(&error))?;
        }
        Ok(folder.canonicalize().map_err(|error| self.failed(&error))?.join(name))
    }

    /// Has `write` fill the folder `out`: it is there whole, or not at all.
    fn make(&self, out: &Path, write: impl FnOnce(&Path) -> Result<(), CliError>) -> Result<(), CliError> {
        garbage::clear(&Disk::default(), out)?;
        let name = out.file_name().unwrap_or_default().to_string_lossy();
        let draft = out.with_file_name(format!(".tmp-{name}-{}-0", std::process::id()));
        let renamed = |()| fs::rename(&draft, out).map_err(|error| self.failed(&error));
        let made = write(&draft).and_then(renamed);
        if made.is_err() {
            let _ = fs::remove_dir_all(&draft);
        }
        made
    }

    fn failed(&self, error: &io::Error) -> CliError {
        CliError::Agent(format!("{}: {error}", self.out.display()))
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
