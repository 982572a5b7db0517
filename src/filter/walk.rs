//! The order in which a filter takes groups, and the verdicts that follow from how many it takes.

use super::{Dropped, Outcome};
use crate::config::choice;

/// Scores of at most this size are zero, and scores this close are equal to a cut.
pub const ZERO: f64 = 1e-10;

choice! {
    /// Which end of the scores is kept.
    pub enum Keep {
        /// The largest: where members differ there is something to learn.
        "largest" => Largest,
        /// The smallest, as an ablation.
        "smallest" => Smallest,
    }
}

impl Keep {
    /// The score as it counts: negated where the smallest are kept. −0 is 0.
    #[must_use]
    pub fn rank(self, score: f64) -> f64 {
        (if self == Keep::Largest { score } else { -score }) + 0.0
    }
}

/// A step's candidates in the order in which they are taken: by score, ties by lowest index.
#[derive(Clone, Debug, PartialEq)]
pub struct Walk<'a> {
    /// Of every group.
    pub scores: &'a [f64],
    /// Candidates, by index.
    pub order: Vec<usize>,
}

impl<'a> Walk<'a> {
    /// The candidates among groups of these scores. A score that is not a number is none.
    #[must_use]
    pub fn new(scores: &'a [f64], keep: Keep, include_zero: bool) -> Self {
        let candidate = |group: &usize| no_candidate(scores[*group], include_zero).is_none();
        let mut order: Vec<usize> = (0..scores.len()).filter(candidate).collect();
        order.sort_by(|a, b| keep.rank(scores[*b]).total_cmp(&keep.rank(scores[*a])));
        Self { scores, order }
    }

    /// The verdict that takes the first `taken` candidates and drops the others as `beyond`.
    #[must_use]
    pub fn take(self, taken: usize, beyond: Dropped, threshold: Option<f64>) -> Outcome {
        let mut verdicts: Vec<Option<Dropped>> = self.scores.iter().map(|score| no_candidate(*score, false)).collect();
        for (place, group) in self.order.iter().enumerate() {
            verdicts[*group] = (place >= taken).then_some(beyond);
        }
        Outcome::new(self.scores.to_vec(), &verdicts, threshold)
    }
}

/// Why a group of this score is no candidate.
fn no_candidate(score: f64, include_zero: bool) -> Option<Dropped> {
    match score {
        score if score.is_nan() => Some(Dropped::NoScore),
        score if !include_zero && score.abs() <= ZERO => Some(Dropped::ZeroScore),
        _ => None,
    }
}
