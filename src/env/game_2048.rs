//! 2048: slide the tiles together until one shows the goal.
//!
//! Rules and rewards are RAGEN's (env/game_2048). How we differ: an illegal move costs its penalty in the log reward
//! too, where theirs is lost; the game is won by the first tile that shows the goal, where theirs goes on until no move
//! is left; tiles that appear come from the episode's own stream, where theirs are seeded with the board
//! (`shared-tiles #true` gives all members of a group the same). Splits are disjoint by the first board.

mod board;
mod look_ahead;

use super::grid::Direction;
use super::{Advice, Environment, Episode, Outcome, Step};
use crate::config::section;
use crate::rng::Stream;
use crate::trajectory::Split;
use board::Board;

section! {
    /// 2048: slide the tiles together until one shows the goal.
    pub struct Game2048 epoch 1 {
        /// The tile that wins: a power of two.
        pub goal: usize where 8..=131072,
        /// Whether merged tiles that add up to s pay log₂(s + 1) / 10 instead of s.
        pub log_reward: bool,
        /// What a move that changes nothing pays.
        pub illegal: f64 where -1000.0..=0.0,
        /// Whether the same tiles appear for all members of a group as long as they move alike.
        pub shared_tiles: bool,
    }
}

/// The actions, in RAGEN's order.
const ACTIONS: [Direction; 4] = [Direction::Up, Direction::Right, Direction::Down, Direction::Left];

impl Game2048 {
    /// Two tiles on an empty board.
    fn board(&self, split: Split, index: u64) -> Board {
        let candidate = |stream: &mut Stream| Board::EMPTY.spawn(stream)?.spawn(stream);
        let found = super::draw("task/2048", split, index, candidate, Board::show);
        found.unwrap_or_else(|| panic!("no board {index} of {}", split.name()))
    }

    /// Plays from a board given as 16 tiles, row by row, 0 where there is none.
    ///
    /// # Errors
    /// What is wrong with the tiles.
    pub fn play(&self, tiles: &[u32; 16], dynamics: Stream) -> Result<Box<dyn Episode>, String> {
        Ok(self.game(Board::new(tiles)?, dynamics))
    }

    fn game(&self, board: Board, dynamics: Stream) -> Box<dyn Episode> {
        let actions = ACTIONS.map(|direction| direction.name().to_owned());
        Box::new(Game { rules: self.clone(), board, score: 0, dynamics, actions })
    }

    fn reward(&self, merged: u32) -> f64 {
        if self.log_reward { 0.1 * libm::log2(f64::from(merged) + 1.0) } else { f64::from(merged) }
    }
}

impl Environment for Game2048 {
    fn instruction(&self) -> String {
        format!(
            "You are playing 2048. A move slides all tiles as far as they go; two equal tiles that meet become one of \
             twice the value, once a move. After each move that changes the board a new 2, at times a 4, appears in \
             an empty cell. Make a tile of {}. You lose when no move changes the board. The dots are empty cells. \
             Actions: {}.",
            self.goal,
            ACTIONS.map(Direction::name).join(", ")
        )
    }

    fn start(&self, split: Split, index: u64, dynamics: Stream) -> Box<dyn Episode> {
        self.game(self.board(split, index), dynamics)
    }

    fn identity(&self, split: Split, index: u64) -> String {
        self.board(split, index).show()
    }

    fn feasible(&self) -> Result<(), String> {
        if self.goal.is_power_of_two() { Ok(()) } else { Err(format!("goal {} is no power of two", self.goal)) }
    }

    fn shared_dynamics(&self) -> bool {
        self.shared_tiles
    }
}

struct Game {
    rules: Game2048,
    board: Board,
    /// Sum of all merged tiles.
    score: u64,
    dynamics: Stream,
    actions: [String; 4],
}

impl Game {
    fn outcome(&self) -> Option<Outcome> {
        match (self.board.highest() >= self.rules.goal, self.board.stuck()) {
            (true, _) => Some(Outcome::Solved),
            (_, true) => Some(Outcome::Failed),
            _ => None,
        }
    }
}

impl Episode for Game {
    fn observe(&self) -> String {
        let mut text = self.board.show();
        text.push_str("\nLegal:");
        for direction in ACTIONS.into_iter().filter(|&direction| self.board.slide(direction).0 != self.board) {
            text.push(' ');
            text.push_str(direction.name());
        }
        text + &format!("\nScore: {}", self.score)
    }

    fn actions(&self) -> &[String] {
        &self.actions
    }

    fn act(&mut self, action: &str) -> Step {
        assert!(self.outcome().is_none(), "the episode has ended");
        let (slid, merged) = self.board.slide(Direction::named(action));
        if slid == self.board {
            return Step { reward: self.rules.illegal, effective: false, outcome: None };
        }
        self.score += u64::from(merged);
        self.board = slid.spawn(&mut self.dynamics).unwrap_or(slid);
        Step { reward: self.rules.reward(merged), effective: true, outcome: self.outcome() }
    }

    /// One move, which looks two moves ahead: no more, since the next board is chance.
    fn expert(&self, _: usize) -> Option<Advice> {
        let direction = self.outcome().is_none().then(|| look_ahead::best(&self.board))??;
        let (slid, merged) = self.board.slide(direction);
        let thought = format!("{} merges {merged}, leaves {} empty", direction.name(), slid.empty());
        Some(Advice { thought, actions: vec![direction.name().to_owned()] })
    }
}
