//! Which metrics are drawn together, for one run or for several.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::chart::{Chart, Series};
use super::scale::Unit::{self, Plain, Share};
use crate::record::values::{at, leaves};
use crate::stats;

/// A chart: title, what it measures, unit, and the metrics on it with their names there.
type Curve = (&'static str, &'static str, Unit, &'static [(&'static str, &'static str)]);

const CURVES: [Curve; 20] = [
    (
        "Success",
        "share of episodes solved",
        Share,
        &[
            ("rollout.success", "training"),
            ("eval.success", "held out"),
            ("eval.greedy.success", "greedy"),
            ("rollout.pass_at_k", "any of k"),
        ],
    ),
    (
        "Reward",
        "mean episode score",
        Plain,
        &[("rollout.reward", "training"), ("eval.reward", "held out"), ("eval.greedy.reward", "greedy")],
    ),
    ("Reward spread", "deviation within a group, mean", Plain, &[("rollout.reward_std", "training")]),
    ("Valid answers", "share of turns", Share, &[("rollout.valid", "valid"), ("rollout.effective", "effective")]),
    ("Entropy", "nats a token", Plain, &[("rollout.entropy", "sampling"), ("update.entropy", "update")]),
    (
        "Mutual information",
        "of thoughts and prompts, nats",
        Plain,
        &[
            ("collapse.first_turn.mi", "first turn"),
            ("collapse.trajectory.mi", "along"),
            ("collapse.first_turn.mi_bound", "bound"),
        ],
    ),
    (
        "Conditional entropy",
        "of thoughts, nats a token",
        Plain,
        &[
            ("collapse.first_turn.per_token.conditional_entropy", "first turn"),
            ("collapse.trajectory.per_token.conditional_entropy", "along"),
        ],
    ),
    (
        "Retrieval",
        "of a thought's prompt, share",
        Share,
        &[
            ("collapse.first_turn.retrieval", "first turn"),
            ("collapse.trajectory.retrieval", "along"),
            ("collapse.first_turn.retrieval_chance", "chance"),
        ],
    ),
    ("KL", "to the reference, nats a token", Plain, &[("update.kl", "in loss"), ("reward.kl", "in reward")]),
    (
        "Clip fraction",
        "share of tokens",
        Share,
        &[("update.clip_fraction", "either"), ("update.clip_fraction_lower", "dual")],
    ),
    ("Gradient norm", "before clipping", Plain, &[("update.grad_norm", "policy"), ("critic.grad_norm", "critic")]),
    ("Kept share", "groups that the update sees", Share, &[("filter.kept_share", "kept")]),
    ("Groups without spread", "number", Plain, &[("filter.zero", "groups")]),
    (
        "Response length",
        "sampled tokens a turn",
        Plain,
        &[("rollout.response_tokens", "training"), ("eval.response_tokens", "held out")],
    ),
    ("Turns", "an episode", Plain, &[("rollout.turns", "training"), ("eval.turns", "held out")]),
    ("Advantage", "deviation over kept tokens", Plain, &[("advantage.std", "std")]),
    ("Loss", "of the policy, mean over its steps", Plain, &[("update.loss", "total"), ("update.policy", "policy")]),
    (
        "Critic",
        "value loss, explained variance",
        Plain,
        &[("critic.loss", "loss"), ("critic.explained_variance", "explained")],
    ),
    ("KL coefficient", "of the KL in the reward", Plain, &[("reward.kl_coef", "coef")]),
    ("Learning rate", "", Plain, &[("update.learning_rate", "policy"), ("critic.learning_rate", "critic")]),
];

/// Runs that are alike but for their seed, or one run.
pub struct Arm<'a> {
    pub name: String,
    /// Of each run the metrics, an object a step.
    pub runs: Vec<&'a [Value]>,
}

