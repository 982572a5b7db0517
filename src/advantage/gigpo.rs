//! Group-in-group advantages: GiGPO (Feng et al. 2025, arXiv:2505.10978, eq. 3–8).
//!
//! A = A^E + ω·A^S. A^E: scores of the group's units less their mean, with `mode "mean-std"` over σ + ε. A^S: step
//! returns G_t of the turns of a group that share an anchor, likewise; 0 for a turn alone at its anchor. A^E is
//! constant over a unit's response tokens, A^S over a turn's.
//!
//! With `similarity`, turns share an anchor that is alike: each turn, in (member, turn) order, joins the first class
//! whose first anchor has at least that [`likeness`] with its own.
//!
//! How it differs from verl-agent:
//! - The unit of A^E is said; there it is the row, so that long episodes weigh more, and so do rows that were
//!   duplicated to fill a batch. Step groups have no copies either.
//! - A lone unit's A^E is 0, or with `lone "raw"` its score as there.
//! - Constant groups and step groups give exactly 0.
//! - Likeness is symmetric; there Python's `difflib` ratio is not.

use super::unit::{Lone, Mode, Unit, relative};
use super::{Credit, Rewards, steps};
use crate::config::section;
use crate::trajectory::Group;

section! {
    /// Episode advantages, and step advantages among turns in the same state (GiGPO, arXiv:2505.10978).
    pub struct Gigpo epoch 1 {
        /// How scores and step returns are compared.
        pub mode: Mode,
        /// Weight of the step part.
        pub step_weight: f64 where 0.0..=1000.0,
        /// Discount from one turn to the next in step returns.
        pub gamma: f64 where 0.0..=1.0,
        /// Likeness from which two anchors are the same state; absent for equal ones only.
        pub similarity: Option<f64> where 0.0..=1.0,
        /// What the mean and deviation of scores count.
        pub unit: Unit,
        /// Degrees of freedom taken off the count in a deviation.
        pub ddof: u32 where 0..=1,
        /// Added to a deviation.
        pub epsilon: f64 where 0.0..=1.0,
        /// The episode part of a group's only unit.
        pub lone: Lone,
    }
}

impl Gigpo {
    pub(super) fn credit(&self, group: &Rewards<'_>) -> Credit {
        let deviation = self.mode.deviation(self.ddof, self.epsilon);
        let episode = self.unit.spread(group, &relative(self.unit.scores(group), deviation, self.lone));
        let returns = steps::returns(group.group, self.gamma);
        let step = steps::within(self.states(group.group).into_iter().map(Some), &returns, deviation);
        let step = steps::spread(group.group, &step);
        let joint = episode.iter().zip(step);
        Credit::of(joint.map(|(episode, step)| episode + self.step_weight * step.unwrap_or(0.0)).collect())
    }

    /// The state of each of a group's turns, as the number of the first turn in it.
    #[must_use]
    pub fn states(&self, group: &Group) -> Vec<usize> {
        let anchors: Vec<&str> = group.members.iter().flat_map(|m| &m.turns).map(|turn| turn.anchor.as_str()).collect();
        let mut firsts: Vec<usize> = Vec::new();
        let mut states = Vec::with_capacity(anchors.len());
        for (turn, anchor) in anchors.iter().enumerate() {
            let same = |first: &&usize| match self.similarity {
                None => anchors[**first] == *anchor,
                Some(threshold) => likeness(anchors[**first], anchor) >= threshold,
            };
            let state = firsts.iter().find(same).copied().unwrap_or(turn);
            if state == turn {
                firsts.push(turn);
            }
            states.push(state);
        }
        states
    }
}

/// 2·L / (|a| + |b|) with L the length of the longest common subsequence, in characters: 1 for equal texts, 0 for those
/// that share nothing, the same either way round.
#[must_use]
pub fn likeness(a: &str, b: &str) -> f64 {
    if a == b {
        return 1.0;
    }
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut lengths = vec![0usize; b.len() + 1];
    for x in &a {
        let mut diagonal = 0;
        for (j, y) in b.iter().enumerate() {
            let above = lengths[j + 1];
            lengths[j + 1] = if x == y { diagonal + 1 } else { above.max(lengths[j]) };
            diagonal = above;
        }
    }
    2.0 * lengths[b.len()] as f64 / (a.len() + b.len()) as f64
}
