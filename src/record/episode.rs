//! Episode records, `starpo.episode/1`: one episode a line of JSON, ids and numbers as they were sampled.
//!
//! Writing is deterministic: fields in one order, floats as the shortest text that reads back to the same bits (f32
//! ones as f32). What a trajectory does not hold (such as new log-probs) is null; a recorded file may hold it. A turn
//! without actions reads back as [`Malformed::Tags`], whichever kind it was: the text tells them apart.

mod field;

use std::collections::BTreeMap;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::chat::WindowConfig;
use crate::diagnose::Place;
use crate::trajectory::{End, Group, Malformed, Reply, Sequence, Split, Task, Trajectory, Turn};

/// The schema's name and version; reading refuses any other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Schema {
    #[serde(rename = "starpo.episode/1")]
    V1,
}

/// A line: an episode and where it stands in its run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EpisodeRecord {
    pub schema: Schema,
    pub step: usize,
    pub group: usize,
    pub member: usize,
    pub task: TaskRecord,
    pub turns: Vec<TurnRecord>,
    #[serde(with = "field::end")]
    pub end: End,
    #[serde(default, skip_serializing_if = "Window::is_full")]
    pub window: Window,
    /// Score of the greedy episode of the same task (ReMax).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub baseline: Option<f64>,
}

/// How turns were laid out in rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Window {
    /// All turns in one row.
    #[default]
    Full,
    /// A row a turn, with the last turns before it.
    Limited,
    /// A row a turn.
    SingleTurn,
}

impl Window {
    /// Of a run.
    #[must_use]
    pub fn of(config: &WindowConfig) -> Self {
        match config {
            WindowConfig::Full(_) => Self::Full,
            WindowConfig::Limited(_) => Self::Limited,
            WindowConfig::SingleTurn(_) => Self::SingleTurn,
        }
    }

    fn is_full(&self) -> bool {
        *self == Window::Full
    }
}

/// The task that the episode's group shares.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskRecord {
    pub env: String,
    pub epoch: u32,
    #[serde(with = "field::split")]
    pub split: Split,
    pub index: u64,
}

/// A turn. Words may be left out of a hand-made file, and so may ids and per-token arrays where only rewards matter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TurnRecord {
    /// From 1.
    pub turn: usize,
    #[serde(default)]
    pub observation: String,
    #[serde(default)]
    pub anchor: String,
    /// Ids appended before the response; in windowed modes the row's whole prompt.
    pub prompt: Option<Vec<u32>>,
    /// Sampled ids, end token included.
    pub response: Option<Vec<u32>>,
    #[serde(default)]
    pub text: String,
    /// The thought within the response, half open.
    pub reasoning: Option<(usize, usize)>,
    pub logprobs: Option<Vec<f32>>,
    pub entropies: Option<Vec<f32>>,
    pub ref_logprobs: Option<Vec<f32>>,
    pub values: Option<Vec<f32>>,
    pub new_logprobs: Option<Vec<f32>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub new_values: Option<Vec<f32>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub new_entropies: Option<Vec<f32>>,
    #[serde(default)]
    pub actions: Vec<String>,
    #[serde(default)]
    pub executed: Vec<String>,
    #[serde(default = "yes")]
    pub valid: bool,
    #[serde(default = "yes")]
    pub effective: bool,
    pub reward: f64,
    #[serde(default)]
    pub penalty: f64,
    #[serde(default)]
    pub metrics: BTreeMap<String, f64>,
}

fn yes() -> bool {
    true
}

/// A per-token array of a turn.
pub type Array = fn(&TurnRecord) -> Option<&Vec<f32>>;

/// Every per-token array with its name.
const ARRAYS: [(&str, Array); 7] = [
    ("logprobs", |turn| turn.logprobs.as_ref()),
    ("entropies", |turn| turn.entropies.as_ref()),
    ("ref_logprobs", |turn| turn.ref_logprobs.as_ref()),
    ("values", |turn| turn.values.as_ref()),
    ("new_logprobs", |turn| turn.new_logprobs.as_ref()),
    ("new_values", |turn| turn.new_values.as_ref()),
    ("new_entropies", |turn| turn.new_entropies.as_ref()),
];

/// What is wrong with a file of episodes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {}{message}", if field.is_empty() { String::new() } else { format!("{field}: ") })]
pub struct ReadError {
    /// From 1.
    pub line: usize,
    /// Path of the field in the line's document, such as `turns[0].reward`; empty for the line as a whole.
    pub field: String,
    pub message: String,
}

/// The line (without its end) of a trajectory of group `group`, which plays `task` in step `step`.
#[must_use]
pub fn line(step: usize, window: Window, task: &Task, group: usize, trajectory: &Trajectory) -> String {
    EpisodeRecord::new(step, window, task, group, trajectory).line()
}

