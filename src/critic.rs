//! The critic's part of a step. Its targets are the estimator's returns, its loss is [`crate::objective::value`].
//!
//! How it differs from verl: the first `warmup` steps leave the policy alone (there one less); the global counts of a
//! mini-batch weigh its tokens, as they do the policy's; without a critic section nothing is computed or recorded.

use serde::Serialize;

use crate::batch::Batch;
use crate::experiment::{CriticConfig, OwnCritic, ResolvedConfig, UpdateConfig};
use crate::learners::Critic;
use crate::stats;
use crate::update::{NonFinite, Rules, UpdateStats, update};

/// What a critic's step was like.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CriticStats {
    /// Value loss, without its coefficient: mean over optimizer steps.
    pub loss: f64,
    /// Share of tokens at which the clipped value loss was the larger one.
    pub clip_fraction: f64,
    /// 1 − Var(R − V) / Var(R) of the values before the update; 0 where the returns do not vary.
    pub explained_variance: f64,
    /// Of an own critic.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grad_norm: Option<f64>,
    /// Of an own critic.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub learning_rate: Option<f64>,
}

/// Whether step `step` (from 1) teaches the critic alone.
#[must_use]
pub fn warms_up(config: &CriticConfig, step: usize) -> bool {
    matches!(config, CriticConfig::Own(OwnCritic { warmup, .. }) if step <= *warmup)
}

/// Teaches an own critic, by the policy's rules with its own rate and bound; None where there is none. `share` is that
/// of the peak learning rate.
///
/// # Errors
/// As [`update`].
pub fn learn(
    config: &ResolvedConfig,
    critic: &mut Critic<'_>,
    batch: &Batch<'_>,
    share: f64,
) -> Result<Option<UpdateStats>, NonFinite> {
    let (CriticConfig::Own(own), Critic::Own(learner)) = (&config.critic, critic) else { return Ok(None) };
    let rules = Rules {
        update: &UpdateConfig { clip_norm: own.clip_norm, ..config.update.clone() },
        objective: &config.objective,
        temperature: config.rollout.sampling.temperature,
        learning_rate: own.learning_rate * share,
    };
    update(&rules, batch, &mut **learner).map(Some)
}

impl CriticStats {
    /// Of a batch with values, from the update of an own critic or else of the policy that shares its trunk.
    #[must_use]
    pub fn of(batch: &Batch<'_>, own: Option<&UpdateStats>, shared: Option<&UpdateStats>) -> Option<Self> {
        let update = own.or(shared).filter(|_| !batch.values.is_empty())?;
        Some(Self {
            loss: update.value,
            clip_fraction: update.value_clip_fraction,
            explained_variance: explained_variance(&batch.values, &batch.returns),
            grad_norm: own.map(|own| own.grad_norm),
            learning_rate: own.map(|own| own.learning_rate),
        })
    }
}

/// The share of the returns' variance that the values explain; 0 where the returns do not vary.
#[must_use]
pub fn explained_variance(values: &[f64], returns: &[f64]) -> f64 {
    let errors: Vec<f64> = returns.iter().zip(values).map(|(target, value)| target - value).collect();
    let (left, all) = (stats::std(&errors, 0), stats::std(returns, 0));
    if all == 0.0 { 0.0 } else { 1.0 - left * left / (all * all) }
}
