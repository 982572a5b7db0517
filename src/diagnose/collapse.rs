//! Collapse: whether thoughts still depend on what they are about (RAGEN-2, arXiv:2604.06268).
//!
//! Thoughts are drawn from a step's groups before filtering, each is scored after each of their prompts by the policy
//! that sampled them, and [`Matrix`] says what the log-probs mean. Two families: of **first turns**, where a prompt is
//! a group's; and along **trajectories**, where a prompt is that of each drawn (episode, turn).
//!
//! How it differs from RAGEN (`collapse_metrics.py`):
//! - Any window: the prompt is what the row holds before the thought. There, full context only.
//! - Reasonings are the tokens that were sampled; there, stripped text that is tokenised anew. So blanks are a thought.
//! - Trajectory draws are without replacement and only among thoughts: none is lost on an episode without any, and no
//!   pair is a draw twice. An episode is as likely as another, until its thoughts are all drawn.
//! - Prompts (and reasonings) of equal tokens are scored once; equal prompts stay as many as were drawn, so that the
//!   marginal is over prompts as they occurred.
//! - A family without two different prompts measures nothing; there, two equal ones give an MI of 0.

use std::collections::BTreeMap;

use serde::Serialize;

use super::information::{Information, Matrix, Retrieval};
use super::regime::{Regime, RegimeConfig};
use super::thought::{Place, Thought, draw, thoughts};
use crate::config::section;
use crate::rng::Stream;
use crate::trajectory::Group;

section! {
    /// What thoughts tell of their prompts (RAGEN-2, arXiv:2604.06268). Without thoughts (`rollout.think #false`) there
    /// is nothing to measure.
    pub struct CollapseConfig epoch 1 {
        /// Training steps between measurements, with one at the first step; 0 never measures.
        pub every: usize where 0..=100000000,
        /// Thoughts of first turns to draw, scored after the first prompts of their groups; 0 leaves this family out.
        pub first_turn: usize where 0..=4096,
        /// Thoughts to draw along trajectories, each scored after the prompts of all; 0 leaves this family out.
        pub trajectory: usize where 0..=4096,
        /// Weight of what was, in moving averages over measurements.
        pub ema: f64 where 0.0..=1.0,
        /// What counts as collapsed.
        pub regime: RegimeConfig,
    }
}

/// Scores reasonings after prompts: log-probs `[reasoning][prompt]`, summed over tokens.
pub type Cross<'a> = &'a dyn Fn(&[&[u32]], &[&[u32]]) -> Vec<Vec<f64>>;

/// A measurement. Field paths are metric names.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Collapse {
    /// Share of turns with a thought in the grammar that is not empty.
    pub valid_thinking: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub regime: Option<Regime>,
    /// None where fewer than two prompts differ, or the family is left out.
    pub first_turn: Option<Family>,
    pub trajectory: Option<Family>,
}

/// What one way of drawing gives.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Family {
    /// Thoughts drawn.
    pub reasonings: usize,
    /// Prompts that each was scored after, equal ones counted each.
    pub prompts: usize,
    pub different_prompts: usize,
    /// Of whole reasonings, nats.
    #[serde(flatten)]
    pub sequence: Information,
    /// ln of the number of prompts: the most that `mi` can be.
    pub mi_bound: f64,
    #[serde(flatten)]
    pub retrieval: Retrieval,
    /// The same of their tokens' means, nats a token.
    pub per_token: Information,
    /// log p(z|x) − log p(z) of every thought drawn.
    #[serde(skip)]
    pub pointwise: Vec<(Place, f64)>,
}

impl CollapseConfig {
    /// Whether a training step is one to measure at.
    #[must_use]
    pub fn due(&self, step: usize) -> bool {
        self.every > 0 && (step == 1 || step.is_multiple_of(self.every))
    }

