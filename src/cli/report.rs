//! `starpo report`: one HTML file about a run or a sweep.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use super::{CliError, Common, output};
use crate::record::{Disk, RunDir, RunError, reader};
use crate::report;
use crate::sweep::{Record, SweepResult};

/// A run or a sweep, and another run that a run is held against.
#[derive(Clone, Debug, Args)]
pub(super) struct Report {
    /// A sweep or a run: its directory, or a unique prefix of its name or of a run's id
    subject: String,
    /// A second run: curves of both, and what their configs differ in
    other: Option<String>,
    /// Where the page goes, `-` for standard output; `<name>.html` in the working folder by default
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// The difference that a sweep's numbers of needed runs are for.
const EFFECT: f64 = 0.05;

impl Report {
    pub(super) fn run(self, common: &Common) -> Result<(), CliError> {
        let disk = Disk::default();
        let find = |name: &str| reader::find(&disk, &common.runs_dir, name);
        let (name, page) = match find(&self.subject) {
            Ok(run) => {
                let other = self.other.as_deref().map(find).transpose()?;
                (RunDir::open(&disk, &run).name(), report::run(&disk, &run, other.as_deref())?)
            }
            // What is no run is a sweep, or nothing.
            Err(RunError::Unknown { .. }) => {
                let sweep = Record::find(&disk, &common.runs_dir, &self.subject)?;
                if self.other.is_some() {
                    return Err(two());
                }
                let result = SweepResult::read(&disk, &common.runs_dir, &sweep, &[], EFFECT)?;
                (sweep.name(), report::sweep::page(&disk, &result)?)
            }
            Err(error) => return Err(error.into()),
        };
        let path = self.output.unwrap_or_else(|| PathBuf::from(format!("{name}.html")));
        output::write(&disk, &path, "--output", page.as_bytes())?;
        let told = match common.json {
            true => json!({ "file": path, "bytes": page.len() }).to_string(),
            false => format!("{} ({:.1} MB)", path.display(), page.len() as f64 / 1e6),
        };
        output::say(&path, &told);
        Ok(())
    }
}

fn two() -> CliError {
    let help = Some("a sweep's page shows its own arms beside each other".to_owned());
    CliError::Usage { message: "a sweep is not held against another subject".to_owned(), help }
}
