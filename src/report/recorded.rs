//! A run as its directory tells it.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::config::Diagnostics;
use crate::experiment::{self, ModelConfig, Resolved, from_lock, to_play};
use crate::policy::Tokenizer;
use crate::record::reader::{self, RunResult, Summary};
use crate::record::values::at;
use crate::record::{Disk, RunDir, RunError};
use crate::replay::{Replay, Rules, obstacle, replay_at};

/// Everything but the episodes, which are read step by step.
pub struct Recorded {
    pub disk: Disk,
    pub summary: Summary,
    pub lock: String,
    pub canon: String,
    /// Or why this program cannot say what the run computed.
    pub resolved: Result<Resolved, String>,
    pub result: Option<RunResult>,
    pub metrics: Vec<Value>,
    pub timings: Vec<Value>,
    pub attempts: Vec<Vec<(String, String)>>,
    /// Steps with episodes, and their files.
    pub rollouts: Vec<(usize, PathBuf)>,
    /// Files of episodes that its metrics tell of and that are not there, in words.
    pub lost: Option<String>,
}

impl Recorded {
    /// Reads the run in a directory.
    ///
    /// # Errors
    /// The system's; [`RunError::Corrupt`].
    pub fn read(disk: &Disk, path: &Path) -> Result<Self, RunError> {
        let run = RunDir::open(disk, path);
        let lock = run.lock()?;
        let why = |found: Diagnostics| found.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
        Ok(Self {
            disk: disk.clone(),
            summary: reader::summary(disk, path)?,
            canon: run.canon()?,
            resolved: from_lock(&lock).map_err(why),
            lock,
            result: reader::result(disk, path)?,
            metrics: reader::metrics(disk, path)?,
            timings: reader::timings(disk, path)?,
            attempts: reader::attempts(disk, path)?,
            rollouts: reader::rollouts(disk, path)?,
            lost: reader::lost(disk, path)?,
        })
    }

    /// What the update made of recorded episodes, if records can tell, or why they cannot.
    ///
    /// # Errors
    /// The reason, for a person.
    pub fn replayable(&self) -> Result<&Resolved, String> {
        let resolved = self.resolved.as_ref().map_err(Clone::clone)?;
        obstacle(&resolved.config).map_or(Ok(resolved), |(message, _)| Err(message))
    }

    /// The text of a step's episodes, and what its update made of them.
    ///
    /// # Errors
    /// The system's; [`RunError::Corrupt`].
    pub fn step(&self, step: usize, path: &Path) -> Result<(String, Option<Replay>), RunError> {
        let text = reader::episodes(&self.disk, path)?;
        let Ok(resolved) = self.replayable() else { return Ok((text, None)) };
        let line = self.metrics.iter().find(|line| line["step"] == step);
        let start = resolved.config.reward.kl.start();
        let kl_coef = line.and_then(|line| at(line, "reward.kl_coef")).unwrap_or(start);
        let replayed = replay_at(&text, &Rules::of(&resolved.config), kl_coef);
        let corrupt = |what: String| RunError::Corrupt { path: path.to_owned(), what };
        Ok((text, Some(replayed.map_err(|error| corrupt(error.to_string()))?)))
    }

    /// What spells its tokens, where that is still to be had.
    #[must_use]
    pub fn tokenizer(&self) -> Option<Tokenizer> {
        tokenizer(&self.disk, &self.resolved.as_ref().ok()?.config.model)
    }

    /// The lines of its config in the lock, each with its origin.
    #[must_use]
    pub fn config(&self) -> Vec<(&str, &str)> {
        let lines = self.lock.lines().skip_while(|line| *line != "    config {").skip(1);
        let inner = lines.take_while(|line| *line != "    }").map(|line| line.strip_prefix("        ").unwrap_or(line));
        inner
            .map(|line| line.rsplit_once("  // ").map_or((line, ""), |(text, origin)| (text.trim_end(), origin)))
            .collect()
    }

    /// The first arguments of the lock's lines that begin with a word.
    #[must_use]
    pub fn locked(&self, word: &str) -> Vec<String> {
        experiment::arguments(&self.lock, word)
    }
}

/// A run as a model has the tokenizer of the model that it began with.
fn tokenizer(disk: &Disk, model: &ModelConfig) -> Option<Tokenizer> {
    let folder = match model {
        ModelConfig::Tiny(tiny) => return Tokenizer::from_json(&tiny.tokenizer.0).ok(),
        ModelConfig::Pretrained(pretrained) => &pretrained.path.path,
    };
    if let Some(lock) = disk.find_text(&folder.join("run.lock.kdl")).ok()? {
        return tokenizer(disk, &to_play(&lock).ok()?.config.model);
    }
    Tokenizer::from_json(&disk.find_text(&folder.join("tokenizer.json")).ok()??).ok()
}
