//! PPO's clipped surrogate (Schulman et al. 2017, arXiv:1707.06347, eq. 7), with separate bounds (DAPO's clip-higher,
//! Yu et al. 2025, arXiv:2503.14476) and the dual clip (Ye et al. 2020, arXiv:1912.09729).
//!
//! For a token, with ρ = exp(clamp(log π − log π_old, ±20)):
//! m = max(−Aρ, −A·clip(ρ, 1 − low, 1 + high)); for A < 0, min(m, −A·dual).
//!
//! How it differs from verl and RAGEN: old log-probs are the sampled ones, never recomputed; weights come from global
//! counts (see [`super::aggregate`]); the dual clip can be left out. The clamp at ±20 is theirs: beyond it the
//! derivative is 0, and so it is wherever a bound holds.

use super::{LOG_RATIO, Surrogate, ratio};
use crate::config::section;

section! {
    /// PPO's clipped surrogate (arXiv:1707.06347) with clip-higher and dual clip.
    pub struct Ppo epoch 1 {
        /// Where the ratio of new to old probability stops to count.
        pub clip: Clip,
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

impl Clip {
    /// The surrogate of a token from its log-ratio (new − old) and advantage.
    #[must_use]
    pub fn surrogate(&self, log_ratio: f64, advantage: f64) -> Surrogate {
        let ratio = ratio(log_ratio);
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
