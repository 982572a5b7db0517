//! The canonical text of a tree: one fact a line, sorted by path, types from the description.

use std::collections::BTreeSet;

use super::tree::{Body, Form, spots};
use super::{Field, Kind, Value};

/// The first line of every canonical text: moves when the form of the lines moves.
pub const HEADER: &str = "starpo-canon 1";

/// The text that a run's key is the digest of. `components` are those that every run uses, with their versions.
///
/// Lines are `@epoch component⇥u32⇥version`, `@input path⇥blob⇥BLAKE3` and `path⇥type⇥value`. A list is its length
/// and its items; an absent optional value is `unset`; floats are the shortest digits that read back as the same
/// number; texts are JSON strings. What is local, and where anything came from, is not in it.
#[must_use]
pub fn canonical(root: &'static [Field], body: &Body, components: &[(&str, u32)]) -> String {
    let mut lines: BTreeSet<String> = components.iter().map(|(name, epoch)| epoch_line(name, *epoch)).collect();
    for spot in spots(root, body).iter().filter(|spot| !spot.local) {
        let Some(tree) = spot.tree else { continue };
        let path = &spot.path;
        let line = match (&tree.form, spot.kind.present()) {
            (Form::Section(_) | Form::Ref(_), _) => continue,
            (Form::Unset, _) => format!("{path}\toption\tunset"),
            (Form::List(items), _) => format!("{path}\tlist\t{}", items.len()),
            (Form::Variant { name, .. }, Kind::Variant { family, alternatives, .. }) => {
                if let Some(member) = alternatives.iter().find(|member| member.name == *name) {
                    lines.insert(epoch_line(&format!("{family}.{name}"), member.epoch));
                }
                format!("{path}\tvariant\t{name}")
            }
            (Form::Variant { name, .. }, _) => format!("{path}\tvariant\t{name}"),
            (Form::Scalar(value), kind) => leaf(path, kind, value),
        };
        lines.insert(line);
    }
    let mut text = format!("{HEADER}\n");
    for line in lines {
        text.push_str(&line);
        text.push('\n');
    }
    text
}

fn epoch_line(component: &str, epoch: u32) -> String {
    format!("@epoch {component}\tu32\t{epoch}")
}

fn leaf(path: &str, kind: &Kind, value: &Value) -> String {
    match value {
        Value::Bool(value) => format!("{path}\tbool\t{value}"),
        Value::Int(value) => format!("{path}\t{}\t{value}", type_name(kind)),
        Value::Float(value) => format!("{path}\tf64\t{value:e}"),
        Value::Text(text) if matches!(kind, Kind::Choice(_)) => format!("{path}\tchoice\t{text}"),
        Value::Text(text) => format!("{path}\tstr\t{}", serde_json::Value::from(text.as_str())),
        Value::Input { text, .. } => format!("@input {path}\tblob\t{}", blake3::hash(text.as_bytes()).to_hex()),
        Value::Folder { digest, .. } => format!("@input {path}\tblob\t{digest}"),
        Value::List(_) | Value::Unset | Value::Section(_) | Value::Variant { .. } => {
            unreachable!("{value:?} is no scalar")
        }
    }
}

/// The type as the canonical text names it: the width of `usize` is not the machine's.
#[must_use]
pub fn type_name(kind: &Kind) -> &'static str {
    match kind {
        Kind::Bool => "bool",
        Kind::Int { name: "usize", .. } => "u64",
        Kind::Int { name, .. } => name,
        Kind::Float => "f64",
        Kind::Text => "str",
        Kind::Input | Kind::Folder => "blob",
        Kind::Choice(_) => "choice",
        Kind::List(_) => "list",
        Kind::Optional(inner) => type_name(inner),
        Kind::Section(_) => "section",
        Kind::Variant { .. } => "variant",
    }
}
