//! Shortest solutions.

use super::super::grid::Direction;
use super::board::{Room, State};
use std::collections::BTreeSet;

/// States seen before a search gives up, checked between levels: so where a state is within the limit, those on
/// its solution are.
const LIMIT: usize = 20_000;

/// The shortest solution in player moves, the first of equals in the order of [`Direction::ALL`]. Breadth-first over
/// player and boxes, without states in which a box has left every way to a target. None where there
/// is none or the search would pass its limit of about 20,000 states.
pub(super) fn shortest(room: &Room, start: &State) -> Option<Vec<Direction>> {
    if room.solved(start) {
        return Some(Vec::new());
    }
    let live = live(room);
    if start.boxes.iter().any(|&cell| !live[cell]) {
        return None;
    }
    let mut seen = BTreeSet::from([start.clone()]);
    let mut nodes = vec![(start.clone(), 0, Direction::Up)];
    let mut level = 0..1;
    while !level.is_empty() && nodes.len() <= LIMIT {
        for parent in level.clone() {
            for direction in Direction::ALL {
                let Some((next, pushed)) = room.go(&nodes[parent].0, direction) else { continue };
                let lost = pushed.is_some_and(|cell| !live[room.next(cell, direction)]);
                if lost || seen.contains(&next) {
                    continue;
                }
                seen.insert(next.clone());
                let solved = pushed.is_some() && room.solved(&next);
                nodes.push((next, parent, direction));
                if solved {
                    return Some(trace(&nodes));
                }
            }
        }
        level = level.end..nodes.len();
    }
    None
}

/// The moves from the first node to the last.
fn trace(nodes: &[(State, usize, Direction)]) -> Vec<Direction> {
    let mut moves = Vec::new();
    let mut at = nodes.len() - 1;
    while at > 0 {
        moves.push(nodes[at].2);
        at = nodes[at].1;
    }
    moves.reverse();
    moves
}

/// The cells from which a lone box can be pushed to some target: what pulling from the targets reaches.
fn live(room: &Room) -> Vec<bool> {
    let mut live = room.target.clone();
    let mut queue: Vec<usize> = (0..live.len()).filter(|&cell| live[cell]).collect();
    while let Some(cell) = queue.pop() {
        for direction in Direction::ALL {
            let from = room.next(cell, direction);
            if !room.wall[from] && !live[from] && !room.wall[room.next(from, direction)] {
                live[from] = true;
                queue.push(from);
            }
        }
    }
    live
}

/// What the next push of a plan does: `box 2 3 to 4 1 Down Left; push Left from 2 4; at 1 4 Down`. Where the box ends
/// up and in which directions that is, where to stand, where the player is and in which directions that place lies.
/// None for an empty plan.
pub(super) fn thought(room: &Room, state: &State, plan: &[Direction]) -> Option<String> {
    let (mut at, mut push, mut end) = (state.clone(), None, 0);
    for &direction in plan {
        let (after, pushed) = room.go(&at, direction)?;
        at = after;
        let Some(from) = pushed else { continue };
        if push.is_none() || end == from {
            end = room.next(from, direction);
        }
        push.get_or_insert((from, direction));
    }
    let (from, direction): (usize, Direction) = push?;
    let stand = room.next(from, direction.opposite());
    let bare = |cell| room.shape.bare(cell);
    let toward = |from, to| -> String {
        room.shape.toward(from, to).into_iter().map(|direction| format!(" {}", direction.name())).collect()
    };
    Some(format!(
        "box {} to {}{}; push {} from {}; at {}{}",
        bare(from),
        bare(end),
        toward(from, end),
        direction.name(),
        bare(stand),
        bare(state.player),
        toward(state.player, stand)
    ))
}