/// Numbers of single turns, by name.
pub type TurnMetrics = BTreeMap<Place, BTreeMap<String, f64>>;

/// The episodes of some groups, a line each, in (group, member) order.
#[must_use]
pub fn lines(step: usize, window: Window, groups: &[Group], metrics: &TurnMetrics) -> String {
    let mut text = String::new();
    for (group, member) in groups.iter().flat_map(|group| group.members.iter().map(move |member| (group, member))) {
        let mut record = EpisodeRecord::new(step, window, &group.task, group.id, member);
        for (turn, record) in record.turns.iter_mut().enumerate() {
            let place = Place { group: group.id, member: member.member, turn };
            record.metrics.extend(metrics.get(&place).cloned().unwrap_or_default());
        }
        text.extend([record.line().as_str(), "\n"]);
    }
    text
}

/// The episodes of a file's text, in its order.
///
/// # Errors
/// The first line that is not an episode of this schema, or whose arrays do not fit together.
pub fn read(text: &str) -> Result<Vec<EpisodeRecord>, ReadError> {
    text.lines().enumerate().map(|(index, line)| parse(index + 1, line)).collect()
}

fn parse(line: usize, text: &str) -> Result<EpisodeRecord, ReadError> {
    let record: EpisodeRecord = serde_json::from_str(text).map_err(|error| {
        let field = field::path_at(&text[..text.floor_char_boundary(error.column())]);
        let message = error.to_string();
        let message = message.split(" at line ").next().unwrap_or(&message).to_string();
        ReadError { line, field, message }
    })?;
    record.check().map_err(|(field, message)| ReadError { line, field, message })?;
    Ok(record)
}

/// The episodes by group, groups and members ascending.
///
/// # Errors
/// Where episodes are of several steps, a member comes twice, or members of a group play different tasks.
pub fn by_group(records: Vec<EpisodeRecord>) -> Result<Vec<Vec<EpisodeRecord>>, ReadError> {
    let mut groups: BTreeMap<usize, BTreeMap<usize, EpisodeRecord>> = BTreeMap::new();
    let step = records.first().map_or(0, |record| record.step);
    for (index, record) in records.into_iter().enumerate() {
        let error = |field: &str, message: String| ReadError { line: index + 1, field: field.into(), message };
        if record.step != step {
            return Err(error("step", format!("is {} after {step}: one step at a time", record.step)));
        }
        let members = groups.entry(record.group).or_default();
        if members.values().next().is_some_and(|other| other.task != record.task) {
            return Err(error("task", format!("differs within group {}", record.group)));
        }
        if members.contains_key(&record.member) {
            return Err(error("member", format!("{} of group {} comes twice", record.member, record.group)));
        }
        members.insert(record.member, record);
    }
    Ok(groups.into_values().map(|members| members.into_values().collect()).collect())
}

/// A group from its records, which are not empty and stand in member order.
#[must_use]
pub fn group(records: &[EpisodeRecord]) -> Group {
    let first = &records[0];
    let TaskRecord { env, epoch, split, index } = first.task.clone();
    let members = records.iter().map(EpisodeRecord::trajectory).collect();
    Group { id: first.group, task: Task { env, epoch, split, index }, members }
}

impl EpisodeRecord {
    /// The record of a trajectory of group `group`, which plays `task` in step `step`.
    #[must_use]
    pub fn new(step: usize, window: Window, task: &Task, group: usize, trajectory: &Trajectory) -> Self {
        let mut turns: Vec<TurnRecord> =
            trajectory.turns.iter().enumerate().map(|(index, turn)| TurnRecord::new(index + 1, turn)).collect();
        for sequence in &trajectory.sequences {
            let (mut start, mut flat) = (0, 0);
            for (turn, span) in sequence.turns.iter().zip(&sequence.responses) {
                let tokens = flat..flat + span.len();
                turns[*turn].sampled(sequence, start..span.start, span.clone(), tokens);
                (start, flat) = (span.end, flat + span.len());
            }
        }
        Self {
            schema: Schema::V1,
            step,
            group,
            member: trajectory.member,
            task: TaskRecord { env: task.env.clone(), epoch: task.epoch, split: task.split, index: task.index },
            turns,
            end: trajectory.end,
            window,
            baseline: trajectory.baseline,
        }
    }

    /// The record as a line, without its end.
    ///
    /// # Panics
    /// Never: a record has nothing that JSON cannot write.
    #[must_use]
    pub fn line(&self) -> String {
        serde_json::to_string(self).expect("string keys and numbers only")
    }

    /// The turns of each row.
    #[must_use]
    pub fn rows(&self) -> Vec<&[TurnRecord]> {
        self.turns.chunks(if self.window == Window::Full { self.turns.len().max(1) } else { 1 }).collect()
    }

