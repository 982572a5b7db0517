//! Top-k over groups by share: RAGEN's `top_k` (Wang et al. 2025, arXiv:2504.20073; `rollout_filter.py`).
//!
//! Keeps the k candidates of largest (or smallest) score, k = max(1, min(⌊value · G⌋, candidates)), where G counts all
//! groups of the step, candidates or not.
//!
//! How it differs from RAGEN: ties go to the lowest index; there they depend on the device's sort.

use super::{Dropped, EmptyConfig, Keep, Outcome, Score, Walk};
use crate::config::section;

section! {
    /// The groups of largest (or smallest) score, as a share of all groups (RAGEN, arXiv:2504.20073).
    pub struct TopK epoch 1 {
        /// Share of all groups to keep, rounded down; at least one is kept.
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

impl TopK {
    /// The verdict on groups of these scores.
    #[must_use]
    pub fn select(&self, scores: &[f64]) -> Outcome {
        let share = (self.value * scores.len() as f64).floor() as usize;
        Walk::new(scores, self.keep, self.include_zero).take(share.max(1), Dropped::BeyondCount, None)
    }
}
