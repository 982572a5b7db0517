//! Top-p over groups: RAGEN's rollout filter (Wang et al. 2025, arXiv:2504.20073; `rollout_filter.py`).
//!
//! Candidates are walked from the largest (or smallest) score on. Linear mass: the walk ends as soon as the scores
//! gathered reach value · Σ scores − eps. Softmax mass: as soon as the probabilities softmax(±score) gathered reach
//! `value`; at least one group is kept. A value of 1 keeps every candidate.
//!
//! How it differs from RAGEN:
//! - Ties go to the lowest index; there they depend on the device's sort.
//! - Sums run in the order of the walk, so that the verdict does not depend on the order of the groups.
//! - `reward-std` is the default score under its own name, and is exactly 0 for equal scores.
//! - Linear mass over a score that can be negative is refused with the config. Given such scores all the same, this
//!   function does what RAGEN's does: a score of at most 0 adds nothing, and a sum that is not reached keeps nothing.
//!
//! As there: a linear step of nothing but zeros keeps nothing even with `include-zero` (unless the value is 1); the
//! same goes for `keep "smallest"` where a candidate's score is 0, which ends the walk at once (so that wants
//! `include-zero #false`); and `eps` is taken off in units of the score.

use super::{Dropped, EmptyConfig, Keep, Outcome, Score, Walk};
use crate::config::{choice, section};

choice! {
    /// What a group adds to the mass.
    pub enum Mass {
        /// Its score.
        "linear" => Linear,
        /// Its share of softmax(score); of softmax(−score) when the smallest are kept. Depends on the rewards' scale.
        "softmax" => Softmax,
    }
}

section! {
    /// The groups of largest (or smallest) score that together reach a share of the mass (RAGEN, arXiv:2504.20073).
    pub struct TopP epoch 1 {
        /// Share of the mass to reach; 1 keeps every candidate.
        pub value: f64 where 0.0..=1.0,
        /// What a group is scored by.
        pub score: Score,
        /// Which end of the scores is kept.
        pub keep: Keep,
        /// Whether groups of score 0 are candidates.
        pub include_zero: bool,
        /// What a group adds to the mass.
        pub mass: Mass,
        /// Taken off the mass to reach, in units of the score; only linear mass uses it.
        pub eps: f64 where 0.0..=1000.0,
        /// What a step does that keeps fewer groups than it plays.
        pub empty: EmptyConfig,
        /// Consecutive steps that keep nothing after which the run stops; 0 never stops it.
        pub empty_stop: usize where 0..=1000000,
    }
}

impl TopP {
    /// The verdict on groups of these scores.
    #[must_use]
    pub fn select(&self, scores: &[f64]) -> Outcome {
        let walk = Walk::new(scores, self.keep, self.include_zero);
        let masses = self.masses(&walk);
        let threshold = self.threshold(&masses);
        let taken = match (threshold, self.mass) {
            (None, _) => masses.len(),
            (Some(goal), Mass::Linear) => reach(&masses, goal),
            (Some(goal), Mass::Softmax) => reach_or_all(&masses, goal),
        };
        walk.take(taken, if taken == 0 { Dropped::NoMass } else { Dropped::BeyondMass }, threshold)
    }

    /// What each candidate adds to the mass, in the walk's order.
    #[must_use]
    pub fn masses(&self, walk: &Walk<'_>) -> Vec<f64> {
        let scores: Vec<f64> = walk.order.iter().map(|group| walk.scores[*group]).collect();
        match (self.mass, scores.first()) {
            (Mass::Softmax, Some(first)) => {
                let max = self.keep.rank(*first);
                let weights: Vec<f64> = scores.iter().map(|score| libm::exp(self.keep.rank(*score) - max)).collect();
                let total: f64 = weights.iter().sum();
                weights.into_iter().map(|weight| weight / total).collect()
            }
            _ => scores,
        }
    }

    /// The mass to reach; none where every candidate is kept, or there is none.
    fn threshold(&self, masses: &[f64]) -> Option<f64> {
        (self.value < 1.0 && !masses.is_empty()).then(|| match self.mass {
            Mass::Linear => self.value * masses.iter().sum::<f64>() - self.eps,
            Mass::Softmax => self.value,
        })
    }
}

/// Length of the shortest prefix of positive masses that reaches `goal`; 0 if none does.
fn reach(masses: &[f64], goal: f64) -> usize {
    let mut sum = 0.0;
    for (place, mass) in masses.iter().enumerate() {
        if sum >= goal {
            return place;
        }
        if *mass <= 0.0 {
            return 0;
        }
        sum += mass;
    }
    if sum >= goal { masses.len() } else { 0 }
}

/// Length of the shortest prefix, not empty, that reaches `goal`; all of it if rounding leaves the whole below.
fn reach_or_all(masses: &[f64], goal: f64) -> usize {
    let mut sum = 0.0;
    let last = masses.iter().position(|mass| {
        sum += mass;
        sum >= goal
    });
    last.map_or(masses.len(), |place| place + 1)
}
