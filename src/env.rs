//! Text environments: immutable descriptions that hand out episodes. They know words and rewards, no token.

use crate::config::variants;
use crate::rng::Stream;
use crate::trajectory::{Split, Task};

pub mod bandit;
pub mod blackjack;
mod cards;
pub mod countdown;
pub mod ez_points;
pub mod frozen_lake;
pub mod game_2048;
pub mod grid;
pub mod math;
pub mod number_line;
pub mod points24;
mod rational;
pub mod rubiks_cube;
pub mod sokoban;
pub mod sudoku;

variants! {
    /// The environment that a task plays.
    pub enum EnvConfig: "env" {
        "sokoban" => Sokoban(sokoban::Sokoban),
        "frozen-lake" => FrozenLake(frozen_lake::FrozenLake),
        "bandit" => Bandit(bandit::Bandit),
        "countdown" => Countdown(countdown::Countdown),
        "2048" => Game2048(game_2048::Game2048),
        "sudoku" => Sudoku(sudoku::Sudoku),
        "rubiks-cube" => RubiksCube(rubiks_cube::RubiksCube),
        "number-line" => NumberLine(number_line::NumberLine),
        "ez-points" => EzPoints(ez_points::EzPoints),
        "points24" => Points24(points24::Points24),
        "blackjack" => Blackjack(blackjack::Blackjack),
        "math" => Math(math::Math),
    }
}

/// Rules, rendering and task generator of an environment.
pub trait Environment: Sync {
    /// Role, goal and rules as the prompt states them. Depends on the configuration alone, so that the legend is the
    /// board's.
    fn instruction(&self) -> String;

    /// Starts task `index` of `split`: a pure function of this value, the split and the index. Only what happens
    /// in the episode (slips, pay-outs) is drawn from `dynamics`.
    ///
    /// # Panics
    /// Where [`Environment::feasible`] is an error.
    fn start(&self, split: Split, index: u64, dynamics: Stream) -> Box<dyn Episode>;

    /// What tells two tasks apart, as text: no value occurs in two splits.
    fn identity(&self, split: Split, index: u64) -> String;

    /// Whether the fields fit together, so that every split has tasks: what the fields' own ranges cannot say. To be
    /// asked before anything else.
    ///
    /// # Errors
    /// What is wrong, naming the field to change.
    fn feasible(&self) -> Result<(), String> {
        Ok(())
    }

    /// Whether all members of a group are to get the same `dynamics`.
    fn shared_dynamics(&self) -> bool {
        false
    }

    /// Whether starting or stepping an episode, or its expert, may take milliseconds: its episodes then run on several
    /// threads.
    fn is_slow(&self) -> bool {
        false
    }

    /// The expert's actions from start to end where nothing happens by chance: the shortest solution known.
    fn shortest(&self, split: Split, index: u64) -> Vec<String> {
        let episode = self.start(split, index, Stream::new("expert", 0, &[]));
        episode.expert(usize::MAX).map_or_else(Vec::new, |advice| advice.actions)
    }
}

/// Candidates that a generator draws for one task before it gives up, which [`Environment::feasible`] rules out.
const ATTEMPTS: u64 = 10_000;

/// What is wrong with a line of JSON, and at which of its columns.
fn in_line(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let what = text.rsplit_once(" at line ").map_or(text.as_str(), |(what, _)| what);
    format!("{what} at column {}", error.column())
}

/// Whether a content belongs to the held-out split: one in eight, by its BLAKE3.
fn held_out(text: &str) -> bool {
    blake3::hash(text.as_bytes()).as_bytes()[0].is_multiple_of(8)
}

/// The first candidate whose text lies in `split`. Splits are disjoint by content, whatever the indices.
fn draw<T>(
    domain: &str,
    split: Split,
    index: u64,
    mut candidate: impl FnMut(&mut Stream) -> Option<T>,
    text: impl Fn(&T) -> String,
) -> Option<T> {
    let number = match split {
        Split::Train => 0,
        Split::Eval => 1,
    };
    (0..ATTEMPTS)
        .filter_map(|attempt| candidate(&mut Stream::new(domain, 0, &[number, index, attempt])))
        .find(|drawn| held_out(&text(drawn)) == (split == Split::Eval))
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
            Self::Countdown(env) => env,
            Self::Game2048(env) => env,
            Self::Sudoku(env) => env,
            Self::RubiksCube(env) => env,
            Self::NumberLine(env) => env,
            Self::EzPoints(env) => env,
            Self::Points24(env) => env,
            Self::Blackjack(env) => env,
            Self::Math(env) => env,
        }
    }
}

/// A running episode.
pub trait Episode: Send + Sync {
    /// The state as text.
    fn observe(&self) -> String;

    /// The names of the actions, in the order in which prompts list them. Where more can be said than a list holds,
    /// some actions that are legal now: what a player may guess from.
    fn actions(&self) -> &[String];

    /// The action that a piece of an answer means, under its own name; None costs the format penalty. Whatever the
    /// words, it takes a bounded time. Here: one of [`Episode::actions`], whatever its case.
    fn understand(&self, words: &str) -> Option<String> {
        fn lower(text: &str) -> impl Iterator<Item = char> {
            text.chars().flat_map(char::to_lowercase)
        }
        self.actions().iter().find(|action| lower(action).eq(lower(words))).cloned()
    }

    /// Takes an action that [`Episode::understand`] gave, in this state or an earlier one.
    ///
    /// # Panics
    /// After the episode has ended, or for another name.
    fn act(&mut self, action: &str) -> Step;

    /// The expert's next moves (one at least, and no more than `most`, which is not 0) and a thought of at most 120
    /// characters that depends on the state and names them. None where no expert can help any more.
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
    /// By the names that [`Episode::act`] takes.
    pub actions: Vec<String>,
}
