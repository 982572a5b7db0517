//! The tables of `sweep` and `compare`.

use clap::Args;
use serde_json::{Map, Value, json};

use super::{CliError, Common, say};
use crate::stop;
use crate::sweep::{Arm, CellResult, Measured, SweepResult};

/// What a comparison shows.
#[derive(Clone, Debug, Args)]
pub(super) struct Shown {
    /// A metric by its path, such as `eval.success`; repeatable
    #[arg(long)]
    pub(super) metric: Vec<String>,
    /// The difference that runs are counted for: `runs` is how many an arm needs to see it
    #[arg(long, default_value_t = 0.05)]
    pub(super) effect: f64,
    /// Print tables of Markdown
    #[arg(long)]
    md: bool,
}

impl Shown {
    /// That there can be such metrics, and such an effect.
    pub(super) fn check(&self) -> Result<(), CliError> {
        if !(self.effect.is_finite() && self.effect > 0.0) {
            return Err(CliError::usage(&format!("--effect {} is no difference", self.effect), "a number above 0"));
        }
        match self.metric.iter().find_map(|metric| stop::no_metric(metric)) {
            Some((message, help)) => Err(CliError::Usage { message, help: Some(help) }),
            None => Ok(()),
        }
    }

    /// Prints the comparison.
    pub(super) fn say(&self, result: &SweepResult, common: &Common) -> Result<(), CliError> {
        match common.json {
            true => say(&as_json(result).to_string()),
            false => say(self.text(result).trim_end()),
        }
        Ok(())
    }

    fn text(&self, result: &SweepResult) -> String {
        let comparison = &result.comparison;
        let done = result.cells.iter().filter(|cell| cell.digest.is_some()).count();
        let mut text = format!("{}: {done} of {} cells done\n", result.name, result.cells.len() + result.missing.len());
        for run in &result.missing {
            text.push_str(&format!("missing: the directory of {run} is not there\n"));
        }
        let baseline = comparison.arms.iter().find(|arm| arm.is_baseline);
        for (number, metric) in comparison.metrics.iter().enumerate() {
            let head = head(baseline, comparison.effect);
            let rows = comparison.arms.iter().map(|arm| row(arm, &arm.measured[number], baseline.is_some()));
            let rows: Vec<Vec<String>> = std::iter::once(head).chain(rows).collect();
            let mark = if self.md { format!("**{metric}**\n") } else { metric.clone() };
            text.push_str(&format!("\n{mark}\n{}\n", if self.md { markdown(&rows) } else { aligned(&rows) }));
            for arm in comparison.arms.iter().filter(|arm| arm.is_noise) {
                text.extend(noise(arm, &arm.measured[number]));
            }
        }
        text
    }
}

fn head(baseline: Option<&Arm>, effect: f64) -> Vec<String> {
    let mut head = vec!["arm".to_owned(), "runs".to_owned(), "mean ± error".to_owned(), "95 %".to_owned()];
    head.push(format!("runs for {effect}"));
    if let Some(baseline) = baseline {
        let name = baseline.name.split(", ").next().unwrap_or_default();
        head.push(format!("less {name} ± error"));
        head.extend(["95 %".to_owned(), "± over tasks".to_owned(), format!("pairs for {effect}")]);
    }
    head
}

fn row(arm: &Arm, measured: &Measured, differences: bool) -> Vec<String> {
    let runs =
        if arm.done == arm.cells.len() { arm.done.to_string() } else { format!("{}/{}", arm.done, arm.cells.len()) };
    let mut row = vec![arm.name.clone(), runs, plus_minus(measured.mean, measured.error), interval(measured.interval)];
    row.push(count(measured.needed));
    if !differences {
        return row;
    }
    match &measured.paired {
        Some(paired) => row.extend([
            plus_minus(paired.mean, paired.error),
            interval(paired.interval),
            paired.tasks.map_or_else(absent, |(_, error)| format!("{error:.4}")),
            count(paired.needed),
        ]),
        None => row.extend([(); 4].map(|()| if arm.is_baseline { String::new() } else { absent() })),
    }
    row
}

