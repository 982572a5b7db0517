//! Sixteen tiles and how they slide.

use super::super::grid::Direction;
use crate::rng::Stream;

/// What a cell shows, by its exponent.
const NAMES: [&str; 18] = [
    ".", "2", "4", "8", "16", "32", "64", "128", "256", "512", "1024", "2048", "4096", "8192", "16384", "32768",
    "65536", "131072",
];

/// Exponents of two, row by row; 0 where there is no tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Board([u8; 16]);

impl Board {
    pub(super) const EMPTY: Self = Self([0; 16]);

    pub(super) fn new(tiles: &[u32; 16]) -> Result<Self, String> {
        let wrong = tiles.iter().find(|&&tile| tile == 1 || !(tile == 0 || tile.is_power_of_two()) || tile > 1 << 17);
        match wrong {
            Some(tile) => Err(format!("{tile} is no tile")),
            None => Ok(Self(tiles.map(|tile| if tile == 0 { 0 } else { tile.trailing_zeros() as u8 }))),
        }
    }

    /// The cell's exponent.
    pub(super) fn at(&self, cell: usize) -> u8 {
        self.0[cell]
    }

    pub(super) fn empty(&self) -> usize {
        self.0.iter().filter(|&&tile| tile == 0).count()
    }

    /// The highest tile's value.
    pub(super) fn highest(&self) -> usize {
        1 << self.0.iter().max().unwrap_or(&0)
    }

    /// Whether no move changes the board: it is full and no neighbours are equal.
    pub(super) fn stuck(&self) -> bool {
        let beside = |cell: usize| cell % 4 < 3 && self.0[cell] == self.0[cell + 1];
        let below = |cell: usize| cell < 12 && self.0[cell] == self.0[cell + 4];
        !(0..16).any(|cell| self.0[cell] == 0 || beside(cell) || below(cell))
    }

    /// With a tile of exponent `tile` in the empty cell `cell`.
    pub(super) fn with(mut self, cell: usize, tile: u8) -> Self {
        self.0[cell] = tile;
        self
    }

    /// With a 2, or once in ten a 4, in a random empty cell; None where none is empty.
    pub(super) fn spawn(self, stream: &mut Stream) -> Option<Self> {
        let empty = self.empty();
        let chosen = (empty > 0).then(|| stream.below(empty))?;
        let cell = (0..16).filter(|&cell| self.0[cell] == 0).nth(chosen)?;
        Some(self.with(cell, if stream.chance(0.1) { 2 } else { 1 }))
    }

    /// All tiles slid, and the sum of those that merged. From the edge that they slide to, each pair of equals becomes
    /// one, and what has merged merges no more.
    pub(super) fn slide(&self, direction: Direction) -> (Self, u32) {
        let (mut slid, mut merged) = (Self::EMPTY, 0);
        for line in 0..4 {
            let cell = |at: usize| match direction {
                Direction::Left => 4 * line + at,
                Direction::Right => 4 * line + 3 - at,
                Direction::Up => 4 * at + line,
                Direction::Down => 4 * (3 - at) + line,
            };
            let (mut filled, mut open) = (0, false);
            for tile in (0..4).map(|at| self.0[cell(at)]).filter(|&tile| tile > 0) {
                if open && slid.0[cell(filled - 1)] == tile {
                    slid.0[cell(filled - 1)] += 1;
                    merged += 2 << tile;
                    open = false;
                } else {
                    slid.0[cell(filled)] = tile;
                    filled += 1;
                    open = true;
                }
            }
        }
        (slid, merged)
    }

    /// Four rows of numbers, a dot where there is no tile.
    pub(super) fn show(&self) -> String {
        let mut text = String::with_capacity(96);
        for (cell, &tile) in self.0.iter().enumerate() {
            if cell > 0 {
                text.push(if cell.is_multiple_of(4) { '\n' } else { ' ' });
            }
            text.push_str(NAMES[usize::from(tile)]);
        }
        text
    }
}
