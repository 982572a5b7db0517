//! Training: one step on one screen, and the stage that repeats it with evaluations and early stops.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::batch::Batch;
use crate::chat::{Chat, Mask};
use crate::critic::{self, CriticStats};
use crate::diagnose::{Collapse, History};
use crate::evaluate::{self, EvalStats, Evaluation};
use crate::experiment::{Numerics, ResolvedConfig};
use crate::gather::{FilterStats, Gathered, gather};
use crate::gradients::{self, Pull};
use crate::learners::{self, Learners};
use crate::policy::{Learner, Row};
use crate::record::Timings;
use crate::record::episode::{self, TurnMetrics, Window};
use crate::reward;
use crate::rng::Stream;
use crate::rollout::{self, RolloutStats};
use crate::schedule::Horizon;
use crate::stage::{Report, Stage};
use crate::stats;
use crate::stop::Stops;
use crate::trajectory::{Group, Sequence};
use crate::update::{Rules, UpdateStats, update};

/// How much recorded log-probs may differ from those of an uncached pass; more ends the run.
fn mismatch_bound(numerics: Numerics) -> f64 {
    match numerics {
        Numerics::CpuF32 => 0.0,
        // Reductions run in another order with the number of rows there.
        Numerics::GpuF32 => 1e-4,
    }
}

/// What a step was like. Field paths are the names of metrics.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct StepRecord {
    pub step: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rollout: Option<RolloutStats>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub collapse: Option<Collapse>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filter: Option<FilterStats>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reward: Option<RewardStats>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advantage: Option<AdvantageStats>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gradients: Option<BTreeMap<String, Pull>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub critic: Option<CriticStats>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub update: Option<UpdateStats>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub eval: Option<EvalStats>,
}

/// The KL in the reward.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RewardStats {
    /// Mean divergence from the reference over kept rows, nats a token.
    pub kl: f64,
    /// What weighed it.
    pub kl_coef: f64,
}

/// The credit given.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct AdvantageStats {
    /// Deviation over the kept response tokens, ddof 1.
    pub std: f64,
}

/// One training step: play and filter, check, diagnose, ask reference and critic, credit, update; at `lr_share` of the
/// peak learning rates. `kl_coef` weighs the KL in the reward, and becomes the next step's.
///
/// # Errors
/// Log-probs that do not repeat, or a gradient that is not finite.
pub fn train_step(
    config: &ResolvedConfig,
    chat: &Chat<'_>,
    learners: &mut Learners<'_>,
    step: usize,
    lr_share: f64,
    kl_coef: &mut f64,
    timings: &mut Timings,
) -> Result<(StepRecord, Vec<Group>), String> {
    let mut gathered = timings.phase("rollout", || gather(config, chat, &*learners.policy, step as u64));
    if let Some(reason) = rollout::unplayable(&gathered.groups) {
        return Err(reason);
    }
    if config.advantage.needs_baseline() {
        timings.phase("baselines", || {
            rollout::baselines(config, chat, &*learners.policy, step as u64, &mut gathered.groups);
        });
    }
    let mismatch = timings.phase("spot_check", || spot_check(config, &*learners.policy, &gathered.groups, step))?;
    let collapse = diagnose(config, &*learners.policy, &gathered.groups, step, timings);
    timings.phase("score", || annotate(config, learners, &mut gathered));
    let groups = &gathered.groups;
    let masked = timings.phase("mask", || masked(config, learners, &gathered.kept()));
    let kept: Vec<&Group> = masked.iter().map(Cow::as_ref).collect();

    let scores: Vec<&[f64]> = gathered.kept.iter().map(|&group| &gathered.scores[group][..]).collect();
    let rewards = config.reward.rewards(&kept, &scores, *kl_coef);
    let credits = config.advantage.estimate(&rewards, groups.len());
    let batch = Batch::new(&kept, &credits);

    let analysed = (config.gradients.due(step) && !kept.is_empty())
        .then(|| timings.phase("gradients", || gradients::analyse(config, &kept, &credits, learners.policy)));
    let taught = timings.phase("critic", || critic::learn(config, &mut learners.critic, &batch, lr_share));
    let taught = taught.map_err(|error| format!("the critic's {error}"))?;
    let rules = Rules {
        update: &config.update,
        objective: &config.objective,
        temperature: config.rollout.sampling.temperature,
        learning_rate: config.update.learning_rate * lr_share,
    };
    let updated = (!critic::warms_up(&config.critic, step))
        .then(|| timings.phase("update", || update(&rules, &batch, learners.policy)));
    let updated = updated.transpose().map_err(|error| error.to_string())?.filter(|_| !kept.is_empty());

    let tokens = groups.iter().flat_map(|g| &g.members).flat_map(|m| &m.sequences).map(Sequence::response_tokens).sum();
    timings.count_tokens(tokens);
    let record = StepRecord {
        step,
        rollout: Some(RolloutStats::of(groups, mismatch)),
        collapse,
        filter: Some(gathered.stats()),
        reward: (config.reward.needs_reference() && !kept.is_empty()).then(|| {
            let (kl, rows) = reward::kl::mean(&rewards);
            let used = std::mem::replace(kl_coef, config.reward.kl.next(*kl_coef, kl, rows));
            RewardStats { kl, kl_coef: used }
        }),
        advantage: (!kept.is_empty()).then(|| AdvantageStats { std: stats::std(&batch.advantages, 1) }),
        gradients: analysed,
        critic: CriticStats::of(&batch, taught.as_ref(), updated.as_ref()),
        update: updated,
        eval: None,
    };
    Ok((record, gathered.groups))
}

