//! Whole runs: training through a run directory, killed anywhere, with a learner small enough to check by hand.

use std::ops::Range;
use std::path::Path;

use serde_json::Value;
use starpo::chat::{Chat, Tokens};
use starpo::experiment::{self, Resolved};
use starpo::learners::Learners;
use starpo::policy::{
    self, Completion, Cotangent, Family, Learner, Norms, Optimizer, Policy, Request, Row, Sampling, Scores, Session,
    Shape, Tokenizer, Transformer, Weights,
};
use starpo::record::{Disk, Facts, Progress, RunDir, State, Timings, reader};
use starpo::rollout::{self, RolloutStats};
use starpo::stage::{Ended, StageError, drive};
use starpo::train::{Training, train_step};
use starpo::trajectory::{self, Limit, Split};

use crate::disk::{End, Memory};

/// A character an id; the template's special tokens stand above them.
pub(crate) struct Characters;

const START: u32 = 0x11_0000;
pub(crate) const STOP: u32 = 0x11_0001;

impl Tokens for Characters {
    fn encode(&self, text: &str) -> Vec<u32> {
        text.chars().map(u32::from).collect()
    }

    fn decode(&self, ids: &[u32]) -> String {
        let spell = |&id: &u32| match id {
            START => "<|im_start|>".to_owned(),
            STOP => "<|im_end|>".to_owned(),
            id => char::from_u32(id).map(String::from).unwrap_or_default(),
        };
        ids.iter().map(spell).collect()
    }

    fn specials(&self) -> Vec<(String, u32)> {
        [("<|im_start|>", START), ("<|im_end|>", STOP)].map(|(name, id)| (name.to_owned(), id)).to_vec()
    }
}

pub(crate) fn resolve(name: &str, overrides: &[&str]) -> Resolved {
    experiment::resolve(name, &latest(overrides), Path::new(env!("CARGO_MANIFEST_DIR"))).unwrap()
}

/// A run on the base with these nodes.
pub(crate) fn resolve_nodes(body: &str, overrides: &[&str]) -> Resolved {
    let project = tempfile::tempdir().unwrap();
    std::fs::create_dir(project.path().join("experiments")).unwrap();
    let text = format!("experiment \"x\" {{ extends \"base\"; {body} }}");
    std::fs::write(project.path().join("experiments/x.kdl"), text).unwrap();
    let overrides: Vec<String> = overrides.iter().map(|&text| text.to_owned()).collect();
    experiment::resolve("x", &overrides, project.path()).unwrap()
}

/// Of overrides of one name the last.
pub(crate) fn latest(overrides: &[&str]) -> Vec<String> {
    let name_of = |text: &str| text.split('=').next().map(str::to_owned);
    let last = |(at, text): &(usize, &&str)| overrides[at + 1..].iter().all(|later| name_of(later) != name_of(text));
    overrides.iter().enumerate().filter(last).map(|(_, text)| (*text).to_owned()).collect()
}

/// Chooses between the first two legal actions by one parameter: π(first) = σ(θ), said by the response's first token.
pub(crate) struct Choice {
    theta: f64,
    pending: f64,
    /// Added to the log-probs that it records while sampling: 0, unless a test wants it to lie.
    lie: f32,
}

struct Choosing<'a> {
    choice: &'a Choice,
}

impl Choice {
    pub(crate) fn new() -> Self {
        Self { theta: 0.0, pending: 0.0, lie: 0.0 }
    }

    fn first(&self) -> f64 {
        1.0 / (1.0 + (-self.theta).exp())
    }

    /// Log-prob of the choice that a response's first token says, and the entropy.
    fn scores(&self, token: u32, tokens: usize) -> Scores {
        let p = self.first();
        let chosen = if token == u32::from('1') { p } else { 1.0 - p };
        let entropy = -(p * p.ln() + (1.0 - p) * (1.0 - p).ln());
        let mut scores = Scores { logprobs: vec![0.0; tokens], entropies: vec![0.0; tokens], values: Vec::new() };
        (scores.logprobs[0], scores.entropies[0]) = (chosen.ln() as f32, entropy as f32);
        scores
    }
}

impl Policy for Choice {
    fn open<'a>(&'a self, _: &Sampling, _: usize) -> Box<dyn Session + 'a> {
        Box::new(Choosing { choice: self })
    }
}

