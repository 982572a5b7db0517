//! Objectives: the loss and its derivatives in log-probs, entropies and values. One objective a file, pure f64
//! functions.
//!
//! ```text
//! loss = policy + kl.coef · kl − entropy-coef · entropy + value-coef · value
//! ```
//! Each part is a weighted sum over response tokens, without its coefficient; the weights are the aggregation's.

pub mod aggregate;
pub mod cispo;
pub mod gspo;
pub mod kl;
pub mod ppo;
pub mod reinforce;
pub mod value;

pub use aggregate::AggregateConfig;
pub use cispo::Cispo;
pub use gspo::Gspo;
pub use kl::{KlConfig, KlEstimator};
pub use ppo::{Clip, Ppo};
pub use reinforce::Reinforce;

use crate::config::{Decode, Kind, Section, Value, section, variants};

/// Bound on a log-ratio, so that its exponential stays finite.
const LOG_RATIO: f64 = 20.0;

variants! {
    /// The policy's part of the loss.
    pub enum PolicyLoss: "objective" {
        "ppo" => Ppo(Ppo),
        "gspo" => Gspo(Gspo),
        "cispo" => Cispo(Cispo),
        "reinforce" => Reinforce(Reinforce),
    }
}

section! {
    /// The fields of every objective.
    pub struct Common epoch 1 {
        /// Distance to the frozen start model.
        pub kl: KlConfig,
        /// Weight of the entropy bonus.
        pub entropy_coef: f64 where 0.0..=1000.0,
        /// Weight of the value loss, where there is a critic.
        pub value_coef: f64 where 0.0..=1000.0,
        /// How far a value may move from the one before the update; absent for no bound (arXiv:1707.06347).
        pub value_clip: Option<f64> where 0.0..=1e12,
        /// How the losses of tokens become one number.
        pub aggregate: AggregateConfig,
    }
}

section! {
    /// Bounds on a ratio of new to old probability.
    pub struct Bounds {
        /// The least ratio that counts is 1 − low.
        pub low: f64 where 0.0..=1.0,
        /// The greatest ratio that counts is 1 + high.
        pub high: f64 where 0.0..=1000.0,
    }
}

/// The loss.
#[derive(Clone, Debug, PartialEq)]
pub struct ObjectiveConfig {
    pub policy: PolicyLoss,
    /// Distance to the frozen start model.
    pub kl: KlConfig,
    /// Weight of the entropy bonus.
    pub entropy_coef: f64,
    /// Weight of the value loss, where there is a critic.
    pub value_coef: f64,
    /// How far a value may move from the one before the update.
    pub value_clip: Option<f64>,
    /// How the losses of tokens become one number.
    pub aggregate: AggregateConfig,
}

impl Decode for ObjectiveConfig {
    const KIND: Kind = match PolicyLoss::KIND {
        Kind::Variant { family, alternatives, .. } => Kind::Variant { family, alternatives, common: Common::FIELDS },
        _ => unreachable!(),
    };

    fn decode(value: &Value) -> Self {
        let Value::Variant { fields, .. } = value else { unreachable!("resolution left {value:?} for an objective") };
        let Common { kl, entropy_coef, value_coef, value_clip, aggregate } = Common::decode_fields(fields);
        Self { policy: PolicyLoss::decode(value), kl, entropy_coef, value_coef, value_clip, aggregate }
    }
}

/// What an objective sees of a row: one entry for each of its response tokens, or none where there is no such thing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tokens<'a> {
    /// Log-probs under the policy that learns; none where only a critic learns.
    pub logprobs: &'a [f64],
    /// Entropies (nats) under the policy that learns.
    pub entropies: &'a [f64],
    /// Log-probs under the policy that sampled.
    pub old: &'a [f64],
    /// Log-probs under the frozen reference, if there is one.
    pub reference: &'a [f64],
    pub advantages: &'a [f64],
    /// Values under the critic that learns, if there is one.
    pub values: &'a [f64],
    /// Values before the update.
    pub old_values: &'a [f64],
    /// What values should be.
    pub returns: &'a [f64],
    /// Weight of each token in the loss, from [`AggregateConfig::weights`].
    pub weights: &'a [f64],
}

/// The policy's loss at one token.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Surrogate {
    /// New to old probability: of the token, or of its row.
    pub ratio: f64,
    pub loss: f64,
    /// What the token's log-prob is pushed by: of the loss, in the new log-prob.
    pub derivative: f64,
    /// A bound on the ratio holds.
    pub clipped: bool,
    /// The dual bound of PPO holds.
    pub clipped_lower: bool,
}

/// A row's parts of the loss, and the derivative of each part in what it is a function of. No coefficient is in them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Loss {
    pub terms: Terms,
    /// Of the policy's part, in the log-probs.
    pub policy: Vec<f64>,
    /// Of the KL, in the log-probs; empty without a reference.
    pub kl: Vec<f64>,
    /// Of the entropy, in the entropies.
    pub entropy: Vec<f64>,
    /// Of the value loss, in the values; empty without a critic.
    pub value: Vec<f64>,
}

/// Derivatives of the whole loss.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Derivatives {
    pub logprobs: Vec<f64>,
    pub entropies: Vec<f64>,
    pub values: Vec<f64>,
}

