//! A room, the state within it, and their text.

use super::super::grid::{Direction, Render, Shape};

/// What a cell shows, in the order of [`super::Sokoban::symbols`].
pub(super) const NAMES: [&str; 7] = ["wall", "floor", "target", "box on target", "box", "player", "player on target"];

/// The vocabulary in which levels are compared and told apart, whatever an experiment shows.
pub(super) const CANONICAL: [&str; 7] = ["#", "_", "O", "√", "X", "P", "S"];

/// The kinds that the lines of coordinates name, in their order.
const LINES: [(&str, usize); 5] =
    [("Targets", 2), ("Boxes", 4), ("Boxes on target", 3), ("Player", 5), ("Player on target", 6)];

/// What never moves. The outermost cells are walls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Room {
    pub(super) shape: Shape,
    pub(super) wall: Vec<bool>,
    pub(super) target: Vec<bool>,
}

/// What moves.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct State {
    pub(super) player: usize,
    /// Ascending.
    pub(super) boxes: Vec<usize>,
}

impl State {
    pub(super) fn new(player: usize, mut boxes: Vec<usize>) -> Self {
        boxes.sort_unstable();
        Self { player, boxes }
    }
}

impl Room {
    /// The cell next to one of the inside.
    pub(super) fn next(&self, cell: usize, direction: Direction) -> usize {
        match direction {
            Direction::Up => cell - self.shape.columns,
            Direction::Down => cell + self.shape.columns,
            Direction::Left => cell - 1,
            Direction::Right => cell + 1,
        }
    }

    /// The state after a move, with the box's old cell where one was pushed; none where the way is blocked.
    pub(super) fn go(&self, state: &State, direction: Direction) -> Option<(State, Option<usize>)> {
        let ahead = self.next(state.player, direction);
        if self.wall[ahead] {
            return None;
        }
        let Ok(pushed) = state.boxes.binary_search(&ahead) else {
            return Some((State { player: ahead, boxes: state.boxes.clone() }, None));
        };
        let behind = self.next(ahead, direction);
        if self.wall[behind] || state.boxes.binary_search(&behind).is_ok() {
            return None;
        }
        let mut boxes = state.boxes.clone();
        boxes[pushed] = behind;
        Some((State::new(ahead, boxes), Some(ahead)))
    }

    /// The number of boxes on targets.
    pub(super) fn covered(&self, state: &State) -> usize {
        state.boxes.iter().filter(|&&cell| self.target[cell]).count()
    }

    pub(super) fn solved(&self, state: &State) -> bool {
        state.boxes.iter().all(|&cell| self.target[cell])
    }

    /// The index of a cell's symbol.
    fn kind(&self, state: &State, cell: usize) -> usize {
        let boxed = state.boxes.binary_search(&cell).is_ok();
        match (self.wall[cell], self.target[cell], boxed, state.player == cell) {
            (true, ..) => 0,
            (_, false, false, false) => 1,
            (_, true, false, false) => 2,
            (_, true, true, _) => 3,
            (_, false, true, _) => 4,
            (_, false, _, true) => 5,
            (_, true, _, true) => 6,
        }
    }

    /// The board in a vocabulary.
    pub(super) fn draw<S: AsRef<str>>(&self, state: &State, symbols: &[S]) -> String {
        self.shape.draw(|cell| symbols[self.kind(state, cell)].as_ref())
    }

    /// One line for each kind of thing that is there.
    fn coordinates(&self, state: &State) -> String {
        let kinds: Vec<usize> = (0..self.shape.cells()).map(|cell| self.kind(state, cell)).collect();
        let cells = |kind| (0..kinds.len()).filter(|&cell| kinds[cell] == kind).collect::<Vec<_>>();
        LINES.iter().filter_map(|&(name, kind)| self.shape.line(name, &cells(kind))).collect::<Vec<_>>().join("\n")
    }

    pub(super) fn show(&self, state: &State, render: Render, symbols: &[String]) -> String {
        render.text(|| self.coordinates(state), || self.draw(state, symbols))
    }

    /// Reads a board; the error says what a level must have and this one has not.
    pub(super) fn parse(level: &str, symbols: &[String]) -> Result<(Self, State), String> {
        let rows: Vec<&str> = level.lines().map(str::trim).filter(|row| !row.is_empty()).collect();
        let columns = rows.first().map_or(0, |row| row.chars().count());
        let shape = Shape { rows: rows.len(), columns };
        let mut kinds = Vec::new();
        for (at, row) in rows.iter().enumerate() {
            if row.chars().count() != columns {
                return Err(format!("row {at} has {} cells, row 0 has {columns}", row.chars().count()));
            }
            for symbol in row.chars() {
                let kind = symbols.iter().position(|known| known.chars().eq([symbol]));
                kinds.push(kind.ok_or_else(|| format!("row {at}: `{symbol}` is none of {}", symbols.join(" ")))?);
            }
        }
        let cells = |wanted: &[usize]| -> Vec<usize> {
            (0..kinds.len()).filter(|&cell| wanted.contains(&kinds[cell])).collect()
        };
        let edge = |cell: usize| Direction::ALL.iter().any(|&direction| shape.step(cell, direction).is_none());
        if (0..kinds.len()).any(|cell| edge(cell) && kinds[cell] != 0) {
            return Err("the outermost cells must be walls".into());
        }
        let (players, boxes, targets) = (cells(&[5, 6]), cells(&[3, 4]), cells(&[2, 3, 6]));
        match players[..] {
            [player] if !boxes.is_empty() && boxes.len() == targets.len() => {
                let wall = kinds.iter().map(|&kind| kind == 0).collect();
                let target = (0..kinds.len()).map(|cell| targets.contains(&cell)).collect();
                Ok((Self { shape, wall, target }, State::new(player, boxes)))
            }
            _ => Err(format!(
                "a level has one player and as many boxes as targets; this has {} players, {} boxes, {} targets",
                players.len(),
                boxes.len(),
                targets.len()
            )),
        }
    }
}
