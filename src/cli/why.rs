//! `starpo why`: what two runs differ in, value by value.

use clap::Args;
use serde_json::json;

use super::subject::fixed;
use super::{CliError, Common, say};
use crate::experiment::{self, Difference, differences};
use crate::record::{Disk, RunDir, reader};

/// Two runs, or two experiments.
#[derive(Clone, Debug, Args)]
pub(super) struct Why {
    /// A run's directory, a tag, or a unique prefix of its name or id; or else an experiment
    a: String,
    b: String,
    /// `path=value`, for those of the two that are experiments
    overrides: Vec<String>,
}

impl Why {
    pub(super) fn run(self, common: &Common) -> Result<(), CliError> {
        let outside = common.outside();
        if !self.overrides.is_empty() && ![&self.a, &self.b].iter().any(|name| experiment::exists(name, &outside)) {
            return Err(fixed(&self.a));
        }
        let differences = differences(&self.canon(&self.a, common)?, &self.canon(&self.b, common)?);
        if common.json {
            say(&json!(differences).to_string());
        } else if differences.is_empty() {
            say("nothing: they are the same run");
        } else {
            say(&table(&differences));
        }
        Ok(())
    }

    /// The canonical text of a run, or of an experiment with the overrides.
    fn canon(&self, subject: &str, common: &Common) -> Result<String, CliError> {
        let outside = common.outside();
        if experiment::exists(subject, &outside) {
            return Ok(experiment::resolve_with(subject, &self.overrides, &outside)?.canon);
        }
        let disk = Disk::default();
        Ok(RunDir::open(&disk, &reader::find(&disk, &common.runs_dir, subject)?).canon()?)
    }
}

fn table(differences: &[Difference]) -> String {
    let side = |value: &Option<String>| value.clone().unwrap_or_else(|| "-".to_owned());
    let path = differences.iter().map(|line| line.path.chars().count()).max().unwrap_or(0);
    let value = differences.iter().map(|line| side(&line.a).chars().count()).max().unwrap_or(0).min(60);
    let line = |line: &Difference| format!("{:<path$}  {:<value$}  {}", line.path, side(&line.a), side(&line.b));
    differences.iter().map(line).collect::<Vec<_>>().join("\n")
}
