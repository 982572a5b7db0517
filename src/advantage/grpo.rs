//! Group-relative advantages: GRPO (Shao et al. 2024, arXiv:2402.03300, section 4.1.2), and with `std #false` Dr. GRPO
//! (Liu et al. 2025, arXiv:2503.20783).
//!
//! A = (s − μ) / (σ + ε), or s − μ, with μ and σ over the group's members; constant over all response tokens.
//!
//! How it differs from verl and RAGEN (which adds the once-per-episode count):
//! - The unit is said: `trajectory` counts a member once, `row` once for each of its rows (verl-agent's default).
//! - A lone unit's advantage is 0, or with `lone "raw"` its score over 1 + ε as there (mean 0, deviation 1).
//! - A constant group's advantages are exactly 0; there, rounding of the mean may be divided by ε.
//! - f64 throughout. Rows are never duplicated, so no copy enters a statistic.

use super::Credit;
use crate::config::{choice, section};
use crate::stats;
use crate::trajectory::Group;

choice! {
    /// What a group's statistics count.
    pub enum Unit {
        /// Each member once.
        "trajectory" => Trajectory,
        /// Each row once: a member of n rows weighs n times.
        "row" => Row,
    }
}

choice! {
    /// The advantage of a group's only unit.
    pub enum Lone {
        /// 0: there is nothing to compare it with.
        "zero" => Zero,
        /// Its score, as if the mean were 0 and the deviation 1.
        "raw" => Raw,
    }
}

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
    /// A group's credit: each member's advantage on all its response tokens.
    #[must_use]
    pub fn credit(&self, group: &Group) -> Credit {
        let rows: Vec<usize> = group.members.iter().map(|member| member.sequences.len()).collect();
        let tokens = group.members.iter().map(|m| m.sequences.iter().map(|s| s.response_tokens()).sum());
        let advantages: Vec<f64> = grpo(self, &group.scores(), &rows)
            .into_iter()
            .zip(tokens)
            .flat_map(|(advantage, count): (f64, usize)| std::iter::repeat_n(advantage, count))
            .collect();
        Credit { returns: advantages.clone(), advantages }
    }
}

/// The advantages of a group's members, from their scores and their numbers of rows.
#[must_use]
pub fn grpo(config: &Grpo, scores: &[f64], rows: &[usize]) -> Vec<f64> {
    let units: Vec<f64> = match config.unit {
        Unit::Trajectory => scores.to_vec(),
        Unit::Row => scores.iter().zip(rows).flat_map(|(score, n)| std::iter::repeat_n(*score, *n)).collect(),
    };
    let (mean, std) = match (units.len(), config.lone) {
        (1, Lone::Raw) => (0.0, 1.0),
        _ if stats::constant(&units) => return vec![0.0; scores.len()],
        _ => (stats::mean(&units), stats::std(&units, config.ddof)),
    };
    let scale = if config.std { std + config.epsilon } else { 1.0 };
    scores.iter().map(|score| (score - mean) / scale).collect()
}
