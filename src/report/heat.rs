//! Filter outcomes, step × group: what each group was scored by, and whether the update saw it.

use serde::Serialize;

use super::outcomes::Outcome;
use super::scale::number;

/// Bytes that a cell takes in a page, about.
pub const CELL: usize = 24;
/// Shades of a score.
const LEVELS: usize = 6;

/// The drawing and what it stands for.
#[derive(Clone, Debug, Serialize)]
pub struct HeatMap {
    pub svg: String,
    pub groups: usize,
    /// Steps that it shows.
    pub columns: usize,
    /// The first step, and the last.
    pub first: usize,
    pub last: usize,
    /// What a group is scored by.
    pub score: String,
    /// The greatest score, which has the darkest shade.
    pub most: String,
    pub kept: usize,
    /// Why groups were dropped, and how many.
    pub dropped: Vec<(&'static str, usize)>,
}

/// A cell for a pointer: the score to three digits, and why it was dropped (null: kept).
#[derive(Clone, Debug, Serialize)]
pub struct Cell(String, Option<&'static str>);

/// The map of a run's steps; none if there are none.
#[must_use]
pub fn heat_map(outcomes: &[Outcome], score: &str) -> Option<HeatMap> {
    let groups = outcomes.iter().map(|outcome| outcome.groups.len()).max().filter(|groups| *groups > 0)?;
    let cells = || outcomes.iter().flat_map(|outcome| &outcome.groups);
    let shown = |group: &super::outcomes::Verdict| group.score.abs();
    let most = cells().map(shown).filter(|score| score.is_finite()).fold(0.0, f64::max);
    let mut paths = vec![String::new(); 2 * LEVELS];
    for (x, outcome) in outcomes.iter().enumerate() {
        for (y, group) in outcome.groups.iter().enumerate() {
            let share = if most > 0.0 && shown(group).is_finite() { shown(group) / most } else { 0.0 };
            let level = ((share * LEVELS as f64) as usize).min(LEVELS - 1);
            let kept = group.reason.is_none();
            paths[2 * level + usize::from(kept)] += &format!("M{x} {y}h1v1h-1z");
        }
    }
    let (wide, said) = (outcomes.len(), format!("filter outcomes of {groups} groups over {} steps", outcomes.len()));
    let mut svg = format!(r#"<svg id="heat" viewBox="0 0 {wide} {groups}" preserveAspectRatio="none" role="img""#);
    svg += &format!(r#" aria-label="{said}">"#);
    for (number, path) in paths.iter().enumerate().filter(|(_, path)| !path.is_empty()) {
        let verdict = if number % 2 == 1 { "kept" } else { "dropped" };
        svg += &format!(r#"<path class="{verdict} l{}" d="{path}"/>"#, number / 2);
    }
    let mut dropped: Vec<(&'static str, usize)> = Vec::new();
    for reason in cells().filter_map(|group| group.reason) {
        match dropped.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, count)) => *count += 1,
            None => dropped.push((reason, 1)),
        }
    }
    Some(HeatMap {
        svg: svg + "</svg>",
        groups,
        columns: outcomes.len(),
        first: outcomes.first()?.step,
        last: outcomes.last()?.step,
        score: score.to_owned(),
        most: number(most),
        kept: cells().filter(|group| group.reason.is_none()).count(),
        dropped,
    })
}

/// The cells of each step, for a pointer.
#[must_use]
pub fn cells(outcomes: &[Outcome]) -> Vec<(usize, Vec<Cell>)> {
    let cell = |group: &super::outcomes::Verdict| Cell(number(group.score), group.reason);
    outcomes.iter().map(|outcome| (outcome.step, outcome.groups.iter().map(cell).collect())).collect()
}
