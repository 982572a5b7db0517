//! People who come from elsewhere: what RAGEN, verl-agent and Hydra call a value, and what it is here.
//!
//! One table answers overrides in the words of the others ([`answer`]) and is what `docs/from-ragen.md` and
//! `docs/from-verl-agent.md` show ([`page`]); a test holds every target against the schema.

mod table;

pub use table::TABLE;

use super::FIELDS;
use crate::config::fields;

/// Whose key it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    Ragen,
    VerlAgent,
    /// Both have it from verl.
    Both,
}

/// A key of another program.
#[derive(Debug)]
pub struct Foreign {
    pub of: Program,
    pub name: &'static str,
    /// The path here; empty if there is none.
    pub ours: &'static str,
    /// Their values that are called otherwise here.
    pub values: &'static [(&'static str, &'static str)],
    /// How it differs, or why there is none.
    pub note: &'static str,
}

impl Foreign {
    fn is_of(&self, program: Program) -> bool {
        self.of == program || self.of == Program::Both
    }

    fn last(&self) -> &'static str {
        self.name.rsplit('.').next().unwrap_or(self.name)
    }

    /// Their value in our words.
    #[must_use]
    pub fn translate(&self, value: &str) -> String {
        let value = value.trim().trim_matches(['[', ']', '"', '\'']).replace(", ", ",");
        let known = self.values.iter().find(|(theirs, _)| theirs.eq_ignore_ascii_case(&value));
        match (known, value.as_str()) {
            (Some((_, ours)), _) => (*ours).to_owned(),
            (None, "True" | "False") => value.to_lowercase(),
            (None, "null" | "None" | "") => "null".to_owned(),
            (None, other) => other.to_owned(),
        }
    }

    fn answer(&self, value: Option<&str>) -> String {
        let who = match self.of {
            Program::Ragen => "RAGEN",
            Program::VerlAgent => "verl-agent",
            Program::Both => "verl",
        };
        let Self { name, ours, note, .. } = self;
        if ours.is_empty() {
            return format!("{who}'s `{name}` has no counterpart: {note}");
        }
        let note = if note.is_empty() { String::new() } else { format!(" ({note})") };
        match value {
            Some(value) => format!("{who}'s `{name}` is `{ours}` here: {ours}={}{note}", self.translate(value)),
            None => format!("{who}'s `{name}` is `{ours}` here{note}"),
        }
    }
}

/// What an argument in the words of another program is here, for a person; None if nobody's are known.
#[must_use]
pub fn answer(argument: &str) -> Option<String> {
    let plain = argument.trim_start_matches(['+', '~', '-']);
    let mark = &argument[..argument.len() - plain.len()];
    let (key, value) = plain.split_once('=').map_or((plain, None), |(key, value)| (key, Some(value)));
    let grammar = match mark {
        "--" | "-" => return flag(key),
        "" => None,
        "~" => Some("Hydra's `~x` removes a key: here an optional value is unset by x=null, and a list emptied by x="),
        _ => Some("Hydra's `+x=` adds a key: the keys here are those of `starpo show`, and a list is added to by x+="),
    };
    let rows = || named(key).map(|rows| rows.iter().map(|row| row.answer(value)).collect::<Vec<_>>().join("\n"));
    let ours = || match (mark, value) {
        ("~", _) => format!("`{key}` cannot be removed: every value of the schema is there"),
        (_, value) => format!("write {key}={}", value.unwrap_or("…")),
    };
    let known = match mark {
        "" => group(key, value).or_else(rows),
        _ if is_ours(&key.replace('_', "-")) => Some(ours()),
        _ => rows(),
    };
    match (grammar, known) {
        (Some(grammar), Some(known)) => Some(format!("{grammar}\n{known}")),
        (grammar, known) => known.or_else(|| grammar.map(str::to_owned)),
    }
}

