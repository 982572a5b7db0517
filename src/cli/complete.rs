//! `starpo completions`: what a shell asks when a word is not finished, for bash, zsh and fish.
//!
//! A shell's script asks the hidden verb `complete`, which knows verbs, options, experiments, runs, paths and values.

use std::collections::BTreeSet;
use std::path::Path;

use clap::{Arg, Args, Command, CommandFactory, ValueEnum};

use super::{Cli, CliError, Common, say};
use crate::config::{Field, Kind, Reader, ends_with, fields, tree};
use crate::experiment::{self, FIELDS};
use crate::record::{Disk, tags};

/// The file that every run's directory has.
const LOCK: &str = "run.lock.kdl";

/// A shell to print the script of: `starpo completions bash >> ~/.bashrc`.
#[derive(Clone, Debug, Args)]
pub(super) struct Completions {
    shell: Shell,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Shell {
    /// For ~/.bashrc, or a file of bash-completion's
    Bash,
    /// A file `_starpo` in a folder of $fpath
    Zsh,
    /// For ~/.config/fish/completions/starpo.fish
    Fish,
}

/// The words after `starpo`; the last is not finished.
#[derive(Clone, Debug, Args)]
pub(super) struct Complete {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<String>,
}

impl Completions {
    pub(super) fn run(self) -> Result<(), CliError> {
        say(match self.shell {
            Shell::Bash => include_str!("complete/starpo.bash"),
            Shell::Zsh => include_str!("complete/starpo.zsh"),
            Shell::Fish => include_str!("complete/starpo.fish"),
        }
        .trim_end());
        Ok(())
    }
}

impl Complete {
    pub(super) fn run(self, common: &Common) -> Result<(), CliError> {
        let (word, before) = self.words.split_last().map_or(("", &[][..]), |(word, before)| (word.as_str(), before));
        let mut found = candidates(before, word, &common.outside(), &common.runs_dir);
        let mut seen = BTreeSet::new();
        found.retain(|candidate| candidate.starts_with(word) && seen.insert(candidate.clone()));
        if !found.is_empty() {
            say(&found.join("\n"));
        }
        Ok(())
    }
}

/// What could stand where `word` is.
fn candidates(before: &[String], word: &str, outside: &dyn Reader, runs: &Path) -> Vec<String> {
    let command = Cli::command();
    let (plain, is_value) = plain(&command, before);
    let Some(verb) = plain.first().and_then(|verb| command.find_subcommand(verb)) else {
        let verbs = command.get_subcommands().filter(|verb| !verb.is_hide_set());
        return verbs.map(|verb| verb.get_name().to_owned()).collect();
    };
    if word.starts_with('-') {
        let options = verb.get_arguments().chain(command.get_arguments());
        return options.filter_map(|option| option.get_long()).map(|name| format!("--{name}")).collect();
    }
    if before.last().is_some_and(|option| option == "--path") {
        return fields(FIELDS).into_iter().map(|(path, _)| path).collect();
    }
    if is_value {
        return Vec::new();
    }
    match (verb.get_name(), &plain[1..]) {
        ("explain", []) => fields(FIELDS).into_iter().map(|(path, _)| path).collect(),
        ("explain", [_]) | ("run", []) => experiments(outside),
        ("sweep", []) => [experiments(outside), sweeps(outside)].concat(),
        ("show" | "eval" | "chat" | "weights" | "why", []) | ("why", [_]) => {
            [experiments(outside), named(runs)].concat()
        }
        ("replay", [_]) => [experiments(outside), overrides(None, before, word, outside)].concat(),
        ("run" | "sweep" | "show" | "eval" | "chat", [name, ..])
        | ("weights", [name, _, ..])
        | ("explain" | "why" | "replay", [_, name, ..]) => overrides(Some(name), before, word, outside),
        ("report" | "compare", _) => [named(runs), names(&runs.join("sweeps"), "sweep.kdl")].concat(),
        ("exec" | "export" | "verify" | "metrics" | "tag", []) => named(runs),
        ("untag", []) => tagged(runs),
        ("completions", []) => Shell::value_variants()
            .iter()
            .filter_map(|shell| Some(shell.to_possible_value()?.get_name().to_owned()))
            .collect(),
        _ => Vec::new(),
    }
}

/// The words before that are no options and no values of options; and whether the next one is such a value.
fn plain<'w>(command: &Command, before: &'w [String]) -> (Vec<&'w str>, bool) {
    let options: Vec<&Arg> =
        command.get_arguments().chain(command.get_subcommands().flat_map(Command::get_arguments)).collect();
    let (mut plain, mut is_value) = (Vec::new(), false);
    for word in before.iter().map(String::as_str) {
        let is = |option: &&&Arg| {
            let long = option.get_long().is_some_and(|name| word.strip_prefix("--") == Some(name));
            long || option.get_short().is_some_and(|letter| word == format!("-{letter}"))
        };
        if !is_value && !word.starts_with('-') {
            plain.push(word);
        }
        is_value = !is_value && options.iter().find(is).is_some_and(|option| option.get_action().takes_values());
    }
    (plain, is_value)
}

