//! Levels by reverse play, after gym-sokoban's generator as RAGEN uses it.
//!
//! A walk carves the floor, targets are drawn and filled with boxes, and a search pulls the boxes away. How we differ:
//! - Draws are counter-based. RAGEN retries with a salted string hash, so its failures differ between processes.
//! - The search is breadth-first with a beam of 256 states a level and 10,000 states in all, where theirs is
//!   depth-first up to 300,000: complete wherever a level fits the beam (6×6 with one box does), a hundredth of the
//!   time elsewhere. So the depth bounds the way back to a level, and of equally good levels the nearest wins.
//! - The walk starts within the clamped area; theirs may start on its edge and is clamped by its first step.
//! - The way back is kept: a level comes with a solution. Where room after room gives no level, an open one that is
//!   solvable by design takes their place.

use super::super::grid::{Direction, Shape};
use super::board::{CANONICAL, Room, State};
use crate::rng::Stream;
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// States kept of each level of the reverse search.
const BEAM: usize = 256;
/// States of a reverse search.
const STATES: usize = 10_000;

/// What the carving walk stamps around itself: three rows of three cells. All hold the centre, so that the floor hangs
/// together.
const MASKS: [[u8; 3]; 5] =
    [[0b000, 0b111, 0b000], [0b010, 0b010, 0b010], [0b000, 0b110, 0b010], [0b000, 0b110, 0b110], [0b000, 0b011, 0b010]];

/// A solvable start.
#[derive(Clone, Debug)]
pub(super) struct Level {
    pub(super) room: Room,
    pub(super) start: State,
    /// Some solution, seldom the shortest.
    pub(super) solution: Vec<Direction>,
}

impl Level {
    /// The level as text in the canonical vocabulary.
    pub(super) fn text(&self) -> String {
        self.room.draw(&self.start, &CANONICAL)
    }
}

/// The most boxes that an [`open`] room of a shape holds.
pub(super) fn capacity(shape: Shape) -> usize {
    shape.rows.saturating_sub(3) * (shape.columns.saturating_sub(2) / 3)
}

/// A random room and the best level that reverse play of at most `depth` moves finds in it; none where it finds none.
pub(super) fn carved(shape: Shape, boxes: usize, depth: usize, stream: &mut Stream) -> Option<Level> {
    let wall = carve(shape, stream);
    let mut floor: Vec<usize> = (0..shape.cells()).filter(|&cell| !wall[cell]).collect();
    if floor.len() <= boxes + 1 {
        return None;
    }
    stream.shuffle(&mut floor);
    let (player, targets) = (floor[0], &floor[1..=boxes]);
    let room = Room { shape, target: (0..shape.cells()).map(|cell| targets.contains(&cell)).collect(), wall };
    let (nodes, best) = reverse_play(&room, player, targets, depth)?;
    let mut solution = Vec::new();
    let mut at = best;
    while at > 0 {
        solution.push(nodes[at].direction.opposite());
        at = nodes[at].parent;
    }
    let best = &nodes[best];
    let mut start = State::new(best.player, best.boxes.clone());
    let stroll = stroll(&room, &mut start, best.displacement(shape, targets), stream);
    solution.splice(0..0, stroll.iter().rev().map(|direction| direction.opposite()));
    Some(Level { room, start, solution })
}

/// The walls around a walk of 1.7 · (rows + columns) steps that turns with probability 0.35 and stamps a mask at each.
fn carve(shape: Shape, stream: &mut Stream) -> Vec<bool> {
    let mut wall = vec![true; shape.cells()];
    let (mut row, mut column) = (1 + stream.below(shape.rows - 2), 1 + stream.below(shape.columns - 2));
    let mut direction = *stream.pick(&Direction::ALL);
    for _ in 0..17 * (shape.rows + shape.columns) / 10 {
        if stream.chance(0.35) {
            direction = *stream.pick(&Direction::ALL);
        }
        match direction {
            Direction::Up => row = (row - 1).max(1),
            Direction::Down => row = (row + 1).min(shape.rows - 2),
            Direction::Left => column = (column - 1).max(1),
            Direction::Right => column = (column + 1).min(shape.columns - 2),
        }
        let mask = stream.pick(&MASKS);
        for (r, bits) in mask.iter().enumerate() {
            for c in (0..3).filter(|c| bits >> (2 - c) & 1 == 1) {
                let (r, c) = (row + r - 1, column + c - 1);
                if (1..shape.rows - 1).contains(&r) && (1..shape.columns - 1).contains(&c) {
                    wall[r * shape.columns + c] = false;
                }
            }
        }
    }
    wall
}

