//! Cells that a sweep leaves out, and what its excludes get wrong.

use super::{Axis, Cell, Place, Values, error};
use crate::config::Diagnostic;

/// Values of an axis that a mistake lists.
const LISTED: usize = 20;

/// Cells that are left out: those that have all of this.
pub(super) struct Exclude {
    pub place: Place,
    pub case: Option<(String, Place)>,
    pub axes: Vec<Axis>,
}

/// An exclude's axis where it met one of the sweep's.
pub(super) struct Met<'e> {
    axis: &'e Axis,
    excluded: Values,
    crossed: Values,
}

impl Exclude {
    /// Whether it speaks of a case, or of one around it.
    pub(super) fn covers(&self, case: &str) -> bool {
        self.case.as_ref().is_none_or(|(outer, _)| within(case, outer))
    }

    /// Takes its cells out of those of a case that `axes` cross; where its own axes, read as `values`, met those.
    pub(super) fn apply(&self, values: Vec<Values>, axes: &[Values], cells: &mut Vec<Cell>) -> Vec<Met<'_>> {
        cells.retain(|cell| !values.iter().all(|values| holds(cell, values, axes)));
        let crossed = |path: &str| axes.iter().find(|axis| axis.path == path).cloned();
        let met = |(axis, excluded): (_, Values)| Some(Met { axis, crossed: crossed(&excluded.path)?, excluded });
        self.axes.iter().zip(values).filter_map(met).collect()
    }
}

/// Whether a case is the one called `outer`, or one in it.
pub(super) fn within(case: &str, outer: &str) -> bool {
    case.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
}

/// Whether a cell has one of these values.
fn holds(cell: &Cell, Values { path, texts, .. }: &Values, axes: &[Values]) -> bool {
    let own = cell.axes.iter().find(|(known, _)| known == path).map(|(_, text)| text);
    // An axis of one value is no part of what tells cells apart.
    let alone = || axes.iter().find(|axis| axis.path == *path)?.texts.first().map(|(text, _)| text);
    own.or_else(alone).is_some_and(|value| texts.iter().any(|(text, _)| equal(text, value)))
}

/// That excludes leave no cell.
pub(super) fn all(excludes: &[Exclude]) -> Option<Diagnostic> {
    let (first, others) = excludes.split_first()?;
    let wrong = error::sweep(&first.place, "the sweep has no cells", "excluded here").help("exclude fewer");
    Some(others.iter().fold(wrong, |wrong, exclude| wrong.at(&exclude.place, "and here")))
}

/// Axes and values of excludes that no cell can have. An axis that the command line gives instead of the document may
/// well be without the values that the document excludes.
pub(super) fn idle(excludes: &[Exclude], met: &[Met<'_>]) -> Vec<Diagnostic> {
    let mut wrong = Vec::new();
    for axis in excludes.iter().flat_map(|exclude| &exclude.axes) {
        let met: Vec<&Met<'_>> = met.iter().filter(|met| std::ptr::eq(met.axis, axis)).collect();
        let Some(first) = met.first() else {
            let message = format!("`{}` is no axis of this sweep", axis.key);
            wrong.push(error::sweep(&axis.key_place, &message, "excludes nothing"));
            continue;
        };
        if met.iter().any(|met| met.crossed.axis.argument.is_some()) {
            continue;
        }
        let refers = |(text, _): &&(String, Place)| text.contains("(ref)");
        if let Some((text, place)) = met.iter().flat_map(|met| &met.crossed.texts).find(refers) {
            let message = format!("`{}` excludes values, and one of its own is {text}", axis.key);
            let told = error::sweep(&axis.key_place, &message, "compared as they are written");
            wrong.push(told.at(place, "this one").help("write the value itself"));
            continue;
        }
        let values = || met.iter().flat_map(|met| &met.crossed.texts);
        let idle = |(text, _): &&(String, Place)| !values().any(|(own, _)| equal(own, text));
        for (text, place) in first.excluded.texts.iter().filter(idle) {
            let message = format!("no value of the axis `{}` is {text}", axis.key);
            let help = format!("its values: {}", listed(values().map(|(text, _)| text)));
            wrong.push(error::sweep(place, &message, "excludes nothing").help(help));
        }
    }
    wrong
}

/// Each once, as far as there is room.
fn listed<'v>(values: impl Iterator<Item = &'v String>) -> String {
    let mut known: Vec<&str> = Vec::new();
    for text in values {
        if known.len() == LISTED {
            return known.join(", ") + ", …";
        }
        if !known.contains(&text.as_str()) {
            known.push(text);
        }
    }
    known.join(", ")
}

/// Whether two texts say one value: `1e-6` is `0.000001`.
fn equal(a: &str, b: &str) -> bool {
    a == b || matches!((a.parse::<f64>(), b.parse::<f64>()), (Ok(a), Ok(b)) if a == b)
}
