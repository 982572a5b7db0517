//! `starpo replay`: an update's arithmetic on recorded episodes, without a model.

use std::path::PathBuf;

use clap::Args;

use super::{CliError, Common, root, say};
use crate::experiment;
use crate::record::{Disk, reader};
use crate::replay::{Rules, replay};

/// Episodes and rules.
#[derive(Clone, Debug, Args)]
pub(super) struct Replay {
    /// Episode records, one JSON object a line; plain or zstd
    file: PathBuf,
    /// An experiment, then `path=value`; without one `configs/base.kdl` gives the rules
    #[arg(value_name = "EXPERIMENT] [OVERRIDE")]
    rest: Vec<String>,
}

impl Replay {
    pub(super) fn run(self, common: &Common) -> Result<(), CliError> {
        let (name, overrides) = match self.rest.split_first() {
            Some((name, overrides)) if !name.contains('=') => (Some(name.as_str()), overrides),
            _ => (None, self.rest.as_slice()),
        };
        let resolved = experiment::resolve_rules(name, overrides, &root())?;
        let text =
            reader::episodes(&Disk::default(), &self.file).map_err(|error| CliError::Input(error.to_string()))?;
        let config = &resolved.config;
        let rules = Rules {
            filter: &config.filter,
            reward: &config.reward,
            advantage: &config.advantage,
            objective: &config.objective,
        };
        let replayed =
            replay(&text, &rules).map_err(|error| CliError::Input(format!("{}: {error}", self.file.display())))?;
        say(if common.json { replayed.json() } else { replayed.table() }.trim_end());
        Ok(())
    }
}
