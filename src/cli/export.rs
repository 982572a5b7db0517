//! `starpo export`: a finished run as one file.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use super::agent::locked;
use super::{CliError, Common, output};
use crate::experiment::{self, Key, Resolved};
use crate::record::archive::archive;
use crate::record::{Disk, RunDir, RunError, State, compare, digest, reader};

/// A run, and where its archive goes.
#[derive(Clone, Debug, Args)]
pub(super) struct Export {
    /// A run's directory, a tag, or any unique prefix of its name or id
    run: String,
    /// The file, `-` for standard output; by default the run's name with `.tar.zst`, in the current folder
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl Export {
    pub(super) fn run(self, common: &Common) -> Result<(), CliError> {
        let disk = Disk::default();
        let run = RunDir::open(&disk, &reader::find(&disk, &common.runs_dir, &self.run)?);
        let digest = finished(&disk, &run)?;
        intact(&disk, &run, &digest)?;
        let path = self.output.unwrap_or_else(|| format!("{}.tar.zst", run.name()).into());
        let bytes = archive(&disk, &run, &readme(&run, &digest, common))?;
        output::write(&disk, &path, "--output", &bytes)?;
        let told = match common.json {
            true => json!({ "file": path, "bytes": bytes.len(), "digest": digest }).to_string(),
            false => path.display().to_string(),
        };
        output::say(&path, &told);
        Ok(())
    }
}

/// The digest of a run that has one, with all the episodes that it is of.
pub(super) fn finished(disk: &Disk, run: &RunDir) -> Result<String, CliError> {
    if let Some(what) = reader::lost(disk, run.path())? {
        return Err(RunError::Corrupt { path: run.path().to_owned(), what }.into());
    }
    match reader::digest(disk, run.path())? {
        Some(digest) => Ok(digest),
        None if run.status()?.state == State::Done => {
            let what = "the run is done, and its result is not there or does not read".to_owned();
            Err(RunError::Corrupt { path: run.path().join("result.kdl"), what }.into())
        }
        None => Err(CliError::Usage {
            message: format!("{} is not finished: it has no result", run.name()),
            help: Some(format!("starpo exec {} goes on with it", run.name())),
        }),
    }
}

/// That a run's files are those of its digest and its name, as far as they are here: an unpacked archive is without
/// weights.
fn intact(disk: &Disk, run: &RunDir, digest: &str) -> Result<(), CliError> {
    experiment::check_lock(&run.lock()?)?;
    let corrupt = |what: String| Err(RunError::Corrupt { path: run.path().to_owned(), what }.into());
    if !run.name().ends_with(&Key::of(&run.canon()?).id()) {
        return corrupt("canon.txt is not that of its name".to_owned());
    }
    if let Some(what) = compare::damaged(disk, run.path())? {
        return corrupt(what);
    }
    digest::differs(disk, run.path(), digest)?.map_or(Ok(()), corrupt)
}

/// What the archive is, and how it is made again.
fn readme(run: &RunDir, digest: &str, common: &Common) -> String {
    let name = run.name();
    let asked = match command(run, common) {
        Some(command) => format!("It was asked for by\n\n    {command}\n\nand"),
        None => "No command asks for it alone, such as for a case of a sweep. It".to_owned(),
    };
    format!(
        "A run of starpo: its resolved config with all inputs, its metrics, and every \
         episode.\n\n{asked} is made again from its own lock, in a folder `runs` that it is unpacked into, \
         by\n\n    starpo verify {name}\n\nwhich must come to\n\n    {digest}\n"
    )
}

/// What makes the same run from the documents that are here: a sweep gives its cases more than a lock's overrides.
fn command(run: &RunDir, common: &Common) -> Option<String> {
    let Resolved { name, overrides, key, .. } = locked(run).ok()?;
    let again = experiment::resolve_with(&name, &overrides, &common.outside()).ok()?;
    let words = [vec!["starpo".to_owned(), "run".to_owned(), name], overrides].concat();
    (again.key == key).then(|| words.iter().map(|word| shell(word)).collect::<Vec<_>>().join(" "))
}

/// A word as shells read it.
fn shell(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-=.,:/@%+".contains(c);
    if word.chars().all(plain) { word.to_owned() } else { format!("'{}'", word.replace('\'', "'\\''")) }
}
