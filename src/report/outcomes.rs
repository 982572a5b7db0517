//! What the filter made of every group, by replay.

use rayon::prelude::*;

use super::recorded::Recorded;
use crate::record::RunError;

/// A step's groups, in order of their numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    pub step: usize,
    pub groups: Vec<Verdict>,
}

/// The filter's word on a group.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Verdict {
    /// What the filter scored it by, or the deviation of its members' scores where it scores nothing.
    pub score: f64,
    /// Why it was dropped.
    pub reason: Option<&'static str>,
}

/// The outcomes of all recorded steps; none where records cannot tell.
///
/// # Errors
/// The system's; [`RunError::Corrupt`].
pub fn outcomes(run: &Recorded) -> Result<Vec<Outcome>, RunError> {
    let outcome = |(step, path): &(usize, std::path::PathBuf)| {
        let (_, replayed) = run.step(*step, path)?;
        let groups = replayed.into_iter().flat_map(|replayed| replayed.groups);
        let verdict = |group: crate::replay::GroupReplay| Verdict {
            score: group.score.unwrap_or(group.std),
            reason: group.reason,
        };
        Ok(Outcome { step: *step, groups: groups.map(verdict).collect() })
    };
    match run.replayable() {
        Ok(_) => run.rollouts.par_iter().map(outcome).collect(),
        Err(_) => Ok(Vec::new()),
    }
}
