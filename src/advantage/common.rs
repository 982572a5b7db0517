//! What may be done to the advantages of any estimator, in RAGEN's order: soft re-weighting, scaling by the kept share,
//! length weights, zeroing (`agent_trainer.py`; Wang et al. 2025, arXiv:2504.20073).
//!
//! - `reweight "group-deviation"`: A·σ_g / (max σ + 1e-6), with σ_g the deviation (ddof 1) of a group's scores and the
//!   largest over the kept groups.
//! - `loss-scaling`: A·ρ or A·√ρ, with ρ the share of groups kept.
//! - `length-weight`: A·mean(length) / (length + 1e-6), over rows; the mean is over those with response tokens.
//! - `zero-task`: 0, so that only entropy and KL move the policy.
//!
//! How it differs from RAGEN: a group of one has deviation 0, there 1; returns, which a critic learns, stay as they
//! are.

use super::{Credit, Rewards};
use crate::config::{choice, section};
use crate::stats;

/// Added to a divisor.
const EPSILON: f64 = 1e-6;

section! {
    /// The fields of every estimator.
    pub struct Common {
        /// What groups are weighed by.
        pub reweight: Reweight,
        /// How advantages shrink with the share of groups kept.
        pub loss_scaling: LossScaling,
        /// Whether a row's advantages are divided by its length over the mean length.
        pub length_weight: bool,
        /// Whether all advantages are 0, as an ablation: entropy and KL alone move the policy.
        pub zero_task: bool,
    }
}

choice! {
    /// What groups are weighed by.
    pub enum Reweight {
        /// Nothing.
        "none" => None,
        /// The deviation of their scores, over the largest: a soft filter.
        "group-deviation" => GroupDeviation,
    }
}

choice! {
    /// How advantages shrink with the share of groups kept.
    pub enum LossScaling {
        /// Not at all.
        "none" => None,
        /// In proportion.
        "linear" => Linear,
        /// With its root.
        "sqrt" => Sqrt,
    }
}

impl Common {
    /// Weighs the credits of the kept groups, of `groups` in all.
    pub(super) fn apply(&self, kept: &[Rewards<'_>], groups: usize, credits: &mut [Credit]) {
        if self.reweight == Reweight::GroupDeviation {
            let spreads: Vec<f64> = kept.iter().map(|group| stats::std(&group.scores, 1)).collect();
            let largest = spreads.iter().copied().fold(0.0, f64::max);
            for (credit, spread) in credits.iter_mut().zip(spreads) {
                credit.scale(spread / (largest + EPSILON));
            }
        }
        let share = kept.len() as f64 / groups.max(1) as f64;
        match self.loss_scaling {
            LossScaling::None => {}
            LossScaling::Linear => credits.iter_mut().for_each(|credit| credit.scale(share)),
            LossScaling::Sqrt => credits.iter_mut().for_each(|credit| credit.scale(share.sqrt())),
        }
        if self.length_weight {
            by_length(kept, credits);
        }
        if self.zero_task {
            credits.iter_mut().for_each(|credit| credit.advantages.fill(0.0));
        }
    }
}

/// Divides each row's advantages by its length over the mean length.
fn by_length(kept: &[Rewards<'_>], credits: &mut [Credit]) {
    let lengths: Vec<f64> = kept.iter().flat_map(Rewards::spans).map(|span| span.len() as f64).collect();
    let lengths: Vec<f64> = lengths.into_iter().filter(|length| *length > 0.0).collect();
    let mean = stats::mean(&lengths);
    for (group, credit) in kept.iter().zip(credits) {
        for span in group.spans() {
            let weight = mean / (span.len() as f64 + EPSILON);
            credit.advantages[span].iter_mut().for_each(|advantage| *advantage *= weight);
        }
    }
}
