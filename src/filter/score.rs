//! What a group is scored by.
//!
//! RAGEN (Wang et al. 2025, arXiv:2504.20073, eq. 7) calls its score `reward_variance` and computes the sample standard
//! deviation; here each name is what it says. A group whose episode scores are equal has a spread of exactly 0, and so
//! has a group of one (RAGEN: NaN, which empties the step).

use crate::config::choice;
use crate::stats;
use crate::trajectory::Group;

choice! {
    /// What a group is scored by: a statistic of its members' episode scores.
    pub enum Score {
        /// Sample standard deviation (ddof 1).
        "reward-std" => RewardStd,
        /// Sample variance (ddof 1).
        "reward-variance" => RewardVariance,
        /// Mean.
        "reward-mean" => RewardMean,
        /// Sum.
        "reward-sum" => RewardSum,
    }
}

impl Score {
    /// The group's score.
    #[must_use]
    pub fn of(self, group: &Group) -> f64 {
        self.of_rewards(&group.scores())
    }

    /// The score of a group whose members have these episode scores.
    #[must_use]
    pub fn of_rewards(self, rewards: &[f64]) -> f64 {
        match self {
            Score::RewardStd => stats::std(rewards, 1),
            Score::RewardVariance => {
                let std = stats::std(rewards, 1);
                std * std
            }
            Score::RewardMean => stats::mean(rewards),
            Score::RewardSum => rewards.iter().sum(),
        }
    }

    /// Whether it measures how members differ, so that it needs two of them.
    #[must_use]
    pub fn is_spread(self) -> bool {
        matches!(self, Score::RewardStd | Score::RewardVariance)
    }

    /// Whether it can be below 0.
    #[must_use]
    pub fn can_be_negative(self) -> bool {
        !self.is_spread()
    }
}