/// What the step's thoughts tell of their prompts, where it is one to measure at.
fn diagnose(
    config: &ResolvedConfig,
    learner: &dyn Learner,
    groups: &[Group],
    step: usize,
    timings: &mut Timings,
) -> Option<Collapse> {
    let (due, temperature) = (config.rollout.think && config.collapse.due(step), config.rollout.sampling.temperature);
    let cross = |prompts: &[&[u32]], reasonings: &[&[u32]]| learner.cross(prompts, reasonings, temperature);
    due.then(|| timings.phase("collapse", || config.collapse.measure(groups, config.seed, step, &cross)))
}

/// The largest difference between recorded log-probs and those of an uncached forward pass, over some whole rows.
fn spot_check(config: &ResolvedConfig, learner: &dyn Learner, groups: &[Group], step: usize) -> Result<f64, String> {
    let rows: Vec<(usize, usize, &Sequence)> = groups
        .iter()
        .flat_map(|group| group.members.iter().map(move |member| (group.id, member)))
        .flat_map(|(group, member)| member.sequences.iter().map(move |row| (group, member.member, row)))
        .filter(|(_, _, row)| row.response_tokens() > 0)
        .collect();
    let mut order: Vec<usize> = (0..rows.len()).collect();
    Stream::new("spot-check", config.seed, &[step as u64]).shuffle(&mut order);
    order.truncate(config.rollout.spot_check);
    let views: Vec<Row<'_>> =
        order.iter().map(|&row| Row { tokens: &rows[row].2.tokens, responses: &rows[row].2.responses }).collect();
    let scores = learner.score(&views, config.rollout.sampling.temperature);
    let (bound, mut worst) = (mismatch_bound(config.numerics), 0.0);
    for (&row, scores) in order.iter().zip(&scores) {
        let (group, member, sequence) = rows[row];
        for (token, (sampled, scored)) in sequence.logprobs.iter().zip(&scores.logprobs).enumerate() {
            let gap = f64::from(sampled - scored).abs();
            // A NaN is a mismatch too.
            if gap.is_nan() || gap > bound {
                return Err(format!(
                    "sampling and training disagree: response token {token} of group {group}, member {member}, from \
                     turn {} on, was sampled with log-prob {sampled}, and an uncached pass gives {scored} (bound \
                     {bound:e})",
                    sequence.turns[0] + 1
                ));
            }
            worst = f64::max(worst, gap);
        }
    }
    Ok(worst)
}

