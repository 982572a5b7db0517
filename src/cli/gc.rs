//! `starpo gc`: frees what nothing names.

use std::io::{BufRead, IsTerminal};
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;

use super::run::tell;
use super::{CliError, Common, say};
use crate::record::garbage::{self, Finding, Garbage, What};
use crate::record::{Disk, RunError, tags};
use crate::sweep::Record;

#[derive(Clone, Debug, Args)]
pub(super) struct Gc {
    /// Remove without asking
    #[arg(long)]
    yes: bool,
}

impl Gc {
    pub(super) fn run(self, common: &Common) -> Result<(), CliError> {
        let disk = Disk::default();
        let find = || find(&disk, &common.runs_dir);
        let Finding { garbage: found, passed_over } = find()?;
        let bytes: u64 = found.iter().map(|garbage| garbage.bytes).sum();
        if !common.json {
            let line = |g: &Garbage| format!("{:<12} {:>10}  {}", g.what, mebibytes(g.bytes), g.path.display());
            found.iter().for_each(|garbage| say(&line(garbage)));
            say(&format!("{} folders, {}, that no tag, sweep or golden names", found.len(), mebibytes(bytes)));
        }
        passed_over.iter().for_each(|what| tell(common, &format!("left alone: {what}")));
        let removes = !found.is_empty() && (self.yes || !common.json && confirmed());
        let (mut freed, mut failed) = (0, String::new());
        // While somebody thought about it, a sweep or a tag may have come to name one; from here on none does.
        let _naming = removes.then(|| garbage::naming(&disk, &common.runs_dir)).transpose()?;
        let still = if removes { find()?.garbage } else { Vec::new() };
        for garbage in found.iter().filter(|garbage| still.iter().any(|other| other.path == garbage.path)) {
            match garbage::remove(&disk, garbage) {
                Ok(true) => freed += garbage.bytes,
                Ok(false) => tell(common, &format!("left, since it is running: {}", garbage.path.display())),
                // The others can go all the same.
                Err(error) => failed.push_str(&format!("\n{}: {error}", garbage.path.display())),
            }
        }
        let one = |g: &Garbage| json!({ "path": g.path, "bytes": g.bytes, "what": g.what.to_string() });
        let all: Vec<_> = found.iter().map(one).collect();
        let document = json!({ "garbage": all, "bytes": bytes, "freed": freed, "left_alone": passed_over });
        if !failed.is_empty() {
            let message = format!("freed {}; these could not be removed:{failed}", mebibytes(freed));
            return Err(CliError::Partly { message, document });
        }
        if common.json {
            say(&document.to_string());
        } else if removes {
            say(&format!("freed {}", mebibytes(freed)));
        }
        Ok(())
    }
}

/// What nothing names. A tag or a sweep's list that is damaged may have named any run, so then none is garbage.
fn find(disk: &Disk, runs: &Path) -> Result<Finding, RunError> {
    let mut found = garbage::find(disk, runs, Path::new("golden"))?;
    let damaged = [Record::damaged(disk, runs)?, tags::damaged(disk, runs)?].concat();
    if !damaged.is_empty() {
        found.garbage.retain(|garbage| !matches!(garbage.what, What::Run(_)));
        let why = |list: &PathBuf| format!("every run: {} is damaged, and may have named it", list.display());
        found.passed_over.extend(damaged.iter().map(why));
    }
    Ok(found)
}

/// What a person at a terminal says to it; nobody is there to ask elsewhere.
fn confirmed() -> bool {
    if !std::io::stdin().is_terminal() {
        say("nothing is removed without --yes");
        return false;
    }
    say("remove them? [y/N]");
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer).is_ok() && matches!(answer.trim(), "y" | "Y" | "yes")
}

fn mebibytes(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}
