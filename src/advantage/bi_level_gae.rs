//! Bi-level GAE (VAGEN, Wang et al. 2025; RAGEN's `compute_bi_level_gae_advantage_return`): over turns, then within.
//!
//! With e_1 < e_2 < … the ends of turns, from the last: δ = r_{e_i} + γ_H·V_{e_{i+1}} − V_{e_i},
//! A = δ + γ_H·λ·A_{i+1}; the end's reward becomes A + V_{e_i}. Then GAE within each turn, which ends there. Returns
//! A + V. Whitened over all response tokens of the kept groups ([`crate::stats::whitened`]).
//!
//! As in RAGEN, a turn whose score is 0 has no end of its own, so that without `turn-scores` this is GAE.
//!
//! How it differs from RAGEN:
//! - The last token is always an end, so that a row of nothing but zeros is GAE too; there it is an error.
//! - It runs: there the trainer calls it where it is not, and refuses the turn scores that it is for.

use super::gae::gae;
use super::{Credit, Rewards};
use crate::config::section;

section! {
    /// Advantages from a critic's values over turns, then over the tokens of each (VAGEN; RAGEN).
    pub struct BiLevelGae epoch 1 {
        /// Discount from one response token to the next.
        pub gamma: f64 where 0.0..=1.0,
        /// How far values are trusted less than rewards, over turns and over tokens.
        pub lambda: f64 where 0.0..=1.0,
        /// Discount from one turn's end to the next.
        pub turn_gamma: f64 where 0.0..=1.0,
        /// Whether advantages are whitened over all response tokens of the kept groups.
        pub whiten: bool,
    }
}

impl BiLevelGae {
    pub(super) fn credit(&self, group: &Rewards<'_>) -> Credit {
        super::from_values(group, |ends, rewards, values| self.advantages(rewards, values, ends))
    }

    /// The advantages of response tokens that follow each other, where turns end on the tokens `ends`, the last among
    /// them.
    #[must_use]
    pub fn advantages(&self, rewards: &[f64], values: &[f64], ends: &[usize]) -> Vec<f64> {
        let at = |tokens: &[f64]| -> Vec<f64> { ends.iter().map(|end| tokens[*end]).collect() };
        let turns = gae(&at(rewards), &at(values), self.turn_gamma, self.lambda);
        let mut advantages = Vec::with_capacity(rewards.len());
        for (end, turn) in ends.iter().zip(turns) {
            let turn_tokens = advantages.len()..=*end;
            let mut rewards = rewards[turn_tokens.clone()].to_vec();
            rewards.pop();
            rewards.push(turn + values[*end]);
            advantages.extend(gae(&rewards, &values[turn_tokens], self.gamma, self.lambda));
        }
        advantages
    }
}
