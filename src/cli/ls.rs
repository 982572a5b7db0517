//! `starpo ls`: the runs of a folder.

use clap::Args;
use serde_json::{Value, json};

use super::run::tell;
use super::{CliError, Common, say};
use crate::record::reader::{self, Summary};
use crate::record::{Disk, tags};

#[derive(Clone, Debug, Args)]
pub(super) struct Ls {}

impl Ls {
    pub(super) fn run(self, common: &Common) -> Result<(), CliError> {
        let disk = Disk::default();
        let (runs, errors) = reader::list(&disk, &common.runs_dir)?;
        let tags = tags::list(&disk, &common.runs_dir)?;
        let tags = |run: &Summary| -> Vec<&str> {
            tags.iter().filter(|(_, of)| *of == run.name).map(|(tag, _)| tag.as_str()).collect()
        };
        if common.json {
            say(&Value::from(runs.iter().map(|run| as_json(run, &tags(run))).collect::<Vec<_>>()).to_string());
        } else {
            say(&table(&runs, tags));
        }
        let quiet = Common { json: false, ..common.clone() };
        errors.iter().for_each(|error| tell(&quiet, &format!("left out: {error}")));
        Ok(())
    }
}

fn as_json(run: &Summary, tags: &[&str]) -> Value {
    json!({
        "name": run.name, "experiment": run.experiment, "id": run.id, "state": run.state.name(),
        "attempt": run.attempt, "step": run.step, "finished": run.finished, "metrics": run.metrics, "tags": tags,
    })
}

fn table<'t>(runs: &[Summary], tags: impl Fn(&Summary) -> Vec<&'t str>) -> String {
    let mut text =
        format!("{:<40} {:<12} {:>6} {:>8} {:>8}  {:<20}  tags", "run", "state", "step", "success", "eval", "ended");
    for run in runs {
        let share = |value: &Value| value.as_f64().map_or("-".to_owned(), |share| format!("{:.1} %", 100.0 * share));
        let line = format!(
            "\n{:<40} {:<12} {:>6} {:>8} {:>8}  {:<20}  {}",
            run.name,
            run.state.name(),
            run.step,
            share(&run.metrics["rollout"]["success"]),
            share(&run.metrics["eval"]["success"]),
            run.finished.as_deref().unwrap_or("-"),
            tags(run).join(" "),
        );
        text.push_str(line.trim_end_matches(' '));
    }
    text
}
