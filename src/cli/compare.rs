//! `starpo compare`: runs and sweeps beside each other.

use clap::Args;

use super::comparison;
use super::{CliError, Common};
use crate::record::{Disk, RunError, reader};
use crate::sweep::{CellResult, Comparison, Record, SweepResult, chosen};

/// Runs and sweeps: the first of them, or its baseline, is what the others are compared with.
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
        shown.check()?;
        let (mut cells, mut missing, mut baseline) = (Vec::new(), Vec::new(), None);
        for subject in &self.subjects {
            let own = match reader::find(&disk, &common.runs_dir, subject) {
                Ok(path) => {
                    let cell = CellResult::read(&disk, &path)?;
                    vec![CellResult { case: cell.run.clone(), ..cell }]
                }
                Err(RunError::Unknown { .. }) => {
                    let record = Record::find(&disk, &common.runs_dir, subject)?;
                    let result = SweepResult::read(&disk, &common.runs_dir, &record, &shown.metric, shown.effect)?;
                    if self.subjects.len() == 1 {
                        return shown.say(&result, common);
                    }
                    let title = |case: &str| format!("{} {case}", result.name).trim_end().to_owned();
                    baseline = baseline.or(record.cells.baseline.as_deref().map(title));
                    let named = |cell: &CellResult| CellResult { case: title(&cell.case), ..cell.clone() };
                    missing.extend(result.missing.iter().cloned());
                    result.cells.iter().map(named).collect()
                }
                Err(error) => return Err(error.into()),
            };
            baseline = baseline.or(own.first().map(|cell| cell.case.clone()));
            cells.extend(own);
        }
        let metrics = chosen(&shown.metric, &[]);
        let comparison = Comparison::new(&cells, metrics, baseline.as_deref(), None, shown.effect);
        shown.say(&SweepResult { name: self.subjects.join(", "), cells, missing, comparison }, common)
    }
}
