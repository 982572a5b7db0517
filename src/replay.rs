//! Replay: an update's arithmetic on recorded episodes, without a model.
//!
//! Everything that a step decides after its episodes are played: scores, group statistics, the filter's verdict with
//! its reason, rewards, advantages, weights, and the loss where new log-probs are recorded. All kept rows are one
//! mini-batch. The window is the file's.

mod table;

use serde::Serialize;

use crate::advantage::AdvantageConfig;
use crate::batch::Batch;
use crate::chat::Mask;
use crate::experiment::ResolvedConfig;
use crate::filter::{FilterConfig, Outcome};
use crate::objective::{ObjectiveConfig, Terms, Tokens};
use crate::record::episode::{self, EpisodeRecord, ReadError, TurnRecord};
use crate::reward::{RewardConfig, Rewards};
use crate::stats;
use crate::trajectory::{Group, Sequence, Trajectory};

/// The rules that are replayed.
#[derive(Clone, Copy, Debug)]
pub struct Rules<'a> {
    pub filter: &'a FilterConfig,
    pub reward: &'a RewardConfig,
    pub advantage: &'a AdvantageConfig,
    pub objective: &'a ObjectiveConfig,
}

/// What the rules make of the episodes. As JSON, numbers that are not numbers are null.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Replay {
    pub groups: Vec<GroupReplay>,
    pub filter: FilterReplay,
    /// Of kept groups only.
    pub rows: Vec<RowReplay>,
    /// Absent where nothing is kept or no new log-probs are recorded.
    pub loss: Option<LossReplay>,
}

/// A group's scores and verdict.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GroupReplay {
    pub group: usize,
    pub env: String,
    /// Episode scores as the filter sees them, in member order.
    pub scores: Vec<f64>,
    pub mean: f64,
    /// ddof 1; 0 for equal scores and for one.
    pub std: f64,
    /// What the filter scored it by, if it scores.
    pub score: Option<f64>,
    pub kept: bool,
    /// Why it was dropped.
    pub reason: Option<&'static str>,
}

/// The filter's verdict; lists of group numbers are ascending.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FilterReplay {
    pub strategy: &'static str,
    pub kept: Vec<usize>,
    pub dropped: Vec<usize>,
    pub threshold: Option<f64>,
    pub empty: bool,
}

/// A row that the learner would see; arrays run over its tokens, prompts included.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RowReplay {
    pub group: usize,
    pub member: usize,
    /// From 1.
    pub turns: Vec<usize>,
    /// 1 where a token was sampled.
    pub mask: Vec<u8>,
    pub advantages: Vec<f64>,
    pub returns: Vec<f64>,
    /// Of the token's loss in the total.
    pub weights: Vec<f64>,
    /// What the estimator is given to credit.
    pub rewards: Vec<f64>,
}

/// The loss and its parts, aggregated without their coefficients. Clip fractions count unmasked tokens.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LossReplay {
    pub policy: f64,
    /// 0 without a reference.
    pub kl: f64,
    /// Of the new policy where it is recorded (`new_entropies`), else of the sampling one; NaN if neither is.
    pub entropy: f64,
    /// Absent without a critic.
    pub value: Option<f64>,
    /// NaN where the entropy is, unless its coefficient is 0.
    pub total: f64,
    pub clip_fraction: f64,
    pub clip_fraction_lower: f64,
}

/// Why nothing was replayed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReplayError {
    /// The file is not one of episodes.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A chosen rule has no meaning on these episodes, or needs what they lack.
    #[error("{0}")]
    Rule(String),
}

/// Replays the episodes of one step: `text` is a file of episode records, uncompressed.
///
/// # Errors
/// What the file lacks or gets wrong.
pub fn replay(text: &str, rules: &Rules<'_>) -> Result<Replay, ReplayError> {
    replay_at(text, rules, rules.reward.kl.start())
}

