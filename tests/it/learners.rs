//! Runs with company: a critic, a reference, an analysis of gradients; on a decoder of a few thousand numbers.

use std::ops::Range;
use std::path::Path;

use serde_json::Value;
use starpo::chat::Chat;
use starpo::critic::explained_variance;
use starpo::experiment::{CriticConfig, Resolved};
use starpo::learners::{Critic, Learners};
use starpo::policy::{
    self, Completion, Cotangent, Family, Learner, Norms, Optimizer, Policy, Request, Row, Sampling, Scores, Session,
    Shape, Tokenizer, Transformer, Weights,
};
use starpo::record::{Disk, Facts, Progress, RunDir, Timings, reader};
use starpo::stage::{Ended, StageError, drive};
use starpo::train::{Training, train_step};

use crate::disk::{End, Memory};
use crate::learning::close;
use crate::run::resolve;

const SMALL: [&str; 9] = [
    "warm-start=none",
    "steps=3",
    "groups=3",
    "group-size=4",
    "mini-batch=6",
    "eval.tasks=2",
    "checkpoint-every=1",
    "chance=0.5",
    "update.learning-rate=1e-2",
];

fn small(overrides: &[&str]) -> Resolved {
    resolve("bandit", &[&SMALL[..], overrides].concat())
}

fn tokenizer() -> Tokenizer {
    Tokenizer::from_json(include_str!("../../configs/model/tiny-tokenizer.json")).unwrap()
}

/// A decoder that says what it is told: one of two legal actions by chance, with the log-probs that it gives them. So
/// its episodes have rewards from the start.
struct Told<'a> {
    model: Transformer,
    chat: &'a Chat<'a>,
}

struct Telling<'a> {
    told: &'a Told<'a>,
    temperature: f64,
}

impl Policy for Told<'_> {
    fn open<'a>(&'a self, sampling: &Sampling, _: usize) -> Box<dyn Session + 'a> {
        Box::new(Telling { told: self, temperature: sampling.temperature })
    }
}

impl Session for Telling<'_> {
    fn generate(&mut self, requests: &[Request<'_>]) -> Vec<Completion> {
        let Told { model, chat } = self.told;
        let say = |request: &Request<'_>| {
            let action = &request.legal[usize::from(request.draws.uniform_at(0) < 0.5)];
            let mut tokens = chat.continuation(&format!("<think>a</think><answer>{action}</answer>"));
            tokens.push(chat.end());
            let row = [request.prompt, &tokens].concat();
            let response = request.prompt.len()..row.len();
            let view = Row { tokens: &row, responses: std::slice::from_ref(&response) };
            let scores = model.score(&[view], self.temperature).remove(0);
            Completion { tokens, logprobs: scores.logprobs, entropies: scores.entropies }
        };
        requests.iter().map(say).collect()
    }
}

impl Learner for Told<'_> {
    fn score(&self, rows: &[Row<'_>], temperature: f64) -> Vec<Scores> {
        self.model.score(rows, temperature)
    }

    fn gradient(
        &mut self,
        rows: &[Row<'_>],
        shards: &[Range<usize>],
        temperature: f64,
        cotangent: &(dyn Fn(usize, &Scores) -> Cotangent + Sync),
    ) -> Vec<Scores> {
        self.model.gradient(rows, shards, temperature, cotangent)
    }

    fn step(&mut self, optimizer: &Optimizer) -> Result<Norms, f64> {
        self.model.step(optimizer)
    }

    fn discard(&mut self) -> f64 {
        self.model.discard()
    }

    fn save(&self) -> Vec<(String, Vec<u8>)> {
        self.model.save()
    }

    fn restore(&mut self, files: &[(String, Vec<u8>)]) -> Result<(), String> {
        self.model.restore(files)
    }
}

/// The policy, critic and reference that a config asks for, all from the same weights.
struct Company<'a> {
    policy: Told<'a>,
    critic: Critic<'static>,
    reference: Option<Box<dyn Learner>>,
}