impl Session for Choosing<'_> {
    fn generate(&mut self, requests: &[Request<'_>]) -> Vec<Completion> {
        let answer = |request: &Request<'_>| {
            let first = request.draws.uniform_at(0) < self.choice.first();
            let number = if first { 1 } else { 2 };
            let action = &request.legal[number - 1];
            let mut tokens = Characters.encode(&format!("{number}</think><answer>{action}</answer>"));
            tokens.push(STOP);
            let mut scores = self.choice.scores(tokens[0], tokens.len());
            scores.logprobs[0] += self.choice.lie;
            Completion { tokens, logprobs: scores.logprobs, entropies: scores.entropies }
        };
        requests.iter().map(answer).collect()
    }
}

impl Learner for Choice {
    fn score(&self, rows: &[Row<'_>], _: f64) -> Vec<Scores> {
        let score = |row: &Row<'_>| self.scores(row.tokens[row.responses[0].start], row.responses[0].len());
        rows.iter().map(score).collect()
    }

    fn gradient(
        &mut self,
        rows: &[Row<'_>],
        _: &[Range<usize>],
        temperature: f64,
        cotangent: &(dyn Fn(usize, &Scores) -> Cotangent + Sync),
    ) -> Vec<Scores> {
        let scores = self.score(rows, temperature);
        for (number, (row, scores)) in rows.iter().zip(&scores).enumerate() {
            let first = row.tokens[row.responses[0].start] == u32::from('1');
            let derivative = if first { 1.0 - self.first() } else { -self.first() };
            self.pending += f64::from(cotangent(number, scores).logprobs[0]) * derivative;
        }
        scores
    }

    fn step(&mut self, optimizer: &Optimizer) -> Result<Norms, f64> {
        let gradient = std::mem::take(&mut self.pending);
        if !gradient.is_finite() {
            return Err(gradient);
        }
        self.theta -= 1000.0 * optimizer.learning_rate * gradient;
        Ok(Norms { gradient: gradient.abs() })
    }

    fn discard(&mut self) -> f64 {
        std::mem::take(&mut self.pending).abs()
    }

    fn save(&self) -> Vec<(String, Vec<u8>)> {
        vec![("theta".into(), self.theta.to_le_bytes().to_vec())]
    }

    fn restore(&mut self, files: &[(String, Vec<u8>)]) -> Result<(), String> {
        let [(_, bytes)] = files else { return Err("not one file".into()) };
        self.theta = f64::from_le_bytes(bytes.as_slice().try_into().map_err(|_| "not eight bytes")?);
        Ok(())
    }
}

pub(crate) const SMALL: [&str; 8] = [
    "warm-start=none",
    "steps=5",
    "groups=6",
    "group-size=8",
    "eval.tasks=8",
    "eval.every=2",
    "checkpoint-every=2",
    "max-response-tokens=200",
];

/// Runs to the end, or to the disk's.
pub(crate) fn attempt(disk: &Disk, runs: &Path, resolved: &Resolved) -> Result<String, StageError> {
    let name = resolved.id().to_string();
    let run = RunDir::open_or_create(disk, runs, &name, &resolved.lock(), &resolved.canon)?;
    let facts = Facts { command: "test".into(), device: "cpu".into(), threads: 1 };
    let Some(mut begun) = run.begin(&facts)? else { return Ok(reader::digest(disk, run.path())?.unwrap()) };
    begun.prolong()?;
    let chat = Chat::new(&Characters, true).unwrap();
    let mut learner = Choice::new();
    let mut training = Training::new(&resolved.config, &chat, Learners::alone(&mut learner));
    let progress = Progress::new("test", 0, resolved.config.train.steps, true);
    match drive(&mut training, begun, &resolved.config.execution, &resolved.config.logging, &progress)? {
        Ended::Done { digest } => Ok(digest),
        Ended::Interrupted(signal) => panic!("signal {signal}"),
    }
}

#[test]
fn a_run_killed_at_every_change_of_the_disk_ends_with_the_same_digest() {
    let resolved = resolve("bandit", &SMALL);
    let (runs, calm) = (Path::new("runs"), Memory::new());
    let expected = attempt(&calm.disk(), runs, &resolved).unwrap();
    let metrics = |disk: &Disk| disk.read(&runs.join(resolved.id().to_string()).join("metrics.jsonl")).unwrap();
    // Of a learner of one number `crash` tries every call.
    for call in (0..calm.calls()).step_by(5) {
        let memory = Memory::killed_at(call);
        assert!(attempt(&memory.disk(), runs, &resolved).is_err() || memory.is_dead());
        memory.restart(End::Everything);
        assert_eq!(attempt(&memory.disk(), runs, &resolved).unwrap(), expected, "killed at call {call}");
        assert_eq!(metrics(&memory.disk()), metrics(&calm.disk()), "killed at call {call}");
    }
}

#[test]
fn training_moves_the_policy_to_the_better_arm_and_the_records_say_so() {
    let longer = ["steps=40", "task.low=0.0", "chance=1.0", "update.learning-rate=1e-3"];
    let resolved = resolve("bandit", &[&SMALL[..], &longer].concat());
    let runs = tempfile::tempdir().unwrap();
    attempt(&Disk::default(), runs.path(), &resolved).unwrap();
    let lines = reader::metrics(&Disk::default(), &runs.path().join(resolved.id().to_string())).unwrap();
    assert_eq!(lines.len(), 41);
    let steps: Vec<u64> = lines.iter().map(|line| line["step"].as_u64().unwrap()).collect();
    assert!(steps.iter().copied().eq(0..=40));
    // The better arm stands first in half of the tasks, so nothing can be learnt from a place: reward stays at a half,
    // while what is recorded of each step adds up.
    for line in &lines[1..] {
        assert_eq!(line["rollout"]["logprob_mismatch_max"], 0.0);
        assert_eq!(line["filter"]["kept"], 6);
        assert_eq!(line["rollout"]["success"], line["rollout"]["reward"]);
        assert_eq!(line["rollout"]["valid"], 1.0);
        assert!(line["update"]["ratio_gap"].as_f64().unwrap() < 1e-6);
    }
    assert!(lines[0]["eval"]["success"].is_f64() && lines[1]["eval"] == Value::Null && lines[40]["eval"].is_object());
}

/// What a full disk does, or a folder that is not one: the run says why it failed, and goes on once that is mended.
#[test]
fn a_record_that_cannot_be_written_fails_the_run_with_the_reason() {
    let resolved = resolve("bandit", &SMALL);
    let [calm, runs] = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let disk = Disk::default();
    let name = resolved.id().to_string();
    let run = RunDir::open_or_create(&disk, runs.path(), &name, &resolved.lock(), &resolved.canon).unwrap();
    let blocked = run.path().join("evals");
    std::fs::write(&blocked, "").unwrap();
    let error = attempt(&disk, runs.path(), &resolved).unwrap_err().to_string();
    let State::Failed(reason) = run.status().unwrap().state else { panic!("{:?}", run.status()) };
    assert!(reason == error && reason.contains("evals"), "{reason}");
    std::fs::remove_file(&blocked).unwrap();
    let expected = attempt(&disk, calm.path(), &resolved).unwrap();
    assert_eq!(attempt(&disk, runs.path(), &resolved).unwrap(), expected);
}

#[test]
fn remax_plays_a_greedy_episode_of_each_group() {
    let resolved = resolve("bandit", &[&SMALL[..], &["advantage=remax"]].concat());
    let chat = Chat::new(&Characters, true).unwrap();
    let mut learner = Choice::new();
    let learners = &mut Learners::alone(&mut learner);
    let step = train_step(&resolved.config, &chat, learners, 1, 1.0, &mut 0.0, &mut Timings::new());
    let (record, groups) = step.unwrap();
    assert!(record.advantage.is_some() && record.reward.is_none());
    for group in &groups {
        // This learner answers by its draws at any temperature, and those are the first member's.
        let first = Some(group.members[0].score());
        assert!(group.members.iter().all(|member| member.baseline == first), "{group:?}");
    }
}

#[test]
fn log_probs_that_do_not_repeat_end_the_run() {
    let resolved = resolve("bandit", &SMALL);
    let chat = Chat::new(&Characters, true).unwrap();
    let mut learner = Choice { lie: 2e-4, ..Choice::new() };
    let mut timings = Timings::new();
    let mut step = |learners: &mut Learners<'_>| {
        train_step(&resolved.config, &chat, learners, 1, 1.0, &mut 0.0, &mut timings).unwrap_err()
    };
    let error = step(&mut Learners::alone(&mut learner));
    assert!(error.contains("sampling and training disagree"), "{error}");
    assert_eq!(learner.theta, 0.0, "nothing was learnt from it");
}

/// A decoder whose cache holds, from the second turn on, something else than what the episode says.
struct Forgetful(Transformer);

struct Misremembering<'a>(Box<dyn Session + 'a>, usize);

