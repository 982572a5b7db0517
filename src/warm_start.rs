//! Supervised learning on the environment's own expert, before reinforcement learning.
//!
//! The loss is the mean cross-entropy of the expert's response tokens; prompts carry none. The learner is the one that
//! reinforcement learning uses: a response token's derivative is −1/N. A warm start is a run of its own.

use std::ops::Range;

use serde::Serialize;
use serde_json::{Value, json};

use crate::chat::Chat;
use crate::experiment::{ExpertWarmStart, ResolvedConfig};
use crate::policy::{Cotangent, Learner, Optimizer, Policy, Row};
use crate::record::Timings;
use crate::rng::Stream;
use crate::rollout::{self, Plan};
use crate::schedule::half_cosine;
use crate::stage::{Report, Stage};
use crate::trajectory::{Sequence, Split, Trajectory};

/// Rows of one forward and backward pass.
const SHARD: usize = 4;

/// What a supervised step measured.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct WarmStats {
    /// Mean cross-entropy, nats a response token.
    pub loss: f64,
    /// Global norm before clipping.
    pub grad_norm: f64,
    pub learning_rate: f64,
}

/// The expert's episodes on training tasks `0..episodes`, in task order; dynamics are the warm start's own.
#[must_use]
pub fn episodes(
    config: &ResolvedConfig,
    warm: &ExpertWarmStart,
    chat: &Chat<'_>,
    expert: &dyn Policy,
) -> Vec<Trajectory> {
    let plans: Vec<Plan<'_>> = (0..warm.episodes)
        .map(|group| {
            let (env, index) = rollout::mixture(&config.task, group as u64);
            let dynamics = Stream::new("warm-dynamics", warm.seed, &[group as u64]);
            let draws = ("warm-sample", warm.seed, vec![group as u64]);
            Plan { env, split: Split::Train, index, group, member: 0, dynamics, draws, noise: warm.noise }
        })
        .collect();
    rollout::play(&config.rollout, &config.rollout.sampling, chat, expert, &plans)
}

/// The rows of step `step` (from 1): every epoch is a fresh permutation of all rows.
#[must_use]
pub fn batch(warm: &ExpertWarmStart, rows: usize, step: u64) -> Vec<usize> {
    let first = (step - 1) * warm.batch as u64;
    let mut epoch = None;
    let mut order: Vec<usize> = Vec::new();
    (first..first + warm.batch as u64)
        .map(|position| {
            let (number, within) = (position / rows as u64, (position % rows as u64) as usize);
            if epoch != Some(number) {
                epoch = Some(number);
                order = (0..rows).collect();
                Stream::new("warm-order", warm.seed, &[number]).shuffle(&mut order);
            }
            order[within]
        })
        .collect()
}

/// One optimizer step on the rows of step `step`.
///
/// # Errors
/// The gradient's norm, as [`Learner::step`].
pub fn train_step(
    warm: &ExpertWarmStart,
    optimizer: &Optimizer,
    rows: &[Sequence],
    learner: &mut dyn Learner,
    step: u64,
) -> Result<WarmStats, f64> {
    let mut chosen: Vec<&Sequence> = batch(warm, rows.len(), step).into_iter().map(|row| &rows[row]).collect();
    // The longest first: threads then end at about the same time.
    chosen.sort_by_key(|row| std::cmp::Reverse(row.tokens.len()));
    let tokens: usize = chosen.iter().map(|row| row.response_tokens()).sum();
    let views: Vec<Row<'_>> = chosen.iter().map(|r| Row { tokens: &r.tokens, responses: &r.responses }).collect();
    let shards: Vec<Range<usize>> =
        (0..views.len()).step_by(SHARD).map(|from| from..(from + SHARD).min(views.len())).collect();
    let scores = learner.gradient(&views, &shards, 1.0, &|_, scores| Cotangent {
        logprobs: vec![-1.0 / tokens as f32; scores.logprobs.len()],
        entropies: vec![0.0; scores.entropies.len()],
        values: Vec::new(),
    });
    let total: f64 = scores.iter().flat_map(|row| &row.logprobs).map(|&logprob| f64::from(logprob)).sum();
    let learning_rate = cosine(warm, step);
    let norms = learner.step(&Optimizer { learning_rate, ..*optimizer })?;
    Ok(WarmStats { loss: -total / tokens as f64, grad_norm: norms.gradient, learning_rate })
}

