//! Rectangular boards: cells, directions, shortest walks, and how coordinates are written.

use std::fmt::Write;

use crate::config::choice;

choice! {
    /// What an observation shows.
    pub enum Render {
        /// The board as text.
        "grid" => Grid,
        /// Coordinates of everything but plain ground and walls.
        "coord" => Coord,
        /// Both.
        "grid-coord" => GridCoord,
    }
}

impl Render {
    /// An observation of the parts that this format shows, without a blank line.
    pub(super) fn text(self, coordinates: impl FnOnce() -> String, board: impl FnOnce() -> String) -> String {
        match self {
            Self::Grid => board(),
            Self::Coord => coordinates(),
            Self::GridCoord => format!("{}\n{}", coordinates(), board()),
        }
    }

    /// The instruction's sentence on coordinates; empty where none are shown.
    pub(super) fn origin(self, shape: Shape) -> String {
        match self {
            Self::Grid => String::new(),
            _ => format!(
                "Positions are (row, column), from (0, 0) at the top left to {}. ",
                shape.pair(shape.cells() - 1)
            ),
        }
    }

    /// The instruction's legend; empty where no board is shown.
    pub(super) fn legend<'a>(self, symbols: impl Iterator<Item = (&'a str, &'a str)>) -> String {
        let entries: Vec<String> = symbols.map(|(symbol, name)| format!("{symbol} {name}")).collect();
        match self {
            Self::Coord => String::new(),
            _ => format!("Symbols: {}. ", entries.join(", ")),
        }
    }
}

/// A move by one cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Direction {
    Up,
    Down,
    Left,
    Right,
}

impl Direction {
    /// In the order in which searches try them: of equally short walks the first in this order wins.
    pub(super) const ALL: [Self; 4] = [Self::Up, Self::Down, Self::Left, Self::Right];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Up => "Up",
            Self::Down => "Down",
            Self::Left => "Left",
            Self::Right => "Right",
        }
    }

    /// The direction of that name.
    ///
    /// # Panics
    /// If there is none.
    pub(super) fn named(name: &str) -> Self {
        let found = Self::ALL.into_iter().find(|direction| direction.name() == name);
        found.unwrap_or_else(|| panic!("no direction {name}"))
    }

    pub(super) fn opposite(self) -> Self {
        match self {
            Self::Up => Self::Down,
            Self::Down => Self::Up,
            Self::Left => Self::Right,
            Self::Right => Self::Left,
        }
    }
}

/// Names separated by blanks, for thoughts.
pub(super) fn names(directions: &[Direction]) -> String {
    directions.iter().map(|d| d.name()).collect::<Vec<_>>().join(" ")
}

/// The size of a board. Its cells are numbered row by row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) rows: usize,
    pub(super) columns: usize,
}

impl Shape {
    pub(super) fn cells(self) -> usize {
        self.rows * self.columns
    }

    /// Row and column of a cell, zero-indexed from the top left.
    pub(super) fn place(self, cell: usize) -> (usize, usize) {
        (cell / self.columns, cell % self.columns)
    }

    /// `(2, 3)`, as observations write a cell.
    pub(super) fn pair(self, cell: usize) -> String {
        let (row, column) = self.place(cell);
        format!("({row}, {column})")
    }

    /// `2 3`, as thoughts write a cell.
    pub(super) fn bare(self, cell: usize) -> String {
        let (row, column) = self.place(cell);
        format!("{row} {column}")
    }

    /// `Boxes: (2, 3), (4, 4)`; none for no cell.
    pub(super) fn line(self, name: &str, cells: &[usize]) -> Option<String> {
        let mut text = String::with_capacity(name.len() + 8 * cells.len());
        text.push_str(name);
        for (number, &cell) in cells.iter().enumerate() {
            let (row, column) = self.place(cell);
            // Writing to a String does not fail.
            let _ = write!(text, "{} ({row}, {column})", if number == 0 { ":" } else { "," });
        }
        (!cells.is_empty()).then_some(text)
    }

    /// The board as rows of symbols.
    pub(super) fn draw<'a>(self, symbol: impl Fn(usize) -> &'a str) -> String {
        let mut text = String::with_capacity(2 * self.cells());
        for cell in 0..self.cells() {
            if cell > 0 && cell.is_multiple_of(self.columns) {
                text.push('\n');
            }
            text.push_str(symbol(cell));
        }
        text
    }

    /// The neighbour of a cell; none beyond the edge.
    pub(super) fn step(self, cell: usize, direction: Direction) -> Option<usize> {
        let (row, column) = self.place(cell);
        match direction {
            Direction::Up => (row > 0).then(|| cell - self.columns),
            Direction::Down => (row + 1 < self.rows).then(|| cell + self.columns),
            Direction::Left => (column > 0).then(|| cell - 1),
            Direction::Right => (column + 1 < self.columns).then(|| cell + 1),
        }
    }

    /// The directions in which `to` lies from `from`: at most one up or down, then one left or right.
    pub(super) fn toward(self, from: usize, to: usize) -> Vec<Direction> {
        let ((row, column), (to_row, to_column)) = (self.place(from), self.place(to));
        let vertical = if to_row < row { Direction::Up } else { Direction::Down };
        let horizontal = if to_column < column { Direction::Left } else { Direction::Right };
        let parts = [(row != to_row, vertical), (column != to_column, horizontal)];
        parts.into_iter().filter(|(lies, _)| *lies).map(|(_, direction)| direction).collect()
    }

    /// The number of steps between two cells of an empty board.
    pub(super) fn distance(self, a: usize, b: usize) -> usize {
        let ((r, c), (s, d)) = (self.place(a), self.place(b));
        r.abs_diff(s) + c.abs_diff(d)
    }

    /// The shortest walk over free cells, by breadth-first search; none where there is none.
    pub(super) fn walk(self, from: usize, to: usize, free: impl Fn(usize) -> bool) -> Option<Vec<Direction>> {
        let mut came: Vec<Option<Direction>> = vec![None; self.cells()];
        let mut queue = vec![from];
        let mut next = 0;
        while next < queue.len() && came[to].is_none() {
            for direction in Direction::ALL {
                match self.step(queue[next], direction) {
                    Some(cell) if cell != from && came[cell].is_none() && free(cell) => {
                        came[cell] = Some(direction);
                        queue.push(cell);
                    }
                    _ => {}
                }
            }
            next += 1;
        }
        let mut walk = Vec::new();
        let mut at = to;
        while at != from {
            let direction = came[at]?;
            walk.push(direction);
            at = self.step(at, direction.opposite())?;
        }
        walk.reverse();
        Some(walk)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn walks_are_shortest_and_go_around() {
        let shape = Shape { rows: 3, columns: 3 };
        let around = shape.walk(0, 2, |cell| cell != 1).map(|walk| names(&walk));
        assert_eq!(around.as_deref(), Some("Down Right Right Up"));
        assert_eq!(shape.walk(4, 4, |_| false), Some(vec![]));
        assert_eq!(shape.walk(0, 8, |cell| cell % 2 == 0), None);
        assert_eq!((shape.distance(0, 8), shape.bare(5), shape.pair(5)), (4, "1 2".into(), "(1, 2)".into()));
    }
}