impl Policy for Forgetful {
    fn open<'a>(&'a self, sampling: &Sampling, episodes: usize) -> Box<dyn Session + 'a> {
        Box::new(Misremembering(self.0.open(sampling, episodes), 0))
    }
}

impl Session for Misremembering<'_> {
    fn generate(&mut self, requests: &[Request<'_>]) -> Vec<Completion> {
        let mut read: Vec<Vec<u32>> = requests.iter().map(|request| request.prompt.to_vec()).collect();
        if self.1 == 1 {
            read.iter_mut().for_each(|tokens| tokens[0] += 1);
        }
        self.1 += 1;
        let requests: Vec<Request<'_>> =
            requests.iter().zip(&read).map(|(request, prompt)| Request { prompt, ..request.clone() }).collect();
        self.0.generate(&requests)
    }
}

impl Learner for Forgetful {
    fn score(&self, rows: &[Row<'_>], temperature: f64) -> Vec<Scores> {
        self.0.score(rows, temperature)
    }

    fn gradient(
        &mut self,
        rows: &[Row<'_>],
        shards: &[Range<usize>],
        temperature: f64,
        cotangent: &(dyn Fn(usize, &Scores) -> Cotangent + Sync),
    ) -> Vec<Scores> {
        self.0.gradient(rows, shards, temperature, cotangent)
    }

    fn step(&mut self, optimizer: &Optimizer) -> Result<Norms, f64> {
        self.0.step(optimizer)
    }

    fn discard(&mut self) -> f64 {
        self.0.discard()
    }

    fn save(&self) -> Vec<(String, Vec<u8>)> {
        self.0.save()
    }

    fn restore(&mut self, files: &[(String, Vec<u8>)]) -> Result<(), String> {
        self.0.restore(files)
    }
}

#[test]
fn one_wrong_value_in_the_cache_ends_the_run() {
    let small = ["width=16", "layers=1", "heads=2", "kv-heads=1", "ffn=16", "groups=2", "group-size=2", "max-turns=2"];
    let resolved = resolve("sokoban", &[&small[..], &["max-response-tokens=4"]].concat());
    let tokenizer = Tokenizer::from_json(include_str!("../../configs/model/tiny-tokenizer.json")).unwrap();
    let chat = Chat::new(&tokenizer, true).unwrap();
    let shape = Shape {
        family: Family::Llama,
        vocab: tokenizer.vocab(),
        width: 16,
        layers: 1,
        heads: 2,
        kv_heads: 1,
        head_dim: 8,
        ffn: 16,
        rope_theta: 1e4,
        norm_eps: 1e-6,
        tied: true,
    };
    let learner = || {
        let weights = Weights::random(shape.clone(), 0.5, 1).unwrap();
        Transformer::new(weights, policy::device("cpu").unwrap(), 1)
    };
    let step = |learner: &mut dyn Learner| {
        let learners = &mut Learners::alone(learner);
        train_step(&resolved.config, &chat, learners, 1, 1.0, &mut 0.0, &mut Timings::new())
    };
    let (record, _) = step(&mut learner()).unwrap();
    assert_eq!(record.rollout.unwrap().logprob_mismatch_max, 0.0);
    let error = step(&mut Forgetful(learner())).unwrap_err();
    assert!(error.contains("sampling and training disagree"), "{error}");
}

#[test]
fn a_filter_that_keeps_nothing_ends_the_run_in_order() {
    // Both arms pay nothing that a filter could see, so no group has a spread.
    let arms = ["top_p=0.9", "filter.empty-stop=2", "task.low=0.0", "task.high=1e-12", "chance=1.0"];
    let overrides = [&SMALL[..], &arms].concat();
    let resolved = resolve("bandit", &overrides);
    let runs = tempfile::tempdir().unwrap();
    attempt(&Disk::default(), runs.path(), &resolved).unwrap();
    let lines = reader::metrics(&Disk::default(), &runs.path().join(resolved.id().to_string())).unwrap();
    let last = lines.last().unwrap();
    assert_eq!((&last["step"], &last["filter"]["kept"]), (&2.into(), &0.into()));
    assert!(last["eval"].is_object(), "with a final evaluation");
    assert!(last["update"].is_null(), "and no update");
}

/// Plays one bandit or Sokoban episode by canned replies.
fn scripted(name: &str, overrides: &[&str], replies: &'static [&'static str]) -> starpo::trajectory::Trajectory {
    let resolved = resolve(name, overrides);
    let chat = Chat::new(&Characters, resolved.config.rollout.think).unwrap();
    let voice = starpo::policy::Voice::new(|text: &str| chat.continuation(text), chat.end());
    let policy = starpo::policy::Scripted::new(voice, move |_, turn| replies[turn].to_owned());
    let plan = rollout::Plan {
        env: &resolved.config.task[0].env,
        split: Split::Train,
        index: 1,
        group: 0,
        member: 0,
        dynamics: starpo::rng::Stream::new("test", 0, &[]),
        draws: ("test", 0, vec![]),
        noise: 0.0,
    };
    let config = &resolved.config.rollout;
    rollout::play(config, &config.sampling, &chat, &policy, &[plan]).remove(0)
}

const LONG: &str = "max-response-tokens=300";
const ROOM: &str = "max-context-tokens=100000";

/// Case T17: what a turn's actions cost and do.
#[test]
fn t17_actions_and_penalties() {
    let turn = |reply: &'static [&'static str]| {
        scripted("sokoban", &[LONG, ROOM, "max-turns=1", "max-actions-per-turn=3"], reply).turns.remove(0)
    };
    let both = turn(&["<think>a</think><answer>up || UP</answer>"]);
    assert_eq!((both.executed.len(), both.penalty, both.valid), (2, 0.0, true));
    let one = turn(&["<think>a</think><answer>Up || jump</answer>"]);
    assert_eq!((one.executed.len(), one.penalty, one.valid), (1, -0.1, false));
    let none = turn(&["<think>a</think><answer>jump</answer>"]);
    assert_eq!((none.executed.len(), none.penalty, none.reward), (0, -0.1, 0.0));
    let empty = turn(&["<think>a</think><answer></answer>"]);
    assert_eq!((empty.executed.len(), empty.penalty, empty.reward), (0, -0.1, 0.0));
}

