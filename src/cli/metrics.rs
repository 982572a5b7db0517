//! `starpo metrics`: what a run recorded, in the formats of other tools.

use std::path::PathBuf;

use clap::Args;
use serde_json::Value;

use super::run::tell;
use super::{CliError, Common, output, say};
use crate::record::sinks::{Table, csv, parquet, tensorboard};
use crate::record::{Disk, RunError, reader};

/// A run, and where its table goes: to standard output as CSV, if nowhere else.
#[derive(Clone, Debug, Args)]
pub(super) struct Metrics {
    /// A run's directory, or any unique prefix of its name or id
    run: String,
    /// A row a turn of the recorded training episodes, instead of a row a step
    #[arg(long)]
    turns: bool,
    /// Write CSV to a file, `-` for standard output
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Write Parquet to a file, `-` for standard output (a build with `--features parquet`)
    #[arg(long, value_name = "FILE")]
    parquet: Option<PathBuf>,
    /// Write an event file into a folder, for TensorBoard
    #[arg(long, value_name = "FOLDER", conflicts_with = "turns")]
    tensorboard: Option<PathBuf>,
}

impl Metrics {
    pub(super) fn run(self, common: &Common) -> Result<(), CliError> {
        let disk = Disk::default();
        let run = reader::find(&disk, &common.runs_dir, &self.run)?;
        if let Some(lost) = reader::lost(&disk, &run)? {
            tell(common, &format!("warning: episodes are missing: {lost}"));
        }
        let table = match self.turns {
            true => Table::of_turns(&disk, &run)?,
            false => Table::of_steps(&disk, &run)?,
        };
        if let Some(path) = &self.csv {
            output::write(&disk, path, "--csv", csv::text(&table).as_bytes())?;
        }
        if let Some(path) = &self.parquet {
            parquet::check().map_err(|what| CliError::usage(what, "--csv writes the same as text"))?;
            let bytes = parquet::bytes(&table).map_err(RunError::io("write", path))?;
            output::write(&disk, path, "--parquet", &bytes)?;
        }
        if let Some(folder) = &self.tensorboard {
            let records = reader::metrics(&disk, &run)?;
            output::make(&disk, folder, "--tensorboard", || {
                tensorboard::write(&disk, folder, 1, &records).map(|_| ())
            })?;
        }
        if [&self.csv, &self.parquet].into_iter().flatten().any(|path| output::is_standard(path)) {
            return Ok(());
        }
        if common.json {
            say(&objects(&table).to_string());
        } else if self.csv.is_none() && self.parquet.is_none() && self.tensorboard.is_none() {
            say(csv::text(&table).trim_end_matches('\n'));
        }
        Ok(())
    }
}

/// An object a row.
fn objects(table: &Table) -> Value {
    let row = |row: &Vec<Value>| table.columns.iter().cloned().zip(row.iter().cloned()).collect::<Value>();
    table.rows.iter().map(row).collect()
}