/// Sums over tokens. Adding rows in order gives the same bits however they were computed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Terms {
    /// Weighted policy loss.
    pub policy: f64,
    /// Weighted distance to the reference, without its coefficient.
    pub kl: f64,
    /// Weighted entropy, without its coefficient.
    pub entropy: f64,
    /// Weighted value loss, without its coefficient.
    pub value: f64,
    /// Number of tokens.
    pub tokens: usize,
    /// Tokens at which a bound on the ratio holds.
    pub clipped: usize,
    /// Tokens at which the dual bound is the smaller one.
    pub clipped_lower: usize,
    /// Tokens at which the clipped value loss is the larger one.
    pub clipped_values: usize,
    /// Unweighted sum of old − new log-probs: k1 from old to new, where tokens are the old policy's.
    pub drift: f64,
    /// Largest |ratio − 1|.
    pub ratio_gap: f64,
}

impl Terms {
    /// Adds another row's.
    pub fn add(&mut self, row: &Terms) {
        self.policy += row.policy;
        self.kl += row.kl;
        self.entropy += row.entropy;
        self.value += row.value;
        self.tokens += row.tokens;
        self.clipped += row.clipped;
        self.clipped_lower += row.clipped_lower;
        self.clipped_values += row.clipped_values;
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
    pub fn drift(&self) -> f64 {
        if self.tokens == 0 { 0.0 } else { self.drift / self.tokens as f64 }
    }
}

impl PolicyLoss {
    /// The surrogate of each token of a row.
    #[must_use]
    pub fn surrogates(&self, row: &Tokens<'_>) -> Vec<Surrogate> {
        let each = |surrogate: &dyn Fn(f64, f64, f64) -> Surrogate| {
            let tokens = row.logprobs.iter().zip(row.old).zip(row.advantages);
            tokens.map(|((new, old), advantage)| surrogate(*new, *old, *advantage)).collect()
        };
        match self {
            PolicyLoss::Ppo(ppo) => each(&|new, old, advantage| ppo.clip.surrogate(new - old, advantage)),
            PolicyLoss::Gspo(gspo) => gspo.surrogates(row),
            PolicyLoss::Cispo(cispo) => each(&|new, old, advantage| cispo.surrogate(new, old, advantage)),
            PolicyLoss::Reinforce(reinforce) => each(&|new, old, advantage| reinforce.surrogate(new, old, advantage)),
        }
    }
}

impl ObjectiveConfig {
    /// The member's name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.policy.name()
    }

    /// A row's parts of the loss: those for which it has numbers.
    #[must_use]
    pub fn loss(&self, row: &Tokens<'_>) -> Loss {
        let mut loss = Loss::default();
        let terms = &mut loss.terms;
        terms.tokens = row.weights.len();
        for ((token, surrogate), weight) in self.policy.surrogates(row).iter().enumerate().zip(row.weights) {
            terms.policy += weight * surrogate.loss;
            terms.entropy += weight * row.entropies[token];
            terms.clipped += usize::from(surrogate.clipped);
            terms.clipped_lower += usize::from(surrogate.clipped_lower);
            terms.drift -= row.logprobs[token] - row.old[token];
            terms.ratio_gap = terms.ratio_gap.max((surrogate.ratio - 1.0).abs());
            loss.policy.push(weight * surrogate.derivative);
            loss.entropy.push(*weight);
        }
        for ((new, reference), weight) in row.logprobs.iter().zip(row.reference).zip(row.weights) {
            let (kl, derivative) = self.kl.estimator.at(new - reference);
            terms.kl += weight * kl;
            loss.kl.push(weight * derivative);
        }
        for (token, (value, weight)) in row.values.iter().zip(row.weights).enumerate() {
            let square = value::square(self.value_clip, *value, row.old_values[token], row.returns[token]);
            terms.value += weight * square.loss;
            terms.clipped_values += usize::from(square.clipped);
            loss.value.push(weight * square.derivative);
        }
        loss
    }

    /// The whole loss. A coefficient of 0 also forgives a part that nobody recorded.
    #[must_use]
    pub fn total(&self, terms: &Terms) -> f64 {
        let part = |coef: f64, term: f64| if coef == 0.0 { 0.0 } else { coef * term };
        terms.policy + part(self.kl.coef, terms.kl) - part(self.entropy_coef, terms.entropy)
            + part(self.value_coef, terms.value)
    }

    /// The derivatives of the whole loss in a row's log-probs, entropies and values.
    #[must_use]
    pub fn derivatives(&self, row: &Loss) -> Derivatives {
        let mut logprobs = row.policy.clone();
        if self.kl.coef > 0.0 {
            logprobs.iter_mut().zip(&row.kl).for_each(|(sum, kl)| *sum += self.kl.coef * kl);
        }
        Derivatives {
            logprobs,
            entropies: row.entropy.iter().map(|weight| -self.entropy_coef * weight).collect(),
            values: row.value.iter().map(|derivative| self.value_coef * derivative).collect(),
        }
    }
}

/// exp of a log-ratio, bounded.
fn ratio(log_ratio: f64) -> f64 {
    libm::exp(log_ratio.clamp(-LOG_RATIO, LOG_RATIO))
}
