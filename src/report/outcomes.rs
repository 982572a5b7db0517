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

/// Groups that a page has room for.
pub const MOST: usize = 50_000;

/// The outcomes of all recorded steps, or of evenly spaced ones with `most` groups together, the first and the last
/// among them; none where records cannot tell.
///
/// # Errors
/// The system's; [`RunError::Corrupt`].
pub fn outcomes(run: &Recorded, most: usize) -> Result<Vec<Outcome>, RunError> {
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
        Ok(resolved) => {
            let places = spaced(run.rollouts.len(), most / resolved.config.rollout.groups);
            places.par_iter().map(|place| outcome(&run.rollouts[*place])).collect()
        }
        Err(_) => Ok(Vec::new()),
    }
}

/// Places of `0..count`: all, or about `most` of them, but two at least.
fn spaced(count: usize, most: usize) -> Vec<usize> {
    let columns = most.max(2);
    if count <= columns {
        (0..count).collect()
    } else {
        (0..columns).map(|n| n * (count - 1) / (columns - 1)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::spaced;

    #[test]
    fn columns_are_evenly_spaced_with_both_ends() {
        assert_eq!((spaced(0, 4), spaced(3, 4), spaced(4, 4)), (vec![], vec![0, 1, 2], vec![0, 1, 2, 3]));
        assert_eq!((spaced(10, 4), spaced(10, 0)), (vec![0, 3, 6, 9], vec![0, 9]));
        let places = spaced(100_000, 390);
        assert!(places.len() == 390 && places.is_sorted() && places.windows(2).all(|pair| pair[1] - pair[0] <= 258));
    }
}
