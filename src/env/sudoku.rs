//! Sudoku of 4×4, 9×9 or 16×16: fill the empty cells.
//!
//! Actions and rewards are RAGEN's (env/sudoku). How we differ: a puzzle has one solution unless `unique #false` says
//! otherwise; a cell pays for its first number only, where theirs pays for every change of mind; refused actions count
//! as steps; answers are read by a grammar, where theirs looks for patterns anywhere in the text; the board is plain
//! text. Splits are disjoint by content.

mod action;
mod board;
mod generate;

use super::{Advice, Environment, Episode, Outcome, Step};
use crate::config::{choice, section};
use crate::rng::Stream;
use crate::trajectory::Split;
use action::Placement;
use board::{Board, UNITS};
use generate::Puzzle;

section! {
    /// Sudoku: each row, column and box gets every number once. The first number in a cell pays 1 if it is the
    /// solution's and 0.5 if it is another that breaks no rule, a refused action −0.1, the last cell 10 more.
    pub struct Sudoku epoch 1 {
        /// Rows and columns: 4, 9 or 16.
        pub size: usize where 4..=16,
        /// Empty cells of a puzzle: at most five in eight.
        pub blanks: usize where 1..=160,
        /// What a solution needs at most.
        pub technique: Technique,
        /// Whether a puzzle has one solution. Without, any full board that breaks no rule solves it.
        pub unique: bool,
        /// What is shown besides the board.
        pub feedback: Feedback,
        /// Actions after which the environment itself gives up.
        pub max_steps: usize where 1..=100000,
    }
}

choice! {
    /// Reasoning that fills a board.
    pub enum Technique {
        /// Some empty cell always has one number that fits.
        "naked-single" => Naked,
        /// Or some number has one cell left in a row, column or box.
        "hidden-single" => Hidden,
        /// Whatever it takes.
        "any" => Any,
    }
}

choice! {
    /// What is shown besides the board.
    pub enum Feedback {
        "none" => None,
        /// What became of the last action.
        "result" => Result,
        /// And which numbers fit, where at most ten cells are empty.
        "candidates" => Candidates,
    }
}

impl Sudoku {
    fn find(&self, split: Split, index: u64) -> Option<Puzzle> {
        let mut barren = 0;
        let candidate = |stream: &mut Stream| {
            let puzzle = (barren < generate::BARREN).then(|| generate::puzzle(self, stream)).flatten();
            barren += usize::from(puzzle.is_none());
            puzzle
        };
        super::draw("task/sudoku", split, index, candidate, |puzzle| puzzle.givens.show(|_| false))
    }

    fn puzzle(&self, split: Split, index: u64) -> Puzzle {
        self.find(split, index)
            .unwrap_or_else(|| panic!("no puzzle {index} of {}: {:?}", split.name(), self.feasible()))
    }

    /// Plays a puzzle of this size given as its numbers row by row, separated by blanks, `_` where a cell is empty.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn play(&self, givens: &str) -> Result<Box<dyn Episode>, String> {
        let givens = Board::parse(self.size, givens)?;
        let solution = generate::solution(&givens).ok_or("no solution was found")?;
        Ok(self.fill(Puzzle { givens, solution }))
    }

    fn fill(&self, puzzle: Puzzle) -> Box<dyn Episode> {
        let cells = self.size * self.size;
        let mut play = Play {
            rules: self.clone(),
            board: puzzle.givens.clone(),
            puzzle,
            paid: vec![false; cells],
            steps: 0,
            last: String::new(),
            placements: Vec::new(),
        };
        play.placements = play.legal();
        Box::new(play)
    }
}

impl Environment for Sudoku {
    fn instruction(&self) -> String {
        let numbers: Vec<String> = (1..=self.size).map(|number| number.to_string()).collect();
        format!(
            "You are solving a Sudoku. Fill the empty cells, shown as _, so that each row, each column and each box \
             between the lines has every one of the numbers {} once. A number that is already there is refused. Given \
             numbers stay; your own, marked *, may be replaced. Rows and columns count from 1 at the top left. Action: \
             place N at row R col C.",
            numbers.join(" ")
        )
    }