fn experiments(outside: &dyn Reader) -> Vec<String> {
    documents("experiments", outside)
}

fn sweeps(outside: &dyn Reader) -> Vec<String> {
    documents("experiments/sweeps", outside)
}

fn documents(folder: &str, outside: &dyn Reader) -> Vec<String> {
    let name = |path: String| Some(path.strip_prefix(folder)?.strip_prefix('/')?.strip_suffix(".kdl")?.to_owned());
    outside.list(folder).into_iter().filter_map(name).collect()
}

/// What runs are called.
fn named(runs: &Path) -> Vec<String> {
    [names(runs, LOCK), tagged(runs)].concat()
}

fn tagged(runs: &Path) -> Vec<String> {
    tags::list(&Disk::default(), runs).unwrap_or_default().into_iter().map(|(tag, _)| tag).collect()
}

/// The directories in a folder that have such a file.
fn names(folder: &Path, file: &str) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let entries = entries.flatten().filter(|entry| entry.path().join(file).is_file());
    let mut names: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Paths with `=`, or after it the values that a path may have; of the experiment as far as it is typed.
fn overrides(experiment: Option<&str>, before: &[String], word: &str, outside: &dyn Reader) -> Vec<String> {
    let typed: Vec<String> =
        before.iter().filter(|word| word.contains('=') || word.starts_with('@')).cloned().collect();
    let name = experiment.filter(|name| !name.contains('='));
    let run = name.and_then(|name| {
        let typed = experiment::resolve_with(name, &typed, outside);
        typed.or_else(|_| experiment::resolve_with(name, &[], outside)).ok()
    });
    let places: Vec<(String, &'static Field)> = match &run {
        Some(run) => {
            tree::spots(FIELDS, &run.tree).into_iter().map(|spot| (spot.short().to_owned(), spot.field)).collect()
        }
        None => fields(FIELDS),
    };
    let Some((path, value)) = word.split_once('=') else {
        let settable = places.iter().filter(|(_, field)| !matches!(field.kind, Kind::Section(_)));
        return settable.map(|(path, _)| format!("{path}=")).collect();
    };
    let path = path.strip_suffix('+').unwrap_or(path);
    let path = path.replace('_', "-");
    let field = places.iter().find(|(known, _)| ends_with(known, &path));
    let values = field.map(|(_, field)| values(field.kind)).unwrap_or_default();
    let start = &word[..word.len() - value.rsplit(',').next().unwrap_or(value).len()];
    values.into_iter().map(|value| format!("{start}{value}")).collect()
}

/// The words that a value of the kind may be.
fn values(kind: &'static Kind) -> Vec<&'static str> {
    match kind {
        Kind::Bool => vec!["true", "false"],
        Kind::Choice(names) => names.to_vec(),
        Kind::Variant { alternatives, .. } => alternatives.iter().map(|member| member.name).collect(),
        Kind::List(item) => values(item),
        Kind::Optional(inner) => [values(inner), vec!["null"]].concat(),
        _ => Vec::new(),
    }
}
