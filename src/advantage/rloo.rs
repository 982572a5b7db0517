//! REINFORCE with a leave-one-out baseline: RLOO (Kool et al. 2019; Ahmadian et al. 2024, arXiv:2402.14740, eq. 8).
//!
//! A = s − mean of the others' scores = n/(n − 1) · (s − μ); constant over all response tokens.
//!
//! How it differs from verl and verl-agent:
//! - The unit is said: with `row`, n counts rows as in verl-agent.
//! - A lone unit's advantage is 0 as in verl's vectorised variant, or with `lone "raw"` its score.
//! - A constant group's advantages are exactly 0.

use super::unit::{Lone, Unit, relative};
use super::{Credit, Rewards};
use crate::config::section;

section! {
    /// Scores less the mean of the other units' (RLOO, arXiv:2402.14740).
    pub struct Rloo epoch 1 {
        /// What the group's mean counts.
        pub unit: Unit,
        /// The advantage of a group's only unit.
        pub lone: Lone,
    }
}

impl Rloo {
    /// The advantages of units with these scores.
    #[must_use]
    pub fn advantages(&self, scores: &[f64]) -> Vec<f64> {
        let n = scores.len() as f64;
        let scale = if scores.len() > 1 { n / (n - 1.0) } else { 1.0 };
        relative(scores, None, self.lone).into_iter().map(|score| scale * score).collect()
    }

    pub(super) fn credit(&self, group: &Rewards<'_>) -> Credit {
        Credit::of(self.unit.spread(group, &self.advantages(self.unit.scores(group))))
    }
}
