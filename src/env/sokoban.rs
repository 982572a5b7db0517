//! Sokoban: push every box onto a target.

use super::{Environment, Episode};
use crate::config::{choice, section};
use crate::rng::Stream;
use crate::trajectory::Split;

section! {
    /// Sokoban: push every box onto a target.
    pub struct Sokoban epoch 1 {
        /// Rows and columns, the walls around included.
        pub size: Vec<usize> where 5..=64,
        /// Boxes, and targets.
        pub boxes: usize where 1..=32,
        /// Actions after which the environment itself gives up.
        pub max_steps: usize where 1..=100000,
        /// Depth of the generator's reverse search.
        pub search_depth: usize where 1..=10000,
        /// What an observation shows.
        pub render: Render,
        /// The seven characters of wall, floor, target, box on target, box, player, player on target.
        pub symbols: Vec<String>,
    }
}

choice! {
    /// What an observation shows.
    pub enum Render {
        /// The board as text.
        "grid" => Grid,
        /// Coordinates of everything but walls.
        "coord" => Coord,
        /// Both.
        "grid-coord" => GridCoord,
    }
}

impl Environment for Sokoban {
    fn instruction(&self) -> String { unimplemented!() }
    fn start(&self, _: Split, _: u64, _: Stream) -> Box<dyn Episode> { unimplemented!() }
    fn identity(&self, _: Split, _: u64) -> String { unimplemented!() }
}