/// A warm start's run.
pub struct WarmStart<'a> {
    pub warm: &'a ExpertWarmStart,
    /// Its learning rate is the warm start's own.
    pub optimizer: Optimizer,
    /// The token that ends a response.
    pub stop: u32,
    /// Of the expert's episodes.
    pub rows: Vec<Sequence>,
    pub learner: &'a mut dyn Learner,
}

impl Stage for WarmStart<'_> {
    fn steps(&self) -> usize {
        self.warm.steps
    }

    fn step(&mut self, step: usize, timings: &mut Timings) -> Result<Report, String> {
        if step == 0 {
            let cut = self.rows.iter().flat_map(|row| row.responses.iter().map(move |span| &row.tokens[span.clone()]));
            let longest = cut.filter(|response| response.last() != Some(&self.stop)).map(<[u32]>::len).max();
            if let Some(limit) = longest {
                return Err(format!(
                    "some of the expert's replies do not fit into {limit} tokens: raise rollout.max-response-tokens"
                ));
            }
            let tokens: usize = self.rows.iter().map(Sequence::response_tokens).sum();
            if tokens == 0 {
                return Err("the expert said nothing: no prompt fits into rollout.max-context-tokens".into());
            }
            let metrics = json!({ "step": 0, "warm": { "rows": self.rows.len(), "response_tokens": tokens } });
            let view = format!("{} rows of {} expert episodes", self.rows.len(), self.warm.episodes);
            return Ok(Report { metrics, view, ..Report::default() });
        }
        let stats = timings
            .phase("update", || train_step(self.warm, &self.optimizer, &self.rows, self.learner, step as u64))
            .map_err(|norm| match norm.is_finite() {
                true => "weights leave the range of f32: lower warm-start.learning-rate".to_owned(),
                false => format!("the gradient's norm is {norm}"),
            })?;
        let metrics = json!({ "step": step, "warm": stats });
        Ok(Report { metrics, view: format!("loss {:.4} nats a token", stats.loss), ..Report::default() })
    }

    fn save(&self) -> (Vec<(String, Vec<u8>)>, Value) {
        (self.learner.save(), Value::Null)
    }

    fn restore(&mut self, files: &[(String, Vec<u8>)], _: &Value) -> Result<(), String> {
        self.learner.restore(files)
    }
}

/// From the peak to a tenth of it along half a cosine, after a linear rise over the first twentieth.
fn cosine(warm: &ExpertWarmStart, step: u64) -> f64 {
    let (step, steps) = (step as f64, warm.steps as f64);
    let rise = (steps / 20.0).max(1.0);
    if step < rise {
        return warm.learning_rate * step / rise;
    }
    let share = if steps > rise { (step - rise) / (steps - rise) } else { 1.0 };
    warm.learning_rate * half_cosine(0.1, share)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_epoch_takes_every_row_once() {
        let warm = ExpertWarmStart { seed: 1, episodes: 10, steps: 5, batch: 4, learning_rate: 1.0, noise: 0.0 };
        let mut seen: Vec<usize> = (1..=5).flat_map(|step| batch(&warm, 10, step)).collect();
        assert_ne!(seen[..10], seen[10..]);
        seen[..10].sort_unstable();
        seen[10..].sort_unstable();
        assert!(seen.iter().copied().eq((0..10).chain(0..10)));
    }

    #[test]
    fn the_rate_rises_then_falls_to_a_tenth() {
        let warm = ExpertWarmStart { seed: 1, episodes: 10, steps: 100, batch: 4, learning_rate: 1.0, noise: 0.0 };
        assert_eq!(cosine(&warm, 1), 0.2);
        assert_eq!(cosine(&warm, 5), 1.0);
        assert!((cosine(&warm, 100) - 0.1).abs() < 1e-12);
    }
}