/// As [`replay`], where `kl_coef` weighs the KL in the reward: the coefficient that an adaptive one had come to.
///
/// # Errors
/// As [`replay`].
pub fn replay_at(text: &str, rules: &Rules<'_>, kl_coef: f64) -> Result<Replay, ReplayError> {
    let records = episode::by_group(episode::read(text)?)?;
    let groups: Vec<Group> = records.iter().map(|members| episode::group(members)).collect();
    let smallest = groups.iter().map(|group| group.members.len()).min().unwrap_or(usize::MAX);
    if let Some(objection) = rules.filter.objection(smallest).or_else(|| rules.filter.lack(&groups)) {
        return Err(ReplayError::Rule(objection));
    }
    if let Some(group) = groups.iter().find(|group| !group.scores().iter().all(|score| score.is_finite())) {
        return Err(ReplayError::Rule(format!(
            "the scores of group {} are not finite: {:?}",
            group.id,
            group.scores()
        )));
    }
    let scores = rules.reward.scores(&groups);
    let outcome = rules.filter.apply(&groups, &scores);
    let kept: Vec<&Group> = outcome.kept.iter().map(|index| &groups[*index]).collect();
    if let Some(lack) = lack(rules, &kept) {
        return Err(ReplayError::Rule(lack));
    }
    let kept_scores: Vec<&[f64]> = outcome.kept.iter().map(|index| &scores[*index][..]).collect();
    let rewards = rules.reward.rewards(&kept, &kept_scores, kl_coef);
    let credits = rules.advantage.estimate(&rewards, groups.len());
    let batch = Batch::new(&kept, &credits);
    let weights = rules.objective.aggregate.weights(&batch.counts(0..batch.rows.len()));
    let recorded: Vec<&EpisodeRecord> = outcome.kept.iter().flat_map(|index| &records[*index]).collect();
    Ok(Replay {
        groups: scores
            .into_iter()
            .enumerate()
            .map(|(i, scores)| group_replay(&groups[i], i, scores, &outcome))
            .collect(),
        filter: filter_replay(rules.filter.name(), &groups, &outcome),
        rows: row_replays(&batch, &rewards, &weights),
        loss: loss(rules.objective, &batch, &weights, &recorded)?,
    })
}

/// Why recorded episodes cannot tell what a run of this config made of them, if they cannot, and what may help.
#[must_use]
pub fn obstacle(config: &ResolvedConfig) -> Option<(String, &'static str)> {
    if config.rollout.mask != Mask::Sampled {
        let message = format!("rollout.mask \"{}\" cannot be replayed", config.rollout.mask.name());
        return Some((message, "episodes are recorded with the tokens that were sampled alone"));
    }
    (config.filter.rounds() > 1).then(|| {
        let message = "filter.empty \"refill\" filters each round on its own, and a file does not part them";
        (message.to_owned(), "take filter.empty=skip, which filters all groups of the file at once")
    })
}

impl<'a> Rules<'a> {
    /// Those of a run.
    #[must_use]
    pub fn of(config: &'a ResolvedConfig) -> Self {
        Self {
            filter: &config.filter,
            reward: &config.reward,
            advantage: &config.advantage,
            objective: &config.objective,
        }
    }
}

impl Replay {
    /// The replay as one line of JSON.
    ///
    /// # Panics
    /// Never: a replay has nothing that JSON cannot write.
    #[must_use]
    pub fn json(&self) -> String {
        serde_json::to_string(self).expect("string keys and numbers only")
    }

    /// The replay as a table for people.
    #[must_use]
    pub fn table(&self) -> String {
        table::render(self)
    }
}

/// What the kept episodes lack that a rule needs, in words for a person.
fn lack(rules: &Rules<'_>, kept: &[&Group]) -> Option<String> {
    let mut members = kept.iter().flat_map(|group| group.members.iter().map(move |member| (group.id, member)));
    members.find_map(|(group, member)| {
        let (rule, array) = missing(rules, member)?;
        Some(format!("{rule} needs `{array}`, which member {} of group {group} lacks", member.member))
    })
}

/// The first array that a member lacks, after the rule that needs it.
fn missing(rules: &Rules<'_>, member: &Trajectory) -> Option<(String, &'static str)> {
    let lacks =
        |array: fn(&Sequence) -> &[f32]| member.sequences.iter().any(|row| array(row).len() != row.response_tokens());
    let (reference, values) = (rules.reward.needs_reference(), rules.advantage.needs_values());
    let array = match () {
        () if reference && lacks(|row| &row.logprobs) => "logprobs",
        () if reference && lacks(|row| &row.reference) => "ref_logprobs",
        () if values && lacks(|row| &row.values) => "values",
        () if rules.advantage.needs_baseline() && member.baseline.is_none() => "baseline",
        () => return None,
    };
    let rule = match array {
        "values" | "baseline" => format!("advantage \"{}\"", rules.advantage.estimator.name()),
        _ => format!("reward.kl \"{}\"", rules.reward.kl.name()),
    };
    Some((rule, array))
}

fn group_replay(group: &Group, index: usize, scores: Vec<f64>, outcome: &Outcome) -> GroupReplay {
    let reason = outcome.reason(index);
    GroupReplay {
        group: group.id,
        env: group.task.env.clone(),
        mean: stats::mean(&scores),
        std: stats::std(&scores, 1),
        scores,
        score: outcome.scores.get(index).copied(),
        kept: reason.is_none(),
        reason: reason.map(|reason| reason.name()),
    }
}

fn filter_replay(strategy: &'static str, groups: &[Group], outcome: &Outcome) -> FilterReplay {
    FilterReplay {
        strategy,
        kept: outcome.kept.iter().map(|index| groups[*index].id).collect(),
        dropped: outcome.dropped.iter().map(|(index, _)| groups[*index].id).collect(),
        threshold: outcome.threshold,
        empty: outcome.is_empty(),
    }
}

