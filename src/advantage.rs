//! Estimators: credit of each response token. One estimator a file, pure functions of rewards.

pub mod bi_level_gae;
pub mod common;
pub mod gae;
pub mod gigpo;
pub mod grpo;
pub mod hgpo;
pub mod pass_k;
pub mod reinforce_pp;
pub mod reinforce_pp_baseline;
pub mod remax;
pub mod rloo;
pub mod steps;
pub mod unit;

pub use bi_level_gae::BiLevelGae;
pub use common::{Common, LossScaling, Reweight};
pub use gae::Gae;
pub use gigpo::Gigpo;
pub use grpo::Grpo;
pub use hgpo::Hgpo;
pub use pass_k::PassK;
pub use reinforce_pp::ReinforcePp;
pub use reinforce_pp_baseline::ReinforcePpBaseline;
pub use remax::Remax;
pub use rloo::Rloo;
pub use unit::{Lone, Mode, Unit};

use crate::config::{Decode, Kind, Section, Value, variants};
use crate::reward::Rewards;
use crate::stats;

variants! {
    /// How response tokens are credited.
    pub enum Estimator: "advantage" {
        "grpo" => Grpo(Grpo),
        "rloo" => Rloo(Rloo),
        "reinforce-pp" => ReinforcePp(ReinforcePp),
        "reinforce-pp-baseline" => ReinforcePpBaseline(ReinforcePpBaseline),
        "remax" => Remax(Remax),
        "gae" => Gae(Gae),
        "bi-level-gae" => BiLevelGae(BiLevelGae),
        "gigpo" => Gigpo(Gigpo),
        "hgpo" => Hgpo(Hgpo),
        "pass-k" => PassK(PassK),
    }
}

/// An estimator, and what is done to any estimator's advantages.
#[derive(Clone, Debug, PartialEq)]
pub struct AdvantageConfig {
    pub estimator: Estimator,
    pub common: Common,
}

impl Decode for AdvantageConfig {
    const KIND: Kind = match Estimator::KIND {
        Kind::Variant { family, alternatives, .. } => Kind::Variant { family, alternatives, common: Common::FIELDS },
        _ => unreachable!(),
    };

    fn decode(value: &Value) -> Self {
        let Value::Variant { fields, .. } = value else { unreachable!("resolution left {value:?} for an estimator") };
        Self { estimator: Estimator::decode(value), common: Common::decode_fields(fields) }
    }
}

/// Credit of a group's response tokens: flat over its members in order, their sequences, and the sequences' response
/// tokens.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Credit {
    pub advantages: Vec<f64>,
    /// What a critic would learn to foresee; the advantages before any whitening or weight where there is no critic.
    pub returns: Vec<f64>,
}

impl Credit {
    /// Advantages that are their own returns.
    fn of(advantages: Vec<f64>) -> Self {
        Self { returns: advantages.clone(), advantages }
    }

    fn scale(&mut self, weight: f64) {
        self.advantages.iter_mut().for_each(|advantage| *advantage *= weight);
    }
}

impl AdvantageConfig {
    /// The credit of each of the kept groups, in their order; `groups` is the number before the filter.
    #[must_use]
    pub fn estimate(&self, kept: &[Rewards<'_>], groups: usize) -> Vec<Credit> {
        let mut credits: Vec<Credit> = kept.iter().map(|group| self.estimator.credit(group)).collect();
        if self.estimator.whitens() {
            let flat: Vec<f64> = credits.iter().flat_map(|credit| credit.advantages.iter().copied()).collect();
            let mut whitened = stats::whitened(&flat).into_iter();
            for advantage in credits.iter_mut().flat_map(|credit| &mut credit.advantages) {
                *advantage = whitened.next().expect("as many as before");
            }
        }
        self.common.apply(kept, groups, &mut credits);
        credits
    }

    /// Whether rows must have a critic's values.
    #[must_use]
    pub fn needs_values(&self) -> bool {
        matches!(self.estimator, Estimator::Gae(_) | Estimator::BiLevelGae(_))
    }

    /// Whether it matters on which token of a row a score stands.
    #[must_use]
    pub fn reads_tokens(&self) -> bool {
        self.needs_values() || matches!(self.estimator, Estimator::ReinforcePp(_) | Estimator::Remax(_))
    }

    /// Whether members must have the score of a greedy episode.
    #[must_use]
    pub fn needs_baseline(&self) -> bool {
        matches!(self.estimator, Estimator::Remax(_))
    }
}

impl Estimator {
    fn credit(&self, group: &Rewards<'_>) -> Credit {
        match self {
            Self::Grpo(config) => config.credit(group),
            Self::Rloo(config) => config.credit(group),
            Self::ReinforcePp(config) => config.credit(group),
            Self::ReinforcePpBaseline(config) => config.credit(group),
            Self::Remax(config) => config.credit(group),
            Self::Gae(config) => config.credit(group),
            Self::BiLevelGae(config) => config.credit(group),
            Self::Gigpo(config) => config.credit(group),
            Self::Hgpo(config) => config.credit(group),
            Self::PassK(config) => config.credit(group),
        }
    }

    /// Whether advantages are whitened over the response tokens of all kept groups.
    fn whitens(&self) -> bool {
        match self {
            Self::ReinforcePp(ReinforcePp { whiten, .. })
            | Self::ReinforcePpBaseline(ReinforcePpBaseline { whiten, .. })
            | Self::Gae(Gae { whiten, .. })
            | Self::BiLevelGae(BiLevelGae { whiten, .. }) => *whiten,
            _ => false,
        }
    }
}

/// Credit by a function of each chain's ends, rewards and values.
fn from_values(group: &Rewards<'_>, estimate: impl Fn(&[usize], &[f64], &[f64]) -> Vec<f64>) -> Credit {
    let values = group.values();
    let of = |chain: &crate::reward::Chain| {
        let tokens = chain.tokens.clone();
        estimate(&chain.ends, &group.tokens[tokens.clone()], &values[tokens])
    };
    let advantages: Vec<f64> = group.chains.iter().flat_map(of).collect();
    Credit { returns: advantages.iter().zip(&values).map(|(advantage, value)| advantage + value).collect(), advantages }
}
