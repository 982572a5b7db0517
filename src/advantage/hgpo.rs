//! History-aware group-in-group advantages: HGPO (arXiv:2602.22817).
//!
//! For k = 1 … K + 1, with K the `history`: turns of a group whose last k anchors, their own included, are equal form a
//! class, and a_k is the step return less the class's mean, with `mode "mean-std"` over its deviation + ε. With
//! `episode`, a_0 is the unit's score compared likewise. A = Σ w_k·a_k, w_k = (k + 1)^α / (Σ (k + 1)^α + 1e-6), over
//! the k that say something: a class, or a group, of one or of equal values does not.
//!
//! How it differs from verl-agent's recipe: there an item that happens to be exactly 0 is left out as well, so that
//! rounding decides which weights the others get; here one that equals the mean of a class that differs counts as 0.
//! The unit of a_0 is said.

use super::unit::{Lone, Mode, Unit, relative};
use super::{Credit, Rewards, steps};
use crate::config::section;
use crate::trajectory::Group;

/// Added to the sum of weights.
const EPSILON: f64 = 1e-6;

section! {
    /// Step advantages among turns of the same recent history, averaged over its length (HGPO, arXiv:2602.22817).
    pub struct Hgpo epoch 1 {
        /// Turns before a turn that its longest history holds: what prompts remember.
        pub history: usize where 0..=10000,
        /// How much more a longer history weighs: the power of its length + 1.
        pub alpha: f64 where 0.0..=100.0,
        /// Whether the episode's own advantage is averaged in, as a history of length 0.
        pub episode: bool,
        /// How scores and step returns are compared.
        pub mode: Mode,
        /// Discount from one turn to the next in step returns.
        pub gamma: f64 where 0.0..=1.0,
        /// What the mean and deviation of scores count.
        pub unit: Unit,
        /// Degrees of freedom taken off the count in a deviation.
        pub ddof: u32 where 0..=1,
        /// Added to a deviation.
        pub epsilon: f64 where 0.0..=1.0,
        /// The episode's part for a group's only unit.
        pub lone: Lone,
    }
}

impl Hgpo {
    pub(super) fn credit(&self, group: &Rewards<'_>) -> Credit {
        let deviation = self.mode.deviation(self.ddof, self.epsilon);
        let mut levels: Vec<(usize, Vec<Option<f64>>)> = Vec::new();
        if self.episode {
            let episode = relative(self.unit.scores(group), deviation, self.lone);
            let differs = episode.iter().any(|advantage| *advantage != 0.0);
            let items: Vec<Option<f64>> = episode.into_iter().map(|advantage| differs.then_some(advantage)).collect();
            levels.push((0, self.unit.spread(group, &items)));
        }
        let returns = steps::returns(group.group, self.gamma);
        for length in 1..=self.history + 1 {
            let items = steps::within(recent(group.group, length), &returns, deviation);
            levels.push((length, steps::spread(group.group, &items)));
        }
        let items = |token: usize| levels.iter().filter_map(move |(length, items)| Some((*length, items[token]?)));
        Credit::of((0..group.tokens.len()).map(|token| self.average(items(token))).collect())
    }

    /// The weighted mean of items, each with the length of its history; 0 if there are none.
    fn average(&self, items: impl Iterator<Item = (usize, f64)>) -> f64 {
        let (mut sum, mut weights) = (0.0, 0.0);
        for (length, item) in items {
            let weight = libm::pow((length + 1) as f64, self.alpha);
            sum += weight * item;
            weights += weight;
        }
        sum / (weights + EPSILON)
    }
}

/// The last `length` anchors of each turn, its own included; none where there have not been so many turns.
fn recent(group: &Group, length: usize) -> impl Iterator<Item = Option<Vec<&str>>> {
    group.members.iter().flat_map(move |member| {
        (0..member.turns.len()).map(move |turn| {
            let first = (turn + 1).checked_sub(length)?;
            Some(member.turns[first..=turn].iter().map(|turn| turn.anchor.as_str()).collect())
        })
    })
}
