//! The tree that layers build: values of the description's shape, each with the place that gave it.

use std::collections::BTreeMap;

use super::schema::{Fields, ends_with, fold, join};
use super::{Diagnostic, Diagnostics, Field, Kind, Place, Value};

/// The fields of a body that some layer has given.
pub type Body = BTreeMap<&'static str, Tree>;

/// A value and where it came from.
#[derive(Clone, Debug)]
pub struct Tree {
    pub form: Form,
    /// None where nothing was written: an optional value that no layer gives.
    pub place: Option<Place>,
}

/// The shapes of a value under construction.
#[derive(Clone, Debug)]
pub enum Form {
    /// Anything that is neither a list nor has fields.
    Scalar(Value),
    /// The value at another path; gone once references are resolved.
    Ref(String),
    Unset,
    List(Vec<Tree>),
    Section(Body),
    Variant {
        name: &'static str,
        fields: Body,
    },
}

impl Tree {
    #[must_use]
    pub fn new(form: Form, place: Place) -> Self {
        Self { form, place: Some(place) }
    }

    /// `configs/base.kdl:12`, `override 2`, or `not set`.
    #[must_use]
    pub fn origin(&self) -> String {
        self.place.as_ref().map_or_else(|| "not set".to_owned(), Place::origin)
    }

    /// The value without its places.
    #[must_use]
    pub fn value(&self) -> Value {
        match &self.form {
            Form::Scalar(value) => value.clone(),
            Form::Ref(_) | Form::Unset => Value::Unset,
            Form::List(items) => Value::List(items.iter().map(Tree::value).collect()),
            Form::Section(fields) => Value::Section(values(fields)),
            Form::Variant { name, fields } => Value::Variant { name, fields: values(fields) },
        }
    }
}

/// The values of a body without their places.
#[must_use]
pub fn values(body: &Body) -> BTreeMap<&'static str, Value> {
    body.iter().map(|(name, tree)| (*name, tree.value())).collect()
}

/// One step from a value into it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    Field(&'static str),
    Item(usize),
}

/// A position of the description as far as the tree's variants choose it, and the value there, if any.
#[derive(Clone, Debug)]
pub struct Spot<'t> {
    pub steps: Vec<Step>,
    /// With the numbers of list items: `task.0.size`.
    pub path: String,
    /// The shorter path, where there is one.
    short: Option<String>,
    pub field: &'static Field,
    pub kind: &'static Kind,
    /// Inside something that never enters the key.
    pub local: bool,
    pub tree: Option<&'t Tree>,
}

impl<'t> Spot<'t> {
    /// The path without the number of a node that could repeat and stands alone: `task.size`.
    #[must_use]
    pub fn short(&self) -> &str {
        self.short.as_deref().unwrap_or(&self.path)
    }

    /// Whether `path` names this spot.
    #[must_use]
    pub fn is(&self, path: &str) -> bool {
        self.path == path || self.short.as_deref() == Some(path)
    }

    /// Whether `name` is one of its paths, or the end of one.
    pub(super) fn ends_with(&self, name: &str) -> bool {
        ends_with(&self.path, name) || self.short.as_ref().is_some_and(|short| ends_with(short, name))
    }

    fn top(field: &'static Field, tree: Option<&'t Tree>) -> Self {
        let (steps, path) = (vec![Step::Field(field.name)], field.name.to_owned());
        Self { steps, path, short: None, field, kind: field.kind, local: field.local, tree }
    }

    fn field(&self, field: &'static Field, tree: Option<&'t Tree>) -> Self {
        let steps = [self.steps.as_slice(), &[Step::Field(field.name)]].concat();
        let (path, short) = (join(&self.path, field.name), self.short.as_ref().map(|short| join(short, field.name)));
        Self { steps, path, short, field, kind: field.kind, local: self.local || field.local, tree }
    }

    fn item(&self, index: usize, kind: &'static Kind, alone: bool, tree: &'t Tree) -> Self {
        let number = index.to_string();
        let short = match alone {
            true => Some(self.short().to_owned()),
            false => self.short.as_ref().map(|short| join(short, &number)),
        };
        let steps = [self.steps.as_slice(), &[Step::Item(index)]].concat();
        Self {
            steps,
            path: join(&self.path, &number),
            short,
            field: self.field,
            kind,
            local: self.local,
            tree: Some(tree),
        }
    }
}

/// Every position, parents first, in the order of the description.
#[must_use]
pub fn spots<'t>(root: &'static [Field], body: &'t Body) -> Vec<Spot<'t>> {
    let mut found = Vec::new();
    for field in root {
        visit(Spot::top(field, body.get(field.name)), &mut found);
    }
    found
}

/// The value at a path, with or without the number of a node that could repeat and stands alone.
#[must_use]
pub fn find<'t>(body: &'t Body, path: &str) -> Option<&'t Tree> {
    let (name, rest) = path.split_once('.').map_or((path, None), |(name, rest)| (name, Some(rest)));
    find_in(body.get(name)?, rest)
}

fn find_in<'t>(tree: &'t Tree, path: Option<&str>) -> Option<&'t Tree> {
    let Some(path) = path else { return Some(tree) };
    match &tree.form {
        Form::Section(fields) | Form::Variant { fields, .. } => find(fields, path),
        Form::List(items) => {
            let (name, rest) = path.split_once('.').map_or((path, None), |(name, rest)| (name, Some(rest)));
            match (name.parse::<usize>(), items.as_slice()) {
                (Ok(index), items) => find_in(items.get(index)?, rest),
                (Err(_), [alone]) => find_in(alone, Some(path)),
                _ => None,
            }
        }
        Form::Scalar(_) | Form::Ref(_) | Form::Unset => None,
    }
}

