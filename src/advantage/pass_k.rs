//! Pass@k advantages (verl's and verl-agent's `grpo_passk`, after Walder and Karkhanis 2025, arXiv:2505.15201): credit
//! for the best of a group alone.
//!
//! A = (s₁ − s₂) / (σ + ε), or s₁ − s₂, for the unit of the largest score s₁, with s₂ the second largest and σ over the
//! group's units; 0 for all others. Constant over all response tokens.
//!
//! How it differs from verl-agent, which counts rows:
//! - The unit is said: with `trajectory`, all rows of the best member are credited. With `row` one row is, so that a
//!   best member of several rows of equal score gives nothing, as there.
//! - A lone unit's advantage is 0, or with `lone "raw"` its score over 1 + ε; there it is an error.

use super::unit::{Deviation, Lone, Unit, relative};
use super::{Credit, Rewards};
use crate::config::section;
use crate::stats;

section! {
    /// The best unit's lead over the second best, for it alone (Pass@k, arXiv:2505.15201).
    pub struct PassK epoch 1 {
        /// Whether the lead is divided by the group's deviation.
        pub std: bool,
        /// What is compared, and what the deviation counts.
        pub unit: Unit,
        /// Degrees of freedom taken off the count in the deviation.
        pub ddof: u32 where 0..=1,
        /// Added to the deviation.
        pub epsilon: f64 where 0.0..=1.0,
        /// The advantage of a group's only unit.
        pub lone: Lone,
    }
}

impl PassK {
    /// The advantages of units with these scores.
    #[must_use]
    pub fn advantages(&self, scores: &[f64]) -> Vec<f64> {
        let deviation = self.std.then_some(Deviation { ddof: self.ddof, epsilon: self.epsilon });
        if scores.len() < 2 || stats::constant(scores) {
            return relative(scores, deviation, self.lone);
        }
        let mut order: Vec<usize> = (0..scores.len()).collect();
        order.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]));
        let scale = deviation.map_or(1.0, |deviation| stats::std(scores, deviation.ddof) + deviation.epsilon);
        let mut advantages = vec![0.0; scores.len()];
        advantages[order[0]] = (scores[order[0]] - scores[order[1]]) / scale;
        advantages
    }

    pub(super) fn credit(&self, group: &Rewards<'_>) -> Credit {
        Credit::of(self.unit.spread(group, &self.advantages(self.unit.scores(group))))
    }
}
