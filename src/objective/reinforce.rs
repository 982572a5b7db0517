//! REINFORCE (Williams 1992): a token's loss is −A·log π, whatever policy sampled it.
//!
//! Exact for one optimizer step on what the learning policy itself sampled (`update.epochs` 1 and one mini-batch); any
//! further step is off policy without a correction. verl calls it GPG (Chu et al. 2025, arXiv:2504.02546).

use super::{Surrogate, ratio};
use crate::config::section;

section! {
    /// The plain policy gradient (REINFORCE, Williams 1992).
    pub struct Reinforce epoch 1 {}
}

impl Reinforce {
    /// The surrogate of a token from its new and old log-prob and its advantage; the old one is only measured.
    #[must_use]
    pub fn surrogate(&self, new: f64, old: f64, advantage: f64) -> Surrogate {
        let loss = -advantage * new;
        Surrogate { ratio: ratio(new - old), loss, derivative: -advantage, clipped: false, clipped_lower: false }
    }
}
