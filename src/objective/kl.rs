//! Estimators of KL(π ‖ π_ref) from one sampled token (Schulman 2020, "Approximating KL divergence"), of
//! d = log π − log π_ref: k1 = d, k2 = d²/2, k3 = e^(−d) + d − 1, abs = |d|.
//!
//! As a loss their derivatives matter, not their values. For tokens of the policy itself, E[∇k2] = ∇KL(π ‖ π_ref),
//! E[∇k3] = ∇KL(π_ref ‖ π), and E[∇k1] = 0: `k1`, which is RAGEN's default, only adds noise.
//!
//! As in verl, k3 bounds −d to ±20 and then itself to 10; beyond a bound its derivative is 0. That is so from d = −2.61
//! on: a token that the policy has made 13.6 times less likely than the reference is no longer pulled back. verl's
//! straight-through `+` spellings are `k2` here.

use crate::config::{choice, section};

/// Bound on the exponent of k3.
const EXPONENT: f64 = 20.0;
/// Bound on k3.
const LARGEST: f64 = 10.0;

section! {
    /// Distance to the frozen start model.
    pub struct KlConfig {
        /// Its weight in the loss; with 0 no reference model is made.
        pub coef: f64 where 0.0..=1000.0,
        /// How it is estimated from a sampled token.
        pub estimator: KlEstimator,
    }
}

choice! {
    /// An estimator of KL(π ‖ π_ref), of d = log π − log π_ref.
    pub enum KlEstimator {
        /// d: without bias, but as a loss its expected gradient is 0.
        "k1" => K1,
        /// d²/2: its expected gradient is the KL's.
        "k2" => K2,
        /// e^(−d) + d − 1: without bias and never negative; its expected gradient is that of KL(π_ref ‖ π).
        "k3" => K3,
        /// |d|.
        "abs" => Abs,
    }
}

impl KlEstimator {
    /// The estimate at d = log π − log π_ref, and its derivative in d.
    #[must_use]
    pub fn at(self, d: f64) -> (f64, f64) {
        match self {
            KlEstimator::K1 => (d, 1.0),
            KlEstimator::K2 => (0.5 * d * d, d),
            KlEstimator::K3 => {
                let exponent = (-d).clamp(-EXPONENT, EXPONENT);
                let (slope, bounded) = (libm::expm1(exponent), d.abs() > EXPONENT);
                let kl = slope - exponent;
                (kl.clamp(-LARGEST, LARGEST), if bounded || kl > LARGEST { 0.0 } else { -slope })
            }
            KlEstimator::Abs if d == 0.0 => (0.0, 0.0),
            KlEstimator::Abs => (d.abs(), d.signum()),
        }
    }
}
