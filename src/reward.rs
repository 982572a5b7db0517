//! Rewards: what estimators see of the kept episodes.
//!
//! An episode's score is the sum of its turns' rewards and penalties in order, normalised as `normalise` says, and sits
//! on the last response token of each of its rows. With `turn-scores`, each turn's own reward and penalty sit on the
//! last token of that turn instead. Then KL is taken off token by token.
//!
//! How it differs from RAGEN (`ctx_manager.py`) and verl-agent (`episode.py`):
//! - Filters see raw scores unless `when` says otherwise; RAGEN's see normalised ones.
//! - Where a penalty counts is said: against its episode (RAGEN) or against its row (verl-agent).
//! - Turn scores include penalties, which RAGEN drops there. Normalisation is of episode scores, so it is refused
//!   beside turn scores; RAGEN drops it silently.
//! - A response of no tokens has no place for a score: it counts in its row's and its member's, and on no token. There
//!   it is written to the token before the first.

pub mod kl;
pub mod normalise;
pub mod returns;

use std::borrow::Borrow;
use std::ops::Range;

pub use kl::KlConfig;
pub use normalise::NormaliseConfig;
pub use returns::{discounted, step_returns};

use crate::config::{choice, section};
use crate::trajectory::{Group, Sequence, Trajectory};

section! {
    /// What estimators are given to credit.
    pub struct RewardConfig epoch 1 {
        /// How episode scores are made comparable.
        pub normalise: NormaliseConfig,
        /// Whether scores are normalised before or after the filter sees them.
        pub when: When,
        /// What a format penalty counts against, beside its own turn.
        pub penalty_to: PenaltyTo,
        /// Whether each turn's reward stands at its own end, instead of their sum at the episode's.
        pub turn_scores: bool,
        /// Divergence from the frozen reference, taken off each token's reward.
        pub kl: KlConfig,
    }
}

choice! {
    /// When scores are normalised.
    pub enum When {
        /// Filters see normalised scores, of all groups of the step.
        "before-filter" => BeforeFilter,
        /// Filters see raw scores; those of the kept groups are normalised.
        "after-filter" => AfterFilter,
    }
}

choice! {
    /// What a format penalty counts against, beside its own turn.
    pub enum PenaltyTo {
        /// Its member's score (RAGEN).
        "episode" => Episode,
        /// The score of its row alone (verl-agent).
        "row" => Row,
    }
}

impl PenaltyTo {
    /// A member's raw score.
    #[must_use]
    pub fn score(self, member: &Trajectory) -> f64 {
        match self {
            Self::Episode => member.score(),
            Self::Row => member.turns.iter().map(|turn| turn.reward).sum(),
        }
    }
}

/// What estimators see of a group. A row is one of a member's sequences; flat arrays run over members in order, their
/// rows, and the rows' response tokens.
#[derive(Clone, Debug, PartialEq)]
pub struct Rewards<'a> {
    pub group: &'a Group,
    /// Of each member: its episode's score, less the KL of all its tokens.
    pub scores: Vec<f64>,
    /// Of each row: what its tokens are rewarded.
    pub rows: Vec<f64>,
    /// Of each response token.
    pub tokens: Vec<f64>,
    /// Divergence from the reference of each response token; empty without KL in the reward.
    pub kl: Vec<f64>,
    /// What returns add up over.
    pub chains: Vec<Chain>,
}

/// Response tokens that follow each other: a row that bears its episode's score, or all rows of a member whose turns
/// bear their own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chain {
    /// Whose it is, by place in its group.
    pub member: usize,
    /// In the flat arrays; not empty. The chains of a group cover all of them, in order.
    pub tokens: Range<usize>,
    /// Which of `tokens`, counted from its start, bear a score that is not 0, and the last one; ascending.
    pub ends: Vec<usize>,
}

impl Rewards<'_> {
    /// Where each row's response tokens stand in the flat arrays.
    #[must_use]
    pub fn spans(&self) -> Vec<Range<usize>> {
        let rows = self.group.members.iter().flat_map(|member| &member.sequences);
        let mut start = 0;
        rows.map(|row| {
            start += row.response_tokens();
            start - row.response_tokens()..start
        })
        .collect()
    }

    /// A critic's values of the response tokens.
    #[must_use]
    pub fn values(&self) -> Vec<f64> {
        let rows = self.group.members.iter().flat_map(|member| &member.sequences);
        rows.flat_map(|row| row.values.iter().map(|value| f64::from(*value))).collect()
    }
}

