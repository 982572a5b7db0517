//! The pure parts of learning: worked cases on plain numbers, contracts of every filter, estimator and objective, and
//! the update on a learner that only listens.

#![expect(clippy::unwrap_used, reason = "a test fails where it unwraps")]
#![expect(clippy::single_range_in_vec_init, reason = "a row may have one response, a mini-batch one shard")]

use std::ops::Range;
use std::sync::Mutex;

use proptest::prelude::*;
use starpo::advantage::{AdvantageConfig, Common, Estimator, Grpo, Lone, LossScaling, Reweight, Unit};
use starpo::batch::Batch;
use starpo::experiment::UpdateConfig;
use starpo::filter::{EmptyConfig, Keep, Mass, Score, Skip, TopP};
use starpo::objective::aggregate::{SeqMeanTokenMean, SeqMeanTokenSum, SeqMeanTokenSumNorm, TokenMean};
use starpo::objective::{AggregateConfig, Clip, KlConfig, KlEstimator, ObjectiveConfig, PolicyLoss, Ppo};
use starpo::policy::{Cotangent, Learner, Norms, Optimizer, Policy, Row, Sampling, Scores, Session};
use starpo::reward::kl::NoKl;
use starpo::reward::normalise::Identity;
use starpo::reward::{self, NormaliseConfig, PenaltyTo, RewardConfig, When};
use starpo::rng::Stream;
use starpo::schedule::{Constant, ScheduleConfig};
use starpo::stats;
use starpo::trajectory::{End, Group, Malformed, Reply, Sequence, Split, Task, Trajectory, Turn};
use starpo::update::{NonFinite, Rules, UpdateStats, update};

use crate::objective::objectives;

/// Configs as `configs/base.kdl` has them.
pub(crate) const TOP_P: TopP = TopP {
    value: 0.9,
    score: Score::RewardStd,
    keep: Keep::Largest,
    include_zero: true,
    mass: Mass::Linear,
    eps: 0.01,
    empty: EmptyConfig::Skip(Skip {}),
    empty_stop: 5,
};
pub(crate) const GRPO: Grpo = Grpo { std: true, unit: Unit::Trajectory, ddof: 1, epsilon: 1e-6, lone: Lone::Zero };
pub(crate) const COMMON: Common =
    Common { reweight: Reweight::None, loss_scaling: LossScaling::None, length_weight: false, zero_task: false };
pub(crate) const REWARD: RewardConfig = RewardConfig {
    normalise: NormaliseConfig::Identity(Identity {}),
    when: When::AfterFilter,
    penalty_to: PenaltyTo::Episode,
    turn_scores: false,
    kl: reward::KlConfig::None(NoKl {}),
};
pub(crate) const PPO: ObjectiveConfig = ObjectiveConfig {
    policy: PolicyLoss::Ppo(Ppo { clip: Clip { low: 0.2, high: 0.28, dual: Some(3.0) } }),
    kl: KlConfig { coef: 0.0, estimator: KlEstimator::K3 },
    entropy_coef: 0.001,
    value_coef: 1.0,
    value_clip: Some(0.5),
    aggregate: AggregateConfig::TokenMean(TokenMean {}),
};

pub(crate) fn by_grpo(grpo: &Grpo) -> AdvantageConfig {
    AdvantageConfig { estimator: Estimator::Grpo(grpo.clone()), common: COMMON }
}

/// Holds numbers to `tolerance`, relative above 1.
#[track_caller]
pub(crate) fn close(actual: &[f64], expected: &[f64], tolerance: f64) {
    assert_eq!(actual.len(), expected.len(), "{actual:?} is not as long as {expected:?}");
    for (a, e) in actual.iter().zip(expected) {
        assert!((a - e).abs() <= tolerance * e.abs().max(1.0), "{actual:?} is not {expected:?}");
    }
}

fn task() -> Task {
    Task { env: "bandit".into(), epoch: 1, split: Split::Train, index: 0 }
}

fn turn(reward: f64) -> Turn {
    let reply = Reply { text: String::new(), actions: Err(Malformed::Tags), reasoning: None };
    let (observation, anchor, executed) = (String::new(), String::new(), Vec::new());
    Turn { observation, anchor, reply, executed, reward, penalty: 0.0, valid: true, effective: true }
}

/// A group of one-turn episodes of these scores; member m has a prompt of one token and `lengths[m]` response tokens.
pub(crate) fn group(id: usize, scores: &[f64], lengths: &[usize]) -> Group {
    let member = |(member, (score, length)): (usize, (&f64, &usize))| {
        let logprobs: Vec<f32> = (0..*length).map(|token| -0.5 - 0.25 * token as f32).collect();
        let tokens = (0..=*length as u32).collect();
        let sequence = Sequence {
            tokens,
            turns: vec![0],
            responses: vec![1..1 + length],
            entropies: logprobs.clone(),
            logprobs,
            ..Sequence::default()
        };
        Trajectory { member, turns: vec![turn(*score)], sequences: vec![sequence], baseline: None, end: End::Solved }
    };
    Group { id, task: task(), members: scores.iter().zip(lengths).enumerate().map(member).collect() }
}

