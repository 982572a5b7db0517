//! Records as rows and columns.

use std::path::Path;

use serde_json::{Value, json};

use crate::record::episode::{self, EpisodeRecord};
use crate::record::values::leaves;
use crate::record::{Disk, RunError, reader};

/// Rows of cells under named columns. A null is an empty cell.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    pub columns: Vec<String>,
    /// A cell a column: never an object.
    pub rows: Vec<Vec<Value>>,
}

impl Table {
    /// One row a record. A column is called by the path of its field, as `rollout.success`; columns stand in the order
    /// in which they first appear.
    #[must_use]
    pub fn of(records: &[Value]) -> Self {
        let (mut columns, mut rows) = (Vec::<String>::new(), Vec::new());
        for record in records {
            let mut row = vec![Value::Null; columns.len()];
            for (path, value) in leaves(record).into_iter().map(|(path, value)| (path, cell(value))) {
                match columns.iter().position(|column| *column == path) {
                    Some(column) => row[column] = value,
                    None => {
                        columns.push(path);
                        row.push(value);
                    }
                }
            }
            rows.push(row);
        }
        rows.iter_mut().for_each(|row| row.resize(columns.len(), Value::Null));
        Self { columns, rows }
    }

    /// A run's metrics, one row a step.
    ///
    /// # Errors
    /// As [`reader::metrics`].
    pub fn of_steps(disk: &Disk, run: &Path) -> Result<Self, RunError> {
        Ok(Self::of(&reader::metrics(disk, run)?))
    }

    /// A run's recorded training episodes, one row a turn: the words and what they earned, no token.
    ///
    /// # Errors
    /// As [`reader::episodes`]; [`RunError::Corrupt`] for what is no episode.
    pub fn of_turns(disk: &Disk, run: &Path) -> Result<Self, RunError> {
        let folder = run.join("rollouts");
        let mut turns = Vec::new();
        for name in disk.names(&folder)?.iter().filter(|name| !name.starts_with('.')) {
            let path = folder.join(name);
            let read = episode::read(&reader::episodes(disk, &path)?);
            let corrupt = |error: episode::ReadError| RunError::Corrupt { path, what: error.to_string() };
            turns.extend(read.map_err(corrupt)?.iter().flat_map(turns_of));
        }
        Ok(Self::of(&turns))
    }
}

fn turns_of(episode: &EpisodeRecord) -> impl Iterator<Item = Value> {
    episode.turns.iter().map(move |turn| {
        let last = turn.turn == episode.turns.len();
        json!({
            "step": episode.step, "group": episode.group, "member": episode.member,
            "env": episode.task.env, "split": episode.task.split.name(), "index": episode.task.index,
            "turn": turn.turn, "observation": turn.observation, "text": turn.text,
            "actions": turn.actions, "executed": turn.executed, "valid": turn.valid, "effective": turn.effective,
            "reward": turn.reward, "penalty": turn.penalty,
            "tokens": turn.response.as_ref().map(Vec::len),
            "end": last.then(|| episode.end.name()),
        })
    })
}

/// An array stands as its JSON.
fn cell(value: &Value) -> Value {
    if value.is_array() { Value::String(value.to_string()) } else { value.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_paths_in_the_order_of_their_appearance() {
        let records = [json!({"step": 0, "eval": {"success": 0.5}}), json!({"step": 1, "a": [1, 2], "eval": null})];
        let table = Table::of(&records);
        assert_eq!(table.columns, ["step", "eval.success", "a", "eval"]);
        assert_eq!(table.rows[0], [json!(0), json!(0.5), Value::Null, Value::Null]);
        assert_eq!(table.rows[1], [json!(1), Value::Null, json!("[1,2]"), Value::Null]);
    }
}