#[test]
fn t17_the_budget_ends_the_episode() {
    let reply = &["<think>a</think><answer>Left || Up || Left</answer>"];
    let episode = scripted("sokoban", &[LONG, ROOM, "max-actions=2", "max-actions-per-turn=3"], reply);
    assert_eq!((episode.turns[0].executed.len(), episode.turns[0].penalty), (2, 0.0));
    assert_eq!(episode.end, trajectory::End::Truncated(Limit::Actions));
    assert!(!episode.solved());
}

/// Case T16, ours: a step plays the tasks after those of the step before; the panel is the same every time.
#[test]
fn t16_steps_play_consecutive_tasks() {
    let resolved = resolve("bandit", &[&SMALL[..], &["groups=2", "group-size=2", "task-offset=10000"]].concat());
    let chat = Chat::new(&Characters, true).unwrap();
    let indices = |step| -> Vec<u64> {
        let groups = rollout::collect(&resolved.config, &chat, &Choice::new(), step, 0);
        groups.iter().flat_map(|group| group.members.iter().map(|_| group.task.index)).collect()
    };
    assert_eq!(indices(1), [10000, 10000, 10001, 10001]);
    assert_eq!(indices(2), [10002, 10002, 10003, 10003]);
    let panel = || rollout::panel(&resolved.config, &resolved.config.eval.sampling, &chat, &Choice::new());
    assert_eq!(panel(), panel());
    assert!(panel().iter().map(|group| group.task.index).eq(0..8));
}

