//! Early stops: what ends a run before its last step, judged by the records that it leaves.
//!
//! A stop sees every record once, in order, as `metrics.jsonl` has it. What it remembers of them is saved with the run,
//! so that a run which was killed ends where a calm one does. `filter.empty-stop` is one too.

mod metrics;
mod rule;
mod spread_collapse;
mod validation_floor;

pub use metrics::{is_metric, parts};
pub use rule::{ActionConfig, EndRun, Rule, ScaleLr, metric, no_metric};
pub use spread_collapse::SpreadCollapse;
pub use validation_floor::ValidationFloor;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::config::variants;

variants! {
    /// What ends a run before its last step.
    pub enum StopConfig: "stop" {
        "spread-collapse" => SpreadCollapse(SpreadCollapse),
        "validation-floor" => ValidationFloor(ValidationFloor),
        "rule" => Rule(Rule),
    }
}

/// What a stop makes of a record.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// The run ends in order after this step, for this reason.
    Stop(String),
    /// The learning rate is multiplied by this from the next step on.
    ScaleLr(f64),
}

/// What a stop remembers of the records that it has seen.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Memory {
    /// Consecutive records that met its condition, up to the last.
    pub streak: usize,
    /// Values that it compares later ones with.
    pub baseline: Vec<f64>,
}

impl Memory {
    /// Counts a record; whether it is the `bound`th in a row that met the condition. The count then begins anew.
    pub fn count(&mut self, met: bool, bound: usize) -> bool {
        self.streak = if met { self.streak + 1 } else { 0 };
        let full = met && self.streak >= bound;
        if full {
            self.streak = 0;
        }
        full
    }
}

impl StopConfig {
    /// What the stop makes of the next record.
    ///
    /// # Errors
    /// A metric that the record should have and has not, with the names of those that it has.
    pub fn feed(&self, memory: &mut Memory, record: &Value) -> Result<Option<Action>, String> {
        match self {
            StopConfig::SpreadCollapse(stop) => stop.feed(memory, record),
            StopConfig::ValidationFloor(stop) => stop.feed(memory, record),
            StopConfig::Rule(rule) => rule.feed(memory, record),
        }
    }

    /// What makes this stop meaningless, and what to do, for a person; `absent`: parts of records that this run never
    /// has, each with the value that says so.
    #[must_use]
    pub fn objection(&self, absent: &[(&str, &str)]) -> Option<(String, String)> {
        let path = match self {
            StopConfig::SpreadCollapse(_) => "rollout.reward_std",
            StopConfig::ValidationFloor(_) => "eval.success",
            StopConfig::Rule(rule) => &rule.when,
        };
        let below = |part: &str| path.strip_prefix(part).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
        if let Some((part, value)) = absent.iter().find(|(part, _)| below(part)) {
            let what = format!("stop \"{}\" looks at `{path}`, and with {value} no record has `{part}`", self.name());
            return Some((what, "change that value, or leave the stop out".to_owned()));
        }
        if let StopConfig::Rule(rule) = self { rule.objection() } else { None }
    }
}

/// A run's early stops and what they have seen.
#[derive(Clone, Debug)]
pub struct Stops<'a> {
    stops: &'a [StopConfig],
    /// Consecutive steps that may keep nothing; 0 is no bound.
    empty_stop: usize,
    seen: Seen,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Seen {
    empty: Memory,
    /// One a stop.
    memories: Vec<Memory>,
    lr_scale: f64,
}

impl<'a> Stops<'a> {
    /// Before the first record. `empty_stop` is the filter's.
    #[must_use]
    pub fn new(stops: &'a [StopConfig], empty_stop: usize) -> Self {
        let memories = vec![Memory::default(); stops.len()];
        Self { stops, empty_stop, seen: Seen { empty: Memory::default(), memories, lr_scale: 1.0 } }
    }

    /// Takes in the next record; why the run ends with it, if it does.
    ///
    /// # Errors
    /// A metric that the record should have and has not.
    pub fn feed(&mut self, record: &Value) -> Result<Option<String>, String> {
        let mut reason = None;
        let (bound, kept) = (self.empty_stop, metric(record, "filter.kept")?);
        if kept.is_some_and(|kept| self.seen.empty.count(kept == 0.0, bound) && bound > 0) {
            reason = Some(format!("the filter kept nothing in {bound} consecutive steps (filter.empty-stop)"));
        }
        for (stop, memory) in self.stops.iter().zip(&mut self.seen.memories) {
            match stop.feed(memory, record)? {
                Some(Action::Stop(why)) => reason = reason.or(Some(format!("{why} (stop \"{}\")", stop.name()))),
                Some(Action::ScaleLr(factor)) => self.seen.lr_scale *= factor,
                None => {}
            }
        }
        Ok(reason)
    }

    /// What the rules have scaled the learning rate by so far.
    #[must_use]
    pub fn lr_scale(&self) -> f64 {
        self.seen.lr_scale
    }

    /// All that it has seen, for [`Stops::restore`].
    #[must_use]
    pub fn save(&self) -> Value {
        json!(self.seen)
    }

    /// Takes back what [`Stops::save`] gave.
    ///
    /// # Errors
    /// What does not fit.
    pub fn restore(&mut self, saved: &Value) -> Result<(), String> {
        let seen: Seen = serde_json::from_value(saved.clone()).map_err(|error| format!("its early stops: {error}"))?;
        if seen.memories.len() != self.stops.len() {
            return Err(format!("it remembers {} early stops, not {}", seen.memories.len(), self.stops.len()));
        }
        self.seen = seen;
        Ok(())
    }
}
