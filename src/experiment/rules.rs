//! What several values of an experiment must be together.

use super::{Buckets, CriticConfig, Edges, ResolvedConfig};
use crate::config::tree::{Body, Form, Tree, find};
use crate::config::{Diagnostic, Value};
use crate::objective::{KlConfig, KlEstimator};

/// The rules that a tree breaks.
pub(super) fn broken(body: &Body) -> Vec<Diagnostic> {
    let mut rules = Rules { body, found: Vec::new() };
    rules.model();
    rules.device();
    rules.rollout();
    rules.log();
    rules.logging();
    rules.reward();
    rules.found
}

/// What components object to in a run whose values are sound one by one. `replay` has its own word on filters.
pub(super) fn objections(body: &Body, config: &ResolvedConfig) -> Vec<Diagnostic> {
    let mut rules = Rules { body, found: Vec::new() };
    if let Some(objection) = config.filter.objection(config.rollout.group_size) {
        rules.demand(false, "filter", &objection, "choose another score or mass, or larger groups");
    }
    for (index, stop) in config.stop.iter().enumerate() {
        if let Some((objection, help)) = stop.objection(&absent(config)) {
            rules.demand(false, &format!("stop.{index}"), &objection, &help);
        }
    }
    rules.critic(config);
    rules.turn_scores(config);
    if let Buckets::Edges(Edges { edges }) = &config.gradients.buckets
        && !edges.is_sorted_by(|low, high| low < high)
    {
        let message = format!("the edges {edges:?} do not ascend");
        rules.demand(false, "gradients.buckets.edges", &message, "each bucket reaches from one edge to the next");
    }
    for (list, tasks) in [("task", &config.task), ("eval.task", &config.eval.task)] {
        for (index, task) in tasks.iter().enumerate() {
            if let Err(objection) = task.env.feasible() {
                rules.demand(false, &format!("{list}.{index}"), &objection, "no task can be made of these values");
            }
        }
    }
    rules.found
}

/// Parts of records that a run never has, each with the value that says so.
fn absent(config: &ResolvedConfig) -> Vec<(&'static str, &'static str)> {
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
    ];
    parts.into_iter().filter(|(absent, ..)| *absent).map(|(_, part, value)| (part, value)).collect()
}

/// Names that directories beside the runs bear.
const RESERVED: [&str; 2] = ["warm", "attic"];

/// The rule that a run's directory is told from the others of its folder.
pub(super) fn reserved(name: &str) -> Option<Diagnostic> {
    let message = format!("an experiment cannot be called \"{name}\"");
    let help =
        "`warm-…` are the directories of warm starts, and `attic` holds what --fresh moved aside: choose another";
    RESERVED.contains(&name).then(|| Diagnostic::rule(None, &message, help))
}

/// The rule that a run has something to train on: what `replay` does without.
pub(super) fn no_task(body: &Body) -> Option<Diagnostic> {
    match find(body, "task.0") {
        Some(_) => None,
        None => Some(Diagnostic::rule(
            None,
            "the experiment names no task",
            "add one, such as `task \"sokoban\"`: `configs/base.kdl` alone is not runnable",
        )),
    }
}

/// What a run may do and hardly anyone wants.
pub(super) fn warnings(config: &ResolvedConfig) -> Vec<String> {
    let KlConfig { coef, estimator } = config.objective.kl;
    let k1 = (coef > 0.0 && estimator == KlEstimator::K1).then(|| {
        "objective.kl.estimator \"k1\" is a loss whose expected gradient is 0: it holds the policy to nothing and adds \
         noise; choose \"k2\" (the KL's own gradient) or \"k3\""
            .to_owned()
    });
    k1.into_iter().collect()
}

struct Rules<'t> {
    body: &'t Body,
    found: Vec<Diagnostic>,
}

impl<'t> Rules<'t> {
    fn at(&self, path: &str) -> Option<&'t Tree> {
        find(self.body, path)
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

    fn demand(&mut self, holds: bool, path: &str, message: &str, help: &str) {
        if !holds {
            self.found.push(Diagnostic::rule(self.at(path).and_then(|tree| tree.place.as_ref()), message, help));
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

    fn logging(&mut self) {
        let asked = matches!(self.at("logging.parquet").map(|tree| &tree.form), Some(Form::Scalar(Value::Bool(true))));
        let help = "build it with --features parquet, or let `starpo metrics` write CSV";
        let sound = cfg!(feature = "parquet") || !asked;
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
