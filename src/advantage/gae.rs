//! Generalised advantage estimation (Schulman et al. 2016, arXiv:1506.02438, eq. 16) over response tokens.
//!
//! δ_t = r_t + γ·V_{t+1} − V_t, A_t = δ_t + γλ·A_{t+1}, returns A + V. Values and carries pass over what is not
//! sampled, as in newer verl: t + 1 is the next response token, of the next turn too. Whitened over all response tokens
//! of the kept groups, as verl does ([`crate::stats::whitened`]).
//!
//! How it differs from verl and verl-agent: a value after the last token plays no part (verl-agent's leaks one where
//! λ < 1), and no score can be lost on a token that is not sampled. Where all advantages are equal, whitened ones are
//! exactly 0.

use super::{Credit, Rewards};
use crate::config::section;

section! {
    /// Advantages from a critic's values (GAE, arXiv:1506.02438).
    pub struct Gae epoch 1 {
        /// Discount from one response token to the next.
        pub gamma: f64 where 0.0..=1.0,
        /// How far values are trusted less than rewards: 0 looks one token ahead, 1 to the end.
        pub lambda: f64 where 0.0..=1.0,
        /// Whether advantages are whitened over all response tokens of the kept groups.
        pub whiten: bool,
    }
}

impl Gae {
    pub(super) fn credit(&self, group: &Rewards<'_>) -> Credit {
        super::from_values(group, |_, rewards, values| gae(rewards, values, self.gamma, self.lambda))
    }
}

/// The advantages of response tokens that follow each other.
#[must_use]
pub fn gae(rewards: &[f64], values: &[f64], gamma: f64, lambda: f64) -> Vec<f64> {
    let mut advantages = vec![0.0; rewards.len()];
    let (mut value, mut carry) = (0.0, 0.0);
    for t in (0..rewards.len()).rev() {
        carry = rewards[t] + gamma * value - values[t] + gamma * lambda * carry;
        value = values[t];
        advantages[t] = carry;
    }
    advantages
}