/// Scores rows by a formula, asks for their cotangents in shards of its own choice, and remembers them.
struct Listener {
    /// Rows of a shard of its own; 0 takes the shards that it is given.
    split: usize,
    /// Added to every log-prob, by the number of steps taken.
    drift: f32,
    /// Whether it is a critic too.
    values: bool,
    /// Moves the order in which rows are asked for.
    order: u64,
    steps: usize,
    /// Of each row of each gradient.
    heard: Vec<Cotangent>,
    shards: Vec<Vec<Range<usize>>>,
}

impl Listener {
    fn new(split: usize, drift: f32) -> Self {
        Self { split, drift, values: false, order: 0, steps: 0, heard: Vec::new(), shards: Vec::new() }
    }
}

impl Policy for Listener {
    fn open<'a>(&'a self, _: &Sampling, _: usize) -> Box<dyn Session + 'a> {
        unreachable!("a listener does not speak")
    }
}

impl Learner for Listener {
    fn score(&self, rows: &[Row<'_>], _: f64) -> Vec<Scores> {
        let drift = self.drift * self.steps as f32;
        let score = |row: &Row<'_>| {
            let tokens = row.responses.iter().map(ExactSizeIterator::len).sum::<usize>();
            let logprobs: Vec<f32> =
                (0..tokens).map(|token| -0.5 - 0.25 * token as f32 + drift * (1 + token) as f32).collect();
            let values = if self.values { logprobs.iter().map(|logprob| 2.0 * logprob).collect() } else { vec![] };
            Scores { entropies: logprobs.iter().map(|logprob| 0.3 - logprob).collect(), logprobs, values }
        };
        rows.iter().map(score).collect()
    }

