//! `starpo explain`: what a value means, its type and range, its default, its source, and where it is set.

use clap::Args;
use serde_json::{Value, json};

use super::{CliError, Common, say};
use crate::config::tree::{Form, spots};
use crate::config::{Explanation, show};
use crate::experiment::{self, FIELDS, Resolved};

/// A value, by its path or by the end of it.
#[derive(Clone, Debug, Args)]
pub(super) struct Explain {
    /// Such as `filter.value`, or `clip.low`
    path: String,
    /// An experiment to look the value up in
    experiment: Option<String>,
    /// `path=value`
    overrides: Vec<String>,
}

impl Explain {
    pub(super) fn run(self, common: &Common) -> Result<(), CliError> {
        let found = experiment::explain(&self.path, &common.outside())?;
        let resolved = match &self.experiment {
            Some(name) => Some(experiment::resolve_with(name, &self.overrides, &common.outside())?),
            None => None,
        };
        let here = |field: &Explanation| resolved.as_ref().map(|resolved| set(resolved, field));
        if common.json {
            say(&found.iter().map(|field| as_json(field, here(field))).collect::<Value>().to_string());
        } else {
            say(&found.iter().map(|field| text(field, here(field))).collect::<Vec<_>>().join("\n\n"));
        }
        Ok(())
    }
}

/// The value that a run has there, with its origin; of repeated nodes, each.
fn set(resolved: &Resolved, explained: &Explanation) -> Vec<(String, String, String)> {
    let bare = |path: &str| path.split('.').filter(|part| part.parse::<usize>().is_err()).collect::<Vec<_>>().join(".");
    let all = spots(FIELDS, &resolved.tree);
    let chosen = |path: &str| match &explained.member {
        None => true,
        Some((at, member, _)) => all.iter().any(|spot| {
            let is_member =
                matches!(spot.tree.map(|tree| &tree.form), Some(Form::Variant { name, .. }) if name == member);
            is_member && bare(&spot.path) == *at && path.starts_with(&format!("{}.", spot.path))
        }),
    };
    all.iter()
        .filter(|spot| bare(&spot.path) == explained.path && chosen(&spot.path))
        // Of a list, its nodes or its one line, not both.
        .filter(|spot| match spot.tree.map(|tree| &tree.form) {
            Some(Form::List(items)) => items.iter().all(|item| matches!(item.form, Form::Scalar(_))),
            Some(Form::Scalar(_)) => spot.path.rsplit('.').next().is_none_or(|part| part.parse::<usize>().is_err()),
            _ => true,
        })
        .filter_map(|spot| spot.tree.map(|tree| (spot.short().to_owned(), show::inline(tree), tree.origin())))
        .collect()
}

fn text(explained: &Explanation, here: Option<Vec<(String, String, String)>>) -> String {
    let Explanation { path, field, member, default } = explained;
    let mut lines = match member {
        Some((at, name, _)) => vec![format!("{path}  of {at} \"{name}\"")],
        None => vec![path.clone()],
    };
    lines.push(on_a_line(field.doc));
    lines.push(format!("type     {}", explained.type_and_range()));
    lines.extend(experiment::unit(explained).map(|unit| format!("unit     {unit}")));
    if let Some((value, origin)) = default {
        lines.push(format!("default  {value}  ({origin})"));
    }
    lines.extend(explained.choices().map(|(name, doc)| format!("  {name}: {}", on_a_line(doc))));
    if let Some((_, name, doc)) = member {
        lines.push(format!("part of  {name}: {}", on_a_line(doc)));
    }
    lines.push(format!("read in  {}{}", field.file, if field.local { "; (local): not in the key" } else { "" }));
    if let Some(here) = here {
        if here.is_empty() {
            lines.push("here     not there: another variant is chosen".to_owned());
        }
        lines.extend(here.iter().map(|(path, value, origin)| format!("here     {path} {value}  ({origin})")));
    }
    lines.join("\n  ")
}

/// The first paragraph.
fn on_a_line(doc: &str) -> String {
    doc.lines().take_while(|line| !line.is_empty()).map(str::trim).collect::<Vec<_>>().join(" ").trim().to_owned()
}

fn as_json(explained: &Explanation, here: Option<Vec<(String, String, String)>>) -> Value {
    let Explanation { path, field, member, default } = explained;
    json!({
        "path": path,
        "variant": member.as_ref().map(|(at, name, doc)| json!({"path": at, "name": name, "doc": doc.trim()})),
        "doc": field.doc.trim(),
        "type": explained.type_and_range(),
        "unit": experiment::unit(explained),
        "default": default.as_ref().map(|(value, origin)| json!({"value": value, "origin": origin})),
        "file": field.file,
        "local": field.local,
        "here": here.map(|here| here.into_iter().map(|(path, value, origin)| {
            json!({"path": path, "value": value, "origin": origin})
        }).collect::<Vec<_>>()),
    })
}