fn row_replays(batch: &Batch<'_>, rewards: &[Rewards<'_>], weights: &[f64]) -> Vec<RowReplay> {
    let rewards: Vec<f64> = rewards.iter().flat_map(|group| group.tokens.iter().copied()).collect();
    let rows = batch.rows.iter().zip(weights);
    rows.map(|(row, weight)| {
        let mask = row.sequence.mask();
        let spread = |flat: &[f64]| {
            let mut values = flat.iter();
            mask.iter().map(|sampled| sampled.then(|| values.next().copied()).flatten().unwrap_or(0.0)).collect()
        };
        RowReplay {
            group: row.group,
            member: row.member,
            turns: row.sequence.turns.iter().map(|turn| turn + 1).collect(),
            mask: mask.iter().map(|sampled| u8::from(*sampled)).collect(),
            advantages: spread(&batch.advantages[row.span.clone()]),
            returns: spread(&batch.returns[row.span.clone()]),
            weights: spread(&vec![*weight; row.span.len()]),
            rewards: spread(&rewards[row.span.clone()]),
        }
    })
    .collect()
}

/// The loss of the batch, whose members were recorded as `records`; none if there are no new log-probs.
fn loss(
    objective: &ObjectiveConfig,
    batch: &Batch<'_>,
    weights: &[f64],
    records: &[&EpisodeRecord],
) -> Result<Option<LossReplay>, ReplayError> {
    let Some(new) = recorded(records, "new_logprobs", |turn| turn.new_logprobs.as_ref())? else { return Ok(None) };
    let needed =
        |array: Option<Vec<f64>>, what: &str| array.ok_or_else(|| ReplayError::Rule(format!("the loss needs {what}")));
    let old = recorded(records, "logprobs", |turn| turn.logprobs.as_ref())?;
    let old = needed(old, "`logprobs` beside `new_logprobs`")?;
    let entropies = match recorded(records, "new_entropies", |turn| turn.new_entropies.as_ref())? {
        Some(entropies) => entropies,
        None => {
            recorded(records, "entropies", |turn| turn.entropies.as_ref())?.unwrap_or_else(|| vec![f64::NAN; new.len()])
        }
    };
    let reference = match recorded(records, "ref_logprobs", |turn| turn.ref_logprobs.as_ref())? {
        None if objective.kl.coef == 0.0 => Vec::new(),
        reference => needed(reference, "`ref_logprobs`, since objective.kl.coef is not 0")?,
    };
    let values = recorded(records, "new_values", |turn| turn.new_values.as_ref())?;
    let old_values = match recorded(records, "values", |turn| turn.values.as_ref())? {
        None if values.is_some() && objective.value_clip.is_some() => {
            needed(None, "`values` beside `new_values`, since objective.value-clip is set")?
        }
        old => old.or_else(|| values.clone()).unwrap_or_default(),
    };
    let mut terms = Terms::default();
    for (row, weight) in batch.rows.iter().zip(weights) {
        let part = |flat: &[f64]| if flat.is_empty() { Vec::new() } else { flat[row.span.clone()].to_vec() };
        let tokens = Tokens {
            logprobs: &part(&new),
            entropies: &part(&entropies),
            old: &part(&old),
            reference: &part(&reference),
            advantages: &part(&batch.advantages),
            values: &part(values.as_deref().unwrap_or_default()),
            old_values: &part(&old_values),
            returns: &part(&batch.returns),
            weights: &vec![*weight; row.span.len()],
        };
        terms.add(&objective.loss(&tokens).terms);
    }
    Ok(Some(LossReplay {
        policy: terms.policy,
        kl: terms.kl,
        entropy: terms.entropy,
        value: values.map(|_| terms.value),
        total: objective.total(&terms),
        clip_fraction: terms.share(terms.clipped),
        clip_fraction_lower: terms.share(terms.clipped_lower),
    }))
}

/// An array of the kept episodes, flat over their rows' response tokens; none if no turn has it.
fn recorded(
    records: &[&EpisodeRecord],
    name: &str,
    array: fn(&TurnRecord) -> Option<&Vec<f32>>,
) -> Result<Option<Vec<f64>>, ReplayError> {
    let turns = || records.iter().flat_map(|record| &record.turns);
    if turns().all(|turn| array(turn).is_none()) {
        return Ok(None);
    }
    if turns().any(|turn| array(turn).is_none()) {
        return Err(ReplayError::Rule(format!("`{name}` is in some kept episodes but not in others")));
    }
    Ok(Some(turns().filter_map(array).flatten().map(|value| f64::from(*value)).collect()))
}