    fn gradient(
        &mut self,
        rows: &[Row<'_>],
        shards: &[Range<usize>],
        temperature: f64,
        cotangent: &(dyn Fn(usize, &Scores) -> Cotangent + Sync),
    ) -> Vec<Scores> {
        self.shards.push(shards.to_vec());
        let scores = self.score(rows, temperature);
        let own: Vec<Range<usize>> = match self.split {
            0 => shards.to_vec(),
            n => (0..rows.len()).step_by(n).map(|start| start..(start + n).min(rows.len())).collect(),
        };
        let heard = Mutex::new(vec![Cotangent::default(); rows.len()]);
        let mut order: Vec<usize> = own.into_iter().rev().flatten().collect();
        Stream::new("order", self.order, &[]).shuffle(&mut order);
        for row in order {
            heard.lock().unwrap()[row] = cotangent(row, &scores[row]);
        }
        self.heard.extend(heard.into_inner().unwrap());
        scores
    }

    fn step(&mut self, _: &Optimizer) -> Result<Norms, f64> {
        let flat = self.heard.iter().flat_map(|row| &row.logprobs);
        let norm = flat.map(|d| f64::from(*d) * f64::from(*d)).sum::<f64>().sqrt();
        self.steps += 1;
        if norm.is_finite() { Ok(Norms { gradient: norm }) } else { Err(norm) }
    }

    fn discard(&mut self) -> f64 {
        unreachable!("nothing is analysed")
    }

    fn save(&self) -> Vec<(String, Vec<u8>)> {
        Vec::new()
    }

    fn restore(&mut self, _: &[(String, Vec<u8>)]) -> Result<(), String> {
        Ok(())
    }
}

fn learn(
    listener: &mut Listener,
    groups: &[Group],
    objective: &ObjectiveConfig,
    (epochs, mini_batch): (usize, usize),
) -> Result<UpdateStats, NonFinite> {
    let kept: Vec<&Group> = groups.iter().collect();
    let scores = REWARD.scores(groups);
    let rewards = REWARD.rewards(&kept, &scores.iter().map(Vec::as_slice).collect::<Vec<_>>(), 0.0);
    let credits = by_grpo(&GRPO).estimate(&rewards, groups.len());
    let batch = Batch::new(&kept, &credits);
    let config = UpdateConfig {
        epochs,
        mini_batch,
        learning_rate: 0.1,
        schedule: ScheduleConfig::Constant(Constant { warmup: 0 }),
        beta1: 0.9,
        beta2: 0.999,
        epsilon: 1e-8,
        weight_decay: 0.0,
        clip_norm: 1.0,
    };
    update(&Rules { update: &config, objective, temperature: 1.0, learning_rate: 0.05 }, &batch, listener)
}

proptest! {
    #[test]
    fn loss_and_derivatives_are_the_same_bits_under_any_split_and_order(
        members in prop::collection::vec(prop::collection::vec((-3..3i32, 0..4usize), 1..5), 1..5),
        (split, order) in (1..7usize, any::<u64>()), mini_batch in 1..12usize, aggregate in 0..4usize,
        objective in prop::sample::select(objectives()),
    ) {
        let mut groups: Vec<Group> = members.iter().enumerate().map(|(id, members)| {
            let (scores, lengths): (Vec<f64>, Vec<usize>) = members.iter().map(|(s, n)| (f64::from(*s), *n)).unzip();
            group(id, &scores, &lengths)
        }).collect();
        for row in groups.iter_mut().flat_map(|group| &mut group.members).flat_map(|member| &mut member.sequences) {
            row.reference = row.logprobs.iter().map(|logprob| 0.9 * logprob - 0.1).collect();
            row.values = row.logprobs.iter().map(|logprob| 0.5 - logprob).collect();
        }
        let aggregate = [
            AggregateConfig::TokenMean(TokenMean {}),
            AggregateConfig::SeqMeanTokenSum(SeqMeanTokenSum {}),
            AggregateConfig::SeqMeanTokenMean(SeqMeanTokenMean {}),
            AggregateConfig::SeqMeanTokenSumNorm(SeqMeanTokenSumNorm { width: 7 }),
        ][aggregate].clone();
        let objective = ObjectiveConfig { aggregate, ..objective };
        let listener = |split, order| Listener { values: true, order, ..Listener::new(split, 0.1) };
        let (mut whole, mut parts) = (listener(0, 0), listener(split, order));
        let a = learn(&mut whole, &groups, &objective, (2, mini_batch)).unwrap();
        let b = learn(&mut parts, &groups, &objective, (2, mini_batch)).unwrap();
        let bits = |s: &UpdateStats| {
            let numbers = [s.loss, s.policy, s.entropy, s.value, s.clip_fraction, s.clip_fraction_lower, s.grad_norm];
            let more = [s.kl, s.ratio_gap, s.value_clip_fraction, s.reference_kl.unwrap_or(f64::NAN)];
            (numbers.map(f64::to_bits), more.map(f64::to_bits))
        };
        prop_assert_eq!(bits(&a), bits(&b));
        prop_assert_eq!(whole.heard, parts.heard);
    }
}

#[test]
fn mini_batches_cut_groups_into_shards_and_a_small_batch_is_one() {
    let groups = [group(4, &[1.0, 0.0, 0.0], &[2, 1, 3]), group(7, &[0.0, 1.0], &[1, 2])];
    let mut listener = Listener::new(0, 0.0);
    let stats = learn(&mut listener, &groups, &PPO, (1, 2)).unwrap();
    assert_eq!(listener.shards, [vec![0..2], vec![0..1, 1..2], vec![0..1]]);
    assert_eq!((stats.steps, stats.kl, stats.ratio_gap, stats.learning_rate), (3, 0.0, 0.0, 0.05));
    let mut listener = Listener::new(0, 0.0);
    let stats = learn(&mut listener, &groups, &PPO, (1, 32)).unwrap();
    assert_eq!(listener.shards, [vec![0..3, 3..5]]);
    // On policy, token-mean: minus the mean of advantages over tokens, and of entropies 0.8 + 0.25 a token.
    let advantages = [2.0 / 3.0, -1.0 / 3.0].map(|a| a / (stats::std(&[1.0, 0.0, 0.0], 1) + 1e-6));
    let pair = 0.5 / (0.5f64.sqrt() + 1e-6);
    let sum = 2.0 * advantages[0] + 4.0 * advantages[1] - pair + 2.0 * pair;
    close(&[stats.policy], &[-sum / 9.0], 1e-12);
    close(&[stats.entropy, stats.loss], &[0.8 + 0.25 * 5.0 / 9.0, stats.policy - 0.001 * stats.entropy], 1e-6);
    let first = f64::from(listener.heard[0].logprobs[0]);
    close(&[first, f64::from(listener.heard[0].entropies[0])], &[-advantages[0] / 9.0, -0.001 / 9.0], 1e-7);
}

#[test]
fn a_gradient_that_is_not_finite_names_its_rows() {
    let mut groups = [group(4, &[1.0, 0.0, 0.0], &[2, 1, 3]), group(7, &[0.0, 1.0], &[1, 2])];
    groups[1].members[0].sequences[0].logprobs[0] = f32::NAN;
    let error = learn(&mut Listener::new(0, 0.0), &groups, &PPO, (1, 32)).unwrap_err();
    assert_eq!(error.rows, [(7, 0)]);
    assert_eq!(error.to_string(), "gradient norm NaN in epoch 0, mini-batch 0, rows 7.0");
}

#[test]
fn an_update_measures_how_far_it_went() {
    let groups = [group(0, &[1.0, 0.0], &[2, 2])];
    let stats = learn(&mut Listener::new(0, 0.5), &groups, &PPO, (2, 8)).unwrap();
    // First epoch on policy; in the second each row's log-ratios are 0.5 and 1.
    close(&[stats.kl, stats.ratio_gap], &[-(0.0 + 0.75) / 2.0, 0.0], 1e-6);
    // exp 0.5 and exp 1 are above 1.28: clipped for the better member; for the worse one they stay below 3.
    close(&[stats.clip_fraction, stats.clip_fraction_lower], &[2.0 / 8.0, 0.0], 1e-12);
    assert_eq!(stats.steps, 2);
}