/// Writes into the rows of the kept groups what the reference and the critic say of them.
fn annotate(config: &ResolvedConfig, learners: &Learners<'_>, gathered: &mut Gathered) {
    let groups = gathered.groups.iter_mut().enumerate();
    let kept = groups.filter(|(group, _)| gathered.kept.contains(group));
    learners.annotate(&mut rows(kept.map(|(_, group)| group)), config.rollout.sampling.temperature);
}

/// The rows of some groups.
fn rows<'a>(groups: impl Iterator<Item = &'a mut Group>) -> Vec<&'a mut Sequence> {
    groups.flat_map(|group| &mut group.members).flat_map(|member| &mut member.sequences).collect()
}

/// The kept groups as they are learned from. Under a mask wider than `sampled` the spans of their rows are the mask's,
/// and the old log-probs are those of an uncached pass before the first step, since not all tokens were sampled; those
/// that were have the same ones to the bit.
fn masked<'a>(config: &ResolvedConfig, learners: &Learners<'_>, kept: &[&'a Group]) -> Vec<Cow<'a, Group>> {
    if config.rollout.mask == Mask::Sampled {
        return kept.iter().map(|group| Cow::Borrowed(*group)).collect();
    }
    let mut groups: Vec<Group> = kept.iter().map(|group| (*group).clone()).collect();
    let (mut rows, temperature) = (rows(groups.iter_mut()), config.rollout.sampling.temperature);
    rows.iter_mut().for_each(|row| row.responses = std::mem::take(&mut row.learned));
    learners::score(&*learners.policy, &mut rows, temperature, |row, scores| {
        (row.logprobs, row.entropies) = (scores.logprobs, scores.entropies);
    });
    learners.annotate(&mut rows, temperature);
    groups.into_iter().map(Cow::Owned).collect()
}

/// A run's training.
pub struct Training<'a> {
    pub config: &'a ResolvedConfig,
    pub chat: &'a Chat<'a>,
    pub learners: Learners<'a>,
    pub stops: Stops<'a>,
    /// What thoughts were like before.
    pub collapse: History,
    /// Of the KL in the reward, at the next step.
    pub kl_coef: f64,
    pub horizon: Horizon,
}

impl Stage for Training<'_> {
    fn steps(&self) -> usize {
        self.config.train.steps
    }

    fn step(&mut self, step: usize, timings: &mut Timings) -> Result<Report, String> {
        let (mut record, groups) = self.train(step, timings)?;
        let due =
            self.config.eval.tasks > 0 && (step.is_multiple_of(self.config.eval.every) || self.horizon.is_last(step));
        let mut evaluation = if due { self.evaluate(&mut record, timings)? } else { None };
        let regime = record.collapse.as_mut().and_then(|now| self.collapse.judge(&self.config.collapse, now));
        let turns = record.collapse.as_ref().map(Collapse::turns).unwrap_or_default();
        let stop = self.stops.feed(&json!(record))?;
        if stop.is_some() && evaluation.is_none() {
            evaluation = self.evaluate(&mut record, timings)?;
        }
        let messages: Vec<String> =
            regime.into_iter().chain(evaluation.as_ref().map(|evaluation| show(step, evaluation))).collect();
        Ok(Report {
            metrics: json!(record),
            view: view(&record, &groups, timings),
            rollouts: (step > 0).then(|| self.lines(step, &groups, &turns)),
            evals: evaluation.as_ref().map(|e| {
                let [sampled, greedy] = [&e.sampled, &e.greedy].map(|pass| self.lines(step, pass, &TurnMetrics::new()));
                sampled + &greedy
            }),
            message: (!messages.is_empty()).then(|| messages.join("\n")),
            stop,
            score: record.eval.as_ref().map(|eval| eval.sampled.success),
        })
    }

    fn save(&self) -> (Vec<(String, Vec<u8>)>, Value) {
        let counters = json!({
            "stops": self.stops.save(), "collapse": self.collapse, "kl_coef": self.kl_coef,
            "foreseen": self.horizon.foreseen(),
        });
        (self.learners.save(), counters)
    }

    fn restore(&mut self, files: &[(String, Vec<u8>)], counters: &Value) -> Result<(), String> {
        self.stops.restore(&counters["stops"])?;
        self.collapse = History::deserialize(&counters["collapse"]).map_err(|error| format!("collapse: {error}"))?;
        self.kl_coef = counters["kl_coef"].as_f64().ok_or("its counters lack kl_coef")?;
        self.horizon = Horizon::new(self.steps(), counters["foreseen"].as_bool().unwrap_or(true));
        self.learners.restore(files)
    }
}

