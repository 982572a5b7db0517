//! One step's update: epochs and mini-batches of forward, objective, backward, optimizer step.
//!
//! The gradient is a sum over shards in order (the rows of one group each), and every number here is a sum in f64 over
//! rows in order, so that no split of the work and no number of threads changes a bit.

use std::fmt;

use crate::batch::{Batch, MiniBatch};
use crate::experiment::UpdateConfig;
use crate::objective::{Loss, ObjectiveConfig, Terms, Tokens};
use crate::policy::{Cotangent, Learner, Optimizer, Row, Scores};

/// What an update measured. Losses and the norm are means over optimizer steps, the rest means over tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct UpdateStats {
    /// Total loss.
    pub loss: f64,
    /// Its policy part.
    pub policy: f64,
    /// Aggregated entropy, without its coefficient.
    pub entropy: f64,
    /// Share of tokens at which the clipped surrogate was the larger one.
    pub clip_fraction: f64,
    /// Share of tokens at which the dual bound was the smaller one.
    pub clip_fraction_lower: f64,
    /// Global norm of the gradient, before clipping.
    pub grad_norm: f64,
    /// Mean of old − new log-probs (k1, from the sampling policy to the learning one).
    pub kl: f64,
    /// Of this update.
    pub learning_rate: f64,
    /// Largest |ratio − 1| in the first mini-batch, before any step: 0 where scoring repeats sampling to the bit.
    pub ratio_gap: f64,
    /// Optimizer steps.
    pub steps: usize,
}

/// A gradient that is not finite: the step was not taken.
#[derive(Clone, Debug, PartialEq)]
pub struct NonFinite {
    pub epoch: usize,
    pub mini_batch: usize,
    pub norm: f64,
    /// (group, member) of the rows whose own loss or derivative is not finite; of all rows, if every one is.
    pub rows: Vec<(usize, usize)>,
}

impl fmt::Display for NonFinite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "gradient norm {} in epoch {}, mini-batch {}, rows", self.norm, self.epoch, self.mini_batch)?;
        self.rows.iter().try_for_each(|(group, member)| write!(f, " {group}.{member}"))
    }
}

impl std::error::Error for NonFinite {}

/// The rules of an update.
#[derive(Clone, Copy, Debug)]
pub struct Rules<'a> {
    pub update: &'a UpdateConfig,
    pub objective: &'a ObjectiveConfig,
    /// That the rows were sampled at.
    pub temperature: f64,
    /// Of this step, by the schedule.
    pub learning_rate: f64,
}

/// Improves the learner on a batch. An empty batch takes no step, and its numbers are 0.
///
/// # Errors
/// The first gradient that is not finite, with its rows; steps before it were taken.
pub fn update(rules: &Rules<'_>, batch: &Batch<'_>, learner: &mut dyn Learner) -> Result<UpdateStats, NonFinite> {
    let mini_batches = batch.mini_batches(rules.update.mini_batch);
    let mut stats = UpdateStats { learning_rate: rules.learning_rate, ..UpdateStats::default() };
    let mut tokens = Terms::default();
    for epoch in 0..rules.update.epochs {
        for (index, mini_batch) in mini_batches.iter().enumerate() {
            let (terms, stray) = gradient(rules, batch, mini_batch, learner);
            let norms = learner.step(&rules.optimizer()).map_err(|norm| {
                let rows = if stray.is_empty() { mini_batch.rows.clone().collect() } else { stray };
                let name = |row: usize| (batch.rows[row].group, batch.rows[row].member);
                NonFinite { epoch, mini_batch: index, norm, rows: rows.into_iter().map(name).collect() }
            })?;
            if stats.steps == 0 {
                stats.ratio_gap = terms.ratio_gap;
            }
            stats.steps += 1;
            stats.loss += rules.objective.total(&terms);
            stats.policy += terms.policy;
            stats.entropy += terms.entropy;
            stats.grad_norm += norms.gradient;
            tokens.add(&terms);
        }
    }
    let steps = stats.steps.max(1) as f64;
    Ok(UpdateStats {
        loss: stats.loss / steps,
        policy: stats.policy / steps,
        entropy: stats.entropy / steps,
        grad_norm: stats.grad_norm / steps,
        clip_fraction: tokens.share(tokens.clipped),
        clip_fraction_lower: tokens.share(tokens.clipped_lower),
        kl: tokens.kl(),
        ..stats
    })
}

/// Adds a mini-batch's gradient to the learner's; its terms, and the batch's rows that are not finite.
fn gradient(
    rules: &Rules<'_>,
    batch: &Batch<'_>,
    mini_batch: &MiniBatch,
    learner: &mut dyn Learner,
) -> (Terms, Vec<usize>) {
    let weights = rules.objective.weights(&batch.counts(mini_batch.rows.clone()));
    let rows: Vec<Row<'_>> = batch.rows[mini_batch.rows.clone()]
        .iter()
        .map(|row| Row { tokens: &row.sequence.tokens, responses: &row.sequence.responses })
        .collect();
    let loss = |row: usize, scores: &Scores| row_loss(rules.objective, batch, mini_batch, &weights, row, scores);
    let cotangent = |row: usize, scores: &Scores| {
        let loss = loss(row, scores);
        Cotangent { logprobs: narrow(&loss.logprobs), entropies: narrow(&loss.entropies) }
    };
    let scores = learner.gradient(&rows, &mini_batch.shards, rules.temperature, &cotangent);
    let mut terms = Terms::default();
    let mut stray = Vec::new();
    for (row, scores) in scores.iter().enumerate() {
        let loss = loss(row, scores);
        terms.add(&loss.terms);
        let finite = loss.logprobs.iter().all(|d| d.is_finite()) && loss.terms.entropy.is_finite();
        if !finite {
            stray.push(mini_batch.rows.start + row);
        }
    }
    (terms, stray)
}

/// The loss of a mini-batch's row.
fn row_loss(
    objective: &ObjectiveConfig,
    batch: &Batch<'_>,
    mini_batch: &MiniBatch,
    weights: &[f64],
    row: usize,
    scores: &Scores,
) -> Loss {
    let span = batch.rows[mini_batch.rows.start + row].span.clone();
    objective.loss(&Tokens {
        logprobs: &widen(&scores.logprobs),
        entropies: &widen(&scores.entropies),
        old: &batch.old[span.clone()],
        advantages: &batch.advantages[span.clone()],
        weights: &vec![weights[row]; span.len()],
    })
}

impl Rules<'_> {
    fn optimizer(&self) -> Optimizer {
        let UpdateConfig { beta1, beta2, epsilon, weight_decay, clip_norm, .. } = *self.update;
        Optimizer { learning_rate: self.learning_rate, beta1, beta2, epsilon, weight_decay, clip_norm }
    }
}

fn widen(values: &[f32]) -> Vec<f64> {
    values.iter().map(|value| f64::from(*value)).collect()
}

fn narrow(values: &[f64]) -> Vec<f32> {
    values.iter().map(|value| *value as f32).collect()
}