    /// Measures the groups of a step.
    #[must_use]
    pub fn measure(&self, groups: &[Group], seed: u64, step: usize, cross: Cross<'_>) -> Collapse {
        let members = groups.iter().flat_map(|group| group.members.iter().map(move |member| (group, member)));
        let all: Vec<Vec<Thought<'_>>> = members.map(|(group, member)| thoughts(group, member)).collect();
        let turns: usize = groups.iter().flat_map(|group| &group.members).map(|member| member.turns.len()).sum();
        let valid: usize = all.iter().map(Vec::len).sum();
        let first = all.iter().map(|episode| episode.iter().take_while(|t| t.place.turn == 0).copied().collect());
        let stream = |domain| Stream::new(domain, seed, &[step as u64]);
        let first_turns = draw(first.collect(), self.first_turn, &mut stream("collapse-first-turn"));
        let along = draw(all, self.trajectory, &mut stream("collapse-trajectory"));
        Collapse {
            valid_thinking: if turns == 0 { 0.0 } else { valid as f64 / turns as f64 },
            regime: None,
            first_turn: family(&first_turns, |a, b| (a.place.group, a.prompt) == (b.place.group, b.prompt), cross),
            trajectory: family(&along, |_, _| false, cross),
        }
    }
}

impl Collapse {
    /// Numbers of single turns, for their records: log p(z|x) − log p(z), as `mi` for the turns drawn along
    /// trajectories and as `mi_first_turn` for the first turns drawn.
    #[must_use]
    pub fn turns(&self) -> BTreeMap<Place, BTreeMap<String, f64>> {
        let mut turns: BTreeMap<Place, BTreeMap<String, f64>> = BTreeMap::new();
        for (name, family) in [("mi", &self.trajectory), ("mi_first_turn", &self.first_turn)] {
            for (place, mi) in family.iter().flat_map(|family| &family.pointwise) {
                turns.entry(*place).or_default().insert(name.to_owned(), *mi);
            }
        }
        turns
    }
}

/// Neighbours that are `together` share their prompt. None where fewer than two prompts differ.
fn family(
    drawn: &[Thought<'_>],
    together: impl Fn(&Thought<'_>, &Thought<'_>) -> bool,
    cross: Cross<'_>,
) -> Option<Family> {
    let (mut columns, mut own) = (Vec::new(), Vec::new());
    for thoughts in drawn.chunk_by(together) {
        own.resize(own.len() + thoughts.len(), columns.len());
        columns.push(thoughts[0].prompt);
    }
    let (prompts, prompt_of) = different(&columns);
    if prompts.len() < 2 {
        return None;
    }
    let all: Vec<&[u32]> = drawn.iter().map(|thought| thought.reasoning).collect();
    let (reasonings, reasoning_of) = different(&all);
    let scores = cross(&prompts, &reasonings);
    let row = |&reasoning: &usize| prompt_of.iter().map(|&prompt| scores[reasoning][prompt]).collect();
    let matrix = Matrix {
        sums: reasoning_of.iter().map(row).collect(),
        lengths: all.iter().map(|reasoning| reasoning.len()).collect(),
        own,
        same: prompt_of,
    };
    let (sequence, per_token) = matrix.information();
    Some(Family {
        reasonings: drawn.len(),
        prompts: columns.len(),
        different_prompts: prompts.len(),
        sequence,
        mi_bound: matrix.bound(),
        retrieval: matrix.retrieval(),
        per_token,
        pointwise: drawn.iter().map(|thought| thought.place).zip(matrix.pointwise()).collect(),
    })
}

/// The different ones among `texts` in order of appearance, and for each text which of them it is.
fn different<'a>(texts: &[&'a [u32]]) -> (Vec<&'a [u32]>, Vec<usize>) {
    let (mut seen, mut found) = (BTreeMap::new(), Vec::new());
    let number = |&text: &&'a [u32]| {
        *seen.entry(text).or_insert_with(|| {
            found.push(text);
            found.len() - 1
        })
    };
    let numbers = texts.iter().map(number).collect();
    (found, numbers)
}
