//! KL in the reward: r_t − β·kl_t, with β fixed or adaptive (Ziegler et al. 2019, arXiv:1909.08593, section 2.2; verl's
//! `apply_kl_penalty` and `AdaptiveKLController`).
//!
//! Adaptive: e = clip(KL / target − 1, ±0.2), β ← β·(1 + e·n / horizon), with KL the mean over rows of the mean over a
//! row's response tokens, and n the number of rows.
//!
//! How it differs from verl: a row without response tokens counts in no mean, and β is part of a checkpoint.

use super::Rewards;
use crate::config::{section, variants};
use crate::objective::KlEstimator;
use crate::stats;
use crate::trajectory::Sequence;

/// Bound on the relative error that moves the coefficient.
const ERROR: f64 = 0.2;

variants! {
    /// Divergence from the frozen reference, taken off each token's reward.
    pub enum KlConfig: "reward-kl" {
        "none" => None(NoKl),
        "fixed" => Fixed(FixedKl),
        "adaptive" => Adaptive(AdaptiveKl),
    }
}

section! {
    /// The reward knows no reference.
    pub struct NoKl epoch 1 {}
}

section! {
    /// A constant coefficient.
    pub struct FixedKl epoch 1 {
        /// Weight of a token's divergence.
        pub coef: f64 where 0.0..=1000.0,
        /// How a token's divergence is estimated.
        pub estimator: KlEstimator,
    }
}

section! {
    /// A coefficient that follows the divergence to a target.
    pub struct AdaptiveKl epoch 1 {
        /// Weight of a token's divergence at the first step.
        pub coef: f64 where 0.0..=1000.0,
        /// The mean divergence that the coefficient leads to, in nats a token.
        pub target: f64 where 1e-9..=1000.0,
        /// Rows over which the coefficient can grow or shrink by a fifth.
        pub horizon: f64 where 1.0..=1e12,
        /// How a token's divergence is estimated.
        pub estimator: KlEstimator,
    }
}

impl KlConfig {
    /// The coefficient of the first step.
    #[must_use]
    pub fn start(&self) -> f64 {
        match self {
            Self::None(_) => 0.0,
            Self::Fixed(FixedKl { coef, .. }) | Self::Adaptive(AdaptiveKl { coef, .. }) => *coef,
        }
    }

    /// The coefficient that follows `coef` after a step of `rows` rows and mean divergence `kl`.
    #[must_use]
    pub fn next(&self, coef: f64, kl: f64, rows: usize) -> f64 {
        let Self::Adaptive(AdaptiveKl { target, horizon, .. }) = self else { return coef };
        let error = (kl / target - 1.0).clamp(-ERROR, ERROR);
        coef * (1.0 + error * rows as f64 / horizon)
    }

    /// The divergence of each response token of a row; empty where the reward knows no reference.
    ///
    /// # Panics
    /// If the row has no log-probs of the reference.
    pub(super) fn of(&self, row: &Sequence) -> Vec<f64> {
        let (Self::Fixed(FixedKl { estimator, .. }) | Self::Adaptive(AdaptiveKl { estimator, .. })) = self else {
            return Vec::new();
        };
        assert_eq!(row.reference.len(), row.logprobs.len(), "a reference log-prob for each response token");
        let tokens = row.logprobs.iter().zip(&row.reference);
        tokens.map(|(log, reference)| estimator.at(f64::from(*log) - f64::from(*reference)).0).collect()
    }
}

/// Mean over rows of the mean divergence of a row's response tokens, and the number of rows; rows without any do not
/// count.
#[must_use]
pub fn mean(rewards: &[Rewards<'_>]) -> (f64, usize) {
    let rows = rewards.iter().flat_map(|group| group.spans().into_iter().map(move |span| &group.kl[span]));
    let means: Vec<f64> = rows.filter(|row| !row.is_empty()).map(stats::mean).collect();
    (if means.is_empty() { 0.0 } else { stats::mean(&means) }, means.len())
}
