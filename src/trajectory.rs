//! What an episode is: groups of trajectories, their turns in words and their sequences in tokens.

use std::ops::Range;

/// The episodes of one task. Never empty; members share the task and stand in member order.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// Index within its step.
    pub id: usize,
    pub task: Task,
    pub members: Vec<Trajectory>,
}

impl Group {
    /// The members' episode scores.
    #[must_use]
    pub fn scores(&self) -> Vec<f64> {
        self.members.iter().map(Trajectory::score).collect()
    }
}

/// A task: a pure function of these four, whoever asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// The environment's name.
    pub env: String,
    /// The generator's version.
    pub epoch: u32,
    pub split: Split,
    pub index: u64,
}

/// Which of the disjoint sets of tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Split {
    Train,
    Eval,
}

impl Split {
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Split::Train => "train",
            Split::Eval => "eval",
        }
    }
}

/// One episode: what was said and done, what the learner sees of it, and how it ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Trajectory {
    pub member: usize,
    pub turns: Vec<Turn>,
    /// The rows that the learner sees: one of all turns, or one a turn.
    pub sequences: Vec<Sequence>,
    /// Score of a greedy episode of the same task (ReMax), where one was played.
    pub baseline: Option<f64>,
    pub end: End,
}

impl Trajectory {
    /// Turn rewards plus penalties, summed in order of turns, raw.
    #[must_use]
    pub fn score(&self) -> f64 {
        self.turns.iter().map(|turn| turn.reward + turn.penalty).sum()
    }

    #[must_use]
    pub fn solved(&self) -> bool {
        self.end == End::Solved
    }
}

/// One exchange of the decision process, in words.
#[derive(Clone, Debug, PartialEq)]
pub struct Turn {
    /// What the environment showed, as the prompt quotes it.
    pub observation: String,
    /// The observation without history: equal anchors are the same state.
    pub anchor: String,
    pub reply: Reply,
    /// The actions that the environment took, by its own names.
    pub executed: Vec<String>,
    /// Sum of the executed actions' rewards, in their order.
    pub reward: f64,
    /// What the format cost: 0, or the (negative) penalty.
    pub penalty: f64,
    /// Whether every proposed action was a legal one and there was at least one.
    pub valid: bool,
    /// Whether some executed action changed the state.
    pub effective: bool,
}

/// A response, understood or not.
#[derive(Clone, Debug, PartialEq)]
pub struct Reply {
    /// The sampled text, with the forced prefix before it.
    pub text: String,
    /// The proposed actions, or why there are none.
    pub actions: Result<Vec<String>, Malformed>,
    /// Tokens of the response that make up its thought, half open.
    pub reasoning: Option<Range<usize>>,
}

/// Why a response proposes no action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// A tag of the think/answer grammar is missing or out of place.
    Tags,
    /// The answer is empty.
    Empty,
}

/// One row of the learner: the tokens of an episode or of a window of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sequence {
    pub tokens: Vec<u32>,
    /// The turns that `responses` belong to, one each.
    pub turns: Vec<usize>,
    /// Where sampled tokens stand in `tokens`, ascending and disjoint; their end token is among them.
    pub responses: Vec<Range<usize>>,
    /// What is learned from instead of `responses` under a wider mask, one span each; empty where it is they.
    pub learned: Vec<Range<usize>>,
    /// Log-probabilities recorded while sampling, flat over the response tokens.
    pub logprobs: Vec<f32>,
    /// Entropies (nats) of the distributions sampled from, flat over the response tokens.
    pub entropies: Vec<f32>,
    /// Log-probabilities under the frozen reference, flat over the response tokens; empty without one.
    pub reference: Vec<f32>,
    /// A critic's values, flat over the response tokens; empty without one.
    pub values: Vec<f32>,
}

impl Sequence {
    /// Number of sampled tokens.
    #[must_use]
    pub fn response_tokens(&self) -> usize {
        self.responses.iter().map(ExactSizeIterator::len).sum()
    }

    /// One entry a token: whether it was sampled.
    #[must_use]
    pub fn mask(&self) -> Vec<bool> {
        let mut mask = vec![false; self.tokens.len()];
        self.responses.iter().for_each(|span| mask[span.clone()].fill(true));
        mask
    }
}

/// How an episode ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Solved,
    Failed,
    Truncated(Limit),
}

/// The budget that ended an episode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    Turns,
    Actions,
    Tokens,
}

impl End {
    /// Every end with its name in episode records.
    pub const NAMES: [(End, &'static str); 5] = [
        (End::Solved, "solved"),
        (End::Failed, "failed"),
        (End::Truncated(Limit::Turns), "turn-limit"),
        (End::Truncated(Limit::Actions), "action-limit"),
        (End::Truncated(Limit::Tokens), "token-limit"),
    ];

    #[must_use]
    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(end, _)| *end == self).map_or("", |(_, name)| name)
    }
}
