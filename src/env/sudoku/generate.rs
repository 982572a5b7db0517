//! Full boards, and puzzles dug out of them.

use super::board::Board;
use super::{Sudoku, Technique};
use crate::rng::Stream;

/// Puzzles that fail before a task gives up.
pub(super) const BARREN: usize = 64;

/// Boards that a search visits before it gives up: almost none needs a tenth of them.
const BUDGET: usize = 2000;

/// A board to fill, and one way to.
#[derive(Clone, Debug)]
pub(super) struct Puzzle {
    pub(super) givens: Board,
    pub(super) solution: Board,
}

/// A full board, drawn by search with numbers in random order, and emptied cell by cell in random order wherever the
/// rules still hold. None where that ends with too few blanks.
pub(super) fn puzzle(rules: &Sudoku, stream: &mut Stream) -> Option<Puzzle> {
    let solution = Search::new(1, Some(stream)).run(Board::new(rules.size))?;
    let mut cells: Vec<usize> = (0..solution.cells()).collect();
    stream.shuffle(&mut cells);
    let mut givens = solution.clone();
    let mut left = rules.blanks;
    for cell in cells {
        if left == 0 {
            break;
        }
        let number = givens.at(cell);
        givens.set(cell, 0);
        if !rules.unique || solvable(rules.technique, &givens) {
            left -= 1;
        } else {
            givens.set(cell, number);
        }
    }
    (left == 0).then_some(Puzzle { givens, solution })
}

/// A solution, if the search finds one.
pub(super) fn solution(givens: &Board) -> Option<Board> {
    Search::new(1, None).run(givens.clone())
}

/// Whether the technique leads to one solution.
fn solvable(technique: Technique, givens: &Board) -> bool {
    let mut board = givens.clone();
    let hidden = technique != Technique::Naked;
    match technique {
        _ if !board.deduce(hidden) => false,
        _ if board.full() => true,
        Technique::Any => {
            let mut search = Search::new(2, None);
            search.run(board);
            search.found == 1 && search.budget > 0
        }
        Technique::Naked | Technique::Hidden => false,
    }
}

/// A search for solutions, until there are as many as wanted.
struct Search<'a> {
    wanted: usize,
    found: usize,
    budget: usize,
    /// Orders the numbers that are tried.
    order: Option<&'a mut Stream>,
}

impl<'a> Search<'a> {
    fn new(wanted: usize, order: Option<&'a mut Stream>) -> Self {
        Self { wanted, found: 0, budget: BUDGET, order }
    }

    /// The last solution found.
    fn run(&mut self, mut board: Board) -> Option<Board> {
        self.budget = self.budget.checked_sub(1)?;
        if !board.deduce(true) {
            return None;
        }
        let open = (0..board.cells()).filter(|&cell| board.at(cell) == 0);
        let Some(cell) = open.min_by_key(|&cell| board.candidates(cell).count_ones()) else {
            self.found += 1;
            return Some(board);
        };
        let candidates = board.candidates(cell);
        let mut numbers: Vec<u8> = (1..=16).filter(|number| candidates >> number & 1 == 1).collect();
        if let Some(stream) = &mut self.order {
            stream.shuffle(&mut numbers);
        }
        let mut last = None;
        for number in numbers {
            if self.found == self.wanted {
                break;
            }
            let mut next = board.clone();
            next.set(cell, number);
            last = self.run(next).or(last);
        }
        last
    }
}
