//! From a name and overrides, or from a lock, to a run.

use std::path::Path;

use serde_json::json;

use super::identity::{self, COMPONENTS, Key, RunId};
use super::rules::{self, Asked};
use super::{FIELDS, Outside, ResolvedConfig, lock};
use crate::config::tree::{self, Body, Form, spots};
use crate::config::{self, Diagnostic, Diagnostics, Place, Reader, Section, ShortName, Top, Value};

/// A run as it was asked for: its values, where each came from, and its identity.
#[derive(Clone, Debug)]
pub struct Resolved {
    /// The experiment's name.
    pub name: String,
    /// What its document says of it, for people.
    pub note: Option<String>,
    pub config: ResolvedConfig,
    /// The values with their origins.
    pub tree: Body,
    /// What the short names among the overrides were taken for.
    pub short_names: Vec<ShortName>,
    /// The overrides as typed.
    pub overrides: Vec<String>,
    /// The canonical text.
    pub canon: String,
    /// Its digest.
    pub key: Key,
    /// The paths of its documents, the lowest layer first.
    pub documents: Vec<String>,
    /// Where its own document names it, or begins.
    pub place: Place,
}

/// Resolves an experiment of `experiments/`, or the one in a document whose path ends in `.kdl`, below `root`.
///
/// # Errors
/// Every mistake in its documents and in the overrides.
pub fn resolve(name_or_path: &str, overrides: &[String], root: &Path) -> Result<Resolved, Diagnostics> {
    resolve_with(name_or_path, overrides, &Outside::new(root))
}

/// As [`resolve`], with the files that `reader` has.
///
/// # Errors
/// Every mistake in its documents and in the overrides.
pub fn resolve_with(name_or_path: &str, overrides: &[String], reader: &dyn Reader) -> Result<Resolved, Diagnostics> {
    let resolved = resolve_values(name_or_path, overrides, reader)?;
    let objections = rules::objections(&resolved, &Asked::default());
    sound(resolved, objections)
}

/// Whether `name_or_path` says an experiment.
#[must_use]
pub fn exists(name_or_path: &str, reader: &dyn Reader) -> bool {
    name_or_path.ends_with(".kdl") || reader.list("experiments").contains(&format!("experiments/{name_or_path}.kdl"))
}

/// The values of an experiment, or of `configs/base.kdl` alone, for `replay`: which needs no task, reads only some
/// sections, and has its own word on what they mean for recorded episodes.
///
/// # Errors
/// Every mistake in the documents and in the overrides.
pub fn resolve_rules(
    name_or_path: Option<&str>,
    overrides: &[String],
    reader: &dyn Reader,
) -> Result<Resolved, Diagnostics> {
    let values = match name_or_path {
        Some(name) => resolve_values(name, overrides, reader)?,
        None => finish(config::resolve(FIELDS, &Top::Part("configs/base.kdl"), overrides, reader)?, overrides),
    };
    sound(values, [])
}

fn resolve_values(name_or_path: &str, overrides: &[String], reader: &dyn Reader) -> Result<Resolved, Diagnostics> {
    let path = if name_or_path.ends_with(".kdl") {
        name_or_path.to_owned()
    } else {
        let path = format!("experiments/{name_or_path}.kdl");
        let all = reader.list("experiments");
        if !all.contains(&path) {
            return Err(Diagnostic::unknown_experiment(name_or_path, &all).into());
        }
        path
    };
    Ok(finish(config::resolve(FIELDS, &Top::Experiment(&path), overrides, reader)?, overrides))
}

/// Holds values against the rules between them.
///
/// # Errors
/// The rules that they break, and `more`.
pub(super) fn sound(resolved: Resolved, more: impl IntoIterator<Item = Diagnostic>) -> Result<Resolved, Diagnostics> {
    let broken = rules::broken(&resolved);
    Diagnostics::check(broken.into_iter().chain(more).collect())?;
    Ok(resolved)
}

pub(super) fn finish(resolved: config::Resolved, overrides: &[String]) -> Resolved {
    let config::Resolved { name, note, body, short_names, documents, place } = resolved;
    let canon = config::canonical(FIELDS, &body, COMPONENTS);
    Resolved {
        name: name.unwrap_or_else(|| "base".to_owned()),
        note,
        config: ResolvedConfig::decode_fields(&tree::values(&body)),
        key: Key::of(&canon),
        tree: body,
        short_names,
        overrides: overrides.to_vec(),
        canon,
        documents,
        place,
    }
}