impl<'a> Company<'a> {
    fn new(resolved: &Resolved, chat: &'a Chat<'a>, vocab: usize, threads: usize) -> Self {
        let (width, heads, kv_heads, ffn) = (16, 2, 1, 16);
        let shape = Shape {
            family: Family::Llama,
            vocab,
            width,
            layers: 1,
            heads,
            kv_heads,
            head_dim: width / heads,
            ffn,
            rope_theta: 1e4,
            norm_eps: 1e-6,
            tied: true,
        };
        let weights = Weights::random(shape, 0.3, 1).unwrap();
        let device = || policy::device("cpu").unwrap();
        let start = || Transformer::new(weights.clone(), device(), threads);
        let (model, critic) = match resolved.config.critic {
            CriticConfig::None(_) => (start(), Critic::None),
            CriticConfig::Own(_) => {
                (start(), Critic::Own(Box::new(Transformer::critic(weights.clone(), device(), threads))))
            }
            CriticConfig::Shared(_) => {
                (Transformer::new(weights.clone().with_value_head(), device(), threads), Critic::Shared)
            }
        };
        let reference = resolved.config.needs_reference().then(|| Box::new(start()) as Box<dyn Learner>);
        Self { policy: Told { model, chat }, critic, reference }
    }

    fn learners(&mut self) -> Learners<'_> {
        let critic = std::mem::replace(&mut self.critic, Critic::None);
        Learners { policy: &mut self.policy, critic, reference: self.reference.take() }
    }
}

/// Runs to the end, or to the disk's.
fn attempt(disk: &Disk, runs: &Path, resolved: &Resolved, threads: usize) -> Result<String, StageError> {
    let run = RunDir::open_or_create(disk, runs, &resolved.id().to_string(), &resolved.lock(), &resolved.canon)?;
    let facts = Facts { command: "test".into(), device: "cpu".into(), threads };
    let Some(begun) = run.begin(&facts)? else { return Ok(reader::digest(disk, run.path())?.unwrap()) };
    let tokenizer = tokenizer();
    let chat = Chat::new(&tokenizer, true).unwrap();
    let mut company = Company::new(resolved, &chat, tokenizer.vocab(), threads);
    let learners = company.learners();
    let mut training = Training::new(&resolved.config, &chat, learners);
    let progress = Progress::new("test", 0, resolved.config.train.steps, true);
    match drive(&mut training, begun, &resolved.config.execution, &resolved.config.logging, &progress)? {
        Ended::Done { digest } => Ok(digest),
        Ended::Interrupted(signal) => panic!("signal {signal}"),
    }
}

fn metrics(runs: &Path, resolved: &Resolved) -> Vec<Value> {
    reader::metrics(&Disk::default(), &runs.join(resolved.id().to_string())).unwrap()
}

fn files(runs: &Path, resolved: &Resolved) -> Vec<(String, Vec<u8>)> {
    let run = runs.join(resolved.id().to_string());
    starpo::record::checkpoint::latest(&Disk::default(), &run).unwrap().checkpoint.unwrap().files
}

fn survives(overrides: &[&str]) -> Vec<Value> {
    survives_a_kill(&small(overrides))
}

/// Killed in the middle, resumed on two threads instead of one: the same bytes.
pub(crate) fn survives_a_kill(resolved: &Resolved) -> Vec<Value> {
    let (runs, calm) = (Path::new("runs"), Memory::new());
    let run = runs.join(resolved.id().to_string());
    let expected = attempt(&calm.disk(), runs, resolved, 1).unwrap();
    let memory = Memory::killed_at(calm.calls() * 2 / 3);
    let disk = memory.disk();
    assert!(attempt(&disk, runs, resolved, 1).is_err(), "{} was killed", resolved.name);
    let steps = starpo::record::checkpoint::steps(&disk, &run).unwrap();
    assert!(steps.last().is_some_and(|step| *step < 3), "killed between the first checkpoint and the last");
    memory.restart(End::Process);
    assert_eq!(attempt(&disk, runs, resolved, 2).unwrap(), expected, "{}", resolved.name);
    let lines = reader::metrics(&calm.disk(), &run).unwrap();
    assert_eq!(lines, reader::metrics(&disk, &run).unwrap());
    lines
}

