//! `starpo why`: what two runs differ in, value by value.

use std::collections::{BTreeMap, BTreeSet};

use clap::Args;
use serde_json::{Value, json};

use super::{CliError, Common, say};
use crate::experiment;
use crate::record::{Disk, RunDir, reader};

/// Two runs, or two experiments.
#[derive(Clone, Debug, Args)]
pub(super) struct Why {
    /// A run's directory or a unique prefix of its name or id; or else an experiment
    a: String,
    b: String,
    /// `path=value`, for those of the two that are experiments
    overrides: Vec<String>,
}

/// The hashed facts of a run: what stands at a path, by type and value.
type Facts = BTreeMap<String, String>;

/// A path, and what either side has there.
type Difference<'f> = (&'f String, Option<&'f String>, Option<&'f String>);

impl Why {
    pub(super) fn run(self, common: &Common) -> Result<(), CliError> {
        let facts = |subject: &str| self.facts(subject, common);
        let (a, b) = (facts(&self.a)?, facts(&self.b)?);
        let paths: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
        let differences: Vec<Difference<'_>> =
            paths.into_iter().map(|path| (path, a.get(path), b.get(path))).filter(|(_, a, b)| a != b).collect();
        if common.json {
            let one =
                |(path, a, b): &(&String, Option<&String>, Option<&String>)| json!({"path": path, "a": a, "b": b});
            say(&differences.iter().map(one).collect::<Value>().to_string());
        } else if differences.is_empty() {
            say("nothing: they are the same run");
        } else {
            say(&table(&differences));
        }
        Ok(())
    }

    /// The lines of a canonical text, by path. Overrides go to the experiments alone.
    fn facts(&self, subject: &str, common: &Common) -> Result<Facts, CliError> {
        let canon = if experiment::exists(subject, &common.outside()) {
            experiment::resolve_with(subject, &self.overrides, &common.outside())?.canon
        } else {
            let disk = Disk::default();
            RunDir::open(&disk, &reader::find(&disk, &common.runs_dir, subject)?).canon()?
        };
        let facts = canon.lines().skip(1).filter_map(|line| line.split_once('\t'));
        Ok(facts.map(|(path, fact)| (path.to_owned(), fact.replace('\t', " "))).collect())
    }
}

fn table(differences: &[Difference<'_>]) -> String {
    let absent = "-".to_owned();
    let path = differences.iter().map(|(path, ..)| path.chars().count()).max().unwrap_or(0);
    let value = differences.iter().map(|(_, a, _)| a.map_or(1, |a| a.chars().count())).max().unwrap_or(0).min(60);
    let line = |(name, a, b): &Difference<'_>| {
        format!("{name:<path$}  {:<value$}  {}", a.unwrap_or(&absent), b.unwrap_or(&absent))
    };
    differences.iter().map(line).collect::<Vec<_>>().join("\n")
}
