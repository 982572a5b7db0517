//! What several values of an experiment must be together.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use super::identity::WARM;
use super::{AdapterConfig, Buckets, CriticConfig, Edges, Resolved, ResolvedConfig, TaskConfig, WarmStartConfig};
use crate::config::tree::{Form, Tree, find};
use crate::config::{Diagnostic, Value};
use crate::env::EnvConfig;
use crate::filter::{FilterConfig, Score};
use crate::objective::{KlConfig, KlEstimator};
use crate::reward::When;

/// The rules that a tree breaks.
pub(super) fn broken(run: &Resolved) -> Vec<Diagnostic> {
    let mut rules = Rules::new(run);
    let message = format!("an experiment cannot be called \"{}\"", run.name);
    rules.demand(run.name != WARM, "", &message, "`warm-…` are the directories of warm starts: choose another");
    rules.model();
    rules.device();
    rules.rollout();
    rules.temperature("rollout.sampling.temperature");
    rules.temperature("eval.sampling.temperature");
    rules.log();
    rules.reward();
    rules.found
}

/// Environments that were asked whether they have tasks, the last ones: cells of a sweep seldom differ in them, and
/// making tasks takes time.
#[derive(Default)]
pub(super) struct Asked(Mutex<VecDeque<(EnvConfig, Result<(), String>)>>);

impl Asked {
    const MOST: usize = 64;

    fn feasible(&self, env: &EnvConfig) -> Result<(), String> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, answer)) = known.iter().find(|(known, _)| known == env) {
            return answer.clone();
        }
        let answer = env.feasible();
        known.truncate(Self::MOST - 1);
        known.push_front((env.clone(), answer.clone()));
        answer
    }
}

/// What components object to in a run whose values are sound one by one. `replay` has its own word on filters.
pub(super) fn objections(run: &Resolved, asked: &Asked) -> Vec<Diagnostic> {
    let (mut rules, config) = (Rules::new(run), &run.config);
    let help = "add one, such as `task \"sokoban\"`: `configs/base.kdl` alone is not runnable";
    rules.demand(!config.task.is_empty(), "", "the experiment names no task", help);
    if let Some(objection) = config.filter.objection(config.rollout.group_size) {
        rules.demand(false, "filter", &objection, "choose another score or mass, or larger groups");
    }
    for (index, stop) in config.stop.iter().enumerate() {
        if let Some((objection, help)) = stop.objection(&absent(config)) {
            rules.demand(false, &format!("stop.{index}"), &objection, &help);
        }
    }
    rules.defeated(config);
    rules.critic(config);
    rules.adapter(config);
    rules.turn_scores(config);
    rules.logging(config);
    if let Buckets::Edges(Edges { edges }) = &config.gradients.buckets
        && !edges.is_sorted_by(|low, high| low < high)
    {
        let message = format!("the edges {edges:?} do not ascend");
        rules.demand(false, "gradients.buckets.edges", &message, "each bucket reaches from one edge to the next");
    }
    for (list, tasks) in [("task", &config.task), ("eval.task", &config.eval.task)] {
        for (index, task) in tasks.iter().enumerate() {
            if let Err(objection) = asked.feasible(&task.env) {
                // Objections begin with the field that they are of, most of them.
                let (node, field) =
                    (format!("{list}.{index}"), objection.split([' ', ':', ',']).next().unwrap_or_default());
                let path = Some(format!("{node}.{field}")).filter(|path| rules.at(path).is_some()).unwrap_or(node);
                rules.demand(false, &path, &objection, "no task can be made of these values");
            }
        }
    }
    rules.found
}

