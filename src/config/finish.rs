//! The last steps to a whole tree: references are followed, absent optional values filled in, missing ones reported.

use std::collections::BTreeMap;

use super::canon::before;
use super::document::Layer;
use super::error::{self, Diagnostic, MISTAKES_MAX};
use super::schema::{self, Fields};
use super::tree::{self, Body, Form, Spot, Tree, spots};
use super::{Field, Kind, Place, Reader, Value, scalar};

/// References that lead to references.
const CHAIN_MAX: usize = 100;

/// Replaces each reference by the value that it leads to.
pub(super) fn follow_references(root: &'static [Field], body: &mut Body, errors: &mut Vec<Diagnostic>) {
    if !tree::refers(body) {
        return;
    }
    let all = spots(root, body);
    if !all.iter().any(|spot| matches!(spot.tree, Some(Tree { form: Form::Ref(_), .. }))) {
        return;
    }
    // Where a list and the node that stands alone in it go by one name, the node is meant, which comes later.
    let by_name: Names<'_> = all.iter().flat_map(|spot| [(spot.path.as_str(), spot), (spot.short(), spot)]).collect();
    let mut found = Vec::new();
    for spot in &all {
        if let Some(Tree { form: Form::Ref(path), place: Some(place) }) = spot.tree {
            if errors.len() > MISTAKES_MAX {
                break;
            }
            let form = follow(&by_name, spot, path, place).unwrap_or_else(|error| {
                errors.push(error);
                Form::Unset
            });
            found.push((spot.steps.clone(), place.clone(), form));
        }
    }
    for (steps, place, form) in found {
        tree::put(body, &steps, |_| Tree::new(form, place));
    }
}

/// Every value by its path.
type Names<'s> = BTreeMap<&'s str, &'s Spot<'s>>;

fn follow(all: &Names<'_>, from: &Spot<'_>, path: &str, place: &Place) -> Result<Form, Diagnostic> {
    let mut path = path;
    let mut last = place;
    let mut seen = vec![from.path.as_str()];
    while seen.len() <= CHAIN_MAX {
        let Some(target) = all.get(path) else {
            let end = format!(".{path}");
            let mut near: Vec<&str> = all.keys().copied().filter(|known| known.ends_with(&end)).take(3).collect();
            if near.is_empty() {
                near = schema::nearest(path, all.keys().copied());
            }
            return Err(error::ref_to_nothing(place, path).help(error::did_you_mean(&near)));
        };
        if seen.contains(&target.path.as_str()) {
            return Err(error::cycle("references", place, last));
        }
        seen.push(&target.path);
        match target.tree {
            Some(Tree { form: Form::Ref(next), place: Some(at) }) => (path, last) = (next, at),
            Some(tree) if matches!(tree.form, Form::Section(_) | Form::Variant { .. }) => {
                return Err(error::wrong_type(place, &from.kind.expected(), &format!("the block `{path}`")));
            }
            Some(tree) => return scalar::convert(from.kind, from.field.range, &tree.value(), place).map(form(place)),
            None if matches!(target.kind, Kind::Optional(_)) => {
                return scalar::convert(from.kind, from.field.range, &Value::Unset, place).map(form(place));
            }
            None => return Err(error::ref_to_nothing(place, path).help("it has no value")),
        }
    }
    Err(error::long_chain(place, CHAIN_MAX))
}

fn form(place: &Place) -> impl Fn(Value) -> Form + '_ {
    move |value| of(value, Some(place))
}

/// A value that no layer has given.
fn bare(value: Value) -> Form {
    of(value, None)
}

fn of(value: Value, place: Option<&Place>) -> Form {
    match value {
        Value::Unset => Form::Unset,
        Value::List(items) => {
            Form::List(items.into_iter().map(|item| Tree { form: of(item, place), place: place.cloned() }).collect())
        }
        Value::Variant { name, .. } => Form::Variant { name, fields: Body::new() },
        value => Form::Scalar(value),
    }
}

/// A place, and the paths of the values that are missing in it.
type Missing = Vec<(Place, Vec<String>)>;

/// Gives every field of the description a value: optional ones are unset, lists of nodes empty; others are missing.
pub(super) fn fill(root: &'static [Field], body: &mut Body, whole: &Place) -> Missing {
    let mut missing = Missing::new();
    fill_body(Fields(root, &[]), &mut String::new(), body, whole, &mut missing);
    missing
}

/// What is missing, each place once.
pub(super) fn missed(missing: Missing, texts: &[&Layer], reader: &dyn Reader) -> impl Iterator<Item = Diagnostic> {
    let mut names = texts.iter().map(|text| text.source.name.as_str()).filter(|_| !missing.is_empty());
    let hiding = names.find(|name| reader.hides(name));
    let help = match (hiding, texts) {
        (Some(name), _) => format!(
            "{name} here stands before the one that this version of starpo brings along, which may give it: bring the \
             file up to date, or move it away"
        ),
        (None, [_]) => "it builds on nothing: `extends \"base\"` gives values their defaults".to_owned(),
        (None, _) => String::new(),
    };
    missing.into_iter().map(move |(place, paths)| error::missing(&place, &paths).help(help.clone()))
}

/// `path` is where the body is; it is the same again afterwards.
fn fill_body(fields: Fields, path: &mut String, body: &mut Body, within: &Place, missing: &mut Missing) {
    for field in fields.iter() {
        let above = enter(path, field.name);
        match body.get_mut(field.name) {
            Some(tree) => fill_tree(field.kind, path, tree, within, missing),
            None => {
                let form = absent(field, path, within, missing);
                body.insert(field.name, Tree { form, place: None });
            }
        }
        path.truncate(above);
    }
}

/// What a field is that no layer gives.
fn absent(field: &'static Field, path: &mut String, within: &Place, missing: &mut Missing) -> Form {
    match field.kind {
        _ if field.before.is_some() => before(field).map_or(Form::Unset, bare),
        Kind::Optional(_) => Form::Unset,
        list if list.repeated().is_some() => Form::List(Vec::new()),
        Kind::Section(inner) => {
            let mut fields = Body::new();
            fill_body(Fields(inner, &[]), path, &mut fields, within, missing);
            Form::Section(fields)
        }
        _ => {
            match missing.iter_mut().find(|(place, _)| place == within) {
                Some((_, paths)) => paths.push(path.clone()),
                None => missing.push((within.clone(), vec![path.clone()])),
            }
            Form::Unset
        }
    }
}

fn fill_tree(kind: &'static Kind, path: &mut String, tree: &mut Tree, within: &Place, missing: &mut Missing) {
    let within = tree.place.as_ref().unwrap_or(within).clone();
    match (kind.present(), &mut tree.form) {
        (Kind::Section(inner), Form::Section(body)) => fill_body(Fields(inner, &[]), path, body, &within, missing),
        (Kind::Variant { alternatives, common, .. }, Form::Variant { name, fields }) => {
            if let Some(member) = alternatives.iter().find(|member| member.name == *name) {
                fill_body(Fields(member.fields, common), path, fields, &within, missing);
            }
        }
        (Kind::List(item), Form::List(items)) if !item.has_no_fields() => {
            for (index, tree) in items.iter_mut().enumerate() {
                let above = enter(path, &index.to_string());
                fill_tree(item, path, tree, &within, missing);
                path.truncate(above);
            }
        }
        _ => {}
    }
}

/// Goes on to a name: how long the path was.
fn enter(path: &mut String, name: &str) -> usize {
    let above = path.len();
    if above > 0 {
        path.push('.');
    }
    path.push_str(name);
    above
}