/// The charts of one arm, all their metrics on each; of several arms, the first metric that they have of each.
#[must_use]
pub fn curves(arms: &[Arm<'_>]) -> Vec<Chart> {
    let chart = |(title, about, unit, metrics): &Curve| {
        let one = arms.len() == 1;
        let recorded = metrics.iter().filter(|(path, _)| arms.iter().any(|arm| !arm.points(path).is_empty()));
        let mut series = Vec::new();
        for (number, (path, name)) in recorded.take(if one { usize::MAX } else { 1 }).enumerate() {
            for (place, arm) in arms.iter().enumerate() {
                let (name, colour) = if one { ((*name).to_owned(), number) } else { (arm.name.clone(), place) };
                series.extend(arm.series(path, name, colour));
            }
        }
        chart(title, about, *unit, series)
    };
    CURVES.iter().filter_map(chart).collect()
}

/// One metric, a line an arm.
#[must_use]
pub fn line_by_run(path: &str, unit: Unit, arms: &[Arm<'_>]) -> Option<Chart> {
    let lines = arms.iter().enumerate().flat_map(|(place, arm)| arm.series(path, arm.name.clone(), place));
    chart(path, "by run", unit, lines.collect())
}

/// Charts of every other number that a run recorded.
#[must_use]
pub fn others(metrics: &[Value]) -> Vec<Chart> {
    let mut seen: BTreeSet<String> =
        CURVES.iter().flat_map(|(.., metrics)| metrics.iter().map(|(path, _)| (*path).to_owned())).collect();
    seen.insert("step".to_owned());
    let numbers = metrics.iter().flat_map(leaves).filter(|(_, value)| value.is_number());
    let paths: Vec<String> = numbers.map(|(path, _)| path).filter(|path| seen.insert(path.clone())).collect();
    let arm = Arm { name: String::new(), runs: vec![metrics] };
    let one = |path: &String| chart(path, "", Plain, arm.series(path, String::new(), 0));
    paths.iter().filter_map(one).collect()
}

/// Seconds of each step by phase, one above the other. Phases of less than a hundredth of all time are one.
#[must_use]
pub fn phases(timings: &[Value]) -> Option<Chart> {
    let mut names: Vec<&str> = Vec::new();
    for line in timings {
        let phases = line["phases"].as_object()?;
        names.extend(phases.keys().map(String::as_str).filter(|name| !names.contains(name)).collect::<Vec<_>>());
    }
    let of = |line: &Value, name: &str| line["phases"][name].as_f64().unwrap_or(0.0);
    let total = |name: &str| timings.iter().map(|line| of(line, name)).sum::<f64>();
    let all: f64 = names.iter().map(|name| total(name)).sum();
    let (large, small): (Vec<&str>, Vec<&str>) = names.iter().partition(|name| total(name) >= 0.01 * all);
    let mut parts: Vec<(&str, Vec<&str>)> = large.into_iter().map(|name| (name, vec![name])).collect();
    parts.extend((!small.is_empty()).then_some(("others", small)));
    let mut below = vec![0.0; timings.len()];
    let mut series = Vec::new();
    for (colour, (name, members)) in parts.into_iter().enumerate() {
        let mut band = Vec::new();
        for (line, below) in timings.iter().zip(&mut below) {
            let high = *below + members.iter().map(|name| of(line, name)).sum::<f64>();
            band.push((line["step"].as_f64().unwrap_or(0.0), *below, high));
            *below = high;
        }
        series.push(Series { name: name.to_owned(), colour, band, ..Series::default() }.thinned());
    }
    chart("Time", "seconds a step by phase", Plain, series)
}

/// None without lines.
fn chart(title: &str, about: &str, unit: Unit, series: Vec<Series>) -> Option<Chart> {
    (!series.is_empty()).then(|| Chart { title: title.to_owned(), about: about.to_owned(), unit, series })
}

impl Arm<'_> {
    /// (step, mean over runs) where any recorded the metric.
    fn points(&self, path: &str) -> Vec<(f64, f64)> {
        self.values(path).into_iter().map(|(step, values)| (step, stats::mean(&values))).collect()
    }

    /// What the runs recorded at each step, ascending.
    fn values(&self, path: &str) -> Vec<(f64, Vec<f64>)> {
        let mut found: Vec<(f64, Vec<f64>)> = Vec::new();
        for line in self.runs.iter().copied().flatten() {
            let (Some(step), Some(value)) = (at(line, "step"), at(line, path)) else { continue };
            match found.binary_search_by(|(other, _)| other.total_cmp(&step)) {
                Ok(place) => found[place].1.push(value),
                Err(place) => found.insert(place, (step, vec![value])),
            }
        }
        found
    }

    /// A metric's line: of one run with its standard error, if that is recorded beside it; of several their mean
    /// between the least and the greatest.
    fn series(&self, path: &str, name: String, colour: usize) -> Vec<Series> {
        let values = self.values(path);
        if values.is_empty() {
            return Vec::new();
        }
        let points = self.points(path);
        let band = match self.runs.as_slice() {
            [_] => {
                let errors: BTreeMap<u64, f64> = self
                    .points(&format!("{path}_error"))
                    .into_iter()
                    .map(|(step, error)| (step as u64, error))
                    .collect();
                let error = |step: f64| errors.get(&(step as u64));
                let around =
                    |(step, value): &(f64, f64)| error(*step).map(|error| (*step, value - error, value + error));
                points.iter().filter_map(around).collect()
            }
            _ => values.iter().map(|(step, values)| (*step, least(values), most(values))).collect(),
        };
        let recorded = self.runs.iter().map(|run| run.len()).max().unwrap_or(0);
        let dots = points.len() <= 40 && 2 * points.len() < recorded;
        Series { name, colour, points, band, dots, faint: false }.thinned().smoothed()
    }
}

fn least(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::INFINITY, f64::min)
}

fn most(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::NEG_INFINITY, f64::max)
}