/// Parts of records that a run never has, each with the value that says so.
fn absent(config: &ResolvedConfig) -> Vec<(&'static str, &'static str)> {
    let held_out = if config.eval.task.is_empty() { &config.task } else { &config.eval.task };
    let parts = [
        (config.eval.tasks == 0, "eval", "eval.tasks 0"),
        (!config.rollout.think, "collapse", "rollout.think #false"),
        (config.collapse.every == 0, "collapse", "collapse.every 0"),
        (config.collapse.first_turn == 0, "collapse.first_turn", "collapse.first-turn 0"),
        (config.collapse.trajectory == 0, "collapse.trajectory", "collapse.trajectory 0"),
        (config.gradients.every == 0, "gradients", "gradients.every 0"),
        (matches!(config.critic, CriticConfig::None(_)), "critic", "critic \"none\""),
        (!config.reward.needs_reference(), "reward", "reward.kl \"none\""),
        (!config.needs_reference(), "update.reference_kl", "objective.kl.coef 0"),
        (one_environment(&config.task), "rollout.by_env", "one environment"),
        (one_environment(held_out), "eval.by_env", "one environment"),
    ];
    parts.into_iter().filter(|(absent, ..)| *absent).map(|(_, part, value)| (part, value)).collect()
}

fn one_environment(tasks: &[TaskConfig]) -> bool {
    tasks.windows(2).all(|pair| pair[0].env.name() == pair[1].env.name())
}

/// What a run may do and hardly anyone wants.
pub(super) fn warnings(run: &Resolved) -> Vec<Diagnostic> {
    let (mut rules, config) = (Rules::new(run), &run.config);
    let KlConfig { coef, estimator } = config.objective.kl;
    let message = "objective.kl.estimator \"k1\" is a loss whose expected gradient is 0: it holds the policy to \
                   nothing and adds noise";
    let help = "choose \"k2\" (the KL's own gradient) or \"k3\"";
    rules.demand(coef <= 0.0 || estimator != KlEstimator::K1, "objective.kl.estimator", message, help);
    let (rows, batch) = (config.rollout.groups * config.rollout.group_size, config.update.mini_batch);
    let message = format!("update.mini-batch {batch} is never full: a step has {rows} episodes, a row each");
    let help = "a step is then one optimizer step; rollout.groups times rollout.group-size is what it has";
    let rounds = config.filter.rounds();
    rules.demand(batch <= rows * rounds || !config.rollout.window.appends(), "update.mini-batch", &message, help);
    if let WarmStartConfig::Expert(warm) = &config.warm_start {
        let message = format!("a batch of {} takes the same of {} episodes twice", warm.batch, warm.episodes);
        let enough = warm.batch <= warm.episodes || !config.rollout.window.appends();
        rules.demand(enough, "warm-start.batch", &message, "take more warm-start.episodes, or a smaller batch");
    }
    let (turn, episode) = (config.rollout.max_actions_per_turn, config.rollout.max_actions);
    let message = format!("a turn of {turn} actions is more than an episode's {episode}");
    let help = "an episode ends with rollout.max-actions";
    rules.demand(turn <= episode, "rollout.max-actions-per-turn", &message, help);
    rules.found.into_iter().map(Diagnostic::warning).collect()
}

struct Rules<'t> {
    run: &'t Resolved,
    found: Vec<Diagnostic>,
}

impl<'t> Rules<'t> {
    fn new(run: &'t Resolved) -> Self {
        Self { run, found: Vec::new() }
    }

