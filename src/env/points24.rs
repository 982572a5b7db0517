//! Points24: make 24 of four cards, written token by token, after GymCards (Zhai et al. 2024, "Fine-tuning large
//! vision-language models as decision-making agents"; verl-agent's Points24).
//!
//! How we differ: see `cards`; a hand that no formula solves is left out, unless `solvable #false` asks for it.

use super::cards::{Operator, Rules};
use super::{Environment, Episode};
use crate::config::section;
use crate::rng::Stream;
use crate::trajectory::Split;

section! {
    /// Points24: write a formula of four cards that makes the target, token by token.
    ///
    /// `=` ends the formula: solved for 10 if it makes the target and uses each card once, else failed for 0. Other
    /// tokens pay 0.
    pub struct Points24 epoch 1 {
        /// What the formula must make.
        pub target: usize where 1..=10000,
        /// Whether only hands are dealt that have a solution.
        pub solvable: bool,
    }
}

impl Points24 {
    fn rules(&self) -> Rules {
        Rules {
            domain: "task/points24",
            cards: 4,
            target: self.target,
            operators: &Operator::ALL,
            brackets: true,
            solvable: self.solvable,
        }
    }
}

impl Environment for Points24 {
    fn instruction(&self) -> String {
        self.rules().instruction()
    }

    fn start(&self, split: Split, index: u64, _: Stream) -> Box<dyn Episode> {
        self.rules().start(split, index)
    }

    fn identity(&self, split: Split, index: u64) -> String {
        self.rules().identity(split, index)
    }

    /// A hand may take thousands of formulas to solve.
    fn is_slow(&self) -> bool {
        true
    }

    fn feasible(&self) -> Result<(), String> {
        self.rules().feasible()
    }
}
