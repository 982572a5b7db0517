//! A rule over any metric: it has been below (or above) a bound for long enough.

use serde_json::Value;

use super::metrics::{is_metric, nearest, parts};
use super::{Action, Memory};
use crate::config::{section, variants};

section! {
    /// Acts once a metric has been beyond a bound in so many consecutive records, from the first training step on, that
    /// have it.
    pub struct Rule epoch 1 {
        /// The metric's path in the records, such as `collapse.first_turn.mi`.
        pub when: String,
        /// The metric must be less than this; either this or `above` is given.
        pub below: Option<f64> where -1e300..=1e300,
        /// The metric must be greater than this.
        pub above: Option<f64> where -1e300..=1e300,
        /// Consecutive records. Those that lack the metric, or where it is no finite number, do not count.
        pub r#for: usize where 1..=1000000,
        /// What happens then.
        pub action: ActionConfig,
    }
}

variants! {
    /// What a rule does.
    pub enum ActionConfig: "action" {
        "stop" => Stop(EndRun),
        "scale-lr" => ScaleLr(ScaleLr),
    }
}

section! {
    /// Ends the run in order.
    pub struct EndRun epoch 1 {}
}

section! {
    /// Multiplies the learning rate from the next step on, and counts anew.
    pub struct ScaleLr epoch 1 {
        /// By this.
        pub factor: f64 where 0.0..=1000.0,
    }
}

impl Rule {
    pub(super) fn feed(&self, memory: &mut Memory, record: &Value) -> Result<Option<Action>, String> {
        if record["step"] == 0 {
            return Ok(None);
        }
        let Some(value) = metric(record, &self.when)? else { return Ok(None) };
        let met = self.below.is_some_and(|bound| value < bound) || self.above.is_some_and(|bound| value > bound);
        Ok(memory.count(met, self.r#for).then(|| match &self.action {
            ActionConfig::Stop(_) => Action::Stop(self.reason()),
            ActionConfig::ScaleLr(scale) => Action::ScaleLr(scale.factor),
        }))
    }

    fn reason(&self) -> String {
        let bound = match (self.below, self.above) {
            (Some(bound), _) => format!("below {bound}"),
            (_, bound) => format!("above {}", bound.unwrap_or_default()),
        };
        format!("{} was {bound} in {} consecutive records", self.when, self.r#for)
    }

    /// The part of a record that the metric is in.
    fn part(&self) -> &str {
        self.when.split('.').next().unwrap_or_default()
    }

    pub(super) fn objection(&self) -> Option<(String, String)> {
        if self.below.is_some() == self.above.is_some() {
            let what = "a rule has one bound, `below` or `above`";
            return Some((what.to_owned(), "for both sides, make two rules".to_owned()));
        }
        if self.part() == "gradients" && !self.when.starts_with("gradients.all.") {
            let help = "buckets come and go with the groups kept: take gradients.all".to_owned();
            return Some((format!("`{}` is not in every record of gradients", self.when), help));
        }
        no_metric(&self.when)
    }
}

/// What is wrong with a path that can name no metric, and what to do.
#[must_use]
pub fn no_metric(path: &str) -> Option<(String, String)> {
    if is_metric(path) {
        return None;
    }
    let near = nearest(path).iter().map(|path| format!("`{path}`")).collect::<Vec<_>>().join(", ");
    let near = if near.is_empty() { String::new() } else { format!("did you mean {near}? ") };
    let help = format!("{near}the path of a number in metrics.jsonl begins with {}", parts().join(", "));
    Some((format!("`{path}` is no metric of a step"), help))
}

/// A metric of a record by its path; None where the record has no such part, or the metric is no finite number (null).
///
/// # Errors
/// Where the record has the part but no such number in it: the part's names.
pub fn metric(record: &Value, path: &str) -> Result<Option<f64>, String> {
    let (part, below) = path.split_once('.').unwrap_or((path, ""));
    let inner = |value, name| if Value::is_null(value) { Some(value) } else { value.get(name) };
    match below.split('.').try_fold(&record[part], inner) {
        Some(Value::Null) => Ok(None),
        found => found.and_then(Value::as_f64).map(Some).ok_or_else(|| {
            let mut names = Vec::new();
            numbers(part, &record[part], &mut names);
            format!("the record of step {} has no number `{path}`: it has {}", record["step"], names.join(", "))
        }),
    }
}

/// Paths of the numbers in a record's part, in its order; null is one that is not finite.
fn numbers(path: &str, value: &Value, names: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            members.iter().for_each(|(name, value)| numbers(&format!("{path}.{name}"), value, names));
        }
        Value::Number(_) | Value::Null => names.push(path.to_owned()),
        _ => {}
    }
}
