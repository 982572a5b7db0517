//! EZPoints: make 12 of two cards, written token by token, after GymCards (Zhai et al. 2024, "Fine-tuning large
//! vision-language models as decision-making agents"; verl-agent's EZPoints).
//!
//! How we differ: see `cards`; the target is a setting.

use super::cards::{Operator, Rules};
use super::{Environment, Episode};
use crate::config::section;
use crate::rng::Stream;
use crate::trajectory::Split;

section! {
    /// EZPoints: write a formula of two cards that makes the target, token by token.
    ///
    /// `=` ends the formula: solved for 10 if it makes the target and uses each card once, else failed for 0. Other
    /// tokens pay 0.
    pub struct EzPoints epoch 1 {
        /// What the formula must make.
        pub target: usize where 1..=100,
    }
}

impl EzPoints {
    fn rules(&self) -> Rules {
        Rules {
            domain: "task/ez-points",
            cards: 2,
            target: self.target,
            operators: &[Operator::Add, Operator::Multiply],
            brackets: false,
            solvable: true,
        }
    }
}

impl Environment for EzPoints {
    fn instruction(&self) -> String {
        self.rules().instruction()
    }

    fn start(&self, split: Split, index: u64, _: Stream) -> Box<dyn Episode> {
        self.rules().start(split, index)
    }

    fn identity(&self, split: Split, index: u64) -> String {
        self.rules().identity(split, index)
    }

    fn feasible(&self) -> Result<(), String> {
        self.rules().feasible()
    }
}
