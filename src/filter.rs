//! Filters: which groups the update sees. One filter a file, pure functions of the groups' scores.

pub mod none;
pub mod score;
pub mod top_p;

pub use none::NoFilter;
pub use score::Score;
pub use top_p::{Keep, Mass, TopP};

use crate::config::variants;
use crate::stats;
use crate::trajectory::Group;

variants! {
    /// Which groups the update sees.
    pub enum FilterConfig: "filter" {
        "none" => None(NoFilter),
        "top-p" => TopP(TopP),
    }
}

/// A filter's verdict on the groups of a step, by index in the slice that it was given. Every group is kept or dropped.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// What each group was scored by; empty where the filter scores nothing.
    pub scores: Vec<f64>,
    /// Ascending.
    pub kept: Vec<usize>,
    /// Ascending.
    pub dropped: Vec<(usize, Dropped)>,
    /// The mass to reach, where the filter reaches for one.
    pub threshold: Option<f64>,
}

/// Why a group was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dropped {
    /// Its score is 0 and the filter does not include such groups.
    ZeroScore,
    /// The mass was reached before its turn came.
    BeyondMass,
    /// There is no mass to share: the step keeps nothing.
    NoMass,
}

impl Dropped {
    /// The reason in records and tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Dropped::ZeroScore => "zero-score",
            Dropped::BeyondMass => "beyond-mass",
            Dropped::NoMass => "no-mass",
        }
    }
}

impl Outcome {
    /// Whether nothing is left to learn from.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// Why a group was dropped; nothing for a kept one.
    #[must_use]
    pub fn reason(&self, group: usize) -> Option<Dropped> {
        self.dropped.iter().find(|(index, _)| *index == group).map(|(_, reason)| *reason)
    }
}

impl FilterConfig {
    /// The verdict on a step's groups.
    #[must_use]
    pub fn apply(&self, groups: &[Group]) -> Outcome {
        match self {
            FilterConfig::None(none) => none.select(groups.len()),
            FilterConfig::TopP(top_p) => {
                top_p.select(&groups.iter().map(|group| top_p.score.of(group)).collect::<Vec<_>>())
            }
        }
    }

    /// Consecutive steps that may keep nothing before the run stops; 0 where there is no such bound.
    #[must_use]
    pub fn empty_stop(&self) -> usize {
        match self {
            FilterConfig::None(_) => 0,
            FilterConfig::TopP(top_p) => top_p.empty_stop,
        }
    }

    /// What makes this filter meaningless, in words for a person, where the smallest group has `group_size` members.
    #[must_use]
    pub fn objection(&self, group_size: usize) -> Option<String> {
        let FilterConfig::TopP(top_p) = self else { return None };
        let score = top_p.score.name();
        if top_p.score.is_spread() && group_size < 2 {
            return Some(format!("filter.score \"{score}\" is a spread: a group of one member has none"));
        }
        (top_p.score.can_be_negative() && top_p.mass == Mass::Linear).then(|| {
            format!("filter.mass \"linear\" adds up scores, and \"{score}\" can be negative: take \"softmax\"")
        })
    }
}

/// Number of groups whose episode scores do not differ.
#[must_use]
pub fn zero(groups: &[Group]) -> usize {
    groups.iter().filter(|group| stats::constant(&group.scores())).count()
}
