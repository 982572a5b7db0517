//! Rubik's cube of 2×2×2: bring every face to one colour.
//!
//! Observations, actions and reward are RAGEN's (env/rubikscube). How we differ: every move is a turn of the cube by
//! construction, where their B is not; a scramble is an exact number of turns away from solved, where theirs may cancel
//! itself out; splits are disjoint by the stickers shown.

mod cube;
mod distance;

use super::{Advice, Environment, Episode, Outcome, Step};
use crate::config::section;
use crate::rng::Stream;
use crate::trajectory::Split;
use cube::{Cube, MOVES};
use distance::distance;

section! {
    /// Rubik's cube of 2×2×2, in quarter turns: bring every face to one colour. Pays 1 when solved.
    pub struct RubiksCube epoch 1 {
        /// Quarter turns that a solution needs at least.
        pub distance: usize where 1..=14,
        /// Turns after which the environment itself gives up.
        pub max_steps: usize where 1..=100000,
    }
}

impl RubiksCube {
    fn find(&self, split: Split, index: u64) -> Option<Cube> {
        let candidate = |stream: &mut Stream| {
            let position = stream.below(24);
            Some(distance::drawn(self.distance, stream).positioned(position))
        };
        super::draw("task/rubiks-cube", split, index, candidate, Cube::show)
    }

    fn cube(&self, split: Split, index: u64) -> Cube {
        self.find(split, index).unwrap_or_else(|| panic!("no cube {index} of {}: {:?}", split.name(), self.feasible()))
    }

    /// Plays from the solved cube after the moves named, separated by blanks.
    ///
    /// # Errors
    /// The word that is no move.
    pub fn play(&self, moves: &str) -> Result<Box<dyn Episode>, String> {
        let mut cube = Cube::new();
        for word in moves.split_whitespace() {
            cube = cube.turn(number(word).ok_or_else(|| format!("{word} is no move"))?);
        }
        Ok(self.twist(cube))
    }

    fn twist(&self, cube: Cube) -> Box<dyn Episode> {
        Box::new(Twist { cube, steps: 0, max_steps: self.max_steps, actions: MOVES.map(str::to_owned) })
    }
}

/// The number of the move of that name.
fn number(name: &str) -> Option<usize> {
    MOVES.iter().position(|turn| *turn == name)
}

impl Environment for RubiksCube {
    fn instruction(&self) -> String {
        format!(
            "You are solving a Rubik's cube of 2x2x2. Bring each face to one colour. A move turns a face by a quarter, \
             clockwise as seen from outside; with ' it turns the other way. Faces are Up, Left, Front, Right, Back and \
             Down; each is shown from outside, upper row first, U with the back above and D with the front above. \
             Actions: {}.",
            MOVES.join(", ")
        )
    }

    fn start(&self, split: Split, index: u64, _: Stream) -> Box<dyn Episode> {
        self.twist(self.cube(split, index))
    }

    fn identity(&self, split: Split, index: u64) -> String {
        self.cube(split, index).show()
    }

    fn feasible(&self) -> Result<(), String> {
        if self.max_steps < self.distance {
            return Err(format!("max-steps {} cannot undo a distance of {}", self.max_steps, self.distance));
        }
        let missing = [Split::Train, Split::Eval].into_iter().find(|&split| self.find(split, 0).is_none());
        missing.map_or(Ok(()), |split| Err(format!("no cube this far falls into the {} split", split.name())))
    }
}

struct Twist {
    cube: Cube,
    steps: usize,
    max_steps: usize,
    actions: [String; 12],
}

impl Episode for Twist {
    fn observe(&self) -> String {
        self.cube.show()
    }

    fn actions(&self) -> &[String] {
        &self.actions
    }

    fn act(&mut self, action: &str) -> Step {
        assert!(self.steps < self.max_steps && !self.cube.solved(), "the episode has ended");
        let turn = number(action).unwrap_or_else(|| panic!("no action {action}"));
        self.cube = self.cube.turn(turn);
        self.steps += 1;
        if self.cube.solved() {
            return Step { reward: 1.0, effective: true, outcome: Some(Outcome::Solved) };
        }
        Step { reward: 0.0, effective: true, outcome: (self.steps == self.max_steps).then_some(Outcome::Failed) }
    }

    /// A shortest solution: each time the first move that comes nearer.
    fn expert(&self, most: usize) -> Option<Advice> {
        let away = distance(&self.cube);
        let mut cube = self.cube;
        let mut names = Vec::new();
        for left in (0..away).rev().take(most) {
            let nearer = (0..MOVES.len()).find(|&turn| distance(&cube.turn(turn)) == left)?;
            cube = cube.turn(nearer);
            names.push(MOVES[nearer].to_owned());
        }
        let shown = &names[..names.len().min(14)];
        let thought = format!("{away} from solved; {} leaves {}", shown.join(" "), away - names.len());
        (away > 0 && self.steps < self.max_steps).then_some(Advice { thought, actions: names })
    }
}