/// A state of reverse play.
struct Node {
    player: usize,
    /// In the order of the targets on which they began.
    boxes: Vec<usize>,
    pulled: Option<usize>,
    /// How often the pulled box changed.
    swaps: usize,
    parent: usize,
    direction: Direction,
}

impl Node {
    /// How far the boxes are from their own targets, in all.
    fn displacement(&self, shape: Shape, targets: &[usize]) -> usize {
        self.boxes.iter().zip(targets).map(|(&cell, &target)| shape.distance(cell, target)).sum()
    }

    /// Targets seen empty, then swaps × displacement: the reference's score, which counts only where all are.
    fn rank(&self, room: &Room, targets: &[usize]) -> (usize, usize) {
        let empty = targets.iter().filter(|target| self.player != **target && !self.boxes.contains(target)).count();
        (empty, self.swaps * self.displacement(room.shape, targets))
    }

    /// The player steps on; a box right behind comes along. None where the way is blocked.
    fn pull(&self, room: &Room, direction: Direction, parent: usize) -> Option<Self> {
        let ahead = room.next(self.player, direction);
        if room.wall[ahead] || self.boxes.contains(&ahead) {
            return None;
        }
        let behind = room.next(self.player, direction.opposite());
        let pulled = self.boxes.iter().position(|&cell| cell == behind);
        let mut boxes = self.boxes.clone();
        let (mut last, mut swaps) = (self.pulled, self.swaps);
        if let Some(index) = pulled {
            boxes[index] = self.player;
            swaps += usize::from(last != pulled);
            last = pulled;
        }
        Some(Self { player: ahead, boxes, pulled: last, swaps, parent, direction })
    }
}

/// Pulls boxes off their targets: all states seen, and the best of those that leave every target empty to the eye, the
/// first of equals; none where there is no such state.
fn reverse_play(room: &Room, player: usize, targets: &[usize], depth: usize) -> Option<(Vec<Node>, usize)> {
    let root = Node { player, boxes: targets.to_vec(), pulled: None, swaps: 0, parent: 0, direction: Direction::Up };
    let mut seen = BTreeSet::from([State::new(player, targets.to_vec())]);
    let mut best = (0, (0, 0));
    let mut nodes = vec![root];
    let mut level = vec![0];
    for _ in 0..depth {
        let mut next = Vec::new();
        for parent in level {
            for node in Direction::ALL.iter().filter_map(|&d| nodes[parent].pull(room, d, parent)).collect::<Vec<_>>() {
                if seen.insert(State::new(node.player, node.boxes.clone())) {
                    let rank = node.rank(room, targets);
                    if rank.0 == targets.len() && rank > best.1 {
                        best = (nodes.len(), rank);
                    }
                    next.push((rank, nodes.len()));
                    nodes.push(node);
                }
            }
        }
        if next.is_empty() || nodes.len() > STATES {
            break;
        }
        if next.len() > BEAM {
            next.sort_by_key(|&(rank, _)| Reverse(rank));
        }
        level = next.into_iter().map(|(_, index)| index).take(BEAM).collect();
    }
    (best.0 > 0).then_some((nodes, best.0))
}

/// Walks the player on: with probability 0.5 (0.8 where one push would solve the level) one to three steps, each after
/// the first with probability 0.5, never back.
fn stroll(room: &Room, state: &mut State, displacement: usize, stream: &mut Stream) -> Vec<Direction> {
    let mut walk = Vec::new();
    let mut visited = vec![state.player];
    while walk.len() < 3 && stream.chance(if walk.is_empty() && displacement == 1 { 0.8 } else { 0.5 }) {
        let open = |direction: &Direction| {
            let cell = room.next(state.player, *direction);
            !room.wall[cell] && state.boxes.binary_search(&cell).is_err() && !visited.contains(&cell)
        };
        let ways: Vec<Direction> = Direction::ALL.into_iter().filter(open).collect();
        if ways.is_empty() {
            break;
        }
        let direction = *stream.pick(&ways);
        state.player = room.next(state.player, direction);
        visited.push(state.player);
        walk.push(direction);
    }
    walk
}

