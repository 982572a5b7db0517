//! FrozenLake: walk to the goal, around the holes, on ice that may slip.
//!
//! Rules and observations are RAGEN's (env/frozen_lake, after gymnasium). How we differ: slips come from the episode's
//! own stream, where RAGEN seeds them with the map, so that all members of a group slip alike (`shared-ice #true` does
//! so here); coordinates leave out the start cell, and the instruction states the board's real size; where 100 maps
//! have no way to the goal, one is cleared; splits are disjoint by content.

use super::grid::{Direction, Render, Shape, names};
use super::{Advice, Environment, Episode, Outcome, Step};
use crate::config::section;
use crate::rng::Stream;
use crate::trajectory::Split;

section! {
    /// FrozenLake: walk to the goal, around the holes, on ice that may slip.
    ///
    /// Reaching the goal pays 1, all else 0. Ends at the goal, solved, or in a hole, failed.
    pub struct FrozenLake epoch 1 {
        /// Rows and columns.
        pub size: usize where 2..=64,
        /// Probability that a cell is a hole.
        pub holes: f64 where 0.0..=0.9,
        /// Probability that a move slips; half of it to each of the two directions at right angles.
        pub slip: f64 where 0.0..=1.0,
        /// What an observation shows.
        pub render: Render,
        /// Whether all members of a group slip alike.
        pub shared_ice: bool,
    }
}

/// The actions in gymnasium's order: each one's neighbours in the ring are those at right angles to it.
const ACTIONS: [Direction; 4] = [Direction::Left, Direction::Down, Direction::Right, Direction::Up];

const SYMBOLS: [(&str, &str); 6] =
    [("P", "player"), ("_", "ice"), ("O", "hole"), ("G", "goal"), ("X", "player in hole"), ("√", "player on goal")];

/// Maps drawn before a way to the goal is cleared.
const MAPS: usize = 100;

#[derive(Clone, Debug)]
struct Lake {
    shape: Shape,
    hole: Vec<bool>,
    start: usize,
    goal: usize,
}

impl Lake {
    /// A map whose goal can be reached: drawn anew until it can, the last one cleared along a way to it.
    fn new(size: usize, holes: f64, stream: &mut Stream) -> Self {
        let mut lake = Self::any(size, holes, stream);
        for _ in 1..MAPS {
            if lake.way(lake.start).is_some() {
                return lake;
            }
            lake = Self::any(size, holes, stream);
        }
        let clear = lake.shape.walk(lake.start, lake.goal, |_| true).unwrap_or_default();
        let mut at = lake.start;
        for direction in clear {
            at = lake.shape.step(at, direction).unwrap_or(at);
            lake.hole[at] = false;
        }
        lake
    }

    fn any(size: usize, holes: f64, stream: &mut Stream) -> Self {
        let shape = Shape { rows: size, columns: size };
        let mut hole: Vec<bool> = (0..shape.cells()).map(|_| stream.chance(holes)).collect();
        let start = stream.below(shape.cells());
        let goal = (start + 1 + stream.below(shape.cells() - 1)) % shape.cells();
        hole[start] = false;
        hole[goal] = false;
        Self { shape, hole, start, goal }
    }

    /// The shortest walk to the goal around the holes.
    fn way(&self, from: usize) -> Option<Vec<Direction>> {
        self.shape.walk(from, self.goal, |cell| !self.hole[cell])
    }

    fn draw(&self, player: usize) -> String {
        self.shape.draw(|cell| {
            let kind = match (cell == player, self.hole[cell], cell == self.goal) {
                (true, false, false) => 0,
                (false, false, false) => 1,
                (false, true, _) => 2,
                (false, _, true) => 3,
                (true, true, _) => 4,
                (true, _, true) => 5,
            };
            SYMBOLS[kind].0
        })
    }

    fn coordinates(&self, player: usize) -> String {
        let name = match (self.hole[player], player == self.goal) {
            (true, _) => "Player in hole",
            (_, true) => "Player on goal",
            _ => "Player",
        };
        let holes: Vec<usize> = (0..self.shape.cells()).filter(|&cell| self.hole[cell]).collect();
        let lines = [("Goal", &[self.goal][..]), (name, &[player]), ("Holes", &holes)];
        lines.iter().filter_map(|(name, cells)| self.shape.line(name, cells)).collect::<Vec<_>>().join("\n")
    }

