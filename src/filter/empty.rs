//! What a step does that keeps fewer groups than it plays.
//!
//! `refill` is DAPO's dynamic sampling (Yu et al. 2025, arXiv:2503.14476, §3.2): while fewer than `rollout.groups` are
//! kept and tries are left, as many fresh tasks are played and filtered on their own; the kept groups of all rounds, in
//! order, are cut to `rollout.groups`.
//!
//! How it differs from DAPO: the number of tries is bounded (verl's code bounds it too, and raises an error); what is
//! short after the last is learnt from as it is. Success is reported of all that was played.

use crate::config::{section, variants};

variants! {
    /// What a step does that keeps fewer groups than it plays.
    pub enum EmptyConfig: "empty" {
        "skip" => Skip(Skip),
        "refill" => Refill(Refill),
    }
}

section! {
    /// It learns from what is kept; from nothing, nothing.
    pub struct Skip epoch 1 {}
}

section! {
    /// It plays fresh tasks until `rollout.groups` are kept (DAPO's dynamic sampling, arXiv:2503.14476).
    pub struct Refill epoch 1 {
        /// Rounds of `rollout.groups` tasks after the first, at most.
        pub tries: usize where 1..=1000,
    }
}

impl EmptyConfig {
    /// Rounds that a step may play.
    #[must_use]
    pub fn rounds(&self) -> usize {
        match self {
            EmptyConfig::Skip(_) => 1,
            EmptyConfig::Refill(refill) => refill.tries + 1,
        }
    }
}
