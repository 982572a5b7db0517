//! `starpo tag` and `starpo untag`: names of one's own for runs.

use clap::Args;
use serde_json::json;

use super::run::tell;
use super::{CliError, Common, say};
use crate::record::{Disk, RunDir, reader, tags};

/// A run and the name that it gets.
#[derive(Clone, Debug, Args)]
pub(super) struct Tag {
    /// A run's directory, a tag, or any unique prefix of its name or id
    run: String,
    /// The name; stands for the run wherever one is named, and keeps it from `gc`
    name: String,
}

/// A name that is taken away.
#[derive(Clone, Debug, Args)]
pub(super) struct Untag {
    name: String,
}

impl Tag {
    pub(super) fn run(self, common: &Common) -> Result<(), CliError> {
        let disk = Disk::default();
        let run = RunDir::open(&disk, &reader::find(&disk, &common.runs_dir, &self.run)?).name();
        tags::add(&disk, &common.runs_dir, &self.name, &run)?;
        told(common, &self.name, &run, "is");
        Ok(())
    }
}

impl Untag {
    pub(super) fn run(self, common: &Common) -> Result<(), CliError> {
        let run = tags::remove(&Disk::default(), &common.runs_dir, &self.name)?;
        told(common, &self.name, &run, "was");
        Ok(())
    }
}

fn told(common: &Common, tag: &str, run: &str, verb: &str) {
    match common.json {
        true => say(&json!({ "tag": tag, "run": run }).to_string()),
        false => tell(common, &format!("{tag} {verb} {run}")),
    }
}