/// Case T18: success, and success of any member.
#[test]
fn t18_success_and_pass_at_k() {
    let resolved = resolve("bandit", &[&SMALL[..], &["groups=1", "group-size=2"]].concat());
    let chat = Chat::new(&Characters, true).unwrap();
    let mut groups = rollout::collect(&resolved.config, &chat, &Choice::new(), 1, 0);
    groups[0].members[0].end = trajectory::End::Solved;
    groups[0].members[1].end = trajectory::End::Failed;
    let stats = RolloutStats::of(&groups, 0.0);
    assert_eq!((stats.success, stats.pass_at_k), (0.5, 1.0));
}

#[test]
fn an_episode_that_outgrows_its_context_ends_and_its_mask_stays_on_what_was_sampled() {
    let reply = &["<think>a</think><answer>Up</answer>"; 9];
    let episode = scripted("sokoban", &[LONG, "max-context-tokens=700", "max-turns=9", "max-actions=9"], reply);
    assert_eq!(episode.end, trajectory::End::Truncated(Limit::Tokens));
    let row = &episode.sequences[0];
    for span in &row.responses {
        assert_eq!(Characters.decode(&row.tokens[span.clone()]), "a</think><answer>Up</answer><|im_end|>");
    }
    assert_eq!(row.mask().iter().filter(|sampled| **sampled).count(), row.response_tokens());
    assert_eq!(row.logprobs.len(), row.response_tokens());
}
