//! The turns of a group as steps: flat over members in order and their turns.

use std::collections::BTreeMap;

use super::unit::{Deviation, Lone, relative};
use crate::reward::step_returns;
use crate::stats;
use crate::trajectory::Group;

/// The step returns of a group's turns.
#[must_use]
pub fn returns(group: &Group, gamma: f64) -> Vec<f64> {
    group.members.iter().flat_map(|member| step_returns(&member.turns, gamma)).collect()
}

/// The returns relative to those of their class; none for a turn of no class, and where a class says nothing: it has
/// one turn, or equal returns.
#[must_use]
pub fn within<K: Ord>(
    classes: impl IntoIterator<Item = Option<K>>,
    returns: &[f64],
    by: Option<Deviation>,
) -> Vec<Option<f64>> {
    let mut members: BTreeMap<K, Vec<usize>> = BTreeMap::new();
    for (turn, class) in classes.into_iter().enumerate() {
        if let Some(class) = class {
            members.entry(class).or_default().push(turn);
        }
    }
    let mut advantages = vec![None; returns.len()];
    for turns in members.values() {
        let own: Vec<f64> = turns.iter().map(|turn| returns[*turn]).collect();
        if !stats::constant(&own) {
            let relative = relative(&own, by, Lone::Zero);
            turns.iter().zip(relative).for_each(|(turn, advantage)| advantages[*turn] = Some(advantage));
        }
    }
    advantages
}

/// Gives each turn's value to the response tokens of that turn.
#[must_use]
pub fn spread<T: Copy>(group: &Group, values: &[T]) -> Vec<T> {
    let mut first = 0;
    let mut flat = Vec::new();
    for member in &group.members {
        for row in &member.sequences {
            for (turn, response) in row.turns.iter().zip(&row.responses) {
                flat.extend(std::iter::repeat_n(values[first + turn], response.len()));
            }
        }
        first += member.turns.len();
    }
    flat
}
