//! Windows: which history a prompt shows. One window a file, each a pure function of the episode so far.
//!
//! Under `full` an episode is one conversation and one row, to which every turn is appended. Under the others every
//! turn has a row of its own: a prompt made for it, and its response. Where such a prompt would leave no room for a
//! response of full length, its oldest turns are left out, each as a whole.

pub mod full;
pub mod limited;
pub mod single_turn;

pub use full::FullWindow;
pub use limited::LimitedWindow;
pub use single_turn::SingleTurnWindow;

use super::{Chat, Script};
use crate::config::variants;
use crate::trajectory::{Sequence, Turn};

variants! {
    /// Which history a prompt shows.
    pub enum WindowConfig: "window" {
        "full" => Full(FullWindow),
        "limited" => Limited(LimitedWindow),
        "single-turn" => SingleTurn(SingleTurnWindow),
    }
}

/// An episode up to the turn that a prompt is made for.
#[derive(Clone, Copy)]
pub struct History<'a> {
    pub chat: &'a Chat<'a>,
    pub script: &'a Script,
    /// The system message.
    pub system: &'a [u32],
    /// The turns played, and their rows under the window.
    pub turns: &'a [Turn],
    pub rows: &'a [Sequence],
    /// What the environment shows now.
    pub observation: &'a str,
    /// Actions that the whole episode may execute.
    pub max_actions: usize,
    /// Tokens of a response, and of a row.
    pub max_response: usize,
    pub max_context: usize,
}

impl WindowConfig {
    /// The row of the next turn up to its response; None where the row has no room for one.
    #[must_use]
    pub fn prompt(&self, history: &History<'_>) -> Option<Vec<u32>> {
        match self {
            Self::Full(_) => full::prompt(history),
            Self::Limited(window) => window.prompt(history),
            Self::SingleTurn(window) => window.prompt(history),
        }
    }

    /// Whether prompts show earlier responses as they were.
    #[must_use]
    pub fn quotes(&self) -> bool {
        !matches!(self, Self::SingleTurn(_))
    }

    /// Whether a turn goes on in the row of the turn before.
    #[must_use]
    pub fn appends(&self) -> bool {
        matches!(self, Self::Full(_))
    }
}

impl History<'_> {
    /// The user message of a turn, the next one included. `alone`: it shows nothing of the turn before, so not what
    /// that earned.
    fn message(&self, turn: usize, alone: bool) -> String {
        let observation = self.turns.get(turn).map_or(self.observation, |turn| &turn.observation);
        let executed: usize = self.turns[..turn].iter().map(|turn| turn.executed.len()).sum();
        let before = turn.checked_sub(1).filter(|_| !alone);
        let earned = before.map(|before| self.turns[before].reward + self.turns[before].penalty);
        self.script.turn(observation, self.max_actions - executed, earned)
    }

    /// The longest of the prompts that begin with one of the last `shown` turns played, or with the next one, and leave
    /// room for a response.
    fn longest(&self, shown: usize, prompt: impl Fn(usize) -> Vec<u32>) -> Option<Vec<u32>> {
        let played = self.turns.len();
        let fits = |prompt: &Vec<u32>| prompt.len() + self.max_response <= self.max_context;
        (played.saturating_sub(shown)..=played).map(prompt).find(fits)
    }
}