    /// `at 3 1, goal 0 2: 3 Up 1 Right; hole Up; go Right Up`: how far the goal is, the holes next to the player, if
    /// any, and up to four of the next moves.
    fn thought(&self, player: usize, next: &[Direction]) -> String {
        let ((row, column), (to_row, to_column)) = (self.shape.place(player), self.shape.place(self.goal));
        let part = |distance: usize, direction: &str| match distance {
            0 => String::new(),
            _ => format!(" {distance} {direction}"),
        };
        let hole = |d: &Direction| self.shape.step(player, *d).is_some_and(|cell| self.hole[cell]);
        let near: Vec<Direction> = Direction::ALL.into_iter().filter(hole).collect();
        let warning = if near.is_empty() { String::new() } else { format!(" hole {};", names(&near)) };
        format!(
            "at {}, goal {}:{}{};{warning} go {}",
            self.shape.bare(player),
            self.shape.bare(self.goal),
            part(row.abs_diff(to_row), if to_row < row { "Up" } else { "Down" }),
            part(column.abs_diff(to_column), if to_column < column { "Left" } else { "Right" }),
            names(&next[..next.len().min(4)])
        )
    }
}

impl FrozenLake {
    fn find(&self, split: Split, index: u64) -> Option<Lake> {
        let candidate = |stream: &mut Stream| Some(Lake::new(self.size, self.holes, stream));
        super::draw("task/frozen-lake", split, index, candidate, |lake| lake.draw(lake.start))
    }

    fn lake(&self, split: Split, index: u64) -> Lake {
        self.find(split, index).unwrap_or_else(|| panic!("no map {index} of {}: {:?}", split.name(), self.feasible()))
    }
}

impl Environment for FrozenLake {
    fn instruction(&self) -> String {
        let slips = if self.slip > 0.0 { "The ice is slippery: a move may go sideways. " } else { "" };
        format!(
            "You are walking on a frozen lake. Reach the goal and do not step into a hole: that ends the walk. \
             A move goes one cell; at the edge you stay where you are. {slips}{}{}Actions: {}.",
            self.render.origin(Shape { rows: self.size, columns: self.size }),
            self.render.legend(SYMBOLS.into_iter()),
            ACTIONS.map(Direction::name).join(", ")
        )
    }

    fn start(&self, split: Split, index: u64, dynamics: Stream) -> Box<dyn Episode> {
        let lake = self.lake(split, index);
        Box::new(Walk {
            player: lake.start,
            lake,
            render: self.render,
            slip: self.slip,
            dynamics,
            actions: ACTIONS.map(|direction| direction.name().to_owned()),
        })
    }

    /// The map with the player on its start.
    fn identity(&self, split: Split, index: u64) -> String {
        let lake = self.lake(split, index);
        lake.draw(lake.start)
    }

    fn feasible(&self) -> Result<(), String> {
        if self.size < 2 {
            return Err("size must be at least 2".into());
        }
        let missing = [Split::Train, Split::Eval].into_iter().find(|&split| self.find(split, 0).is_none());
        missing.map_or(Ok(()), |split| Err(format!("no map of this size falls into the {} split", split.name())))
    }

    fn shared_dynamics(&self) -> bool {
        self.shared_ice
    }
}

struct Walk {
    lake: Lake,
    player: usize,
    render: Render,
    slip: f64,
    dynamics: Stream,
    actions: [String; 4],
}

impl Walk {
    fn outcome(&self) -> Option<Outcome> {
        match (self.player == self.lake.goal, self.lake.hole[self.player]) {
            (true, _) => Some(Outcome::Solved),
            (_, true) => Some(Outcome::Failed),
            _ => None,
        }
    }
}

impl Episode for Walk {
    fn observe(&self) -> String {
        self.render.text(|| self.lake.coordinates(self.player), || self.lake.draw(self.player))
    }

    fn actions(&self) -> &[String] {
        &self.actions
    }

    /// One draw an action, so that equal streams slip alike at equal steps whatever was done before.
    fn act(&mut self, action: &str) -> Step {
        assert!(self.outcome().is_none(), "the episode has ended");
        let draw = self.dynamics.uniform();
        let turn = match draw {
            _ if draw < self.slip / 2.0 => 3,
            _ if draw < self.slip => 1,
            _ => 0,
        };
        let aim = ACTIONS.iter().position(|direction| direction.name() == action);
        let aim = aim.unwrap_or_else(|| panic!("no action {action}"));
        let direction = ACTIONS[(aim + turn) % ACTIONS.len()];
        let next = self.lake.shape.step(self.player, direction);
        let effective = next.is_some();
        self.player = next.unwrap_or(self.player);
        let outcome = self.outcome();
        Step { reward: if outcome == Some(Outcome::Solved) { 1.0 } else { 0.0 }, effective, outcome }
    }

    /// The shortest way where no move slips.
    fn expert(&self, most: usize) -> Option<Advice> {
        let way = self.lake.way(self.player).filter(|way| !way.is_empty() && !self.lake.hole[self.player])?;
        let next = &way[..way.len().min(most)];
        let actions = next.iter().map(|step| step.name().to_owned()).collect();
        Some(Advice { thought: self.lake.thought(self.player, next), actions })
    }
}
