//! The page about a sweep: its arms beside each other, their curves with seeds as a band, and what each arm changes.

use serde::Serialize;
use serde_json::Value;

use super::chart::Chart;
use super::curves::{Arm, curves, line_by_run};
use super::page::{Figure, Frame, figures, island, render, state};
use super::scale::{Axis, Unit, number, written};
use crate::experiment::{Difference, differences};
use crate::record::{Disk, RunDir, RunError};
use crate::sweep::{self, Measured, SweepResult};

#[derive(Serialize)]
struct SweepPage<'a> {
    frame: Frame<'a>,
    name: &'a str,
    done: usize,
    cells: usize,
    missing: &'a [String],
    effect: String,
    tables: Vec<Table<'a>>,
    figures: Vec<Figure>,
    arms: Vec<ArmPage<'a>>,
    islands: Vec<(&'static str, String)>,
}

/// A metric of all arms.
#[derive(Serialize)]
struct Table<'a> {
    metric: &'a str,
    rows: Vec<Row<'a>>,
}

#[derive(Serialize)]
struct Row<'a> {
    arm: usize,
    name: &'a str,
    runs: usize,
    baseline: bool,
    noise: bool,
    best: bool,
    mean: String,
    error: String,
    interval: String,
    /// Dot and interval on the table's axis.
    drawn: String,
    difference: String,
    difference_interval: String,
    /// Pairs to see the effect.
    needed: String,
}

/// An arm's runs, and what sets it apart.
#[derive(Serialize)]
struct ArmPage<'a> {
    name: &'a str,
    /// Values that its first run has and the baseline's has not; none for the baseline.
    differences: Vec<Difference>,
    runs: Vec<RunLine<'a>>,
    figures: Vec<Figure>,
}

#[derive(Serialize)]
struct RunLine<'a> {
    run: &'a str,
    seed: u64,
    state: String,
    values: Vec<String>,
    digest: &'a str,
}

/// The page about a sweep as far as its runs have come: HTML.
///
/// # Errors
/// The system's; [`RunError::Corrupt`].
pub fn page(disk: &Disk, sweep: &SweepResult) -> Result<String, RunError> {
    let comparison = &sweep.comparison;
    let runs = |arm: &sweep::Arm| -> Vec<&[Value]> {
        arm.cells.iter().map(|cell| sweep.cells[*cell].metrics.as_slice()).collect()
    };
    let arms: Vec<Arm<'_>> =
        comparison.arms.iter().map(|arm| Arm { name: arm.name.clone(), runs: runs(arm) }).collect();
    let mut charts = curves(&arms);
    let figures_of_all = figures(&charts, 0);
    let canon = |arm: &sweep::Arm| RunDir::open(disk, &sweep.cells[arm.cells[0]].path).canon();
    let canons = comparison.arms.iter().map(canon).collect::<Result<Vec<_>, _>>()?;
    let mut pages = Vec::new();
    for (arm, canon) in comparison.arms.iter().zip(&canons) {
        let own = by_run(sweep, arm);
        pages.push(ArmPage {
            name: &arm.name,
            differences: set_apart(arm.baseline, &canons, canon),
            runs: arm.cells.iter().map(|cell| run_line(sweep, *cell)).collect(),
            figures: figures(&own, charts.len()),
        });
        charts.extend(own);
    }
    let readouts: Vec<_> = charts.iter().map(Chart::readouts).collect();
    let page = SweepPage {
        frame: Frame::new(&sweep.name),
        name: &sweep.name,
        done: comparison.arms.iter().map(|arm| arm.done).sum(),
        cells: sweep.cells.len(),
        missing: &sweep.missing,
        effect: number(comparison.effect),
        tables: (0..comparison.metrics.len()).map(|metric| table(sweep, metric, &canons)).collect(),
        figures: figures_of_all,
        arms: pages,
        islands: vec![("charts", island(&readouts))],
    };
    Ok(render("sweep.html", &page))
}

/// The sweep's metrics over steps, a line a run.
fn by_run(sweep: &SweepResult, arm: &sweep::Arm) -> Vec<Chart> {
    let cells = || arm.cells.iter().map(|cell| &sweep.cells[*cell]);
    let runs: Vec<Arm<'_>> =
        cells().map(|cell| Arm { name: format!("seed {}", cell.seed), runs: vec![&cell.metrics] }).collect();
    let chart = |metric: &String| line_by_run(metric, unit(metric), &runs);
    sweep.comparison.metrics.iter().filter_map(chart).collect()
}

/// What the canonical text of an arm's first run says otherwise than that of the arm that it is compared with.
fn set_apart(baseline: Option<usize>, canons: &[String], own: &str) -> Vec<Difference> {
    let mut found = baseline.map_or_else(Vec::new, |base| differences(&canons[base], own));
    found.retain(|difference| !difference.path.starts_with('@'));
    found
}