#[test]
fn a_run_with_its_own_critic_survives() {
    let lines = survives(&[
        "advantage=gae",
        "critic=own",
        "critic.warmup=1",
        "critic.learning-rate=1e-2",
        "objective.kl.coef=0.1",
    ]);
    assert!(lines[1]["update"].is_null() && lines[1]["critic"]["grad_norm"].as_f64().unwrap() > 0.0, "{}", lines[1]);
    assert_eq!(lines[1]["critic"]["explained_variance"], 0.0, "values are 0 before they learn");
    let [second, third] = [&lines[2], &lines[3]];
    close(&[second["critic"]["learning_rate"].as_f64().unwrap()], &[1e-2 * 2.0 / 3.0], 1e-15);
    // k3 is never negative, and the policy leaves its reference within its first update.
    let kl = |line: &Value| line["update"]["reference_kl"].as_f64().unwrap();
    assert!(kl(second) > 0.0 && kl(third) > 0.0, "{} {}", kl(second), kl(third));
}

#[test]
fn a_run_whose_policy_is_the_critic_survives() {
    let lines = survives(&[
        "advantage=gae",
        "critic=shared",
        "objective=gspo",
        "objective.kl.coef=0.1",
        "objective.kl.estimator=k2",
    ]);
    for line in &lines[1..] {
        let critic = &line["critic"];
        assert!(critic["loss"].as_f64().unwrap() >= 0.0 && critic["grad_norm"].is_null() && line["update"].is_object());
    }
}

#[test]
fn every_objective_trains_and_survives() {
    for objective in ["ppo", "cispo", "reinforce"] {
        survives(&[&format!("objective={objective}"), "gradients.every=2"]);
    }
}

/// Tokens that were not sampled have a reference and a value too, where they are learned from.
#[test]
fn a_wider_mask_survives() {
    let lines = survives(&["advantage=gae", "rollout.mask=after-system", "critic=own", "objective.kl.coef=0.1"]);
    assert!(lines[3]["update"]["reference_kl"].as_f64().unwrap() > 0.0, "{}", lines[3]);
}

#[test]
fn without_company_nothing_is_computed_recorded_or_saved() {
    let (resolved, runs) = (small(&[]), tempfile::tempdir().unwrap());
    attempt(&Disk::default(), runs.path(), &resolved, 1).unwrap();
    let names: Vec<String> = files(runs.path(), &resolved).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["model.safetensors", "optimizer.safetensors"]);
    for line in &metrics(runs.path(), &resolved)[1..] {
        assert!(line["critic"].is_null() && line["gradients"].is_null());
        let update = line["update"].as_object().unwrap();
        let parts = ["loss", "policy", "entropy", "clip_fraction", "clip_fraction_lower", "grad_norm", "kl"];
        assert!(update.keys().eq(parts.iter().chain(&["learning_rate", "ratio_gap", "steps"])), "{update:?}");
    }
}

#[test]
fn an_own_critic_has_files_of_its_own_and_warms_up_alone() {
    let (resolved, runs) = (small(&["advantage=gae", "critic=own", "critic.warmup=3"]), tempfile::tempdir().unwrap());
    attempt(&Disk::default(), runs.path(), &resolved, 1).unwrap();
    let files = files(runs.path(), &resolved);
    let find = |name: &str| &files.iter().find(|(found, _)| found == name).unwrap().1;
    assert_eq!(files.len(), 5);
    let tokenizer = tokenizer();
    let chat = Chat::new(&tokenizer, true).unwrap();
    let start = Company::new(&resolved, &chat, tokenizer.vocab(), 1).policy.save();
    assert!(*find("model.safetensors") == start[0].1, "the policy is as it was");
    assert!(find("critic-model.safetensors") != find("model.safetensors"), "the critic is not");
    assert!(!find("critic-value-head.safetensors").is_empty() && !find("critic-optimizer.safetensors").is_empty());
}

