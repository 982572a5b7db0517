//! `starpo tag` and `starpo untag`: names of one's own for runs.

use clap::Args;
use serde_json::json;

use super::run::tell;
use super::{CliError, Common, say};
use crate::experiment;
use crate::record::{Disk, RunDir, RunError, reader, tags};

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
        let path = reader::find(&disk, &common.runs_dir, &self.run)?;
        let run = RunDir::open(&disk, &path).name();
        if common.runs_dir.join(&run).canonicalize().ok() != path.canonicalize().ok() {
            let message =
                format!("{} is not in {}, where its name would be kept", path.display(), common.runs_dir.display());
            return Err(CliError::usage(&message, "--runs-dir says where runs live"));
        }
        // Where an experiment or a run may be named, the experiment would be meant.
        if experiment::exists(&self.name, &common.outside()) {
            return Err(RunError::NoTag { tag: self.name }.into());
        }
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
