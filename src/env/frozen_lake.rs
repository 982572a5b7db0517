//! FrozenLake.

use super::{Environment, Episode};
use crate::config::section;
use crate::env::sokoban::Render;
use crate::rng::Stream;
use crate::trajectory::Split;

section! {
    /// FrozenLake: walk to the goal, around the holes, on ice that may slip.
    pub struct FrozenLake epoch 1 {
        /// Rows and columns.
        pub size: usize where 2..=64,
        /// Probability that a cell is a hole.
        pub holes: f64 where 0.0..=0.9,
        /// Probability that a move slips to one of the two directions at right angles to it.
        pub slip: f64 where 0.0..=1.0,
        /// What an observation shows.
        pub render: Render,
        /// Whether all members of a group slip alike.
        pub shared_ice: bool,
    }
}

impl Environment for FrozenLake {
    fn instruction(&self) -> String { unimplemented!() }
    fn start(&self, _: Split, _: u64, _: Stream) -> Box<dyn Episode> { unimplemented!() }
    fn identity(&self, _: Split, _: u64) -> String { unimplemented!() }
}
