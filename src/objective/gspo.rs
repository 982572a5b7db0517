//! GSPO: the clipped surrogate with one ratio for a whole row (Zheng et al. 2025, arXiv:2507.18071, eq. 5 and 7).
//!
//! s = exp(min(mean over the row's response tokens of log π − log π_old, 10)); a token's loss is
//! max(−As, −A·clip(s, 1 − low, 1 + high)).
//!
//! A token's derivative is −As, or 0 where a bound holds. Where the advantage is the same on the whole row, as in the
//! paper, it is the derivative of the row's loss; where it is not, it is GSPO-token's (eq. 13 and 14), which holds s
//! still and pushes each token by its own advantage. verl does the same.
//!
//! How it differs from verl: it always aggregates by `seq-mean-token-mean`, which is only the default here. There is no
//! dual clip; the bound on the exponent is verl's, and beyond it the derivative is 0.

use super::{Bounds, Surrogate, Tokens};
use crate::config::section;

/// Bound on the exponent of a row's ratio.
const LOG_RATIO: f64 = 10.0;

section! {
    /// One clipped ratio for a whole row (GSPO, arXiv:2507.18071).
    pub struct Gspo epoch 1 {
        /// Where the row's ratio stops to count.
        pub clip: Bounds,
    }
}

impl Gspo {
    /// The surrogate of each token of a row.
    #[must_use]
    pub fn surrogates(&self, row: &Tokens<'_>) -> Vec<Surrogate> {
        let sum: f64 = row.logprobs.iter().zip(row.old).map(|(new, old)| new - old).sum();
        let log_ratio = sum / row.logprobs.len() as f64;
        let ratio = libm::exp(log_ratio.clamp(f64::NEG_INFINITY, LOG_RATIO));
        let token = |advantage: &f64| {
            let free = -advantage * ratio;
            let bound = -advantage * ratio.clamp(1.0 - self.clip.low, 1.0 + self.clip.high);
            let clipped = bound > free;
            Surrogate {
                ratio,
                loss: if clipped { bound } else { free },
                derivative: if clipped || log_ratio > LOG_RATIO { 0.0 } else { free },
                clipped,
                clipped_lower: false,
            }
        };
        row.advantages[..row.logprobs.len()].iter().map(token).collect()
    }
}