impl<'a> Training<'a> {
    /// Before the first step.
    #[must_use]
    pub fn new(config: &'a ResolvedConfig, chat: &'a Chat<'a>, learners: Learners<'a>) -> Self {
        let stops = Stops::new(&config.stop, config.filter.empty_stop());
        let (collapse, kl_coef) = (History::default(), config.reward.kl.start());
        Self { config, chat, learners, stops, collapse, kl_coef, horizon: Horizon::new(config.train.steps, false) }
    }

    /// Step `step` without its evaluation. The learning rate is the schedule's, as far as the stops have left it.
    fn train(&mut self, step: usize, timings: &mut Timings) -> Result<(StepRecord, Vec<Group>), String> {
        if step == 0 {
            return Ok((StepRecord::default(), Vec::new()));
        }
        let share = self.config.update.schedule.share(step, || self.horizon.steps()) * self.stops.lr_scale();
        train_step(self.config, self.chat, &mut self.learners, step, share, &mut self.kl_coef, timings)
    }

    /// Plays the held-out panel and enters it in the record.
    fn evaluate(&self, record: &mut StepRecord, timings: &mut Timings) -> Result<Option<Evaluation>, String> {
        if self.config.eval.tasks == 0 {
            return Ok(None);
        }
        let evaluation = timings.phase("eval", || evaluate::evaluate(self.config, self.chat, &*self.learners.policy));
        if let Some(reason) = rollout::unplayable(&evaluation.sampled) {
            return Err(reason);
        }
        record.eval = Some(evaluation.stats.clone());
        Ok(Some(evaluation))
    }

    fn lines(&self, step: usize, groups: &[Group], turns: &TurnMetrics) -> String {
        episode::lines(step, Window::of(&self.config.rollout.window), groups, turns)
    }
}

/// A step in one line.
fn view(record: &StepRecord, groups: &[Group], timings: &Timings) -> String {
    let (Some(rollout), Some(filter)) = (&record.rollout, &record.filter) else {
        return "before training".to_owned();
    };
    let episodes: usize = groups.iter().map(|group| group.members.len()).sum();
    let (low, high) = stats::wilson(rollout.success, episodes);
    crate::record::progress::StepView {
        reward: rollout.reward,
        success: rollout.success,
        interval: (low, high),
        kept: filter.kept,
        groups: groups.len(),
        tokens_per_second: timings.tokens_per_second(),
    }
    .to_string()
}

/// An evaluation for a person: its figures, and two episodes.
fn show(step: usize, evaluation: &Evaluation) -> String {
    let stats = &evaluation.stats;
    let mut text = format!(
        "after step {step}: success {:.1} % sampled, {:.1} % greedy; reward {:.2}, {:.2}; valid answers {:.1} %",
        100.0 * stats.sampled.success,
        100.0 * stats.greedy.success,
        stats.sampled.reward,
        stats.greedy.reward,
        100.0 * stats.sampled.valid,
    );
    for group in evaluation.sampled.iter().take(2) {
        text.push_str(&format!("\n{}", evaluate::transcript(group, &group.members[0])));
    }
    text
}
