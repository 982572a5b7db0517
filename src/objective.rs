//! Objectives: the loss and its derivative in the log-probs and entropies. One objective a file, pure f64 functions.

pub mod aggregate;
pub mod kl;
pub mod ppo;

pub use aggregate::AggregateConfig;
pub use kl::KlEstimator;
pub use ppo::{Clip, Ppo};

use crate::config::variants;

variants! {
    /// The loss.
    pub enum ObjectiveConfig: "objective" {
        "ppo" => Ppo(Ppo),
    }
}

/// What an objective sees of a row: one entry for each of its response tokens.
#[derive(Clone, Copy, Debug)]
pub struct Tokens<'a> {
    /// Log-probs under the policy that learns.
    pub logprobs: &'a [f64],
    /// Entropies (nats) under the policy that learns.
    pub entropies: &'a [f64],
    /// Log-probs under the policy that sampled.
    pub old: &'a [f64],
    pub advantages: &'a [f64],
    /// Weight of each token in the loss, from [`ObjectiveConfig::weights`].
    pub weights: &'a [f64],
}

/// A row's part of the loss, and the derivatives of the total loss in its log-probs and entropies.
#[derive(Clone, Debug, PartialEq)]
pub struct Loss {
    pub terms: Terms,
    pub logprobs: Vec<f64>,
    pub entropies: Vec<f64>,
}

/// Sums over tokens. Adding rows in order gives the same bits however they were computed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Terms {
    /// Weighted policy loss.
    pub policy: f64,
    /// Weighted entropy, without its coefficient.
    pub entropy: f64,
    /// Number of tokens.
    pub tokens: usize,
    /// Tokens at which the clipped surrogate is the larger one.
    pub clipped: usize,
    /// Tokens at which the dual bound is the smaller one.
    pub clipped_lower: usize,
    /// Unweighted sum of old − new log-probs: k1 from old to new, where tokens are the old policy's.
    pub drift: f64,
    /// Largest |ratio − 1|.
    pub ratio_gap: f64,
}

impl Terms {
    /// Adds another row's.
    pub fn add(&mut self, row: &Terms) {
        self.policy += row.policy;
        self.entropy += row.entropy;
        self.tokens += row.tokens;
        self.clipped += row.clipped;
        self.clipped_lower += row.clipped_lower;
        self.drift += row.drift;
        self.ratio_gap = self.ratio_gap.max(row.ratio_gap);
    }

    /// `count` as a share of the tokens; 0 without tokens.
    #[must_use]
    pub fn share(&self, count: usize) -> f64 {
        if self.tokens == 0 { 0.0 } else { count as f64 / self.tokens as f64 }
    }

    /// Mean drift; 0 without tokens.
    #[must_use]
    pub fn kl(&self) -> f64 {
        if self.tokens == 0 { 0.0 } else { self.drift / self.tokens as f64 }
    }
}

impl ObjectiveConfig {
    /// The weight of each token of rows with these numbers of response tokens, one weight a row. The rows are those of
    /// one mini-batch: its global counts, whatever shards it is computed in.
    #[must_use]
    pub fn weights(&self, counts: &[usize]) -> Vec<f64> {
        match self {
            ObjectiveConfig::Ppo(ppo) => ppo.aggregate.weights(counts),
        }
    }

    /// A row's part of the loss.
    #[must_use]
    pub fn loss(&self, row: &Tokens<'_>) -> Loss {
        match self {
            ObjectiveConfig::Ppo(ppo) => ppo.loss(row),
        }
    }

    /// The total loss: policy − entropy-coef · entropy.
    #[must_use]
    pub fn total(&self, terms: &Terms) -> f64 {
        match self {
            // A coefficient of 0 also forgives an entropy that nobody recorded.
            ObjectiveConfig::Ppo(ppo) if ppo.entropy_coef == 0.0 => terms.policy,
            ObjectiveConfig::Ppo(ppo) => terms.policy - ppo.entropy_coef * terms.entropy,
        }
    }
}
