//! Discounted sums.

use crate::trajectory::Turn;

/// G_t = r_t + γ·G_{t+1}.
#[must_use]
pub fn discounted(rewards: &[f64], gamma: f64) -> Vec<f64> {
    let mut returns = rewards.to_vec();
    for t in (1..returns.len()).rev() {
        returns[t - 1] += gamma * returns[t];
    }
    returns
}

/// The step return of each turn (GiGPO, Feng et al. 2025, arXiv:2505.10978, eq. 7): environment rewards discounted, and
/// the turn's own penalty, which no earlier turn feels. Raw, whatever normalisation does to scores.
#[must_use]
pub fn step_returns(turns: &[Turn], gamma: f64) -> Vec<f64> {
    let rewards: Vec<f64> = turns.iter().map(|turn| turn.reward).collect();
    discounted(&rewards, gamma).into_iter().zip(turns).map(|(ahead, turn)| ahead + turn.penalty).collect()
}
