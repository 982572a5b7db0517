//! `starpo show`: the resolved experiment.

use clap::Args;

use super::{CliError, Common, root, say};
use crate::experiment;

/// An experiment and how it differs from its file.
#[derive(Clone, Debug, Args)]
pub(super) struct Show {
    /// A name in `experiments/`, or a path to a `.kdl` file
    experiment: String,
    /// `path=value`
    overrides: Vec<String>,
}

impl Show {
    pub(super) fn run(self, common: &Common) -> Result<(), CliError> {
        let resolved = experiment::resolve(&self.experiment, &self.overrides, &root())?;
        if common.json {
            say(&resolved.show_json().to_string())
        } else {
            say(resolved.show().trim_end())
        }
        Ok(())
    }
}
