//! PPO's clipped surrogate (Schulman et al. 2017, arXiv:1707.06347, eq. 7), with separate bounds (DAPO's clip-higher,
//! Yu et al. 2025, arXiv:2503.14476) and the dual clip (Ye et al. 2020, arXiv:1912.09729), and an entropy bonus.
//!
//! For a token, with ρ = exp(clamp(log π − log π_old, ±20)):
//! m = max(−Aρ, −A·clip(ρ, 1 − low, 1 + high)); for A < 0, min(m, −A·dual). The loss is Σ w·m − entropy-coef · Σ w·H.
//!
//! How it differs from verl and RAGEN: old log-probs are the sampled ones, never recomputed; weights come from global
//! counts (see [`super::aggregate`]); the dual clip can be left out. The clamp at ±20 is theirs: beyond it the
//! derivative is 0, and so it is wherever a bound holds.

use super::{AggregateConfig, Loss, Terms, Tokens};
use crate::config::section;

/// Bound on the log-ratio, so that its exponential stays finite.
const LOG_RATIO: f64 = 20.0;

section! {
    /// PPO's clipped surrogate (arXiv:1707.06347) with clip-higher, dual clip and entropy bonus.
    pub struct Ppo epoch 1 {
        /// Where the ratio of new to old probability stops to count.
        pub clip: Clip,
        /// Weight of the entropy bonus.
        pub entropy_coef: f64 where 0.0..=1000.0,
        /// How the losses of tokens become one number.
        pub aggregate: AggregateConfig,
    }
}

section! {
    /// Bounds on the ratio.
    pub struct Clip {
        /// Below 1 − low, a token of negative advantage stops to count.
        pub low: f64 where 0.0..=1.0,
        /// Above 1 + high, a token of positive advantage stops to count (arXiv:2503.14476).
        pub high: f64 where 0.0..=1000.0,
        /// Above this ratio, a token of negative advantage stops to count (arXiv:1912.09729); absent for no bound.
        pub dual: Option<f64> where 1.0..=1000000.0,
    }
}

/// The surrogate of one token.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Surrogate {
    /// exp of the clamped log-ratio.
    pub ratio: f64,
    pub loss: f64,
    /// Of the loss, in the new log-prob.
    pub derivative: f64,
    /// The clipped surrogate is the larger one.
    pub clipped: bool,
    /// The dual bound is the smaller one.
    pub clipped_lower: bool,
}

impl Clip {
    /// The surrogate of a token from its log-ratio (new − old) and advantage.
    #[must_use]
    pub fn surrogate(&self, log_ratio: f64, advantage: f64) -> Surrogate {
        let ratio = libm::exp(log_ratio.clamp(-LOG_RATIO, LOG_RATIO));
        let free = -advantage * ratio;
        let bound = -advantage * ratio.clamp(1.0 - self.low, 1.0 + self.high);
        let clipped = bound > free;
        let larger = if clipped { bound } else { free };
        let ceiling = self.dual.filter(|_| advantage < 0.0).map(|dual| -advantage * dual);
        let clipped_lower = ceiling.is_some_and(|ceiling| larger > ceiling);
        let moves = !clipped && !clipped_lower && log_ratio.abs() <= LOG_RATIO;
        Surrogate {
            ratio,
            loss: ceiling.filter(|_| clipped_lower).unwrap_or(larger),
            // A log-ratio that is not a number must not pass for a token at rest.
            derivative: if moves || log_ratio.is_nan() { free } else { 0.0 },
            clipped,
            clipped_lower,
        }
    }
}

impl Ppo {
    /// A row's part of the loss, and the derivatives of the total.
    #[must_use]
    pub fn loss(&self, row: &Tokens<'_>) -> Loss {
        let mut terms = Terms { tokens: row.logprobs.len(), ..Terms::default() };
        let mut derivatives = Vec::with_capacity(row.logprobs.len());
        for (token, weight) in row.weights.iter().enumerate() {
            let log_ratio = row.logprobs[token] - row.old[token];
            let surrogate = self.clip.surrogate(log_ratio, row.advantages[token]);
            terms.policy += weight * surrogate.loss;
            terms.entropy += weight * row.entropies[token];
            terms.clipped += usize::from(surrogate.clipped);
            terms.clipped_lower += usize::from(surrogate.clipped_lower);
            terms.drift -= log_ratio;
            terms.ratio_gap = terms.ratio_gap.max((surrogate.ratio - 1.0).abs());
            derivatives.push(weight * surrogate.derivative);
        }
        let entropies = row.weights.iter().map(|weight| -self.entropy_coef * weight).collect();
        Loss { terms, logprobs: derivatives, entropies }
    }
}
