//! One step's update: epochs and mini-batches of forward, objective, backward, optimizer step.
//!
//! A learner is taught what it scores: a policy by its log-probs and entropies, a critic by its values, both by both.
//!
//! The gradient is a sum over shards in order (the rows of one group each), and every number here is a sum in f64 over
//! rows in order, so that no split of the work and no number of threads changes a bit.

use std::fmt;

use crate::batch::{Batch, MiniBatch};
use crate::experiment::UpdateConfig;
use crate::objective::{Derivatives, Loss, ObjectiveConfig, Terms, Tokens};
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
    /// Aggregated distance to the frozen reference, without its coefficient; absent without a reference.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reference_kl: Option<f64>,
    /// Aggregated value loss, without its coefficient: shown beside the critic's other numbers.
    #[serde(skip)]
    pub value: f64,
    /// Share of tokens at which the clipped value loss was the larger one.
    #[serde(skip)]
    pub value_clip_fraction: f64,
    /// Of this update.
    pub learning_rate: f64,
    /// Largest |ratio − 1| in the first mini-batch, before any step: 0 where scoring repeats sampling to the bit.
    pub ratio_gap: f64,
    /// Optimizer steps.
    pub steps: usize,
}

/// A gradient that is not finite, so that the step was not taken; or a finite one whose step left the range of f32.
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
        if self.norm.is_finite() {
            write!(f, "weights leave the range of f32 (lower the learning rate) after ")?;
        }
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
            stats.value += terms.value;
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
        kl: tokens.drift(),
        reference_kl: (!batch.reference.is_empty()).then(|| tokens.kl / steps),
        value: stats.value / steps,
        value_clip_fraction: tokens.share(tokens.clipped_values),
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
    let loss = losses(rules.objective, batch, mini_batch);
    let pushed = |row: usize, scores: &Scores| cotangent(&rules.objective.derivatives(&loss(row, scores)));
    let scores = learner.gradient(&views(batch, mini_batch), &mini_batch.shards, rules.temperature, &pushed);
    let mut terms = Terms::default();
    let mut stray = Vec::new();
    for (row, scores) in scores.iter().enumerate() {
        let loss = loss(row, scores);
        terms.add(&loss.terms);
        let derivatives = [&loss.policy, &loss.kl, &loss.value].into_iter().flatten();
        if !derivatives.copied().chain([loss.terms.entropy]).all(f64::is_finite) {
            stray.push(mini_batch.rows.start + row);
        }
    }
    (terms, stray)
}

/// The rows of a mini-batch, as a learner reads them.
#[must_use]
pub fn views<'a>(batch: &Batch<'a>, mini_batch: &MiniBatch) -> Vec<Row<'a>> {
    let rows = batch.rows[mini_batch.rows.clone()].iter();
    rows.map(|row| Row { tokens: &row.sequence.tokens, responses: &row.sequence.responses }).collect()
}

/// The loss of each row of a mini-batch, from its number there and its scores; weights are of the mini-batch's counts.
pub fn losses<'b>(
    objective: &'b ObjectiveConfig,
    batch: &'b Batch<'_>,
    mini_batch: &'b MiniBatch,
) -> impl Fn(usize, &Scores) -> Loss + Sync + 'b {
    let weights = objective.aggregate.weights(&batch.counts(mini_batch.rows.clone()));
    move |row, scores| {
        let span = batch.rows[mini_batch.rows.start + row].span.clone();
        let recorded = |flat: &'b [f64]| if flat.is_empty() { flat } else { &flat[span.clone()] };
        objective.loss(&Tokens {
            logprobs: &widen(&scores.logprobs),
            entropies: &widen(&scores.entropies),
            old: recorded(&batch.old),
            reference: recorded(&batch.reference),
            advantages: recorded(&batch.advantages),
            values: &widen(&scores.values),
            old_values: recorded(&batch.values),
            returns: recorded(&batch.returns),
            weights: &vec![weights[row]; span.len()],
        })
    }
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

/// Derivatives as a learner takes them.
#[must_use]
pub fn cotangent(derivatives: &Derivatives) -> Cotangent {
    let Derivatives { logprobs, entropies, values } = derivatives;
    Cotangent { logprobs: narrow(logprobs), entropies: narrow(entropies), values: narrow(values) }
}

fn narrow(values: &[f64]) -> Vec<f32> {
    values.iter().map(|value| *value as f32).collect()
}
