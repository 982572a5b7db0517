//! `starpo tag` and `starpo untag`: names of one's own for runs.

use clap::Args;

use super::run::tell;
use super::{CliError, Common};
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
        tell(common, &format!("{} is {run}", self.name));
        Ok(())
    }
}

impl Untag {
    pub(super) fn run(self, common: &Common) -> Result<(), CliError> {
        let run = tags::remove(&Disk::default(), &common.runs_dir, &self.name)?;
        tell(common, &format!("{} was {run}", self.name));
        Ok(())
    }
}
