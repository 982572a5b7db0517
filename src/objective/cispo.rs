//! CISPO: the weight of a token is clipped, never the token itself (MiniMax 2025, arXiv:2506.13585, eq. 4 and 5).
//!
//! With ρ = exp(clamp(log π − log π_old, ±20)) and c = clip(ρ, 1 − low, 1 + high), which is held still: a token's loss
//! is −c·A·log π, and its derivative −c·A. So every token is learnt from, also where PPO's clip would drop it. The
//! loss's own value means little.
//!
//! As in the paper, `low 1.0` (no lower bound) is the default; it names no number for `high`.

use super::{Bounds, Surrogate, ratio};
use crate::config::section;

section! {
    /// REINFORCE with clipped importance weights (CISPO, arXiv:2506.13585).
    pub struct Cispo epoch 1 {
        /// Where the weight stops to follow the ratio.
        pub clip: Bounds,
    }
}

impl Cispo {
    /// The surrogate of a token from its new and old log-prob and its advantage.
    #[must_use]
    pub fn surrogate(&self, new: f64, old: f64, advantage: f64) -> Surrogate {
        let ratio = ratio(new - old);
        let weight = ratio.clamp(1.0 - self.clip.low, 1.0 + self.clip.high);
        let derivative = -advantage * weight;
        Surrogate { ratio, loss: derivative * new, derivative, clipped: weight != ratio, clipped_lower: false }
    }
}
