//! Exact distances from solved, in quarter turns, from a table of all 3,674,160 cubes up to their position.
//!
//! With sticker 0 in place 0 the turns of the other three faces reach everything: turning a face is turning the
//! opposite one the other way and then the whole cube. A cube is then a permutation of seven corners and, for each, the
//! axis along which its sticker of axis 0 looks. The seventh follows from the others, and a turn moves both parts
//! without regard to the other.

use super::cube::Cube;
use crate::rng::Stream;
use std::sync::LazyLock;

/// Orders of seven corners.
const ORDERS: usize = 5040;
/// Ways in which six corners can be twisted.
const TWISTS: usize = 729;
/// Turns that leave corner 0 in its place, each beside its inverse: of U, R and F.
const FREE: [usize; 6] = [0, 1, 6, 7, 8, 9];

const UNSEEN: u8 = u8::MAX;

/// What is known of all cubes, by `order · TWISTS + twist`.
struct Table {
    orders: Vec<[usize; FREE.len()]>,
    twists: Vec<[usize; FREE.len()]>,
    /// Turns from solved.
    turns: Vec<u8>,
    /// All cubes, the nearer ones first.
    nearest: Vec<u32>,
}

impl Table {
    /// Where a free turn leads.
    fn go(&self, at: usize, turn: usize) -> usize {
        self.orders[at / TWISTS][turn] * TWISTS + self.twists[at % TWISTS][turn]
    }
}

/// Quarter turns from solved.
pub(super) fn distance(cube: &Cube) -> usize {
    usize::from(TABLE.turns[number(&cube.upright())])
}

/// One of the cubes that are so far from solved, each as likely, sticker 0 in place 0.
pub(super) fn drawn(distance: usize, stream: &mut Stream) -> Cube {
    let nearer = |turns: usize| TABLE.nearest.partition_point(|&at| usize::from(TABLE.turns[at as usize]) < turns);
    let (from, to) = (nearer(distance), nearer(distance + 1));
    let mut at = TABLE.nearest[from + stream.below(to - from)] as usize;
    let mut way = Vec::new();
    while TABLE.turns[at] > 0 {
        let back = |&turn: &usize| TABLE.turns[TABLE.go(at, turn)] < TABLE.turns[at];
        let turn = (0..FREE.len()).find(back).unwrap_or_else(|| unreachable!("a neighbour is nearer"));
        at = TABLE.go(at, turn);
        way.push(FREE[turn ^ 1]);
    }
    way.iter().rev().fold(Cube::new(), |cube, &turn| cube.turn(turn))
}

fn number(cube: &Cube) -> usize {
    order(cube) * TWISTS + twist(cube)
}

/// The rank of the order of corners 1 to 7.
fn order(cube: &Cube) -> usize {
    let corner = |at: usize| cube.sticker(3 * at) / 3;
    (1..8).fold(0, |rank, at| rank * (8 - at) + (at + 1..8).filter(|&later| corner(later) < corner(at)).count())
}

/// The axes along which the axis 0 stickers at corners 1 to 6 look, as digits of base 3.
fn twist(cube: &Cube) -> usize {
    let looks = |at: usize| (0..3).find(|axis| cube.sticker(3 * at + axis).is_multiple_of(3)).unwrap_or(0);
    (1..7).fold(0, |rank, at| rank * 3 + looks(at))
}

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    let first = number(&Cube::new());
    let (orders, twists) = (moves(ORDERS, order), moves(TWISTS, twist));
    let mut table = Table { orders, twists, turns: vec![UNSEEN; ORDERS * TWISTS], nearest: vec![first as u32] };
    table.turns[first] = 0;
    let mut next = 0;
    while next < table.nearest.len() {
        let at = table.nearest[next] as usize;
        for turn in 0..FREE.len() {
            let to = table.go(at, turn);
            if table.turns[to] == UNSEEN {
                table.turns[to] = table.turns[at] + 1;
                table.nearest.push(to as u32);
            }
        }
        next += 1;
    }
    table
});

/// Where each free turn takes each rank of one part of the number.
fn moves(ranks: usize, rank: fn(&Cube) -> usize) -> Vec<[usize; FREE.len()]> {
    let start = Cube::new();
    let mut examples = vec![None; ranks];
    examples[rank(&start)] = Some(start);
    let mut queue = vec![start];
    let mut table = vec![[0; FREE.len()]; ranks];
    let mut next = 0;
    while next < queue.len() {
        let cube = queue[next];
        for (turn, &free) in FREE.iter().enumerate() {
            let moved = cube.turn(free);
            table[rank(&cube)][turn] = rank(&moved);
            if examples[rank(&moved)].is_none() {
                examples[rank(&moved)] = Some(moved);
                queue.push(moved);
            }
        }
        next += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::super::cube::MOVES;
    use super::*;

    /// Cubes at each distance, as the literature counts them for quarter turns.
    #[test]
    fn as_many_cubes_lie_at_each_distance_as_are_known() {
        let known =
            [1, 6, 27, 120, 534, 2_256, 8_969, 33_058, 114_149, 360_508, 930_588, 1_350_852, 782_536, 90_280, 276];
        let count = |turns: usize| TABLE.turns.iter().filter(|&&entry| usize::from(entry) == turns).count();
        assert_eq!((0..15).map(count).collect::<Vec<_>>(), known);
        assert!(!TABLE.turns.contains(&UNSEEN));
    }

    #[test]
    fn a_turn_changes_the_distance_by_one_and_a_position_does_not() {
        let mut cube = Cube::new().positioned(5);
        for step in 0..500 {
            let next = cube.turn(step * step * 7 % MOVES.len());
            assert_eq!(distance(&next).abs_diff(distance(&cube)), 1, "quarter turns are odd permutations");
            assert_eq!(distance(&next), distance(&next.upright()));
            cube = next;
        }
    }
}