/// The rows of that key: the one of that name, or else those whose name ends so, or else those of the same last part.
fn named(key: &str) -> Option<Vec<&'static Foreign>> {
    let key = key.replace('-', "_");
    let parts: Vec<&str> = key.split('.').collect();
    let same = |row: &&Foreign| {
        let theirs: Vec<&str> = row.name.split('.').collect();
        theirs.len() == parts.len() && theirs.iter().zip(&parts).all(|(a, b)| *a == "*" || a == b)
    };
    let ends = |row: &&Foreign| row.name.strip_suffix(key.as_str()).is_some_and(|rest| rest.ends_with('.'));
    // One word alone, such as `path`, is the end of many names.
    let last = |row: &&Foreign| parts.len() > 1 && row.last().contains('_') && Some(&row.last()) == parts.last();
    let found = |matches: &dyn Fn(&&Foreign) -> bool| {
        let mut rows: Vec<&Foreign> = TABLE.iter().filter(matches).collect();
        rows.dedup_by_key(|row| row.ours);
        (!rows.is_empty()).then_some(rows)
    };
    found(&same).or_else(|| found(&ends)).or_else(|| found(&last)).filter(|rows| rows.len() <= 3)
}

/// Hydra's choice of a config group, `env=sokoban` or `algorithm/x=y`.
fn group(key: &str, value: Option<&str>) -> Option<String> {
    match (key, value) {
        ("env" | "environment", Some(value)) => Some(format!("an environment is a task here: task={value}")),
        ("hydra.run.dir" | "hydra.sweep.dir", _) => Some("--runs-dir says where runs live".to_owned()),
        (_, Some(value)) if key.contains('/') => Some(format!(
            "Hydra's group/option is a part here: a file of `configs` over the experiment, @configs/{key}/{value}.kdl"
        )),
        (_, Some(value)) if key.starts_with("hydra.") => {
            Some(format!("there is no Hydra here: `{key}={value}` has no counterpart"))
        }
        _ => None,
    }
}

/// An option of Hydra's command line.
fn flag(name: &str) -> Option<String> {
    let answer = match name {
        "config-name" | "cn" => "an experiment is named without an option: `starpo run sokoban`",
        "config-path" | "cp" | "cd" => "--config-dir DIR says where `configs/` and `experiments/` are",
        "cfg" | "c" | "info" | "i" | "resolve" => {
            "`starpo show EXPERIMENT` prints the resolved experiment, each line with its origin"
        }
        "package" | "p" => "`starpo show EXPERIMENT --path filter` prints a part of it",
        "multirun" | "m" => "a run is one point: `starpo sweep` has many",
        "hydra-help" => "`starpo --help` lists the verbs, `starpo explain PATH` says what a value means",
        _ => return None,
    };
    Some(answer.to_owned())
}

/// The page of `docs` for people of one program.
#[must_use]
pub fn page(program: Program) -> String {
    let title = if program == Program::Ragen { "RAGEN" } else { "verl-agent" };
    let mut out = format!(
        "<!-- Written by tests/it/config/foreign.rs from src/experiment/foreign/table.rs -->\n# From {title}\n\n\
         Every key of {title} and what it is here. An override in its words is answered with this table, so that\n\
         `starpo run sokoban algorithm.adv_estimator=gae` says what to write. `starpo explain PATH` says what a value \
         means.\n\n| theirs | ours | values | notes |\n| --- | --- | --- | --- |\n"
    );
    for row in TABLE.iter().filter(|row| row.is_of(program)) {
        let values: Vec<String> =
            row.values.iter().filter(|(a, b)| a != b).map(|(a, b)| format!("{a} → {b}")).collect();
        let ours = if row.ours.is_empty() { "–".to_owned() } else { format!("`{}`", row.ours) };
        out.push_str(&format!("| `{}` | {ours} | {} | {} |\n", row.name, values.join(", "), row.note));
    }
    out.push_str(
        "\nHydra's grammar: `+x=1`, `++x=1` and `~x` have no counterpart, since the schema is closed; `x=null` unsets \
         an optional\nvalue, `list+=x` adds to a list, `@file.kdl` lays a file of sections over the experiment, and \
         `--config-name X` is the\nexperiment's name after the verb.\n",
    );
    out
}

fn is_ours(path: &str) -> bool {
    fields(FIELDS).iter().any(|(ours, _)| ours == path)
}
