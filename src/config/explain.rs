//! What a name means: every field that it can stand for, in whichever variant, and what it starts as.

use super::document::Documents;
use super::layer::{Layers, Slot};
use super::schema::{self, Entry, ends_with, fold};
use super::show::{inline, number};
use super::tree::{Body, Form, Tree};
use super::{Diagnostic, Diagnostics, Field, Kind, Place, Reader, type_name};

/// A field of the description.
#[derive(Clone, Debug)]
pub struct Explanation {
    /// Without the numbers of repeated nodes.
    pub path: String,
    pub field: &'static Field,
    /// The variant's path and the member that has the field, with the member's meaning and source.
    pub member: Option<(String, &'static str, &'static str)>,
    /// What it starts as, and where that is written.
    pub default: Option<(String, String)>,
}

/// The fields of that path, or else those whose path ends with it, in the order of the description. What they start as
/// is what the part `base` says.
///
/// # Errors
/// A name that no field has; mistakes in the part.
pub fn explain(
    root: &'static [Field],
    base: &str,
    name: &str,
    reader: &dyn Reader,
) -> Result<Vec<Explanation>, Diagnostics> {
    let mut documents = Documents::new(reader);
    documents.part(base, None);
    let Documents { layers: texts, errors, .. } = documents;
    let mut layers = Layers::new(root, reader);
    layers.errors = errors;
    let body = layers.lay(&texts.iter().collect::<Vec<_>>());
    Diagnostics::check(std::mem::take(&mut layers.errors))?;
    let entries = schema::entries(root);
    let name = fold(name);
    let exact = entries.iter().any(|entry| entry.path == name);
    let meant = |entry: &&Entry| if exact { entry.path == name } else { ends_with(&entry.path, &name) };
    let mut found: Vec<Explanation> = entries
        .iter()
        .filter(meant)
        .map(|entry| {
            let variant = entry.within.as_ref().and_then(|(at, _)| entries.iter().find(|entry| entry.path == *at));
            let chosen = match (&entry.within, variant, texts.first()) {
                (Some((at, member)), Some(variant), Some(text)) => {
                    let slot = Slot { field: variant.field, kind: variant.field.kind.single(), path: at };
                    let start = layers.choose(slot, member, &text.place, None);
                    start.as_ref().and_then(|start| within(start, entry.path.strip_prefix(at)?)).map(described)
                }
                _ => below(&body, &entry.path).map(described),
            };
            Explanation {
                path: entry.path.clone(),
                field: entry.field,
                member: member(entry, variant),
                default: chosen,
            }
        })
        .collect();
    // A variant that several members have within them is one.
    found.dedup_by(|a, b| a.member.is_some() && (&a.path, &a.member) == (&b.path, &b.member));
    if found.is_empty() {
        return Err(Diagnostic::unknown_path(&name, entries.iter().map(|entry| entry.path.as_str())).into());
    }
    Ok(found)
}

fn member(entry: &Entry, variant: Option<&Entry>) -> Option<(String, &'static str, &'static str)> {
    let (at, name) = entry.within.clone()?;
    let Kind::Variant { alternatives, .. } = variant?.field.kind.single() else { return None };
    Some((at, name, alternatives.iter().find(|member| member.name == name)?.doc))
}

fn described(tree: &Tree) -> (String, String) {
    (inline(tree), tree.place.as_ref().map_or_else(|| "not set".to_owned(), Place::origin))
}

/// The value at a path below a variant or a section, which begins with a dot.
fn within<'t>(tree: &'t Tree, path: &str) -> Option<&'t Tree> {
    match (&tree.form, path.strip_prefix('.')) {
        (_, None) => Some(tree),
        (Form::Section(body) | Form::Variant { fields: body, .. }, Some(path)) => below(body, path),
        _ => None,
    }
}

fn below<'t>(body: &'t Body, path: &str) -> Option<&'t Tree> {
    let name = path.split('.').next()?;
    within(body.get(name)?, &path[name.len()..])
}

impl Explanation {
    /// The type, with its bounds.
    #[must_use]
    pub fn type_and_range(&self) -> String {
        let kind = self.field.kind;
        let name = match (kind.present(), kind.single()) {
            (Kind::List(item), _) => format!("list of {}", type_name(item)),
            (_, Kind::Choice(names)) => format!("choice: {}", names.join(", ")),
            (_, single) => type_name(single).to_owned(),
        };
        let optional = if matches!(kind, Kind::Optional(_)) { ", may be absent" } else { "" };
        let range = self.field.range.map_or(String::new(), |(low, high)| match kind.single() {
            Kind::Float => format!(", {} to {}", number(low), number(high)),
            _ => format!(", {low} to {high}"),
        });
        format!("{name}{range}{optional}")
    }

    /// The members to choose from, where it is a variant, with what they mean.
    pub fn choices(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let alternatives = match self.field.kind.single() {
            Kind::Variant { alternatives, .. } => *alternatives,
            _ => &[],
        };
        alternatives.iter().map(|member| (member.name, member.doc))
    }
}
