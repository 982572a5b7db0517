//! What an answer may say: RAGEN's forms, as one grammar.

/// Bytes of an answer that are read.
const LONGEST: usize = 64;

/// A number for a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Placement {
    pub(super) cell: usize,
    pub(super) number: u8,
}

impl Placement {
    /// Three numbers of 1 to `size`, between them any of the words place, at, row, col, column and the signs `( ) ,`.
    /// They are number, row and column where `place` or `at` occurs, else row, column and number: so
    /// `place 5 at row 2 col 3`, `5 at 2,3`, `(2,3,5)` and `2,3,5` are one placement.
    pub(super) fn parse(text: &str, size: usize) -> Option<Self> {
        let text = (text.len() <= LONGEST).then(|| text.to_ascii_lowercase())?;
        let (mut numbers, mut named) = (Vec::new(), false);
        let parts = text.split(|c: char| c.is_whitespace() || matches!(c, '(' | ')' | ','));
        for part in parts.filter(|part| !part.is_empty()) {
            match part {
                "place" | "at" => named = true,
                "row" | "col" | "column" => {}
                _ if part.len() <= 2 && part.bytes().all(|byte| byte.is_ascii_digit()) => {
                    numbers.push(part.parse::<usize>().ok().filter(|number| (1..=size).contains(number))?);
                }
                _ => return None,
            }
        }
        let [a, b, c] = numbers[..] else { return None };
        let (row, column, number) = if named { (b, c, a) } else { (a, b, c) };
        Some(Self { cell: (row - 1) * size + column - 1, number: number as u8 })
    }

    /// `place 5 at row 2 col 3`.
    pub(super) fn name(self, size: usize) -> String {
        format!("place {} at row {} col {}", self.number, self.cell / size + 1, self.cell % size + 1)
    }
}
