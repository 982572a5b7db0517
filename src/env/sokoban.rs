//! Sokoban: push every box onto a target.
//!
//! Rules, rewards and observations are RAGEN's (env/sokoban, after gym-sokoban). How we differ: legend and board share
//! one vocabulary, where RAGEN's legend ignores a changed one; coordinates come without headings, and the board's size
//! is said once, by the instruction; the generator is total and reproducible (see its file), and splits are disjoint by
//! content.

mod board;
mod generate;
mod solve;

use super::grid::{Direction, Render, Shape};
use super::{Advice, Environment, Episode, Outcome, Step};
use crate::config::section;
use crate::rng::Stream;
use crate::trajectory::Split;
use board::{NAMES, Room, State};
use generate::Level;

section! {
    /// Sokoban: push every box onto a target.
    ///
    /// An action costs 0.1; a box pushed onto a target pays 1, one pushed off it costs 1; the last one pays 10 more.
    /// Ends when every box is on a target, solved, or after `max-steps` actions, failed.
    pub struct Sokoban epoch 1 {
        /// Rows and columns, the walls around included.
        pub size: Vec<usize> where 5..=64,
        /// Boxes, and targets: at most (rows − 3) · ⌊(columns − 2) / 3⌋.
        pub boxes: usize where 1..=32,
        /// Actions after which the environment itself gives up.
        pub max_steps: usize where 1..=100000,
        /// Moves of the generator's reverse search, which bound how far a level is from its solution.
        pub search_depth: usize where 1..=10000,
        /// What an observation shows.
        pub render: Render,
        /// Seven different characters: wall, floor, target, box on target, box, player, player on target.
        pub symbols: Vec<String>,
    }
}

/// Rooms without a level before a task gets the open room.
const BARREN: usize = 32;

impl Sokoban {
    fn shape(&self) -> Shape {
        Shape { rows: self.size[0], columns: self.size[1] }
    }

    fn find(&self, split: Split, index: u64) -> Option<Level> {
        let mut barren = 0;
        let candidate = |stream: &mut Stream| {
            if barren >= BARREN {
                return Some(generate::open(self.shape(), self.boxes, stream));
            }
            let level = generate::carved(self.shape(), self.boxes, self.search_depth, stream);
            barren += usize::from(level.is_none());
            level
        };
        super::draw("task/sokoban", split, index, candidate, Level::text)
    }

    fn level(&self, split: Split, index: u64) -> Level {
        self.find(split, index).unwrap_or_else(|| panic!("no level {index} of {}: {:?}", split.name(), self.feasible()))
    }

    /// Plays a level given as rows of this configuration's symbols, whatever its size and boxes.
    ///
    /// # Errors
    /// What the text lacks: one player, as many boxes as targets, walls around.
    pub fn play(&self, level: &str) -> Result<Box<dyn Episode>, String> {
        let (room, start) = Room::parse(level, &self.symbols)?;
        Ok(Box::new(Play::new(self, room, start, None)))
    }
}

impl Environment for Sokoban {
    fn instruction(&self) -> String {
        let names = self.symbols.iter().map(String::as_str).zip(NAMES);
        format!(
            "You are solving Sokoban. Push every box onto a target. Walking into a box pushes it if the cell behind it \
             is free. You cannot pull a box, push two at once or walk through walls. {}{}Actions: {}.",
            self.render.origin(self.shape()),
            self.render.legend(names),
            Direction::ALL.map(Direction::name).join(", ")
        )
    }

    fn start(&self, split: Split, index: u64, _: Stream) -> Box<dyn Episode> {
        let Level { room, start, mut solution } = self.level(split, index);
        solution.reverse();
        Box::new(Play::new(self, room, start, Some(solution)))
    }

    fn identity(&self, split: Split, index: u64) -> String {
        self.level(split, index).text()
    }

    /// Levels with several boxes take milliseconds to make and to solve.
    fn is_slow(&self) -> bool {
        self.boxes > 1
    }

    fn feasible(&self) -> Result<(), String> {
        if self.size.len() != 2 {
            return Err(format!("size has {} numbers, not rows and columns", self.size.len()));
        }
        if self.size.iter().any(|&side| side < 5) {
            return Err("size must be at least 5 by 5".into());
        }
        let most = generate::capacity(self.shape());
        if self.boxes > most || self.boxes == 0 {
            return Err(format!("boxes must be 1 to {most} for this size"));
        }
        let single = |symbol: &String| symbol.chars().count() == 1 && !symbol.contains(char::is_whitespace);
        let repeated = |at: usize| self.symbols[..at].contains(&self.symbols[at]);
        if self.symbols.len() != NAMES.len() || !self.symbols.iter().all(single) || (0..NAMES.len()).any(repeated) {
            return Err(format!("symbols must be seven different characters: {}", NAMES.join(", ")));
        }
        let missing = [Split::Train, Split::Eval].into_iter().find(|&split| self.find(split, 0).is_none());
        missing.map_or(Ok(()), |split| Err(format!("no level of this size falls into the {} split", split.name())))
    }
}

struct Play {
    room: Room,
    state: State,
    steps: usize,
    max_steps: usize,
    render: Render,
    symbols: Vec<String>,
    actions: [String; 4],
    /// What is left of the generator's solution, last move first, while the play follows it.
    known: Option<Vec<Direction>>,
}

impl Play {
    fn new(rules: &Sokoban, room: Room, state: State, known: Option<Vec<Direction>>) -> Self {
        Self {
            room,
            state,
            steps: 0,
            max_steps: rules.max_steps,
            render: rules.render,
            symbols: rules.symbols.clone(),
            actions: Direction::ALL.map(|direction| direction.name().to_owned()),
            known,
        }
    }
}

impl Episode for Play {
    fn observe(&self) -> String {
        self.room.show(&self.state, self.render, &self.symbols)
    }

    fn actions(&self) -> &[String] {
        &self.actions
    }

    fn act(&mut self, action: &str) -> Step {
        assert!(self.steps < self.max_steps && !self.room.solved(&self.state), "the episode has ended");
        let direction = Direction::named(action);
        self.steps += 1;
        self.known = self.known.take().and_then(|mut rest| (rest.pop() == Some(direction)).then_some(rest));
        let before = self.room.covered(&self.state);
        let moved = self.room.go(&self.state, direction);
        let effective = moved.is_some();
        if let Some((state, _)) = moved {
            self.state = state;
        }
        let mut reward = -0.1 + self.room.covered(&self.state) as f64 - before as f64;
        let outcome = if self.room.solved(&self.state) {
            reward += 10.0;
            Some(Outcome::Solved)
        } else {
            (self.steps == self.max_steps).then_some(Outcome::Failed)
        };
        Step { reward, effective, outcome }
    }

    /// The shortest solution; where the search for it gives up, the generator's own while the play has followed it.
    fn expert(&self, most: usize) -> Option<Advice> {
        let known = || self.known.as_ref().map(|rest| rest.iter().rev().copied().collect());
        let plan: Vec<Direction> = solve::shortest(&self.room, &self.state).or_else(known)?;
        let next = &plan[..plan.len().min(most)];
        let actions = next.iter().map(|step| step.name().to_owned()).collect();
        Some(Advice { thought: solve::thought(&self.room, &self.state, &plan)?, actions })
    }
}