/// Whether some value is still that of another path.
#[must_use]
pub fn refers(body: &Body) -> bool {
    body.values().any(|tree| match &tree.form {
        Form::Ref(_) => true,
        Form::Section(fields) | Form::Variant { fields, .. } => refers(fields),
        Form::List(items) => items.iter().any(|item| match &item.form {
            Form::Section(fields) | Form::Variant { fields, .. } => refers(fields),
            form => matches!(form, Form::Ref(_)),
        }),
        Form::Scalar(_) | Form::Unset => false,
    })
}

/// What of a body has that path, or else a path that ends so, with all that is below and around it.
///
/// # Errors
/// A path that no value has.
pub fn cut(root: &'static [Field], body: &Body, name: &str) -> Result<Body, Diagnostics> {
    let all = spots(root, body);
    let name = fold(name);
    let is_item = |spot: &Spot<'_>| matches!(spot.steps.last(), Some(Step::Item(_))) && spot.kind.has_no_fields();
    let exact = all.iter().any(|spot| spot.is(&name));
    let meant = |spot: &&Spot<'_>| if exact { spot.is(&name) } else { spot.ends_with(&name) };
    let wanted: Vec<&[Step]> =
        all.iter().filter(meant).filter(|spot| !is_item(spot)).map(|spot| spot.steps.as_slice()).collect();
    if wanted.is_empty() {
        return Err(Diagnostic::unknown_path(&name, all.iter().map(Spot::short)).into());
    }
    Ok(cut_body(body, &mut Vec::new(), &wanted))
}

fn cut_body(body: &Body, at: &mut Vec<Step>, wanted: &[&[Step]]) -> Body {
    body.iter().filter_map(|(name, tree)| Some((*name, cut_tree(tree, Step::Field(name), at, wanted)?))).collect()
}

fn cut_tree(tree: &Tree, step: Step, at: &mut Vec<Step>, wanted: &[&[Step]]) -> Option<Tree> {
    at.push(step);
    let form = if wanted.iter().any(|steps| at.starts_with(steps)) {
        Some(tree.form.clone())
    } else if wanted.iter().any(|steps| steps.starts_with(at)) {
        Some(match &tree.form {
            Form::Section(body) => Form::Section(cut_body(body, at, wanted)),
            Form::Variant { name, fields } => Form::Variant { name, fields: cut_body(fields, at, wanted) },
            Form::List(items) => {
                let items = items.iter().enumerate();
                Form::List(items.filter_map(|(index, item)| cut_tree(item, Step::Item(index), at, wanted)).collect())
            }
            form => form.clone(),
        })
    } else {
        None
    };
    at.pop();
    form.map(|form| Tree { form, place: tree.place.clone() })
}

fn visit_body<'t>(fields: Fields, body: Option<&'t Body>, at: usize, found: &mut Vec<Spot<'t>>) {
    for field in fields.iter() {
        visit(found[at].field(field, body.and_then(|body| body.get(field.name))), found);
    }
}

fn visit<'t>(spot: Spot<'t>, found: &mut Vec<Spot<'t>>) {
    let (at, kind, tree) = (found.len(), spot.kind, spot.tree);
    found.push(spot);
    match (kind.present(), tree.map(|tree| &tree.form)) {
        (Kind::Section(_), Some(Form::Unset)) => {}
        (Kind::Section(_), None) if matches!(kind, Kind::Optional(_)) => {}
        (Kind::Section(inner), form) => {
            let body = if let Some(Form::Section(body)) = form { Some(body) } else { None };
            visit_body(Fields(inner, &[]), body, at, found);
        }
        (Kind::Variant { alternatives, common, .. }, Some(Form::Variant { name, fields })) => {
            if let Some(member) = alternatives.iter().find(|member| member.name == *name) {
                visit_body(Fields(member.fields, common), Some(fields), at, found);
            }
        }
        (list @ Kind::List(item), Some(Form::List(items))) => {
            let alone = items.len() == 1 && list.repeated().is_some();
            for (index, tree) in items.iter().enumerate() {
                visit(found[at].item(index, item, alone, tree), found);
            }
        }
        _ => {}
    }
}

/// Replaces the value at `steps` by what `make` makes of it, building the sections on the way.
pub fn put(body: &mut Body, steps: &[Step], make: impl FnOnce(Option<Tree>) -> Tree) {
    if let [Step::Field(name), rest @ ..] = steps {
        let old = body.remove(name);
        body.insert(name, put_into(old, rest, make));
    }
}

fn put_into(old: Option<Tree>, steps: &[Step], make: impl FnOnce(Option<Tree>) -> Tree) -> Tree {
    let Some(step) = steps.first() else { return make(old) };
    let mut tree = old.unwrap_or_else(|| Tree { form: Form::Section(Body::new()), place: None });
    match (&mut tree.form, step) {
        (Form::Section(fields) | Form::Variant { fields, .. }, Step::Field(_)) => put(fields, steps, make),
        (Form::List(items), Step::Item(index)) if *index < items.len() => {
            let item = items.remove(*index);
            items.insert(*index, put_into(Some(item), &steps[1..], make));
        }
        _ => {}
    }
    tree
}
