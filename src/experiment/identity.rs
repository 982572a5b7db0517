//! What makes two runs the same run.

use std::fmt;

use super::{EvalConfig, GradientsConfig, ResolvedConfig, RolloutConfig, UpdateConfig, WarmStartConfig};
use crate::config::{HEADER, Section};
use crate::diagnose::CollapseConfig;
use crate::objective;
use crate::reward::RewardConfig;
use crate::rng;

/// What every run uses, whatever it chooses, with the version of what it computes.
pub const COMPONENTS: &[(&str, u32)] = &[
    ("chat", 1),
    ("collapse", CollapseConfig::EPOCH),
    ("eval", EvalConfig::EPOCH),
    ("gradients", GradientsConfig::EPOCH),
    ("objective", objective::Common::EPOCH),
    ("reward", RewardConfig::EPOCH),
    ("rng", rng::EPOCH),
    ("rollout", RolloutConfig::EPOCH),
    ("stats", 1),
    ("update", UpdateConfig::EPOCH),
];

/// What warm starts are called, whatever the experiment.
pub(super) const WARM: &str = "warm";

/// What the result of a warm start depends on, as beginnings of the lines of the canonical text.
const WARM_START: &[&str] = &[
    "@epoch chat\t",
    "@epoch env.",
    "@epoch model.",
    "@epoch rng\t",
    "@epoch rollout\t",
    "@epoch update\t",
    "@epoch warm-start.",
    "@epoch window.",
    "@input model.",
    "@input rollout.",
    "@input task.",
    "model",
    "numerics",
    "rollout.action-separator",
    "rollout.format",
    "rollout.instruction",
    "rollout.max-",
    "rollout.show-reward",
    "rollout.system",
    "rollout.think",
    "rollout.window",
    "task",
    "update.beta1",
    "update.beta2",
    "update.clip-norm",
    "update.epsilon",
    "update.weight-decay",
    "warm-start",
];

/// Digits of [`Key::id`]: those that people do not take for one another.
const DIGITS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// The digest of a canonical text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key([u8; 32]);

impl Key {
    /// The key of a run.
    #[must_use]
    pub fn of(canon: &str) -> Self {
        Self(blake3::derive_key("starpo run key 1", canon.as_bytes()))
    }

    /// The key of a sweep, over what it lists.
    #[must_use]
    pub fn of_sweep(text: &str) -> Self {
        Self(blake3::derive_key("starpo sweep key 1", text.as_bytes()))
    }

    /// The first 80 bits as 16 characters.
    #[must_use]
    pub fn id(&self) -> String {
        let bits = self.0[..10].iter().fold(0_u128, |bits, byte| bits << 8 | u128::from(*byte));
        (0..16).rev().map(|place| DIGITS[(bits >> (5 * place)) as usize & 31] as char).collect()
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "blake3:{}", blake3::Hash::from_bytes(self.0).to_hex())
    }
}

/// The name of a run's directory: `sokoban-k3v9q0m2c7xw4t1h`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RunId {
    pub experiment: String,
    pub key: Key,
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.experiment, self.key.id())
    }
}

/// The canonical text of a run's warm start alone, and its name; None for a run without.
pub(super) fn warm_start(config: &ResolvedConfig, canon: &str) -> Option<(String, RunId)> {
    if matches!(config.warm_start, WarmStartConfig::None(_)) {
        return None;
    }
    let counts = |line: &&str| WARM_START.iter().any(|start| line.starts_with(start));
    let mut text = format!("{HEADER} warm-start\n");
    for line in canon.lines().filter(counts) {
        text.push_str(line);
        text.push('\n');
    }
    let key = Key::of(&text);
    Some((text, RunId { experiment: WARM.to_owned(), key }))
}
