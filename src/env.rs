//! Text environments: immutable descriptions that hand out episodes. They know words and rewards, no token.

use crate::config::variants;
use crate::rng::Stream;
use crate::trajectory::{Split, Task};

pub mod bandit;
pub mod frozen_lake;
pub mod sokoban;

variants! {
    /// The environment that a task plays.
    pub enum EnvConfig: "env" {
        "sokoban" => Sokoban(sokoban::Sokoban),
        "frozen-lake" => FrozenLake(frozen_lake::FrozenLake),
        "bandit" => Bandit(bandit::Bandit),
    }
}

/// Rules, rendering and task generator of an environment.
pub trait Environment {
    /// Role, goal and rules as the prompt states them. Depends on the configuration alone, so that the legend is the board's.
    fn instruction(&self) -> String;

    /// Starts task `index` of `split`: a pure function of this value, the split and the index. Only what happens
    /// in the episode (slips, pay-outs) is drawn from `dynamics`.
    fn start(&self, split: Split, index: u64, dynamics: Stream) -> Box<dyn Episode>;

    /// What tells two tasks apart, as text: no value may occur in two splits.
    fn identity(&self, split: Split, index: u64) -> String;
}

impl EnvConfig {
    /// The record's name of task `index` of `split`.
    #[must_use]
    pub fn task(&self, split: Split, index: u64) -> Task {
        Task { env: self.name().to_owned(), epoch: self.epoch(), split, index }
    }
}

impl std::ops::Deref for EnvConfig {
    type Target = dyn Environment;

    fn deref(&self) -> &Self::Target {
        match self {
            Self::Sokoban(env) => env,
            Self::FrozenLake(env) => env,
            Self::Bandit(env) => env,
        }
    }
}

/// A running episode.
pub trait Episode {
    /// The state as text.
    fn observe(&self) -> String;

    /// The names of the actions, in the order in which prompts list them. A reply's action matches one of
    /// them whatever its case; the others are ignored and cost the format penalty.
    fn actions(&self) -> &[String];

    /// Takes action number `action` of [`Episode::actions`].
    ///
    /// # Panics
    /// After the episode has ended, or out of range.
    fn act(&mut self, action: usize) -> Step;

    /// The expert's next moves (at most `most`, at least one while the episode runs) and a short thought that
    /// depends on the state. None where no expert can help any more.
    fn expert(&self, most: usize) -> Option<Advice>;
}

/// What one action did.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    pub reward: f64,
    /// Whether the state changed.
    pub effective: bool,
    /// Set when the environment is over.
    pub outcome: Option<Outcome>,
}

/// How an environment ends an episode of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Solved,
    Failed,
}

/// The expert's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advice {
    pub thought: String,
    /// Numbers of [`Episode::actions`].
    pub actions: Vec<usize>,
}
