//! What several values of an experiment must be together.

use super::FIELDS;
use crate::config::tree::{Body, Form, Tree, find};
use crate::config::{Diagnostic, Value};

/// Scores that need several members to differ.
const SPREADS: &[&str] = &["reward-std", "reward-variance", "entropy-std"];
/// Scores that may be below zero.
const SIGNED: &[&str] = &["reward-mean", "reward-sum"];

/// The rules that a tree breaks.
pub(super) fn broken(body: &Body) -> Vec<Diagnostic> {
    let mut rules = Rules { body, found: Vec::new() };
    rules.model();
    rules.device();
    rules.rollout();
    rules.filter();
    for list in ["task", "eval.task"] {
        let mut index = 0;
        while rules.at(&format!("{list}.{index}")).is_some() {
            rules.task(&format!("{list}.{index}"));
            index += 1;
        }
    }
    rules.found
}

/// The rule that a run has something to train on: what `replay` does without.
pub(super) fn no_task(body: &Body) -> Option<Diagnostic> {
    match find(FIELDS, body, "task.0") {
        Some(_) => None,
        None => Some(Diagnostic::rule(
            None,
            "the experiment names no task",
            "add one, such as `task \"sokoban\"`: `configs/base.kdl` alone is not runnable",
        )),
    }
}

struct Rules<'t> {
    body: &'t Body,
    found: Vec<Diagnostic>,
}

impl<'t> Rules<'t> {
    fn at(&self, path: &str) -> Option<&'t Tree> {
        find(FIELDS, self.body, path)
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

    fn list(&self, path: &str) -> Option<Vec<Value>> {
        match self.at(path).map(Tree::value) {
            Some(Value::List(items)) => Some(items),
            _ => None,
        }
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

    fn device(&mut self) {
        let (Some(numerics), Some(device)) = (self.name("numerics"), self.name("execution.device")) else { return };
        let help = "`cpu-f32` is the arithmetic of the device `cpu`, `gpu-f32` that of all others";
        let message = format!("numerics \"{numerics}\" cannot be kept on device \"{device}\"");
        self.demand((numerics == "cpu-f32") == (device == "cpu"), "execution.device", &message, help);
    }

    fn rollout(&mut self) {
        let all = ["rollout.max-response-tokens", "rollout.max-context-tokens"].map(|path| self.int(path));
        let [Some(response), Some(context)] = all else { return };
        let message = format!("a response of {response} tokens leaves no room for a prompt in a context of {context}");
        self.demand(response < context, "rollout.max-response-tokens", &message, "it must be below max-context-tokens");
    }

    fn filter(&mut self) {
        let Some(score) = self.name("filter.score") else { return };
        let alone = self.int("rollout.group-size") == Some(1) && SPREADS.contains(&score);
        let help = "set rollout.group-size to 2 or more, or score by something else";
        self.demand(!alone, "filter.score", &format!("\"{score}\" of a group of one is always 0"), help);
        let signed = self.name("filter.mass") == Some("linear") && SIGNED.contains(&score);
        let message = format!("\"{score}\" may be negative, and then linear mass has no share");
        self.demand(!signed, "filter.mass", &message, "use mass \"softmax\"");
    }

    fn task(&mut self, task: &str) {
        if self.name(task) != Some("sokoban") {
            return;
        }
        let size = format!("{task}.size");
        if let Some(sides) = self.list(&size) {
            self.demand(sides.len() == 2, &size, "size has two numbers: rows and columns", "such as `size 6 6`");
            if let ([Value::Int(rows), Value::Int(columns)], Some(boxes)) =
                (sides.as_slice(), self.int(&format!("{task}.boxes")))
            {
                let most = (rows - 3) * ((columns - 2) / 3);
                let message = format!("{rows} x {columns} has no room for {boxes} boxes");
                let help = format!("the outer cells are walls: this size holds up to {most} boxes");
                self.demand(boxes <= most, &size, &message, &help);
            }
        }
        let symbols = format!("{task}.symbols");
        if let Some(all) = self.list(&symbols) {
            let single = |value: &Value| matches!(value, Value::Text(text) if text.chars().count() == 1);
            let distinct = (1..all.len()).all(|index| !all[..index].contains(&all[index]));
            let message = "symbols are seven different single characters";
            let help = "wall, floor, target, box on target, box, player, player on target";
            self.demand(all.len() == 7 && distinct && all.iter().all(single), &symbols, message, help);
        }
    }
}
