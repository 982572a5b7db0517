//! REINFORCE++ (Hu 2025, arXiv:2501.03262): discounted returns of tokens, whitened over the batch.
//!
//! R_t = r_t + γ·R_{t+1} over response tokens; A = whitened R ([`crate::stats::whitened`], over all response tokens of
//! the kept groups).
//!
//! How it differs from verl: returns pass over what is not sampled. There they begin anew, so that in a row of several
//! turns only the last one sees its score. Where all returns are equal, A is exactly 0.

use super::{Credit, Rewards};
use crate::config::section;
use crate::reward::{Chain, discounted};

section! {
    /// Discounted returns, whitened over the batch (REINFORCE++, arXiv:2501.03262).
    pub struct ReinforcePp epoch 1 {
        /// Discount from one response token to the next.
        pub gamma: f64 where 0.0..=1.0,
        /// Whether advantages are whitened over all response tokens of the kept groups.
        pub whiten: bool,
    }
}

impl ReinforcePp {
    pub(super) fn credit(&self, group: &Rewards<'_>) -> Credit {
        let returns = |chain: &Chain| discounted(&group.tokens[chain.tokens.clone()], self.gamma);
        Credit::of(group.chains.iter().flat_map(returns).collect())
    }
}
