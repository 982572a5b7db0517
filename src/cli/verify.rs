//! `starpo verify`: makes a finished run again, beside it, and says whether the same came out.

use clap::Args;
use serde_json::json;

use super::agent::{Agent, locked};
use super::export::finished;
use super::run::{carry_out, make_warm_start, tell};
use super::{CliError, Common, say};
use crate::experiment::LoggingConfig;
use crate::record::{Disk, RunDir, State, compare, digest, reader};

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
        let mut resolved = locked(&run)?;
        // Copies for other tools are not compared.
        resolved.config.logging = LoggingConfig { tensorboard: false, parquet: false };
        let agent = Agent::locked(&resolved.config)?;
        let chat = agent.ready(&resolved.config)?;
        let scratch = common.runs_dir.join(format!(".tmp-verify-{}", run.name()));
        let there = Common { runs_dir: scratch.clone(), ..common.clone() };
        let held = run.canon()?;
        // A warm start's lock is that of the run which asked for it first.
        let warm = resolved.warm_start().filter(|(canon, _)| *canon == held);
        let (canon, id) = warm.clone().unwrap_or_else(|| (resolved.canon.clone(), resolved.id()));
        // An interrupted verification goes on; one that has ended says nothing of today's program.
        if reader::status(&disk, &scratch.join(id.to_string()))?.state == State::Done {
            disk.remove(&scratch)?;
        }
        let again = RunDir::open_or_create(&disk, &scratch, &id.to_string(), &resolved.lock(), &canon)?;
        match warm {
            Some(_) => make_warm_start(&disk, &again, &id, &resolved, &agent, &there)?,
            None => {
                carry_out(&disk, &again, &resolved, &agent, &chat, true, &there)?;
            }
        }
        let found = finished(&disk, &again)?;
        if found != expected {
            let at = compare::difference(&disk, run.path(), again.path())?
                .unwrap_or_else(|| "nothing but its result".to_owned());
            return Err(CliError::Agent(format!(
                "{} came to {expected}, and now to {found}: first of all differs {at}; the new one is left in {}",
                run.name(),
                again.path().display()
            )));
        }
        // What an archive leaves out cannot have changed since.
        let whole = disk.exists(&run.path().join("checkpoints"))?;
        let kept = match whole {
            true => digest::digest(&disk, run.path())? == expected,
            false => digest::records(&disk, run.path())? == digest::records(&disk, again.path())?,
        };
        let same = |name| compare::same_text(&disk, run.path(), again.path(), name);
        let sound = || compare::damaged(&disk, run.path()).map(|damaged| damaged.is_none());
        let kept = kept && same("canon.txt")? && same("result.kdl")? && sound()?;
        let at = if kept { None } else { compare::difference(&disk, run.path(), again.path())? };
        disk.remove(&scratch)?;
        if !kept {
            let at = at.map_or_else(String::new, |at| format!(": first of all differs {at}"));
            let message = format!("{} can be made again, but its files are not those of then", run.path().display());
            return Err(CliError::Agent(message + &at));
        }
        match common.json {
            true => say(&json!({ "run": run.name(), "digest": found, "same": true }).to_string()),
            false => say(&format!("same       {}\ndigest     {found}", run.name())),
        }
        let compared = match whole {
            true => "records, episodes and weights have the same bytes",
            false => "records and episodes have the same bytes; its weights are not here, and their digest is the same",
        };
        tell(common, &format!("made again from its lock alone: {compared}"));
        Ok(())
    }
}
