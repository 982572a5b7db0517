//! A player that looks two moves ahead: expectimax over the next tile, with a board worth more the more its large tiles
//! lie along a snake from one corner.

use super::ACTIONS;
use super::board::Board;
use crate::env::grid::Direction;

/// Weight of a tile by its cell: powers of two along the snake.
const SNAKE: [u32; 16] = [15, 14, 13, 12, 8, 9, 10, 11, 7, 6, 5, 4, 0, 1, 2, 3];

/// The legal move with the best prospect, the first of equals; None where no move is legal.
pub(super) fn best(board: &Board) -> Option<Direction> {
    let mut best = None;
    for direction in ACTIONS {
        let (slid, merged) = board.slide(direction);
        if slid == *board {
            continue;
        }
        let prospect = f64::from(merged) + prospect(&slid);
        if best.is_none_or(|(_, found)| prospect > found) {
            best = Some((direction, prospect));
        }
    }
    best.map(|(direction, _)| direction)
}

/// Mean over the tile that appears of the best next move's worth.
fn prospect(slid: &Board) -> f64 {
    let mut total = 0.0;
    for cell in (0..16).filter(|&cell| slid.at(cell) == 0) {
        for (tile, chance) in [(1, 0.9), (2, 0.1)] {
            let board = slid.with(cell, tile);
            let worth = ACTIONS.into_iter().filter_map(|direction| {
                let (next, merged) = board.slide(direction);
                (next != board).then(|| f64::from(merged) + worth(&next))
            });
            total += chance * worth.fold(0.0, f64::max);
        }
    }
    total / slid.empty().max(1) as f64
}

fn worth(board: &Board) -> f64 {
    let tile = |cell: usize| if board.at(cell) == 0 { 0.0 } else { (1u64 << board.at(cell)) as f64 };
    let along: f64 = (0..16).map(|cell| tile(cell) * (1u64 << SNAKE[cell]) as f64).sum();
    along / (1u64 << 12) as f64 + 8.0 * board.empty() as f64
}
