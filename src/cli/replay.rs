//! `starpo replay`: an update's arithmetic on recorded episodes, without a model.

use std::path::PathBuf;

use clap::Args;

use super::{CliError, Common, say};
use crate::experiment::{self, Resolved};
use crate::record::{RunError, reader};
use crate::replay::{Rules, obstacle, replay};

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
            Some((name, overrides)) if !name.contains('=') && !name.starts_with('@') => {
                (Some(name.as_str()), overrides)
            }
            _ => (None, self.rest.as_slice()),
        };
        let resolved = experiment::resolve_rules(name, overrides, &common.outside())?;
        // A person's file, and no run's: a pipe will do.
        let read = std::fs::read(&self.file).map_err(RunError::io("read", &self.file));
        let text = read.and_then(|bytes| reader::unpacked(&self.file, bytes));
        let text = text.map_err(|error| CliError::Input(error.to_string()))?;
        let config = &resolved.config;
        check(&resolved)?;
        let replayed = replay(&text, &Rules::of(config))
            .map_err(|error| CliError::Input(format!("{}: {error}", self.file.display())))?;
        say(if common.json { replayed.json() } else { replayed.table() }.trim_end());
        Ok(())
    }
}

/// What replay looks at; the window is the file's.
const READ: [&str; 5] = ["reward", "filter", "advantage", "objective", "rollout.window"];

/// Refuses what was asked for and would change nothing, and what recorded episodes cannot tell.
fn check(resolved: &Resolved) -> Result<(), CliError> {
    let usage = |message: String, help: &str| Err(CliError::Usage { message, help: Some(help.to_owned()) });
    let read = |path: &String| READ.iter().any(|read| path == read || path.starts_with(&format!("{read}.")));
    if let Some(path) = resolved.typed().into_iter().find(|path| !read(path)) {
        let help = "replay reads reward, filter, advantage and objective; the rest is as it was recorded";
        return usage(format!("`{path}` changes nothing in a replay"), help);
    }
    match obstacle(&resolved.config) {
        Some((message, help)) => usage(message, help),
        None => Ok(()),
    }
}