    fn start(&self, split: Split, index: u64, _: Stream) -> Box<dyn Episode> {
        self.fill(self.puzzle(split, index))
    }

    fn identity(&self, split: Split, index: u64) -> String {
        self.puzzle(split, index).givens.show(|_| false)
    }

    /// A large puzzle takes many solutions to make.
    fn is_slow(&self) -> bool {
        self.size > 4
    }

    fn feasible(&self) -> Result<(), String> {
        if ![4, 9, 16].contains(&self.size) {
            return Err(format!("size {} is none of 4, 9 and 16", self.size));
        }
        let most = self.size * self.size * 5 / 8;
        if self.blanks == 0 || self.blanks > most {
            return Err(format!("blanks must be 1 to {most} for this size"));
        }
        if self.max_steps < self.blanks {
            return Err(format!("max-steps {} cannot fill {} blanks", self.max_steps, self.blanks));
        }
        if !self.unique && self.technique != Technique::Any {
            return Err("unique #false leaves no technique to deduce by: technique must be any".into());
        }
        let missing = [Split::Train, Split::Eval].into_iter().find(|&split| self.find(split, 0).is_none());
        missing.map_or(Ok(()), |split| Err(format!("no puzzle of these falls into the {} split", split.name())))
    }
}

struct Play {
    rules: Sudoku,
    puzzle: Puzzle,
    board: Board,
    /// Cells whose first number has been paid.
    paid: Vec<bool>,
    steps: usize,
    last: String,
    placements: Vec<String>,
}

impl Play {
    fn over(&self) -> bool {
        self.board.full() || self.steps == self.rules.max_steps
    }

    fn given(&self, cell: usize) -> bool {
        self.puzzle.givens.at(cell) != 0
    }

    /// What forbids a placement; None where nothing does.
    fn refusal(&self, Placement { cell, number }: Placement) -> Option<String> {
        if self.given(cell) {
            return Some("that cell is given".into());
        }
        let open = self.board.without(cell);
        let unit = (0..3).find(|&unit| open.has(unit, cell, number))?;
        Some(format!("its {} has a {number}", UNITS[unit]))
    }

    /// Placements that are not refused: into empty cells, or into own ones where none of those is left.
    fn legal(&self) -> Vec<String> {
        let size = self.rules.size;
        let into = |cell: usize, fits: u32| {
            let numbers = (1..=size as u8).filter(move |number| fits >> number & 1 == 1);
            numbers.map(move |number| Placement { cell, number }.name(size))
        };
        let empty = (0..size * size).filter(|&cell| self.board.at(cell) == 0);
        let found: Vec<String> = empty.flat_map(|cell| into(cell, self.board.candidates(cell))).collect();
        if !found.is_empty() {
            return found;
        }
        let own = (0..size * size).filter(|&cell| self.board.at(cell) != 0 && !self.given(cell));
        own.flat_map(|cell| into(cell, self.board.without(cell).candidates(cell))).collect()
    }

    /// The next number of the solution and why it is the next: a wrong one to replace, what a technique finds, or the
    /// cell with the fewest candidates. None where wrong numbers stand in the way of all.
    fn reason(&self, board: &Board) -> Option<(Placement, String)> {
        let right = |cell: usize| Placement { cell, number: self.puzzle.solution.at(cell) };
        let fits = |board: &Board, cell: usize| board.candidates(cell) >> right(cell).number & 1 == 1;
        let cells = self.rules.size * self.rules.size;
        let wrong = |&cell: &usize| board.at(cell) != 0 && board.at(cell) != right(cell).number;
        if let Some(cell) = (0..cells).filter(wrong).find(|&cell| fits(&board.without(cell), cell)) {
            return Some((right(cell), format!("{} is wrong there", board.at(cell))));
        }
        let mut empty = (0..cells).filter(|&cell| board.at(cell) == 0 && fits(board, cell));
        let naked = empty.clone().find(|&cell| board.candidates(cell).count_ones() == 1);
        if let Some(cell) = naked {
            return Some((right(cell), "no other number fits".into()));
        }
        let alone = |cell: usize| (0..3).find(|&unit| board.only_place(unit, cell, right(cell).number));
        if let Some((cell, unit)) = empty.find_map(|cell| Some((cell, alone(cell)?))) {
            return Some((right(cell), format!("its {} has no other place for it", UNITS[unit])));
        }
        let open = (0..cells).filter(|&cell| board.at(cell) == 0 && fits(board, cell));
        let cell = open.min_by_key(|&cell| board.candidates(cell).count_ones())?;
        Some((right(cell), format!("the best of {} by trial", board.candidates(cell).count_ones())))
    }

