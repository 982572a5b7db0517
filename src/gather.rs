//! The groups of a step: played and filtered, and where `filter.empty` is `refill`, played on until enough are kept.

use crate::chat::Chat;
use crate::experiment::ResolvedConfig;
use crate::filter;
use crate::policy::Policy;
use crate::rollout;
use crate::trajectory::Group;

/// What a step played, and what of it the update sees.
#[derive(Clone, Debug, PartialEq)]
pub struct Gathered {
    /// Every group played, in order of their numbers.
    pub groups: Vec<Group>,
    /// Of each group's members, as the filter saw them.
    pub scores: Vec<Vec<f64>>,
    /// Those that the update sees, by index: at most `rollout.groups`, ascending.
    pub kept: Vec<usize>,
    /// Rounds played.
    pub tries: usize,
}

/// What the filter left of a step's episodes. Field paths are metric names.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct FilterStats {
    /// Groups that the update sees.
    pub kept: usize,
    /// Their share of all groups played.
    pub kept_share: f64,
    /// Groups whose members' scores do not differ.
    pub zero: usize,
    /// Rounds of `rollout.groups` tasks played.
    pub tries: usize,
    /// Episodes played that the update does not see.
    pub wasted: usize,
}

/// Plays step `step` (from 1). Each round is filtered on its own; the kept groups of all rounds, in order, are cut to
/// `rollout.groups`.
#[must_use]
pub fn gather(config: &ResolvedConfig, chat: &Chat<'_>, policy: &dyn Policy, step: u64) -> Gathered {
    let mut gathered = Gathered { groups: Vec::new(), scores: Vec::new(), kept: Vec::new(), tries: 0 };
    while gathered.tries < config.filter.rounds() && gathered.kept.len() < config.rollout.groups {
        let round = rollout::collect(config, chat, policy, step, gathered.tries);
        let scores = config.reward.scores(&round);
        let kept = config.filter.apply(&round, &scores).kept;
        gathered.kept.extend(kept.into_iter().map(|group| gathered.groups.len() + group));
        gathered.groups.extend(round);
        gathered.scores.extend(scores);
        gathered.tries += 1;
    }
    gathered.kept.truncate(config.rollout.groups);
    gathered
}

impl Gathered {
    /// The groups that the update sees.
    #[must_use]
    pub fn kept(&self) -> Vec<&Group> {
        self.kept.iter().map(|group| &self.groups[*group]).collect()
    }

    /// What the filter left.
    #[must_use]
    pub fn stats(&self) -> FilterStats {
        let played: usize = self.groups.iter().map(|group| group.members.len()).sum();
        let seen: usize = self.kept().iter().map(|group| group.members.len()).sum();
        FilterStats {
            kept: self.kept.len(),
            kept_share: self.kept.len() as f64 / self.groups.len() as f64,
            zero: filter::zero(&self.groups),
            tries: self.tries,
            wasted: played - seen,
        }
    }
}
