//! `starpo ls`: the runs of a folder.

use clap::Args;
use serde_json::{Value, json};

use super::run::tell;
use super::{CliError, Common, say};
use crate::record::reader::{self, Summary};
use crate::record::{Disk, State};

#[derive(Clone, Debug, Args)]
pub(super) struct Ls {}

impl Ls {
    pub(super) fn run(self, common: &Common) -> Result<(), CliError> {
        let (runs, errors) = reader::list(&Disk::default(), &common.runs_dir)?;
        if common.json {
            say(&Value::from(runs.iter().map(as_json).collect::<Vec<_>>()).to_string());
        } else {
            say(&table(&runs));
        }
        let quiet = Common { json: false, ..common.clone() };
        errors.iter().for_each(|error| tell(&quiet, &format!("left out: {error}")));
        Ok(())
    }
}

fn as_json(run: &Summary) -> Value {
    json!({
        "name": run.name, "experiment": run.experiment, "id": run.id, "state": run.state.name(),
        "attempt": run.attempt, "step": run.step, "finished": run.finished, "metrics": run.metrics,
    })
}

fn table(runs: &[Summary]) -> String {
    let mut text = format!("{:<40} {:<12} {:>6} {:>8} {:>8}  ended", "run", "state", "step", "success", "eval");
    for run in runs {
        let share = |value: &Value| value.as_f64().map_or("-".to_owned(), |share| format!("{:.1} %", 100.0 * share));
        let state = match &run.state {
            State::Failed(_) => "failed",
            state => state.name(),
        };
        text.push_str(&format!(
            "\n{:<40} {:<12} {:>6} {:>8} {:>8}  {}",
            run.name,
            state,
            run.step,
            share(&run.metrics["rollout"]["success"]),
            share(&run.metrics["eval"]["success"]),
            run.finished.as_deref().unwrap_or("-"),
        ));
    }
    text
}