/// An open room with up to [`capacity`] boxes, each one push from its target, solved row by row from the last: boxes
/// stand in every third column, with a free column on both sides, below a free row that joins the columns.
pub(super) fn open(shape: Shape, boxes: usize, stream: &mut Stream) -> Level {
    let inside = |cell: usize| Direction::ALL.iter().all(|&direction| shape.step(cell, direction).is_some());
    let wall = (0..shape.cells()).map(|cell| !inside(cell)).collect();
    let mut room = Room { shape, wall, target: vec![false; shape.cells()] };
    let mut slots: Vec<usize> = (2..shape.rows - 1)
        .flat_map(|row| (0..(shape.columns - 2) / 3).map(move |group| row * shape.columns + 3 * group + 2))
        .collect();
    stream.shuffle(&mut slots);
    slots.truncate(boxes);
    let pushes: Vec<(usize, Direction)> =
        slots.iter().map(|&slot| (slot, *stream.pick(&[Direction::Left, Direction::Right]))).collect();
    for &(slot, direction) in &pushes {
        let end = room.next(slot, direction);
        room.target[end] = true;
    }
    let free: Vec<usize> = (0..shape.cells()).filter(|cell| inside(*cell) && !slots.contains(cell)).collect();
    let start = State::new(*stream.pick(&free), slots);
    let solution = solve_open(&room, start.clone(), pushes);
    Level { room, start, solution }
}

fn solve_open(room: &Room, mut state: State, mut pushes: Vec<(usize, Direction)>) -> Vec<Direction> {
    pushes.sort_by_key(|&(slot, _)| Reverse(slot));
    let mut moves = Vec::new();
    for (slot, direction) in pushes {
        let stand = room.next(slot, direction.opposite());
        let free = |cell: usize| !room.wall[cell] && state.boxes.binary_search(&cell).is_err();
        let walk = room.shape.walk(state.player, stand, free).unwrap_or_default();
        for step in walk.into_iter().chain([direction]) {
            if let Some((next, _)) = room.go(&state, step) {
                state = next;
            }
            moves.push(step);
        }
    }
    moves
}

#[cfg(test)]
mod tests {
    use super::super::solve;
    use super::*;

    fn solves(level: &Level) -> bool {
        let end = level.solution.iter().try_fold(level.start.clone(), |at, &step| Some(level.room.go(&at, step)?.0));
        end.is_some_and(|end| level.room.solved(&end)) && !level.room.solved(&level.start)
    }

    #[test]
    fn the_way_back_solves_a_carved_level_and_is_no_shorter_than_the_shortest() {
        for (index, boxes) in (0..150).map(|index| (index, 1 + index as usize % 3)) {
            let mut stream = Stream::new("test", 0, &[index]);
            let Some(level) = carved(Shape { rows: 7, columns: 6 }, boxes, 300, &mut stream) else { continue };
            assert!(solves(&level), "{}", level.text());
            let shortest = solve::shortest(&level.room, &level.start).map(|moves| moves.len());
            assert!(shortest.is_none_or(|length| length <= level.solution.len()));
        }
    }

    #[test]
    fn the_search_depth_bounds_the_way_back() {
        let longest = |depth| {
            let level = |index| carved(Shape { rows: 9, columns: 9 }, 1, depth, &mut Stream::new("test", 1, &[index]));
            (0..60).filter_map(level).map(|level| level.solution.len()).max()
        };
        assert!(longest(2) <= Some(2 + 3) && longest(300) > Some(8));
    }

    #[test]
    fn open_rooms_of_every_size_and_number_of_boxes_are_solved_by_design() {
        for (rows, columns) in (5..12).flat_map(|rows| (5..12).map(move |columns| (rows, columns))) {
            let shape = Shape { rows, columns };
            for boxes in 1..=capacity(shape) {
                for index in 0..4 {
                    let level = open(shape, boxes, &mut Stream::new("test", 2, &[index]));
                    assert!(level.start.boxes.len() == boxes && solves(&level), "{}", level.text());
                }
            }
        }
    }
}