    fn at(&self, path: &str) -> Option<&'t Tree> {
        find(&self.run.tree, path)
    }

    fn int(&self, path: &str) -> Option<i128> {
        match self.at(path).map(|tree| &tree.form) {
            Some(Form::Scalar(Value::Int(value))) => Some(*value),
            _ => None,
        }
    }

    /// A text, a choice, or the member of a variant.
    fn name(&self, path: &str) -> Option<&'t str> {
        match self.at(path).map(|tree| &tree.form) {
            Some(Form::Scalar(Value::Text(text))) => Some(text),
            Some(Form::Variant { name, .. }) => Some(name),
            _ => None,
        }
    }

    fn flag(&self, path: &str) -> bool {
        matches!(self.at(path).map(|tree| &tree.form), Some(Form::Scalar(Value::Bool(true))))
    }

    /// What does not hold is wrong where the value at `path` was given, or else with the experiment.
    fn demand(&mut self, holds: bool, path: &str, message: &str, help: &str) {
        if !holds {
            let place = self.at(path).and_then(|tree| tree.place.as_ref()).unwrap_or(&self.run.place);
            self.found.push(Diagnostic::rule(place, message, help));
        }
    }

    fn model(&mut self) {
        let all = ["model.width", "model.heads", "model.kv-heads"].map(|path| self.int(path));
        let [Some(width), Some(heads), Some(kv)] = all else { return };
        let help = "each head has width / heads numbers, which rotary embedding turns in pairs";
        self.demand(
            width % (2 * heads) == 0,
            "model.heads",
            &format!("width {width} is no even multiple of heads {heads}"),
            help,
        );
        let help = "every key and value head serves the same number of query heads";
        self.demand(heads % kv == 0, "model.kv-heads", &format!("kv-heads {kv} does not divide heads {heads}"), help);
    }

    /// A filter that compares what normalisation has made equal, or more groups than there are, chooses nothing.
    fn defeated(&mut self, config: &ResolvedConfig) {
        if let FilterConfig::TopKAbs(top_k) = &config.filter {
            let (value, groups) = (top_k.value, config.rollout.groups * config.filter.rounds());
            let message = format!("the filter keeps {value} groups, and a step has {groups}: it drops none");
            self.demand(value < groups, "filter.value", &message, "take a smaller value, or filter \"none\"");
        }
        let Some(score) = config.filter.score() else { return };
        let spread = matches!(score, Score::RewardStd | Score::RewardVariance);
        let mean = matches!(score, Score::RewardMean | Score::RewardSum);
        let normalise = config.reward.normalise.name();
        let equal = match normalise {
            "mean" => mean,
            "mean-std" => mean || spread,
            "asym-clip" => spread,
            _ => false,
        };
        let defeats = equal && config.reward.when == When::BeforeFilter;
        let by_group = self.name("reward.normalise.by") == Some("group");
        let message = format!(
            "reward.normalise \"{normalise}\" comes before the filter and makes groups equal in what filter.score \
             \"{}\" compares",
            score.name()
        );
        self.demand(!(defeats && by_group), "reward.when", &message, "take reward.when \"after-filter\"");
    }

    /// A critic and an estimator that asks it go together.
    fn critic(&mut self, config: &ResolvedConfig) {
        let (estimator, critic) = (config.advantage.estimator.name(), config.critic.name());
        match (config.advantage.needs_values(), &config.critic) {
            (true, CriticConfig::None(_)) => {
                let message = format!("advantage \"{estimator}\" reads a critic's values, and there is none");
                self.demand(false, "advantage", &message, "add `critic \"own\"` or `critic \"shared\"`");
            }
            (false, CriticConfig::Own(_) | CriticConfig::Shared(_)) => {
                let message =
                    format!("critic \"{critic}\" is asked by nobody: advantage \"{estimator}\" reads no values");
                self.demand(false, "critic", &message, "choose `critic \"none\"`, or an advantage such as \"gae\"");
            }
            _ => {}
        }
    }

    /// An adapter that can change nothing learns nothing.
    fn adapter(&mut self, config: &ResolvedConfig) {
        let AdapterConfig::Lora(lora) = &config.adapter else { return };
        let help = "name at least one, such as `targets \"q_proj\" \"v_proj\"`";
        let message = "an adapter without targets changes no projection";
        self.demand(!lora.targets.is_empty(), "adapter.targets", message, help);
        let message = "an adapter of alpha 0 changes nothing: its changes are scaled by alpha / rank";
        self.demand(lora.alpha > 0.0, "adapter.alpha", message, "take twice the rank, say");
    }

    /// Where rewards stand matters only to estimators that look at more than an episode's score.
    fn turn_scores(&mut self, config: &ResolvedConfig) {
        let by_row = self.name("advantage.unit") == Some("row") && !config.rollout.window.appends();
        let estimator = config.advantage.estimator.name();
        let message = format!("advantage \"{estimator}\" credits episodes whole: it never sees the scores of turns");
        let help =
            "take reward.turn-scores #false, an estimator of tokens such as \"gae\", or unit \"row\" in a window";
        let seen = !config.reward.turn_scores || by_row || config.advantage.reads_tokens();
        self.demand(seen, "reward.turn-scores", &message, help);
    }

    fn log(&mut self) {
        let Some(filter) = self.name("execution.log") else { return };
        if let Err(error) = tracing_subscriber::EnvFilter::try_new(filter) {
            let help = "such as `info`, `starpo=debug` or `warn,starpo::record=trace`";
            self.demand(false, "execution.log", &format!("\"{filter}\" is no filter of the log: {error}"), help);
        }
    }

    /// A run that was made elsewhere is read by any build.
    fn logging(&mut self, config: &ResolvedConfig) {
        let help = "build it with --features parquet, or let `starpo metrics` write CSV";
        let sound = cfg!(feature = "parquet") || !config.logging.parquet;
        self.demand(sound, "logging.parquet", "this starpo was built without Parquet", help);
    }

    fn device(&mut self) {
        let (Some(numerics), Some(device)) = (self.name("numerics"), self.name("execution.device")) else { return };
        let help = "`cpu-f32` is the arithmetic of the device `cpu`, `gpu-f32` that of all others";
        let message = format!("numerics \"{numerics}\" cannot be kept on device \"{device}\"");
        self.demand((numerics == "cpu-f32") == (device == "cpu"), "execution.device", &message, help);
    }

    fn rollout(&mut self) {
        let separator = self.name("rollout.action-separator").unwrap_or("||");
        let message = format!("actions cannot stand apart by \"{separator}\"");
        let help = "take a text such as `||` that no action is written with, and no tag";
        let sound = !separator.trim().is_empty() && !separator.contains(['<', '>']);
        self.demand(sound, "rollout.action-separator", &message, help);
        let all = ["rollout.max-response-tokens", "rollout.max-context-tokens"].map(|path| self.int(path));
        let [Some(response), Some(context)] = all else { return };
        let message = format!("a response of {response} tokens leaves no room for a prompt in a context of {context}");
        self.demand(response < context, "rollout.max-response-tokens", &message, "it must be below max-context-tokens");
    }

    /// Logits are divided by it in f32, which ends at 3.4e38.
    fn temperature(&mut self, path: &str) {
        const LEAST: f64 = 1e-6;
        let Some(Form::Scalar(Value::Float(temperature))) = self.at(path).map(|tree| &tree.form) else { return };
        let message = "logits divided by a temperature this small need not be numbers";
        let help = format!("take 0, the most probable token, or {LEAST} at least");
        self.demand(*temperature == 0.0 || *temperature >= LEAST, path, message, &help);
    }

    fn reward(&mut self) {
        let unit = self.name("advantage.unit");
        let to_row = self.name("reward.penalty-to") == Some("row");
        let message = format!("a penalty against its row is lost on unit \"{}\"", unit.unwrap_or_default());
        let help = "take advantage.unit \"row\", or penalty-to \"episode\"";
        self.demand(!to_row || unit.is_none_or(|unit| unit == "row"), "reward.penalty-to", &message, help);
        let raw = self.name("reward.normalise").is_none_or(|name| name == "identity");
        let message = "scores of turns cannot be normalised: normalisation is of episode scores";
        let help = "take reward.normalise \"identity\"";
        self.demand(raw || !self.flag("reward.turn-scores"), "reward.turn-scores", message, help);
        let message = "the greedy episode's score is a baseline of raw scores, and these are normalised";
        self.demand(raw || self.name("advantage") != Some("remax"), "reward.normalise", message, help);
    }
}
