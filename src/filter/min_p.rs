//! Min-p over groups: RAGEN's `min_p` (Wang et al. 2025, arXiv:2504.20073; `rollout_filter.py`).
//!
//! Keeps the candidates whose score is at least value · max; with `keep "smallest"`, at most min / value. The cut is
//! the verdict's threshold; a score within 1e-10 of it reaches it.
//!
//! A best score below 0 leaves value · max above it (and min / value below), so that nothing is kept unless the value
//! is 1. As in RAGEN.
//!
//! How it differs from RAGEN: min is divided by value itself (there by value + 1e-10) wherever value is above 1e-10.

use super::walk::ZERO;
use super::{Dropped, EmptyConfig, Keep, Outcome, Score, Walk};
use crate::config::section;

section! {
    /// The groups whose score comes near the best one's (RAGEN, arXiv:2504.20073).
    pub struct MinP epoch 1 {
        /// Share of the largest score to reach; the smallest score over this, where the smallest are kept.
        pub value: f64 where 0.0..=1.0,
        /// What a group is scored by.
        pub score: Score,
        /// Which end of the scores is kept.
        pub keep: Keep,
        /// Whether groups of score 0 are candidates.
        pub include_zero: bool,
        /// What a step does that keeps fewer groups than it plays.
        pub empty: EmptyConfig,
        /// Consecutive steps that keep nothing after which the run stops; 0 never stops it.
        pub empty_stop: usize where 0..=1000000,
    }
}

impl MinP {
    /// The verdict on groups of these scores.
    #[must_use]
    pub fn select(&self, scores: &[f64]) -> Outcome {
        let walk = Walk::new(scores, self.keep, self.include_zero);
        let Some(best) = walk.order.first().map(|group| scores[*group]) else {
            return walk.take(0, Dropped::BeyondCut, None);
        };
        let cut = match self.keep {
            Keep::Largest => self.value * best,
            Keep::Smallest => best / self.value.max(ZERO),
        };
        let reaches = |group: &&usize| self.keep.rank(scores[**group]) >= self.keep.rank(cut) - ZERO;
        let taken = walk.order.iter().take_while(reaches).count();
        walk.take(taken, Dropped::BeyondCut, Some(cut))
    }
}
