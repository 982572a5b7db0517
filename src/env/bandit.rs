//! Two-armed bandit with named arms, after RAGEN (env/bandit).
//!
//! How we differ: the task decides names and order, so all members of a group see the same prompt, and only the
//! pay-out is drawn per episode, where RAGEN's per-instance counter shows them different arms. The names are ours, and
//! the better arm is the one with the larger mean, whichever that is.

use super::{Advice, Environment, Episode, Outcome, Step};
use crate::config::section;
use crate::rng::Stream;
use crate::trajectory::Split;

section! {
    /// A bandit with two arms, named by professions: one safe and low, one risky. Solved by the one that pays more on
    /// average.
    ///
    /// An arm pays what it says. Ends with the first pull, solved if the arm is the one that pays more on average.
    pub struct Bandit epoch 1 {
        /// What the safe arm always pays.
        pub low: f64 where -1000.0..=1000.0,
        /// What the risky arm pays when it pays.
        pub high: f64 where -1000.0..=1000.0,
        /// Probability that it does; else it pays 0.
        pub chance: f64 where 0.0..=1.0,
    }
}

/// A safe and a risky profession.
type Pair = (&'static str, &'static str);

const TRAIN: [Pair; 12] = [
    ("Gardener", "Stuntman"),
    ("Postman", "Racer"),
    ("Tailor", "Gambler"),
    ("Baker", "Wildcatter"),
    ("Clerk", "Explorer"),
    ("Beekeeper", "Privateer"),
    ("Miller", "Prospector"),
    ("Cobbler", "Daredevil"),
    ("Potter", "Speculator"),
    ("Shepherd", "Buccaneer"),
    ("Notary", "Acrobat"),
    ("Weaver", "Matador"),
];

const EVAL: [Pair; 8] = [
    ("Janitor", "Astronaut"),
    ("Cashier", "Mountaineer"),
    ("Typist", "Skydiver"),
    ("Florist", "Gladiator"),
    ("Caretaker", "Mercenary"),
    ("Bookbinder", "Boxer"),
    ("Milkman", "Diver"),
    ("Curator", "Poacher"),
];

/// The pair of task `index` and whether its risky arm stands first. All pairs come in turn, then again in the other
/// order; among any run of pairs half of the risky arms stand first.
fn arms(split: Split, index: u64) -> (Pair, bool) {
    let pairs: &[Pair] = match split {
        Split::Train => &TRAIN,
        Split::Eval => &EVAL,
    };
    let (round, pair) = (index / pairs.len() as u64, index % pairs.len() as u64);
    (pairs[pair as usize], (pair % 2 == 1) != (round % 2 == 1))
}

impl Environment for Bandit {
    fn instruction(&self) -> String {
        "You are pulling one arm of a machine with two arms, once. Each arm is named after a profession, and its name \
         is the only hint at how it pays: one arm always pays the same, the other is a gamble. Choose the arm that \
         would pay more on average over many pulls. Actions: the names of the two arms."
            .to_owned()
    }

    fn start(&self, split: Split, index: u64, dynamics: Stream) -> Box<dyn Episode> {
        let ((safe, risky), risky_first) = arms(split, index);
        let arms = if risky_first { [risky, safe] } else { [safe, risky] };
        Box::new(Pull {
            rules: self.clone(),
            arms: arms.map(str::to_owned),
            risky: usize::from(!risky_first),
            pulled: false,
            dynamics,
        })
    }

    fn identity(&self, split: Split, index: u64) -> String {
        let ((safe, risky), risky_first) = arms(split, index);
        if risky_first { format!("{risky}, {safe}") } else { format!("{safe}, {risky}") }
    }

    fn feasible(&self) -> Result<(), String> {
        let mean = self.high * self.chance;
        if mean == self.low {
            Err(format!("both arms pay {mean} on average: change low, high or chance"))
        } else {
            Ok(())
        }
    }
}

struct Pull {
    rules: Bandit,
    arms: [String; 2],
    risky: usize,
    pulled: bool,
    dynamics: Stream,
}

impl Pull {
    fn better(&self) -> usize {
        if self.rules.high * self.rules.chance > self.rules.low { self.risky } else { 1 - self.risky }
    }
}

impl Episode for Pull {
    /// The arms' names, before the pull and after it.
    fn observe(&self) -> String {
        format!("Arms: {}", self.arms.join(", "))
    }

    fn actions(&self) -> &[String] {
        &self.arms
    }

    fn act(&mut self, action: &str) -> Step {
        let arm = self.arms.iter().position(|arm| arm == action).filter(|_| !self.pulled);
        let arm = arm.unwrap_or_else(|| panic!("the episode has ended, or there is no arm {action}"));
        self.pulled = true;
        let reward = match arm == self.risky {
            false => self.rules.low,
            true if self.dynamics.chance(self.rules.chance) => self.rules.high,
            true => 0.0,
        };
        let outcome = if arm == self.better() { Outcome::Solved } else { Outcome::Failed };
        Step { reward, effective: true, outcome: Some(outcome) }
    }

    fn expert(&self, _: usize) -> Option<Advice> {
        let better = &self.arms[self.better()];
        let thought = format!("{better} pays more on average");
        (!self.pulled).then(|| Advice { thought, actions: vec![better.clone()] })
    }
}
