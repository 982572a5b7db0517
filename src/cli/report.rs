//! `starpo report`: one HTML file about a run.

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;

use super::{CliError, Common, say};
use crate::record::{Disk, reader};
use crate::report;

/// A run, and another that it is held against.
#[derive(Clone, Debug, Args)]
pub(super) struct Report {
    /// A run's directory or a unique prefix of its name or id
    subject: String,
    /// A second run: curves of both, and what their configs differ in
    other: Option<String>,
    /// Where the page goes; `<run>.html` in the working folder by default
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl Report {
    pub(super) fn run(self, common: &Common) -> Result<(), CliError> {
        let disk = Disk::default();
        let find = |name: &str| reader::find(&disk, &common.runs_dir, name);
        let (run, other) = (find(&self.subject)?, self.other.as_deref().map(find).transpose()?);
        let page = report::run(&disk, &run, other.as_deref())?;
        let name = format!("{}.html", run.file_name().unwrap_or_default().display());
        let output = self.output.unwrap_or_else(|| PathBuf::from(name));
        write(&disk, &output, &page)?;
        if common.json {
            say(&json!({ "file": output, "bytes": page.len() }).to_string());
        } else {
            say(&format!("{} ({:.1} MB)", output.display(), page.len() as f64 / 1e6));
        }
        Ok(())
    }
}

fn write(disk: &Disk, output: &Path, page: &str) -> Result<(), CliError> {
    Ok(disk.replace(output, page.as_bytes())?)
}
