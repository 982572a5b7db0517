//! The last steps to a whole tree: references are followed, absent optional values filled in, missing ones reported.

use super::error::{self, Diagnostic};
use super::schema::{self, Fields, join};
use super::tree::{self, Body, Form, Spot, Tree, spots};
use super::{Field, Kind, Place, scalar};

/// Replaces each reference by the value that it leads to.
pub(super) fn follow_references(root: &'static [Field], body: &mut Body, errors: &mut Vec<Diagnostic>) {
    if !tree::refers(body) {
        return;
    }
    let all = spots(root, body);
    let mut found = Vec::new();
    for spot in &all {
        if let Some(Tree { form: Form::Ref(path), place: Some(place) }) = spot.tree {
            found.push((spot.steps.clone(), place.clone(), follow(&all, spot, path, place)));
        }
    }
    for (steps, place, result) in found {
        let form = result.unwrap_or_else(|error| {
            errors.push(error);
            Form::Unset
        });
        tree::put(body, &steps, |_| Tree::new(form, place));
    }
}

fn follow(all: &[Spot<'_>], from: &Spot<'_>, path: &str, place: &Place) -> Result<Form, Diagnostic> {
    let mut path = path;
    let mut last = place;
    // A chain longer than there are values has met one of them twice.
    for _ in 0..=all.len() {
        let Some(target) = all.iter().rev().find(|spot| spot.is(path)) else {
            let near = schema::nearest(path, all.iter().map(|spot| spot.short.as_str()));
            return Err(error::ref_to_nothing(place, path).help(error::did_you_mean(&near)));
        };
        if target.path == from.path {
            return Err(error::cycle("references", place, last));
        }
        match target.tree {
            Some(Tree { form: Form::Ref(next), place: Some(at) }) => (path, last) = (next, at),
            Some(tree) if matches!(tree.form, Form::Section(_) | Form::Variant { .. }) => {
                return Err(error::wrong_type(place, &from.kind.expected(), &format!("the block `{path}`")));
            }
            Some(tree) => return scalar::convert(from.kind, from.field.range, &tree.value(), place).map(form(place)),
            None if matches!(target.kind, Kind::Optional(_)) => {
                return scalar::convert(from.kind, from.field.range, &super::Value::Unset, place).map(form(place));
            }
            None => return Err(error::ref_to_nothing(place, path).help("it has no value")),
        }
    }
    Err(error::cycle("references", place, last))
}

fn form(place: &Place) -> impl Fn(super::Value) -> Form + '_ {
    fn of(value: super::Value, place: &Place) -> Form {
        match value {
            super::Value::Unset => Form::Unset,
            super::Value::List(items) => {
                Form::List(items.into_iter().map(|item| Tree::new(of(item, place), place.clone())).collect())
            }
            value => Form::Scalar(value),
        }
    }
    move |value| of(value, place)
}

/// Gives every field of the description a value: optional ones are unset, lists of nodes empty; others are missing.
pub(super) fn fill(root: &'static [Field], body: &mut Body, whole: &Place, errors: &mut Vec<Diagnostic>) {
    fill_body(Fields(root, &[]), "", body, whole, errors);
}

fn fill_body(fields: Fields, path: &str, body: &mut Body, within: &Place, errors: &mut Vec<Diagnostic>) {
    for field in fields.iter() {
        let path = join(path, field.name);
        if let Some(tree) = body.get_mut(field.name) {
            fill_tree(field.kind, &path, tree, within, errors);
            continue;
        }
        let form = match field.kind {
            Kind::Optional(_) => Form::Unset,
            list if list.repeated().is_some() => Form::List(Vec::new()),
            Kind::Section(inner) => {
                let mut fields = Body::new();
                fill_body(Fields(inner, &[]), &path, &mut fields, within, errors);
                Form::Section(fields)
            }
            _ => {
                errors.push(error::missing(within, &path));
                Form::Unset
            }
        };
        body.insert(field.name, Tree { form, place: None });
    }
}

fn fill_tree(kind: &'static Kind, path: &str, tree: &mut Tree, within: &Place, errors: &mut Vec<Diagnostic>) {
    let within = tree.place.as_ref().unwrap_or(within).clone();
    match (kind.present(), &mut tree.form) {
        (Kind::Section(inner), Form::Section(body)) => fill_body(Fields(inner, &[]), path, body, &within, errors),
        (Kind::Variant { alternatives, common, .. }, Form::Variant { name, fields }) => {
            if let Some(member) = alternatives.iter().find(|member| member.name == *name) {
                fill_body(Fields(member.fields, common), path, fields, &within, errors);
            }
        }
        (Kind::List(item), Form::List(items)) => {
            for (index, tree) in items.iter_mut().enumerate() {
                fill_tree(item, &join(path, &index.to_string()), tree, &within, errors);
            }
        }
        _ => {}
    }
}
