//! One page that tells a run: a self-contained HTML file that asks nobody for anything.
//!
//! ```text
//! run directory ─ Recorded ─┬─ curves, plane        metrics.jsonl, timings.jsonl
//!                           ├─ outcomes ─ heat map  replay of every step
//!                           └─ episodes             records of some steps, packed, and their replay
//! ```
//!
//! Masks, advantages and verdicts are [`crate::replay`]'s. Whatever a model wrote is in the page only as packed
//! records, which the page's script unpacks and shows as text; everything else is escaped by the template.

pub mod chart;
pub mod curves;
pub mod episodes;
pub mod heat;
pub mod outcomes;
mod page;
pub mod plane;
pub mod recorded;
pub mod scale;
pub mod sweep;

use std::path::Path;

use crate::record::{Disk, RunError};
use curves::Arm;
use episodes::Episodes;
use outcomes::Outcome;
use recorded::Recorded;

/// Characters of an id that tell two runs apart.
const SHORT: usize = 8;

/// What a page about a run shows.
struct Chapters<'a> {
    run: &'a Recorded,
    /// The run that it is held against.
    other: Option<&'a Recorded>,
    arms: Vec<Arm<'a>>,
    outcomes: Vec<Outcome>,
    episodes: Episodes,
}

/// The page about the run in a directory, held against that in another if there is one: HTML.
///
/// # Errors
/// The system's; [`RunError::Corrupt`].
pub fn run(disk: &Disk, path: &Path, other: Option<&Path>) -> Result<String, RunError> {
    let run = Recorded::read(disk, path)?;
    let other = other.map(|path| Recorded::read(disk, path)).transpose()?;
    let arms = [Some(&run), other.as_ref()]
        .into_iter()
        .flatten()
        .map(|run| Arm { name: run.summary.id.chars().take(SHORT).collect(), runs: vec![&run.metrics] });
    let outcomes = outcomes::outcomes(&run, outcomes::MOST)?;
    let cells: usize = outcomes.iter().map(|outcome| outcome.groups.len()).sum();
    let chapters = Chapters {
        run: &run,
        other: other.as_ref(),
        arms: arms.collect(),
        outcomes,
        episodes: episodes::episodes(&run, episodes::BUDGET.saturating_sub(cells * heat::CELL))?,
    };
    Ok(page::run(&chapters))
}
