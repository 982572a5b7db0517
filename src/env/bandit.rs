//! Two-armed bandit with named arms.

use super::{Environment, Episode};
use crate::config::section;
use crate::rng::Stream;
use crate::trajectory::Split;

section! {
    /// A bandit with two arms, named by professions: one safe and low, one risky and better on average.
    pub struct Bandit epoch 1 {
        /// What the safe arm always pays.
        pub low: f64 where -1000.0..=1000.0,
        /// What the risky arm pays when it pays.
        pub high: f64 where -1000.0..=1000.0,
        /// Probability that it does; else it pays 0.
        pub chance: f64 where 0.0..=1.0,
    }
}

impl Environment for Bandit {
    fn instruction(&self) -> String { unimplemented!() }
    fn start(&self, _: Split, _: u64, _: Stream) -> Box<dyn Episode> { unimplemented!() }
    fn identity(&self, _: Split, _: u64) -> String { unimplemented!() }
}
