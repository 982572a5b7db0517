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

use super::{Dropped, Outcome, Score};
use crate::config::{choice, section};

/// Scores of at most this size are zero.
const ZERO: f64 = 1e-10;

choice! {
    /// Which end of the scores is kept.
    pub enum Keep {
        /// The largest: where members differ there is something to learn.
        "largest" => Largest,
        /// The smallest, as an ablation.
        "smallest" => Smallest,
    }
}

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
        /// Consecutive steps that keep nothing after which the run stops; 0 never stops it.
        pub empty_stop: usize where 0..=1000000,
    }
}

impl TopP {
    /// The verdict on groups of these scores.
    #[must_use]
    pub fn select(&self, scores: &[f64]) -> Outcome {
        let walk = self.walk(scores);
        let threshold = self.threshold(&walk);
        let taken = match (threshold, self.mass) {
            (None, _) => walk.len(),
            (Some(mass), Mass::Linear) => reach(&walk, mass),
            (Some(mass), Mass::Softmax) => reach_or_all(&walk, mass),
        };
        let mut verdicts = vec![Some(Dropped::ZeroScore); scores.len()];
        for (place, (group, _)) in walk.iter().enumerate() {
            let beyond = if taken == 0 { Dropped::NoMass } else { Dropped::BeyondMass };
            verdicts[*group] = (place >= taken).then_some(beyond);
        }
        Outcome {
            scores: scores.to_vec(),
            kept: (0..scores.len()).filter(|g| verdicts[*g].is_none()).collect(),
            dropped: verdicts.iter().enumerate().filter_map(|(g, verdict)| verdict.map(|why| (g, why))).collect(),
            threshold,
        }
    }

    /// The candidates in the order in which they are taken, each with the mass that it adds.
    #[must_use]
    pub fn walk(&self, scores: &[f64]) -> Vec<(usize, f64)> {
        let sign = if self.keep == Keep::Largest { 1.0 } else { -1.0 };
        // Adding 0 makes −0 equal to 0.
        let rank = |group: usize| sign * scores[group] + 0.0;
        let candidate = |group: &usize| self.include_zero || scores[*group].abs() > ZERO;
        let mut order: Vec<usize> = (0..scores.len()).filter(candidate).collect();
        order.sort_by(|a, b| rank(*b).total_cmp(&rank(*a)));
        match (self.mass, order.first()) {
            (Mass::Softmax, Some(first)) => {
                let max = rank(*first);
                let weights: Vec<f64> = order.iter().map(|g| libm::exp(rank(*g) - max)).collect();
                let total: f64 = weights.iter().sum();
                order.into_iter().zip(weights).map(|(group, weight)| (group, weight / total)).collect()
            }
            _ => order.into_iter().map(|group| (group, scores[group])).collect(),
        }
    }

    /// The mass to reach; none where every candidate is kept, or there is none.
    fn threshold(&self, walk: &[(usize, f64)]) -> Option<f64> {
        (self.value < 1.0 && !walk.is_empty()).then(|| match self.mass {
            Mass::Linear => self.value * walk.iter().map(|(_, mass)| mass).sum::<f64>() - self.eps,
            Mass::Softmax => self.value,
        })
    }
}

/// Length of the shortest prefix of positive masses that reaches `goal`; 0 if none does.
fn reach(walk: &[(usize, f64)], goal: f64) -> usize {
    let mut sum = 0.0;
    for (place, (_, mass)) in walk.iter().enumerate() {
        if sum >= goal {
            return place;
        }
        if *mass <= 0.0 {
            return 0;
        }
        sum += mass;
    }
    if sum >= goal { walk.len() } else { 0 }
}

/// Length of the shortest prefix, not empty, that reaches `goal`; all of it if rounding leaves the whole below.
fn reach_or_all(walk: &[(usize, f64)], goal: f64) -> usize {
    let mut sum = 0.0;
    let last = walk.iter().position(|(_, mass)| {
        sum += mass;
        sum >= goal
    });
    last.map_or(walk.len(), |place| place + 1)
}