#[test]
fn the_reference_is_the_start_model_to_the_bit() {
    let tokenizer = tokenizer();
    let chat = Chat::new(&tokenizer, true).unwrap();
    let resolved = small(&["advantage=gae", "objective.kl.coef=0.1", "critic=own", "rollout.sampling.temperature=0.7"]);
    let mut company = Company::new(&resolved, &chat, tokenizer.vocab(), 1);
    let mut learners = company.learners();
    let (_, groups) =
        train_step(&resolved.config, &chat, &mut learners, 1, 1.0, &mut 0.0, &mut Timings::new()).unwrap();
    for row in groups.iter().flat_map(|group| &group.members).flat_map(|member| &member.sequences) {
        assert_eq!(row.reference, row.logprobs);
        assert_eq!(row.values, vec![0.0; row.logprobs.len()]);
    }
    let (_, groups) =
        train_step(&resolved.config, &chat, &mut learners, 2, 1.0, &mut 0.0, &mut Timings::new()).unwrap();
    assert!(groups[0].members.iter().any(|member| member.sequences[0].reference != member.sequences[0].logprobs));
}

/// The side look changes nothing but its own lines.
#[test]
fn a_run_whose_gradients_are_analysed_is_the_same_run() {
    let company = ["advantage=gae", "critic=shared", "objective.kl.coef=0.1"];
    let plain = small(&company);
    let analysed = small(&[&company[..], &["gradients.every=2", "gradients.buckets.count=2"]].concat());
    let [one, two] = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    attempt(&Disk::default(), one.path(), &plain, 1).unwrap();
    attempt(&Disk::default(), two.path(), &analysed, 1).unwrap();
    assert!(files(one.path(), &plain) == files(two.path(), &analysed));
    let mut lines = metrics(two.path(), &analysed);
    let seen: Vec<Option<Value>> =
        lines.iter_mut().map(|line| line.as_object_mut().unwrap().shift_remove("gradients")).collect();
    assert_eq!(lines, metrics(one.path(), &plain));
    assert!(seen[0].is_none() && seen[1].is_some() && seen[2].is_none() && seen[3].is_some());
    let gradients = seen[3].as_ref().unwrap();
    assert!(gradients.as_object().unwrap().keys().eq(["all", "bucket_01", "bucket_02"]), "{gradients}");
    let number = |bucket: &str, name: &str| gradients[bucket][name].as_f64().unwrap();
    assert_eq!(number("all", "groups"), number("bucket_01", "groups") + number("bucket_02", "groups"));
    assert_eq!(number("all", "tokens"), number("bucket_01", "tokens") + number("bucket_02", "tokens"));
    assert!(number("bucket_01", "spread_max") <= number("bucket_02", "spread_min"));
    assert!(["task", "entropy", "kl"].iter().all(|part| number("all", part) > 0.0), "{gradients}");
}

#[test]
fn a_distance_that_holds_nothing_is_warned_of() {
    let warnings = |overrides: &[&str]| -> Vec<String> {
        let found = small(overrides).warnings();
        found.iter().map(ToString::to_string).filter(|warning| warning.contains("kl.estimator")).collect()
    };
    let [warning] = &warnings(&["objective.kl.estimator=k1", "objective.kl.coef=0.1"])[..] else { panic!("one") };
    assert!(warning.starts_with("objective.kl.estimator \"k1\" is a loss whose expected gradient is 0"), "{warning}");
    assert!(warnings(&["objective.kl.estimator=k1"]).is_empty());
    assert!(warnings(&["objective.kl.estimator=k2", "objective.kl.coef=0.1"]).is_empty());
}

#[test]
fn what_values_explain() {
    close(&[explained_variance(&[1.0, 2.0, 3.0], &[1.0, 2.0, 3.0])], &[1.0], 0.0);
    close(&[explained_variance(&[0.0; 3], &[1.0, 2.0, 3.0])], &[0.0], 0.0);
    close(&[explained_variance(&[0.0, 1.0], &[0.0, 2.0])], &[0.75], 1e-15);
    assert_eq!(explained_variance(&[0.5, 1.0], &[1.0, 1.0]), 0.0);
}
