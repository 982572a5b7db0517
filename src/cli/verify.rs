//! `starpo verify`: makes a finished run again, beside it, and says whether the same came out.

use clap::Args;
use serde_json::json;

use super::agent::{Agent, locked};
use super::export::finished;
use super::run::{carry_out, tell};
use super::{CliError, Common, say};
use crate::record::compare::difference;
use crate::record::{Disk, RunDir, digest, reader};

/// A finished run.
#[derive(Clone, Debug, Args)]
pub(super) struct Verify {
    /// A run's directory, a tag, or any unique prefix of its name or id
    run: String,
}

impl Verify {
    pub(super) fn run(self, common: &Common) -> Result<(), CliError> {
        let disk = Disk::default();
        let run = RunDir::open(&disk, &reader::find(&disk, &common.runs_dir, &self.run)?);
        let expected = finished(&disk, &run)?;
        let resolved = locked(&run)?;
        let agent = Agent::new(&resolved.config)?;
        // An interrupted verification goes on from here.
        let scratch = common.runs_dir.join(format!(".tmp-verify-{}", run.name()));
        let name = resolved.id().to_string();
        let again = RunDir::open_or_create(&disk, &scratch, &name, &resolved.lock(), &resolved.canon)?;
        carry_out(&disk, &again, &resolved, &agent, true, &Common { runs_dir: scratch.clone(), ..common.clone() })?;
        let found = finished(&disk, &again)?;
        if found != expected {
            let at =
                difference(&disk, run.path(), again.path())?.unwrap_or_else(|| "nothing but its result".to_owned());
            return Err(CliError::Agent(format!(
                "{} came to {expected}, and now to {found}: first of all differs {at}; the new one is left in {}",
                run.name(),
                again.path().display()
            )));
        }
        // What an archive leaves out cannot have changed since.
        let whole = disk.exists(&run.path().join("checkpoints"))?;
        if whole && digest::digest(&disk, run.path())? != expected {
            let message = format!("{} can be made again, but its files are not those of then", run.path().display());
            return Err(CliError::Agent(message));
        }
        disk.remove_folder(&scratch)?;
        match common.json {
            true => say(&json!({ "run": run.name(), "digest": found, "same": true }).to_string()),
            false => say(&format!("same       {}\ndigest     {found}", run.name())),
        }
        tell(common, "made again from its lock alone: records, episodes and weights have the same bytes");
        Ok(())
    }
}
