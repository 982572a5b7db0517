//! Filters: which groups the update sees. One filter a file, pure functions of the groups' scores.

pub mod empty;
pub mod equal_rewards;
pub mod min_p;
pub mod none;
pub mod score;
pub mod top_k;
pub mod top_k_abs;
pub mod top_p;
pub mod walk;

pub use empty::{EmptyConfig, Refill, Skip};
pub use equal_rewards::EqualRewards;
pub use min_p::MinP;
pub use none::NoFilter;
pub use score::Score;
pub use top_k::TopK;
pub use top_k_abs::TopKAbs;
pub use top_p::{Mass, TopP};
pub use walk::{Keep, Walk};

use crate::config::{choice, variants};
use crate::stats;
use crate::trajectory::{Group, Sequence};

variants! {
    /// Which groups the update sees.
    pub enum FilterConfig: "filter" {
        "none" => None(NoFilter),
        "top-p" => TopP(TopP),
        "top-k" => TopK(TopK),
        "top-k-abs" => TopKAbs(TopKAbs),
        "min-p" => MinP(MinP),
        "equal-rewards" => EqualRewards(EqualRewards),
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
    /// The mass to reach, or the cut score, where the filter has one.
    pub threshold: Option<f64>,
}

choice! {
    /// Why a group was dropped.
    pub enum Dropped {
        /// Its score is 0 and the filter does not include such groups.
        "zero-score" => ZeroScore,
        /// Its score is not a number.
        "no-score" => NoScore,
        /// The mass was reached before its turn came.
        "beyond-mass" => BeyondMass,
        /// There is no mass to share: the step keeps nothing.
        "no-mass" => NoMass,
        /// The count was reached before its turn came.
        "beyond-count" => BeyondCount,
        /// Its score does not reach the cut.
        "beyond-cut" => BeyondCut,
        /// Its members' episode scores do not differ.
        "equal-rewards" => EqualRewards,
    }
}

impl Outcome {
    /// Of groups of these scores, from why each was dropped, if it was.
    #[must_use]
    pub fn new(scores: Vec<f64>, verdicts: &[Option<Dropped>], threshold: Option<f64>) -> Self {
        let kept = (0..verdicts.len()).filter(|group| verdicts[*group].is_none()).collect();
        let dropped = verdicts.iter().enumerate().filter_map(|(group, verdict)| verdict.map(|why| (group, why)));
        Self { scores, kept, dropped: dropped.collect(), threshold }
    }

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
    /// The verdict on a step's groups, whose members have these scores.
    #[must_use]
    pub fn apply(&self, groups: &[Group], scores: &[Vec<f64>]) -> Outcome {
        let groups = || groups.iter().zip(scores);
        let scores: Vec<f64> = self.score().iter().flat_map(|by| groups().map(|(g, own)| by.of(g, own))).collect();
        match self {
            FilterConfig::None(none) => none.select(groups().len()),
            FilterConfig::TopP(top_p) => top_p.select(&scores),
            FilterConfig::TopK(top_k) => top_k.select(&scores),
            FilterConfig::TopKAbs(top_k) => top_k.select(&scores),
            FilterConfig::MinP(min_p) => min_p.select(&scores),
            FilterConfig::EqualRewards(equal) => equal.select(&scores),
        }
    }

    /// What it scores a group by; nothing where it does not look.
    #[must_use]
    pub fn score(&self) -> Option<Score> {
        match self {
            FilterConfig::None(_) => None,
            FilterConfig::TopP(top_p) => Some(top_p.score),
            FilterConfig::TopK(top_k) => Some(top_k.score),
            FilterConfig::TopKAbs(top_k) => Some(top_k.score),
            FilterConfig::MinP(min_p) => Some(min_p.score),
            FilterConfig::EqualRewards(_) => Some(Score::RewardStd),
        }
    }

    /// What a step does that keeps too little, and after how many consecutive steps that keep nothing the run stops.
    fn if_empty(&self) -> Option<(&EmptyConfig, usize)> {
        match self {
            FilterConfig::None(_) => None,
            FilterConfig::TopP(top_p) => Some((&top_p.empty, top_p.empty_stop)),
            FilterConfig::TopK(top_k) => Some((&top_k.empty, top_k.empty_stop)),
            FilterConfig::TopKAbs(top_k) => Some((&top_k.empty, top_k.empty_stop)),
            FilterConfig::MinP(min_p) => Some((&min_p.empty, min_p.empty_stop)),
            FilterConfig::EqualRewards(equal) => Some((&equal.empty, equal.empty_stop)),
        }
    }

    /// Rounds of `rollout.groups` tasks that a step may play.
    #[must_use]
    pub fn rounds(&self) -> usize {
        self.if_empty().map_or(1, |(empty, _)| empty.rounds())
    }

    /// Consecutive steps that may keep nothing before the run stops; 0 where there is no such bound.
    #[must_use]
    pub fn empty_stop(&self) -> usize {
        self.if_empty().map_or(0, |(_, stop)| stop)
    }

    /// What makes this filter meaningless, in words for a person, where the smallest group has `group_size` members.
    #[must_use]
    pub fn objection(&self, group_size: usize) -> Option<String> {
        let score = self.score()?;
        let name = score.name();
        match self {
            FilterConfig::EqualRewards(_) if group_size < 2 => {
                Some("filter \"equal-rewards\" compares members: a group of one has no other".to_owned())
            }
            _ if score.is_spread() && group_size < 2 => {
                Some(format!("filter.score \"{name}\" is a spread: a group of one member has none"))
            }
            FilterConfig::TopP(top_p) if score.can_be_negative() && top_p.mass == Mass::Linear => {
                Some(format!("filter.mass \"linear\" adds up scores, and \"{name}\" can be negative: take \"softmax\""))
            }
            _ => None,
        }
    }

    /// What recorded groups lack that this filter needs, in words for a person.
    #[must_use]
    pub fn lack(&self, groups: &[Group]) -> Option<String> {
        let score = self.score().filter(|score| score.needs_entropies())?;
        let members = groups.iter().flat_map(|group| group.members.iter().map(move |member| (group.id, member)));
        let lacks = |row: &Sequence| row.entropies.len() != row.response_tokens();
        let (group, member) = members.into_iter().find(|(_, member)| member.sequences.iter().any(lacks))?;
        let (name, member) = (score.name(), member.member);
        Some(format!("filter.score \"{name}\" needs entropies: member {member} of group {group} has none recorded"))
    }
}

/// Number of groups whose episode scores do not differ.
#[must_use]
pub fn zero(groups: &[Group]) -> usize {
    groups.iter().filter(|group| stats::constant(&group.scores())).count()
}