/// What a canonical text says of the tasks that a metric is of.
fn tasks<'c>(canon: &'c str, metric: &str) -> Vec<&'c str> {
    let has_own = canon.lines().any(|line| line.starts_with("eval.task."));
    let starts: &[&str] = match metric.starts_with("eval.") {
        true if has_own => &["eval.task", "@input eval.task"],
        true => &["eval.tasks", "task", "@input task"],
        false => &["task", "@input task"],
    };
    canon.lines().filter(|line| starts.iter().any(|start| line.starts_with(start))).collect()
}

/// Of each arm, whether its mean is the highest of several arms on the same tasks.
fn best(sweep: &SweepResult, metric: usize, canons: &[String]) -> Vec<bool> {
    let comparison = &sweep.comparison;
    let arms = comparison.arms.iter().zip(canons).map(|(arm, canon)| {
        let mean = Some(arm.measured[metric].mean).filter(|mean| mean.is_finite() && !arm.is_noise);
        mean.map(|mean| (mean, tasks(canon, &comparison.metrics[metric])))
    });
    let arms: Vec<_> = arms.collect();
    let best = |own: &Option<(f64, Vec<&str>)>| {
        let Some((mean, tasks)) = own else { return false };
        let rivals: Vec<f64> =
            arms.iter().flatten().filter(|(_, other)| other == tasks).map(|(mean, _)| *mean).collect();
        rivals.len() > 1 && rivals.iter().all(|rival| rival <= mean)
    };
    arms.iter().map(best).collect()
}

fn run_line(sweep: &SweepResult, cell: usize) -> RunLine<'_> {
    let cell = &sweep.cells[cell];
    let value = |metric: &String| cell.value(metric).map_or_else(|| "–".to_owned(), |v| written(v, unit(metric)));
    RunLine {
        run: &cell.run,
        seed: cell.seed,
        state: state(&cell.state),
        values: sweep.comparison.metrics.iter().map(value).collect(),
        digest: cell.digest.as_deref().unwrap_or("–"),
    }
}

fn table<'a>(sweep: &'a SweepResult, metric: usize, canons: &[String]) -> Table<'a> {
    let (comparison, name) = (&sweep.comparison, &sweep.comparison.metrics[metric]);
    let measured = |arm: &'_ sweep::Arm| arm.measured[metric].clone();
    let best = best(sweep, metric, canons);
    let ends = comparison.arms.iter().map(measured).flat_map(|own| {
        let (low, high) = own.interval.unwrap_or((own.mean, own.mean));
        [low, high, own.mean].into_iter().filter(|value| value.is_finite())
    });
    let axis = Axis::round(ends, 4);
    let rows = comparison
        .arms
        .iter()
        .enumerate()
        .map(|(number, arm)| row(number, arm, metric, &axis, best[number], unit(name)));
    Table { metric: name, rows: rows.collect() }
}

fn row<'a>(arm: usize, own: &'a sweep::Arm, metric: usize, axis: &Axis, best: bool, unit: Unit) -> Row<'a> {
    let measured = &own.measured[metric];
    let paired = measured.paired.as_ref();
    let told = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), |value| written(value, unit));
    let between = |ends: Option<(f64, f64)>| {
        ends.map_or_else(|| "–".to_owned(), |(low, high)| format!("{} to {}", written(low, unit), written(high, unit)))
    };
    let error = |error: Option<f64>| error.map_or_else(String::new, |error| format!("± {}", written(error, unit)));
    let needed = paired.map_or(measured.needed, |paired| paired.needed);
    Row {
        arm,
        name: &own.name,
        runs: measured.values.len(),
        baseline: own.is_baseline,
        noise: own.is_noise,
        best,
        mean: told(Some(measured.mean)),
        error: error(measured.error),
        interval: between(measured.interval),
        drawn: drawn(measured, axis),
        difference: told(paired.map(|paired| paired.mean)) + " " + &error(paired.and_then(|paired| paired.error)),
        difference_interval: between(paired.and_then(|paired| paired.interval)),
        needed: needed.map_or_else(|| "–".to_owned(), |needed| needed.to_string()),
    }
}

/// Mean, interval and single runs on the table's axis.
fn drawn(measured: &Measured, axis: &Axis) -> String {
    const WIDE: f64 = 150.0;
    let at = |value: f64| 4.0 + axis.place(value) * (WIDE - 8.0);
    if !measured.mean.is_finite() {
        return String::new();
    }
    let runs: String = measured.values.iter().map(|value| format!("M{:.1} 5v6", at(*value))).collect();
    let line = measured.interval.map_or_else(String::new, |(low, high)| format!("M{:.1} 8H{:.1}", at(low), at(high)));
    let mut svg = format!(r#"<svg class="forest" viewBox="0 0 {WIDE} 16" aria-hidden="true">"#);
    svg += &format!(r#"<path class="ticks" d="{runs}"/><path class="bar" d="{line}"/>"#);
    svg + &format!(r#"<circle cx="{:.1}" cy="8" r="3.4"/></svg>"#, at(measured.mean))
}

/// How a metric is written.
fn unit(metric: &str) -> Unit {
    let shares = ["success", "pass_at_k", "valid", "effective", "kept_share", "clip_fraction"];
    if shares.iter().any(|name| metric.ends_with(name)) { Unit::Share } else { Unit::Plain }
}
