//! Group-relative advantages: GRPO (Shao et al. 2024, arXiv:2402.03300, section 4.1.2), and with `std #false` Dr. GRPO
//! (Liu et al. 2025, arXiv:2503.20783).
//!
//! A = (s − μ) / (σ + ε), or s − μ, with μ and σ over the group's units; constant over all response tokens.
//!
//! How it differs from verl and RAGEN (which adds the once-per-episode count):
//! - The unit is said: `trajectory` counts a member once, `row` once for each of its rows (verl-agent's default).
//! - A lone unit's advantage is 0, or with `lone "raw"` its score over 1 + ε as there (mean 0, deviation 1).
//! - A constant group's advantages are exactly 0; there, rounding of the mean may be divided by ε.
//! - f64 throughout. Rows are never duplicated, so no copy enters a statistic.

use super::unit::{Deviation, Lone, Unit, relative};
use super::{Credit, Rewards};
use crate::config::section;

section! {
    /// Group-relative advantages (GRPO, arXiv:2402.03300; without `std` Dr. GRPO, arXiv:2503.20783).
    pub struct Grpo epoch 1 {
        /// Whether advantages are divided by the group's deviation.
        pub std: bool,
        /// What the group's mean and deviation count.
        pub unit: Unit,
        /// Degrees of freedom taken off the count in the deviation.
        pub ddof: u32 where 0..=1,
        /// Added to the deviation.
        pub epsilon: f64 where 0.0..=1.0,
        /// The advantage of a group's only unit.
        pub lone: Lone,
    }
}

impl Grpo {
    /// The advantages of units with these scores.
    #[must_use]
    pub fn advantages(&self, scores: &[f64]) -> Vec<f64> {
        let deviation = Deviation { ddof: self.ddof, epsilon: self.epsilon };
        relative(scores, self.std.then_some(deviation), self.lone)
    }

    pub(super) fn credit(&self, group: &Rewards<'_>) -> Credit {
        Credit::of(self.unit.spread(group, &self.advantages(self.unit.scores(group))))
    }
}
