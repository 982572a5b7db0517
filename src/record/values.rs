//! Numbers in records: nested objects, whose fields are called by their path, as `rollout.success`.

use serde_json::Value;

/// The number at a path.
#[must_use]
pub fn at(record: &Value, path: &str) -> Option<f64> {
    path.split('.').try_fold(record, |value, name| value.get(name))?.as_f64()
}

/// What stands at the ends of nested objects, with its path, in their order.
#[must_use]
pub fn leaves(record: &Value) -> Vec<(String, &Value)> {
    fn walk<'v>(path: &str, value: &'v Value, found: &mut Vec<(String, &'v Value)>) {
        match value {
            Value::Object(members) => {
                for (name, value) in members {
                    walk(&if path.is_empty() { name.clone() } else { format!("{path}.{name}") }, value, found);
                }
            }
            value => found.push((path.to_owned(), value)),
        }
    }
    let mut found = Vec::new();
    walk("", record, &mut found);
    found
}