impl RewardConfig {
    /// Whether rows must have the log-probs of a frozen reference.
    #[must_use]
    pub fn needs_reference(&self) -> bool {
        !matches!(self.kl, KlConfig::None(_))
    }

    /// The scores of each group's members, as filters see them.
    #[must_use]
    pub fn scores(&self, groups: &[Group]) -> Vec<Vec<f64>> {
        let score = |group: &Group| group.members.iter().map(|member| self.penalty_to.score(member)).collect();
        let raw: Vec<Vec<f64>> = groups.iter().map(score).collect();
        match self.when {
            When::BeforeFilter => self.normalise.apply(&envs(groups), &raw),
            When::AfterFilter => raw,
        }
    }

    /// What estimators see of the kept groups, whose scores these were to the filter; `kl_coef` weighs the KL.
    #[must_use]
    pub fn rewards<'a>(&self, kept: &[&'a Group], scores: &[&[f64]], kl_coef: f64) -> Vec<Rewards<'a>> {
        let scores = match self.when {
            When::BeforeFilter => scores.iter().map(|scores| scores.to_vec()).collect(),
            When::AfterFilter => self.normalise.apply(&envs(kept), scores),
        };
        kept.iter().zip(scores).map(|(group, scores)| self.group(group, scores, kl_coef)).collect()
    }

    fn group<'a>(&self, group: &'a Group, scores: Vec<f64>, kl_coef: f64) -> Rewards<'a> {
        let (rows, tokens, kl, chains) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        let mut rewards = Rewards { group, scores, rows, tokens, kl, chains };
        for (index, member) in group.members.iter().enumerate() {
            let first = rewards.tokens.len();
            for row in &member.sequences {
                let start = rewards.tokens.len();
                rewards.tokens.resize(start + row.response_tokens(), 0.0);
                let placed = self.placed(member, row, rewards.scores[index]);
                rewards.rows.push(placed.iter().map(|(_, score)| score).sum());
                for (end, score) in placed.into_iter().filter(|(end, _)| *end > 0) {
                    rewards.tokens[start + end - 1] += score;
                }
                rewards.kl.extend(self.kl.of(row));
                if !self.turn_scores {
                    rewards.link(index, start);
                }
            }
            if self.turn_scores {
                rewards.link(index, first);
            }
        }
        rewards.subtract(kl_coef);
        rewards
    }

    /// The scores that a row's tokens bear, each with the number of response tokens up to and with its own.
    fn placed(&self, member: &Trajectory, row: &Sequence, score: f64) -> Vec<(usize, f64)> {
        let turns = row.turns.iter().map(|turn| &member.turns[*turn]);
        if self.turn_scores {
            let mut end = 0;
            let ends = row.responses.iter().map(|response| {
                end += response.len();
                end
            });
            return ends.zip(turns.map(|turn| turn.reward + turn.penalty)).collect();
        }
        let penalty = match self.penalty_to {
            PenaltyTo::Episode => 0.0,
            PenaltyTo::Row => turns.map(|turn| turn.penalty).sum(),
        };
        vec![(row.response_tokens(), score + penalty)]
    }
}

impl Rewards<'_> {
    /// Makes a member's chain of the tokens from `start` on, which bear nothing but scores so far.
    fn link(&mut self, member: usize, start: usize) {
        let tokens = start..self.tokens.len();
        let ends = (0..tokens.len()).filter(|at| self.tokens[start + at] != 0.0 || at + 1 == tokens.len()).collect();
        self.chains.extend((!tokens.is_empty()).then_some(Chain { member, tokens, ends }));
    }

    /// Takes the weighted KL off tokens, rows and members.
    fn subtract(&mut self, coef: f64) {
        if self.kl.is_empty() {
            return;
        }
        self.tokens.iter_mut().zip(&self.kl).for_each(|(reward, kl)| *reward -= coef * kl);
        let members = self.group.members.iter().enumerate();
        let owners = members.flat_map(|(index, member)| member.sequences.iter().map(move |_| index));
        for (row, (owner, span)) in owners.zip(self.spans()).enumerate() {
            let cost = coef * self.kl[span].iter().sum::<f64>();
            self.rows[row] -= cost;
            self.scores[owner] -= cost;
        }
    }
}

fn envs<G: Borrow<Group>>(groups: &[G]) -> Vec<&str> {
    groups.iter().map(|group| group.borrow().task.env.as_str()).collect()
}
