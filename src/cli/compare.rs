//! `starpo compare`: runs and sweeps beside each other.

use clap::Args;

use super::comparison;
use super::{CliError, Common};
use crate::record::{Disk, RunError, reader};
use crate::sweep::{CellResult, Comparison, Record, SweepResult, chosen};

/// Runs and sweeps.
#[derive(Clone, Debug, Args)]
pub(super) struct Compare {
    /// Directories of runs or of sweeps, or unique prefixes of their names
    #[arg(required = true)]
    subjects: Vec<String>,
    #[command(flatten)]
    shown: comparison::Shown,
}

impl Compare {
    pub(super) fn run(self, common: &Common) -> Result<(), CliError> {
        let (disk, shown) = (Disk::default(), &self.shown);
        let (mut results, mut runs) = (Vec::new(), Vec::new());
        for subject in &self.subjects {
            match reader::find(&disk, &common.runs_dir, subject) {
                Ok(path) => {
                    let cell = CellResult::read(&disk, &path)?;
                    runs.push(CellResult { case: cell.run.clone(), ..cell });
                }
                Err(RunError::Unknown { .. }) => {
                    let record = Record::find(&disk, &common.runs_dir, subject)?;
                    let read = SweepResult::read(&disk, &common.runs_dir, &record, &shown.metric, shown.effect)?;
                    results.push(read);
                }
                Err(error) => return Err(error.into()),
            }
        }
        if let Some(first) = runs.first() {
            let baseline = Some(first.case.clone());
            let metrics = chosen(&shown.metric, &[]);
            let comparison = Comparison::new(&runs, metrics, baseline.as_deref(), None, shown.effect);
            results.push(SweepResult { name: "runs".to_owned(), cells: runs, comparison });
        }
        self.shown.say(&results, common)
    }
}
