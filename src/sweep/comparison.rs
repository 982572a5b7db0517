//! Arms beside each other: what a metric is in each, and how it differs from the baseline's.

use std::collections::BTreeMap;

use super::result::CellResult;
use super::statistics::{bootstrap, pairs_needed, runs_needed, standard_error};
use crate::config::sweep::title;
use crate::record::State;
use crate::stats;

/// The arms of a sweep, or of several runs and sweeps.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// Paths of metrics.
    pub metrics: Vec<String>,
    pub arms: Vec<Arm>,
    /// The difference that `Measured::needed` and `Paired::needed` are for.
    pub effect: f64,
}

/// Runs of one setting.
#[derive(Clone, Debug)]
pub struct Arm {
    /// The case, and the values of axes but the seed.
    pub name: String,
    /// Numbers of its cells.
    pub cells: Vec<usize>,
    /// How many of them are done.
    pub done: usize,
    /// Whether others are compared with it.
    pub is_baseline: bool,
    /// The number of the arm that it is compared with.
    pub baseline: Option<usize>,
    /// Whether it is the baseline with other seeds, which shows what two equal settings differ by.
    pub is_noise: bool,
    /// One entry a metric.
    pub measured: Vec<Measured>,
}

/// A metric over the finished runs of an arm, in the order of its cells.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    pub values: Vec<f64>,
    /// NaN without values.
    pub mean: f64,
    /// Over runs; None below two.
    pub error: Option<f64>,
    /// Bootstrap over runs, 95 %; None below two.
    pub interval: Option<(f64, f64)>,
    /// Runs an arm that an unpaired comparison needs to see the effect; None below two values.
    pub needed: Option<u64>,
    /// Against the baseline; None for itself, or where no runs pair.
    pub paired: Option<Paired>,
}

/// Differences to the baseline, pair by pair: runs of the same seed (those of the noise arm in order), and in each pair
/// the tasks that both were evaluated on, where the metric is a mean over tasks.
#[derive(Clone, Debug, PartialEq)]
pub struct Paired {
    /// One difference a pair.
    pub differences: Vec<f64>,
    pub mean: f64,
    /// Over pairs; None below two.
    pub error: Option<f64>,
    /// Bootstrap over pairs, 95 %; None below two.
    pub interval: Option<(f64, f64)>,
    /// Pairs needed to see the effect; None below two.
    pub needed: Option<u64>,
    /// Tasks that all pairs share, and the standard error over them of the difference averaged over pairs; None where
    /// the metric is not a mean over tasks.
    pub tasks: Option<(usize, f64)>,
}

impl Comparison {
    /// Compares cells of equal case and axes with those of the case `baseline` that have the same values on the axes
    /// that it has. Of cells that are one run, an arm has one.
    #[must_use]
    pub fn new(
        cells: &[CellResult],
        metrics: Vec<String>,
        baseline: Option<&str>,
        noise: Option<&str>,
        effect: f64,
    ) -> Self {
        let mut arms: Vec<Arm> = Vec::new();
        for (number, cell) in cells.iter().enumerate() {
            let name = name(cell);
            let done = usize::from(cell.state == State::Done);
            match arms.iter_mut().find(|arm| arm.name == name) {
                Some(arm) if arm.cells.iter().any(|known| cells[*known].run == cell.run) => {}
                Some(arm) => {
                    arm.cells.push(number);
                    arm.done += done;
                }
                None => arms.push(Arm {
                    name,
                    cells: vec![number],
                    done,
                    is_baseline: baseline == Some(cell.case.as_str()),
                    baseline: None,
                    is_noise: noise == Some(cell.case.as_str()),
                    measured: Vec::new(),
                }),
            }
        }
        let mut measured = Vec::new();
        for arm in &arms {
            let axes = |arm: &Arm| &cells[arm.cells[0]].axes;
            let same = |base: &Arm| base.is_baseline && axes(base).iter().all(|axis| axes(arm).contains(axis));
            let base = arms.iter().position(same).filter(|_| !arm.is_baseline);
            let measure = |metric: &String| Measured::of(cells, metric, arm, base.map(|base| &arms[base]), effect);
            measured.push((base, metrics.iter().map(measure).collect()));
        }
        arms.iter_mut().zip(measured).for_each(|(arm, found)| (arm.baseline, arm.measured) = found);
        Self { metrics, arms, effect }
    }
}

fn name(cell: &CellResult) -> String {
    title(&cell.case, &cell.axes).unwrap_or_else(|| "all".to_owned())
}

impl Measured {
    fn of(cells: &[CellResult], metric: &str, arm: &Arm, baseline: Option<&Arm>, effect: f64) -> Self {
        let all = |arm: &Arm| arm.cells.iter().map(|number| &cells[*number]).collect::<Vec<_>>();
        let done = |cell: &CellResult| cell.state == State::Done;
        let own = all(arm);
        let values: Vec<f64> = own.iter().filter(|cell| done(cell)).filter_map(|cell| cell.value(metric)).collect();
        let paired = baseline.and_then(|baseline| {
            let base = all(baseline);
            let mut pairs: Vec<(&CellResult, &CellResult)> = match arm.is_noise {
                true => own.iter().copied().zip(base).collect(),
                false => own
                    .iter()
                    .filter_map(|cell| Some((*cell, *base.iter().find(|base| base.seed == cell.seed)?)))
                    .collect(),
            };
            pairs.retain(|(own, base)| done(own) && done(base));
            Paired::of(&pairs, metric, effect)
        });
        Self {
            mean: stats::mean(&values),
            error: standard_error(&values),
            interval: bootstrap(&values),
            needed: deviation(&values).and_then(|deviation| runs_needed(deviation, effect)),
            values,
            paired,
        }
    }
}

impl Paired {
    /// The pairs' differences, first minus second; None where no pair has the metric.
    #[must_use]
    pub fn of(pairs: &[(&CellResult, &CellResult)], metric: &str, effect: f64) -> Option<Self> {
        let mut differences = Vec::new();
        let mut by_task: BTreeMap<_, Vec<f64>> = BTreeMap::new();
        for (cell, base) in pairs {
            match (cell.tasks.get(metric), base.tasks.get(metric)) {
                (Some(own), Some(other)) => {
                    let shared = own.iter().filter_map(|(task, value)| Some((task, value - other.get(task)?)));
                    let shared: Vec<_> = shared.collect();
                    let values: Vec<f64> = shared.iter().map(|(_, value)| *value).collect();
                    if values.is_empty() {
                        continue;
                    }
                    differences.push(stats::mean(&values));
                    shared.into_iter().for_each(|(task, value)| by_task.entry(task).or_default().push(value));
                }
                _ => differences.extend(cell.value(metric).zip(base.value(metric)).map(|(own, other)| own - other)),
            }
        }
        if differences.is_empty() {
            return None;
        }
        let all = by_task.into_values().filter(|values| values.len() == differences.len());
        let tasks: Vec<f64> = all.map(|values| stats::mean(&values)).collect();
        Some(Self {
            mean: stats::mean(&differences),
            error: standard_error(&differences),
            interval: bootstrap(&differences),
            needed: deviation(&differences).and_then(|deviation| pairs_needed(deviation, effect)),
            tasks: standard_error(&tasks).map(|error| (tasks.len(), error)),
            differences,
        })
    }
}

/// Deviation of a sample; None below two values.
fn deviation(values: &[f64]) -> Option<f64> {
    (values.len() > 1).then(|| stats::std(values, 1))
}
