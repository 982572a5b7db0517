//! The critic: what foresees returns, for estimators that compare with it.

use crate::config::{section, variants};

variants! {
    /// What foresees returns.
    pub enum CriticConfig: "critic" {
        "none" => None(NoCritic),
        "own" => Own(OwnCritic),
        "shared" => Shared(SharedCritic),
    }
}

section! {
    /// Nothing does.
    pub struct NoCritic {}
}

section! {
    /// A decoder of its own, made from the policy's start weights, with a value head of zeros; its rate follows
    /// `update.schedule`, and its steps are otherwise those of `update`.
    pub struct OwnCritic epoch 1 {
        /// Peak learning rate.
        pub learning_rate: f64 where 0.0..=1.0,
        /// First steps, in which the critic learns and the policy does not.
        pub warmup: usize where 0..=100000000,
        /// Bound on its gradient's global norm.
        pub clip_norm: f64 where 0.0..=1e12,
    }
}

section! {
    /// A value head of zeros on the policy's own trunk; `objective.value-coef` weighs its loss in the policy's.
    pub struct SharedCritic epoch 1 {}
}