impl Resolved {
    /// The name of the run's directory.
    #[must_use]
    pub fn id(&self) -> RunId {
        RunId { experiment: self.name.clone(), key: self.key }
    }

    /// The paths of the values that overrides gave.
    #[must_use]
    pub fn typed(&self) -> Vec<String> {
        let typed = |tree: &tree::Tree| tree.origin().starts_with("override");
        spots(FIELDS, &self.tree)
            .into_iter()
            .filter(|spot| spot.tree.is_some_and(typed))
            .map(|spot| spot.path)
            .collect()
    }

    /// The canonical text of the warm start alone, and its name `warm-…`; None for a run without.
    #[must_use]
    pub fn warm_start(&self) -> Option<(String, RunId)> {
        identity::warm_start(&self.config, &self.canon)
    }

    /// What it may do and hardly anyone wants.
    #[must_use]
    pub fn warnings(&self) -> Vec<Diagnostic> {
        rules::warnings(self)
    }

    /// The values of that path, or else those whose path ends with it, and all that are below: KDL that could be laid
    /// over the experiment, each with its origin.
    ///
    /// # Errors
    /// A name that no value has.
    pub fn show_path(&self, name: &str) -> Result<String, Diagnostics> {
        Ok(config::show::kdl(FIELDS, &tree::cut(FIELDS, &self.tree, name)?, 0))
    }

    /// The same of [`Resolved::show_json`]'s `values`.
    ///
    /// # Errors
    /// A name that no value has.
    pub fn show_path_json(&self, name: &str) -> Result<serde_json::Value, Diagnostics> {
        let part = Self { tree: tree::cut(FIELDS, &self.tree, name)?, ..self.clone() };
        Ok(part.show_json()["values"].take())
    }

    /// All values as KDL, each with its origin, then the inputs and the key.
    #[must_use]
    pub fn show(&self) -> String {
        lock::show(self)
    }

    /// The text of `run.lock.kdl`: all that [`super::from_lock`] needs to make this value again.
    #[must_use]
    pub fn lock(&self) -> String {
        lock::lock(self)
    }

    /// The values by path, each with type and origin; the inputs, the key, the overrides and the short names.
    #[must_use]
    pub fn show_json(&self) -> serde_json::Value {
        let mut values = serde_json::Map::new();
        let mut inputs = Vec::new();
        for spot in spots(FIELDS, &self.tree) {
            let Some(tree) = spot.tree else { continue };
            let value = match &tree.form {
                Form::Section(_) => continue,
                _ => json_value(&tree.value()),
            };
            if let Form::Scalar(Value::Input { path: Some(file), text }) = &tree.form {
                let digest = blake3::hash(text.as_bytes()).to_hex().to_string();
                inputs.push(json!({"path": spot.path, "file": file, "blake3": digest, "bytes": text.len()}));
            }
            if let Form::Scalar(Value::Folder { path: folder, digest }) = &tree.form {
                inputs.push(json!({"path": spot.path, "folder": folder, "blake3": digest}));
            }
            let kind = config::type_name(spot.kind);
            values
                .insert(spot.path, json!({"type": kind, "value": value, "origin": tree.origin(), "local": spot.local}));
        }
        let short = |name: &ShortName| json!({"typed": name.typed, "path": name.path, "alias": name.alias});
        json!({
            "experiment": self.name,
            "note": self.note,
            "id": self.id().to_string(),
            "key": self.key.to_string(),
            "values": values,
            "inputs": inputs,
            "overrides": self.overrides,
            "short_names": self.short_names.iter().map(short).collect::<Vec<_>>(),
        })
    }
}

fn json_value(value: &Value) -> serde_json::Value {
    match value {
        Value::Bool(value) => json!(value),
        Value::Int(value) => u64::try_from(*value).map_or_else(|_| json!(*value as i64), |value| json!(value)),
        Value::Float(value) => json!(value),
        Value::Text(text) => json!(text),
        Value::Input { path: Some(path), .. } | Value::Folder { path, .. } => json!(path),
        Value::Input { text, path: None } => json!(text),
        Value::List(items) if items.iter().any(|item| matches!(item, Value::Section(_) | Value::Variant { .. })) => {
            json!(items.len())
        }
        Value::List(items) => items.iter().map(json_value).collect(),
        Value::Unset | Value::Section(_) => serde_json::Value::Null,
        Value::Variant { name, .. } => json!(name),
    }
}
