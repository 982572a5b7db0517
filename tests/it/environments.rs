//! `docs/environments.md`: every environment and its parts, from the registry.

use std::fmt::Write;
use std::path::Path;

use starpo::chat::Chat;
use starpo::config::{Kind, Value, tree};
use starpo::env::EnvConfig;
use starpo::experiment::{self, EMBEDDED, FIELDS, Resolved};
use starpo::policy::Policy;
use starpo::rollout::{self, RolloutStats};
use starpo::trajectory::Split;

use crate::config::Files;
use crate::env::dynamics;
use crate::mixture::{expert, uniform};
use crate::run::Characters;

/// Tasks that the expert and the uniform player are measured on.
const TASKS: usize = 32;

/// The base, this part or this task, and room for any prompt. Neither player reads one, so the shortest will do.
fn resolve(body: &str) -> Resolved {
    let text = format!("experiment \"test\" {{\n    extends \"base\"\n    {body}\n}}");
    let tasks = format!("eval.tasks={TASKS}");
    let room = ["max-context-tokens=1000000", "max-response-tokens=10000", "rollout.window=single-turn"];
    let overrides = [&room[..], &[tasks.as_str()]].concat().into_iter().map(String::from).collect::<Vec<_>>();
    experiment::resolve_with("test", &overrides, &Files::with(&[("experiments/test.kdl", &text)])).unwrap()
}

/// The parts of `configs/env` that play `env`, the plain ones of its own name first, or its defaults.
fn parts(env: &str) -> Vec<(String, Resolved)> {
    let names = EMBEDDED.iter().filter_map(|(path, _)| path.strip_prefix("configs/")?.strip_suffix(".kdl"));
    let all = names.filter(|name| name.starts_with("env/")).map(|name| (name, resolve(&format!("use \"{name}\""))));
    let mut own: Vec<(String, Resolved)> = all
        .filter(|(_, resolved)| resolved.config.task[0].env.name() == env)
        .map(|(name, resolved)| (format!("`{name}`"), resolved))
        .collect();
    own.sort_by_key(|(name, _)| *name != format!("`env/{env}`"));
    if own.is_empty() {
        own.push(("defaults".to_owned(), resolve(&format!("task \"{env}\""))));
    }
    own
}

/// The doc comment of an environment.
fn doc(env: &str) -> String {
    let Some(Kind::List(Kind::Variant { alternatives, .. })) =
        FIELDS.iter().find(|field| field.name == "task").map(|field| field.kind)
    else {
        panic!("task is no list of variants")
    };
    let doc = alternatives.iter().find(|member| member.name == env).unwrap().doc;
    doc.lines().map(str::trim).collect::<Vec<_>>().join("\n").trim().to_owned()
}

/// A part's settings as one line of KDL.
fn settings(resolved: &Resolved) -> String {
    let values = tree::values(&resolved.tree);
    let Value::List(tasks) = &values["task"] else { panic!("no list of tasks") };
    let Value::Variant { name, fields } = &tasks[0] else { panic!("a task is a variant") };
    let text = |value: &Value| match value {
        Value::Text(text) => Some(format!("{text:?}")),
        Value::Bool(bool) => Some(format!("#{bool}")),
        Value::Int(int) => Some(int.to_string()),
        Value::Float(float) => Some(format!("{float:?}")),
        _ => None,
    };
    let field = |(key, value): (&&str, &Value)| match value {
        Value::List(items) => Some(format!("{key} {}", items.iter().filter_map(text).collect::<Vec<_>>().join(" "))),
        Value::Variant { name, .. } => Some(format!("{key} {name:?}")),
        value => text(value).map(|value| format!("{key} {value}")),
    };
    let fields: Vec<String> = fields.iter().filter(|(key, _)| **key != "share").filter_map(field).collect();
    format!("task {name:?} {{ {} }}", fields.join("; "))
}

fn describe(out: &mut String, table: &mut String, env: &str) {
    writeln!(out, "## {env}\n\n{}\n", doc(env)).unwrap();
    for (name, resolved) in parts(env) {
        let chat = Chat::new(&Characters, true).unwrap();
        let config = &resolved.config;
        let success = |player: &dyn Policy| {
            let groups = rollout::panel(config, &config.eval.sampling, &chat, player);
            format!("{:.0} %", 100.0 * RolloutStats::of(&groups, 0.0).success)
        };
        let (advised, guessed) = (success(&expert(&chat)), success(&uniform(&resolved, &chat)));
        let rollout = &resolved.config.rollout;
        let budget = format!("{} × {}, {}", rollout.max_turns, rollout.max_actions_per_turn, rollout.max_actions);
        writeln!(table, "| {env} | {name} | {budget} | {advised} | {guessed} |").unwrap();
        let task = &resolved.config.task[0].env;
        let episode = task.start(Split::Eval, 0, dynamics(0));
        let script = rollout.script();
        let (rules, turn) =
            (script.rules(&task.instruction()), script.turn(&episode.observe(), rollout.max_actions, None));
        let actions: Vec<String> = episode.actions().iter().map(|action| format!("`{action}`")).collect();
        writeln!(out, "### {name}\n\n```kdl\n{}\n```\n\nA first prompt:\n", settings(&resolved)).unwrap();
        writeln!(out, "```text\n{rules}\n\n{turn}\n```\n\nActions there: {}.\n", actions.join(", ")).unwrap();
    }
}

/// `docs/environments.md` is what this writes; `INSTA_UPDATE=always` writes it anew.
#[test]
fn the_page_of_environments_is_up_to_date() {
    let (mut body, mut table) = (String::new(), String::new());
    EnvConfig::NAMES.iter().for_each(|env| describe(&mut body, &mut table, env));
    let page = format!(
        "<!-- Written by tests/it/environments.rs: INSTA_UPDATE=always cargo test the_page_of_environments -->\n\
         # Environments\n\n\
         Each is a file of `src/env/`, and a `task` node of an experiment. Its parts in `configs/env/` are what an \
         experiment may `use`: the task's settings and a budget. A budget is the number of turns, of actions taken \
         from one answer, and of actions in all; an episode ends where the environment ends it or a budget does. An \
         answer without a legal action, or with an illegal one, costs `rollout.format-penalty`.\n\n\
         The last two columns are the success of the environment's own expert and of a player who takes one of the \
         actions listed at random each turn, on {TASKS} held-out tasks within the budget.\n\n\
         | environment | part | budget | expert | uniform |\n| --- | --- | --- | --- | --- |\n{table}\n{body}"
    );
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/environments.md");
    if std::env::var("INSTA_UPDATE").is_ok_and(|mode| mode == "always") {
        std::fs::write(&path, &page).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(found == page, "docs/environments.md is not what the registry says: INSTA_UPDATE=always writes it anew");
}
