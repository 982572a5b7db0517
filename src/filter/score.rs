//! What a group is scored by.
//!
//! RAGEN (Wang et al. 2025, arXiv:2504.20073, eq. 7) calls its score `reward_variance` and computes the sample standard
//! deviation; here each name is what it says, `entropy-std` (there `entropy_variance`) too. A group whose members are
//! equal has a spread of exactly 0, and so has a group of one (RAGEN: NaN, which empties the step).
//!
//! How the others differ from RAGEN: a member's entropy is the mean over all its sampled tokens, in however many rows
//! they stand (there with a row a turn: the mean of the rows' means), and it is that of the distributions sampled from,
//! as recorded (there one more forward pass). A member that sampled nothing has none, and its group no score.

use crate::config::choice;
use crate::stats;
use crate::trajectory::{Group, Sequence, Trajectory};

choice! {
    /// What a group is scored by: a statistic of its members' episode scores, entropies or lengths.
    pub enum Score {
        /// Sample standard deviation of the episode scores (ddof 1).
        "reward-std" => RewardStd,
        /// Sample variance of the episode scores (ddof 1).
        "reward-variance" => RewardVariance,
        /// Mean episode score.
        "reward-mean" => RewardMean,
        /// Sum of the episode scores.
        "reward-sum" => RewardSum,
        /// Mean over members of their mean token entropy, nats.
        "entropy" => Entropy,
        /// Sample standard deviation over members of their mean token entropy (ddof 1).
        "entropy-std" => EntropyStd,
        /// Mean sampled tokens of a member.
        "length" => Length,
    }
}

impl Score {
    /// The score of a group whose members have these episode scores; NaN where a member lacks what it is made of.
    #[must_use]
    pub fn of(self, group: &Group, scores: &[f64]) -> f64 {
        let members = |of: fn(&Trajectory) -> f64| group.members.iter().map(of).collect::<Vec<f64>>();
        match self {
            Score::RewardStd => stats::std(scores, 1),
            Score::RewardVariance => {
                let std = stats::std(scores, 1);
                std * std
            }
            Score::RewardMean => stats::mean(scores),
            Score::RewardSum => scores.iter().sum(),
            Score::Entropy => stats::mean(&members(entropy)),
            Score::EntropyStd => stats::std(&members(entropy), 1),
            Score::Length => stats::mean(&members(length)),
        }
    }

    /// Whether it measures how members differ, so that it needs two of them.
    #[must_use]
    pub fn is_spread(self) -> bool {
        matches!(self, Score::RewardStd | Score::RewardVariance | Score::EntropyStd)
    }

    /// Whether it can be below 0.
    #[must_use]
    pub fn can_be_negative(self) -> bool {
        matches!(self, Score::RewardMean | Score::RewardSum)
    }

    /// Whether it is made of the entropies recorded while sampling.
    #[must_use]
    pub fn needs_entropies(self) -> bool {
        matches!(self, Score::Entropy | Score::EntropyStd)
    }
}

/// Mean entropy over a member's sampled tokens; NaN for none.
fn entropy(member: &Trajectory) -> f64 {
    let entropies = member.sequences.iter().flat_map(|row| &row.entropies);
    stats::mean(&entropies.map(|entropy| f64::from(*entropy)).collect::<Vec<f64>>())
}

/// A member's sampled tokens.
fn length(member: &Trajectory) -> f64 {
    member.sequences.iter().map(Sequence::response_tokens).sum::<usize>() as f64
}
