//! Normalisation: episode scores made comparable within groups, environments or the whole step (RAGEN,
//! `ctx_manager.py`; Wang et al. 2025, arXiv:2504.20073).
//!
//! `mean`: y − μ. `mean-std`: (y − μ) / (σ + 1e-6), ddof 1. `asym-clip`: the same, clamped to [−1, 3].
//!
//! How it differs from RAGEN:
//! - Scores are constant by [`stats::constant`], and then exactly 0; there σ ≤ 1e-6 is, in f32.
//! - As there, scores stay raw where none of them has another to be compared with.

use std::collections::BTreeMap;

use crate::config::{choice, section, variants};
use crate::stats;

/// Added to a deviation.
const EPSILON: f64 = 1e-6;
/// Bounds of `asym-clip`.
const CLIP: (f64, f64) = (-1.0, 3.0);

variants! {
    /// How episode scores are made comparable.
    pub enum NormaliseConfig: "normalise" {
        "identity" => Identity(Identity),
        "mean" => Mean(Mean),
        "mean-std" => MeanStd(MeanStd),
        "asym-clip" => AsymClip(AsymClip),
    }
}

choice! {
    /// Which scores are compared with each other.
    pub enum By {
        /// Those of a group.
        "group" => Group,
        /// Those of all groups of an environment.
        "environment" => Environment,
        /// All of the step.
        "batch" => Batch,
    }
}

section! {
    /// Scores stay as they are.
    pub struct Identity epoch 1 {}
}

section! {
    /// Scores less their mean.
    pub struct Mean epoch 1 {
        /// Which scores are compared with each other.
        pub by: By,
    }
}

section! {
    /// Scores less their mean, over their sample deviation + 1e-6.
    pub struct MeanStd epoch 1 {
        /// Which scores are compared with each other.
        pub by: By,
    }
}

section! {
    /// As `mean-std`, clamped to [−1, 3].
    pub struct AsymClip epoch 1 {
        /// Which scores are compared with each other.
        pub by: By,
    }
}

impl NormaliseConfig {
    /// The scores of groups, each with its environment, normalised.
    #[must_use]
    pub fn apply<S: AsRef<[f64]>>(&self, envs: &[&str], scores: &[S]) -> Vec<Vec<f64>> {
        let mut normalised: Vec<Vec<f64>> = scores.iter().map(|scores| scores.as_ref().to_vec()).collect();
        let by = match self {
            Self::Identity(_) => return normalised,
            Self::Mean(Mean { by }) | Self::MeanStd(MeanStd { by }) | Self::AsymClip(AsymClip { by }) => by,
        };
        let mut pools: BTreeMap<(usize, &str), Vec<(usize, usize)>> = BTreeMap::new();
        for (group, members) in normalised.iter().enumerate() {
            let pool = match by {
                By::Group => (group, ""),
                By::Environment => (0, envs[group]),
                By::Batch => (0, ""),
            };
            pools.entry(pool).or_default().extend((0..members.len()).map(|member| (group, member)));
        }
        if pools.values().all(|pool| pool.len() < 2) {
            return normalised;
        }
        for pool in pools.values() {
            let raw: Vec<f64> = pool.iter().map(|&(group, member)| normalised[group][member]).collect();
            for (&(group, member), score) in pool.iter().zip(self.of(&raw)) {
                normalised[group][member] = score;
            }
        }
        normalised
    }

    /// Scores that are compared with each other, normalised.
    fn of(&self, scores: &[f64]) -> Vec<f64> {
        let mut normalised = stats::centred(scores);
        if let Self::MeanStd(_) | Self::AsymClip(_) = self {
            let scale = stats::std(scores, 1) + EPSILON;
            normalised.iter_mut().for_each(|score| *score /= scale);
        }
        if let Self::AsymClip(_) = self {
            normalised.iter_mut().for_each(|score| *score = score.clamp(CLIP.0, CLIP.1));
        }
        normalised
    }
}