    fn take(&mut self, placement: Placement) -> (f64, bool) {
        let Placement { cell, number } = placement;
        let said = placement.name(self.rules.size);
        if let Some(refusal) = self.refusal(placement) {
            self.last = format!("{said}: refused, {refusal}");
            return (-0.1, false);
        }
        self.last = format!("{said}: done");
        let effective = self.board.at(cell) != number;
        self.board.set(cell, number);
        let first = !std::mem::replace(&mut self.paid[cell], true);
        let worth = if number == self.puzzle.solution.at(cell) { 1.0 } else { 0.5 };
        let complete = if self.board.full() { 10.0 } else { 0.0 };
        (if first { worth } else { 0.0 } + complete, effective)
    }
}

impl Episode for Play {
    fn observe(&self) -> String {
        let mut text = self.board.show(|cell| self.board.at(cell) != 0 && !self.given(cell));
        if self.rules.feedback != Feedback::None && self.steps > 0 {
            text = format!("{text}\nLast: {}", self.last);
        }
        let size = self.rules.size;
        let empty: Vec<usize> = (0..size * size).filter(|&cell| self.board.at(cell) == 0).collect();
        if self.rules.feedback == Feedback::Candidates && (1..=10).contains(&empty.len()) {
            let fitting = |cell: usize| {
                let numbers = (1..=size).filter(|number| self.board.candidates(cell) >> number & 1 == 1);
                let numbers: Vec<String> = numbers.map(|number| number.to_string()).collect();
                format!("row {} col {}: {}", cell / size + 1, cell % size + 1, numbers.join(" "))
            };
            let lines: Vec<String> = empty.into_iter().map(fitting).collect();
            text = format!("{text}\nCandidates:\n{}", lines.join("\n"));
        }
        text
    }

    fn actions(&self) -> &[String] {
        &self.placements
    }

    /// A placement in any of the grammar's forms.
    fn understand(&self, words: &str) -> Option<String> {
        Placement::parse(words, self.rules.size).map(|placement| placement.name(self.rules.size))
    }

    fn act(&mut self, action: &str) -> Step {
        assert!(!self.over(), "the episode has ended");
        let placement = Placement::parse(action, self.rules.size);
        let (reward, effective) = self.take(placement.unwrap_or_else(|| panic!("no placement {action}")));
        self.steps += 1;
        if effective {
            self.placements = self.legal();
        }
        let outcome = match (self.board.full(), self.over()) {
            (true, _) => Some(Outcome::Solved),
            (_, true) => Some(Outcome::Failed),
            _ => None,
        };
        Step { reward, effective, outcome }
    }

    fn expert(&self, most: usize) -> Option<Advice> {
        if self.over() {
            return None;
        }
        let size = self.rules.size;
        let (mut board, mut actions, mut thought) = (self.board.clone(), Vec::new(), String::new());
        while actions.len() < most {
            let Some((placement, reason)) = self.reason(&board) else { break };
            board.set(placement.cell, placement.number);
            if actions.is_empty() {
                let (row, column) = (placement.cell / size + 1, placement.cell % size + 1);
                thought = format!("row {row} col {column} is {}: {reason}", placement.number);
            }
            actions.push(placement.name(size));
        }
        (!actions.is_empty()).then_some(Advice { thought, actions })
    }
}