/// What the A/A arm says about all other differences.
fn noise(arm: &Arm, measured: &Measured) -> Option<String> {
    let paired = measured.paired.as_ref()?;
    let widest = paired.differences.iter().map(|difference| difference.abs()).fold(0.0, f64::max);
    Some(format!(
        "A/A: two equal settings, {} pairs: {} (\"{}\"); one pair differed by up to {widest:.4}\n",
        paired.differences.len(),
        plus_minus(paired.mean, paired.error),
        arm.name,
    ))
}

fn plus_minus(mean: f64, error: Option<f64>) -> String {
    if mean.is_nan() {
        return absent();
    }
    error.map_or_else(|| format!("{mean:.4}"), |error| format!("{mean:.4} ± {error:.4}"))
}

fn interval(interval: Option<(f64, f64)>) -> String {
    interval.map_or_else(absent, |(low, high)| format!("{low:.4} … {high:.4}"))
}

fn count(count: Option<u64>) -> String {
    count.map_or_else(absent, |count| count.to_string())
}

fn absent() -> String {
    "-".to_owned()
}

fn aligned(rows: &[Vec<String>]) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..rows[0].len()).map(width).collect();
    let line = |row: &Vec<String>| {
        let cells: Vec<String> = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        format!("  {}", cells.join("  ")).trim_end().to_owned()
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn markdown(rows: &[Vec<String>]) -> String {
    let escaped = |cell: &String| cell.replace('|', "\\|");
    let line = |row: &Vec<String>| format!("| {} |", row.iter().map(escaped).collect::<Vec<_>>().join(" | "));
    let rule = vec!["---".to_owned(); rows[0].len()];
    let lines = std::iter::once(&rows[0]).chain([&rule]).chain(&rows[1..]).map(line);
    lines.collect::<Vec<_>>().join("\n") + "\n"
}

/// A cell's axes as an object.
pub(super) fn axes(cell: &CellResult) -> Map<String, Value> {
    cell.axes.iter().map(|(path, value)| (path.clone(), json!(value))).collect()
}

fn as_json(result: &SweepResult) -> Value {
    let comparison = &result.comparison;
    let cell = |cell: &CellResult| {
        let values = comparison.metrics.iter().map(|metric| (metric.clone(), json!(cell.value(metric))));
        json!({
            "case": cell.case, "axes": axes(cell), "seed": cell.seed, "run": cell.run, "state": cell.state.name(),
            "digest": cell.digest, "metrics": values.collect::<Map<_, _>>(),
        })
    };
    let measured = |measured: &Measured| {
        json!({
            "values": measured.values, "mean": measured.mean, "error": measured.error, "interval": measured.interval,
            "runs_needed": measured.needed,
            "paired": measured.paired.as_ref().map(|paired| json!({
                "differences": paired.differences, "mean": paired.mean, "error": paired.error,
                "interval": paired.interval, "pairs_needed": paired.needed,
                "tasks": paired.tasks.map(|(count, _)| count), "task_error": paired.tasks.map(|(_, error)| error),
            })),
        })
    };
    let arm = |arm: &Arm| {
        let metrics = comparison.metrics.iter().zip(&arm.measured);
        let metrics: Map<_, _> = metrics.map(|(metric, of)| (metric.clone(), measured(of))).collect();
        json!({"name": arm.name, "cells": arm.cells, "done": arm.done, "baseline": arm.is_baseline,
            "noise": arm.is_noise, "metrics": metrics})
    };
    json!({
        "name": result.name,
        "effect": comparison.effect,
        "cells": result.cells.iter().map(cell).collect::<Vec<_>>(),
        "missing": result.missing,
        "arms": comparison.arms.iter().map(arm).collect::<Vec<_>>(),
    })
}
