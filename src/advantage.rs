//! Estimators: credit of each response token. One estimator a file, pure functions of scores.

pub mod grpo;

pub use grpo::{Grpo, Lone, Unit};

use crate::config::variants;
use crate::trajectory::Group;

variants! {
    /// Credit.
    pub enum AdvantageConfig: "advantage" {
        "grpo" => Grpo(Grpo),
    }
}

/// Credit of a group's response tokens: flat over its members in order, their sequences, and the sequences' response
/// tokens.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Credit {
    pub advantages: Vec<f64>,
    /// What a critic would learn to foresee; the advantages themselves where there is no critic.
    pub returns: Vec<f64>,
}

impl AdvantageConfig {
    /// The credit of each of the kept groups, in their order.
    #[must_use]
    pub fn estimate(&self, groups: &[&Group]) -> Vec<Credit> {
        match self {
            AdvantageConfig::Grpo(config) => groups.iter().map(|group| config.credit(group)).collect(),
        }
    }
}