    /// The trajectory. Absent ids read as 0, an absent prompt as none, and an absent response as long as the turn's
    /// arrays, or as one token.
    #[must_use]
    pub fn trajectory(&self) -> Trajectory {
        let mut sequences = Vec::new();
        for (row, turns) in self.rows().into_iter().enumerate() {
            let mut sequence = Sequence::default();
            for (index, turn) in turns.iter().enumerate() {
                sequence.tokens.extend(turn.prompt.iter().flatten());
                let start = sequence.tokens.len();
                sequence.tokens.extend(turn.response.clone().unwrap_or_else(|| vec![0; turn.tokens()]));
                sequence.responses.push(start..sequence.tokens.len());
                // A row has one turn unless it has all of them.
                sequence.turns.push(row + index);
                sequence.logprobs.extend(turn.logprobs.iter().flatten());
                sequence.entropies.extend(turn.entropies.iter().flatten());
                sequence.reference.extend(turn.ref_logprobs.iter().flatten());
                sequence.values.extend(turn.values.iter().flatten());
            }
            sequences.push(sequence);
        }
        let turns = self.turns.iter().map(TurnRecord::turn).collect();
        Trajectory { member: self.member, turns, sequences, baseline: self.baseline, end: self.end }
    }

    /// The field that does not fit the others, and why.
    fn check(&self) -> Result<(), (String, String)> {
        for (index, turn) in self.turns.iter().enumerate() {
            let at = |field: &str| format!("turns[{index}].{field}");
            if turn.turn != index + 1 {
                return Err((at("turn"), format!("is {}, the turns are numbered from 1", turn.turn)));
            }
            for (name, array) in ARRAYS {
                if array(turn).is_some() != array(&self.turns[0]).is_some() {
                    return Err((at(name), "in some turns of the episode but not in others".into()));
                }
                if array(turn).is_some_and(|values| values.len() != turn.tokens()) {
                    return Err((at(name), format!("not one number for each of the {} tokens", turn.tokens())));
                }
            }
            if turn.reasoning.is_some_and(|(start, end)| start > end || end > turn.tokens()) {
                return Err((at("reasoning"), format!("not a range within the {} tokens", turn.tokens())));
            }
        }
        Ok(())
    }
}

impl TurnRecord {
    fn new(number: usize, turn: &Turn) -> Self {
        Self {
            turn: number,
            observation: turn.observation.clone(),
            anchor: turn.anchor.clone(),
            prompt: None,
            response: None,
            text: turn.reply.text.clone(),
            reasoning: turn.reply.reasoning.as_ref().map(|range| (range.start, range.end)),
            logprobs: None,
            entropies: None,
            ref_logprobs: None,
            values: None,
            new_logprobs: None,
            new_values: None,
            new_entropies: None,
            actions: turn.reply.actions.clone().unwrap_or_default(),
            executed: turn.executed.clone(),
            valid: turn.valid,
            effective: turn.effective,
            reward: turn.reward,
            penalty: turn.penalty,
            metrics: BTreeMap::new(),
        }
    }

    /// Adds what the sequence holds of this turn: ids by place in its tokens, numbers by place in its flat arrays.
    fn sampled(&mut self, sequence: &Sequence, prompt: Range<usize>, response: Range<usize>, tokens: Range<usize>) {
        self.prompt = Some(sequence.tokens[prompt].to_vec());
        self.response = Some(sequence.tokens[response].to_vec());
        let recorded = |flat: &[f32]| (flat.len() == sequence.response_tokens()).then(|| flat[tokens.clone()].to_vec());
        self.logprobs = recorded(&sequence.logprobs);
        self.entropies = recorded(&sequence.entropies);
        self.ref_logprobs = recorded(&sequence.reference).filter(|_| !sequence.reference.is_empty());
        self.values = recorded(&sequence.values).filter(|_| !sequence.values.is_empty());
    }

    fn turn(&self) -> Turn {
        let actions = if self.actions.is_empty() { Err(Malformed::Tags) } else { Ok(self.actions.clone()) };
        Turn {
            observation: self.observation.clone(),
            anchor: self.anchor.clone(),
            reply: Reply { text: self.text.clone(), actions, reasoning: self.reasoning.map(|(start, end)| start..end) },
            executed: self.executed.clone(),
            reward: self.reward,
            penalty: self.penalty,
            valid: self.valid,
            effective: self.effective,
        }
    }

    /// Length of the response: of its ids, else of a per-token array, else 1.
    fn tokens(&self) -> usize {
        let array = || ARRAYS.iter().find_map(|(_, array)| array(self)).map_or(1, Vec::len);
        self.response.as_ref().map_or_else(array, Vec::len)
    }
}
