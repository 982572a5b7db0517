//! ReMax (Li et al. 2023, arXiv:2310.10505, algorithm 1): the score of a greedy episode as baseline.
//!
//! A_t = Σ of rewards from t on − b, with b the score of the group's greedy episode.
//!
//! How it differs from verl: scores must not be normalised, since b is not. verl-agent loses b on the way, and RAGEN's
//! trainer ends.

use super::{Credit, Rewards};
use crate::config::section;
use crate::reward::discounted;

section! {
    /// Returns less the score of a greedy episode of the same task (ReMax, arXiv:2310.10505).
    pub struct Remax epoch 1 {}
}

impl Remax {
    /// # Panics
    /// If a member has no baseline.
    pub(super) fn credit(&self, group: &Rewards<'_>) -> Credit {
        let (mut advantages, mut returns) = (Vec::new(), Vec::new());
        for chain in &group.chains {
            let baseline = group.group.members[chain.member].baseline.expect("a greedy episode of each group");
            let ahead = discounted(&group.tokens[chain.tokens.clone()], 1.0);
            advantages.extend(ahead.iter().map(|ahead| ahead - baseline));
            returns.extend(ahead);
        }
        Credit { advantages, returns }
    }
}
