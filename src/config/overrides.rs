//! The command line over the layers: `path=value`, by path, alias, or the end of a path.

use super::document::Alias;
use super::error::{self, Diagnostic};
use super::layer::{Layers, Slot};
use super::schema::{self, ends_with, fold};
use super::tree::{self, Body, Form, Spot, Step, Tree, spots};
use super::{Field, Kind, Place, Source};

/// What a short name was taken for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShortName {
    /// As typed: `top_p`.
    pub typed: String,
    /// `filter.value`.
    pub path: String,
    /// The place of the alias; None if the name is the end of one path alone.
    pub alias: Option<String>,
}

impl std::fmt::Display for ShortName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { typed, path, alias } = self;
        match alias {
            Some(alias) => write!(f, "{typed} → {path} (alias, {alias})"),
            None => write!(f, "{typed} → {path}"),
        }
    }
}

/// An override, a value of a sweep's axis, or what an alias adds to one.
#[derive(Clone)]
pub(super) struct Assignment {
    /// Folded, and led through the aliases.
    pub key: String,
    pub typed: String,
    pub text: String,
    /// Of the whole argument, and of its two sides.
    pub place: Place,
    pub key_place: Place,
    pub text_place: Place,
    pub alias: Option<String>,
}

impl Assignment {
    /// `key=text`, written as a whole at `place`.
    pub(super) fn new(key: &str, text: &str, place: &Place, key_place: &Place, text_place: &Place) -> Self {
        Self {
            key: fold(key),
            typed: key.to_owned(),
            text: text.to_owned(),
            place: place.clone(),
            key_place: key_place.clone(),
            text_place: text_place.clone(),
            alias: None,
        }
    }

    /// Of an argument of the command line.
    pub(super) fn parse(argument: &str, place: &Place) -> Result<Self, Diagnostic> {
        let Some((key, text)) = argument.split_once('=') else {
            return Err(error::not_an_override(place, argument).help("an override is written path=value"));
        };
        let text_place = place.part(key.len() + 1, text.len());
        Ok(Self::new(key, text, place, &place.part(0, key.len()), &text_place))
    }
}

/// The assignments of a command line.
pub(super) fn assignments(arguments: &[String], errors: &mut Vec<Diagnostic>) -> Vec<Assignment> {
    let mut found = Vec::new();
    for (argument, place) in arguments.iter().zip(Source::command_line(arguments)) {
        match Assignment::parse(argument, &place) {
            Ok(assignment) => found.push(assignment),
            Err(error) => errors.push(error),
        }
    }
    found
}

/// Where a key leads: copied from a [`Spot`], so that the tree can change.
struct Target {
    steps: Vec<Step>,
    path: String,
    field: &'static Field,
    kind: &'static Kind,
}

impl Target {
    fn of(spot: &Spot<'_>) -> Self {
        Self { steps: spot.steps.clone(), path: spot.short.clone(), field: spot.field, kind: spot.kind }
    }

    fn is_variant(&self) -> bool {
        matches!(self.kind.present(), Kind::Variant { .. })
    }
}

/// Applies overrides, variants first.
pub(super) struct Overrides<'a, 'l> {
    root: &'static [Field],
    layers: &'a mut Layers<'l>,
    body: &'a mut Body,
    pub short_names: Vec<ShortName>,
    done: Vec<(String, Place)>,
}

impl<'a, 'l> Overrides<'a, 'l> {
    pub(super) fn new(root: &'static [Field], layers: &'a mut Layers<'l>, body: &'a mut Body) -> Self {
        Self { root, layers, body, short_names: Vec::new(), done: Vec::new() }
    }

    pub(super) fn apply(&mut self, assignments: Vec<Assignment>, aliases: &[Alias]) {
        let mut added = Vec::new();
        let mut pending: Vec<Assignment> =
            assignments.into_iter().map(|assignment| self.expand(assignment, aliases, &mut added)).collect();
        // What an alias chooses gives way to what is chosen by name.
        self.variants(&mut added);
        self.done.clear();
        self.variants(&mut pending);
        for assignment in added {
            self.field(&assignment);
        }
        self.done.clear();
        for assignment in pending {
            self.field(&assignment);
        }
    }

    /// Leads an assignment through the alias that it names, and adds what the alias chooses besides.
    fn expand(&self, mut assignment: Assignment, aliases: &[Alias], added: &mut Vec<Assignment>) -> Assignment {
        let path = |alias: &&Alias| schema::entries(self.root).iter().any(|entry| entry.path == alias.name);
        let named = aliases.iter().find(|alias| alias.name == assignment.key);
        let Some(alias) = named.filter(|alias| !path(alias)) else { return assignment };
        for (key, text) in &alias.also {
            let place = &assignment.place;
            let also = Assignment::new(key, text, place, &assignment.key_place, place);
            added.push(Assignment { alias: Some(alias.place.origin()), ..also });
        }
        assignment.key = fold(&alias.path);
        assignment.alias = Some(alias.place.origin());
        assignment
    }

    /// Chooses the variants that assignments name, outer ones first: an inner one may only then exist.
    fn variants(&mut self, pending: &mut Vec<Assignment>) {
        while let Some((index, target)) = self.next_variant(pending) {
            let assignment = pending.remove(index);
            self.set(&target, &assignment);
        }
    }

    fn next_variant(&self, pending: &[Assignment]) -> Option<(usize, Target)> {
        if pending.is_empty() {
            return None;
        }
        let all = spots(self.root, self.body);
        let found =
            pending.iter().enumerate().filter_map(|(index, assignment)| match named(&all, &assignment.key)[..] {
                [spot] => Some((index, Target::of(spot))).filter(|(_, target)| target.is_variant()),
                _ => None,
            });
        found.min_by_key(|(index, target)| (target.steps.len(), *index))
    }

    fn field(&mut self, assignment: &Assignment) {
        let all = spots(self.root, self.body);
        let found = match &named(&all, &assignment.key)[..] {
            [spot] => Ok(Target::of(spot)),
            [] => Err(self.unknown(assignment, &all)),
            several => {
                let show = |spot: &&Spot<'_>| format!("  {} = {}", spot.short, shown(spot.tree));
                let list: Vec<_> = several.iter().map(show).collect();
                let help = format!("write more of the path:\n{}", list.join("\n"));
                Err(error::ambiguous(&assignment.key_place, &assignment.typed).help(help))
            }
        };
        match found {
            Ok(target) => self.set(&target, assignment),
            Err(error) => self.layers.errors.push(error),
        }
    }

    fn set(&mut self, target: &Target, assignment: &Assignment) {
        if let Err(error) = self.settable(target, assignment) {
            self.layers.errors.push(error);
            return;
        }
        if fold(&assignment.typed) != target.path {
            let short = ShortName {
                typed: assignment.typed.clone(),
                path: target.path.clone(),
                alias: assignment.alias.clone(),
            };
            self.short_names.push(short);
        }
        self.done.push((target.path.clone(), assignment.key_place.clone()));
        let (layers, text) = (&mut *self.layers, assignment.text.as_str());
        tree::put(self.body, &target.steps, |current| {
            let place = &assignment.place;
            match target.kind.present() {
                Kind::Variant { .. } if !(matches!(target.kind, Kind::Optional(_)) && text == "null") => {
                    let slot = Slot { field: target.field, kind: target.kind, path: &target.path };
                    let broken = Tree::new(Form::Unset, place.clone());
                    let errors = layers.errors.len();
                    let chosen = layers.choose(slot, text, &assignment.text_place, current).unwrap_or(broken);
                    if layers.errors.len() > errors { chosen } else { Tree::new(chosen.form, place.clone()) }
                }
                Kind::Variant { .. } => Tree::new(Form::Unset, place.clone()),
                _ => layers.typed(target.field, target.kind, text, &assignment.text_place),
            }
        });
    }

    fn settable(&self, target: &Target, assignment: &Assignment) -> Result<(), Diagnostic> {
        let (path, text) = (target.path.as_str(), assignment.text.as_str());
        if let Some((_, first)) = self.done.iter().find(|(other, _)| other == path) {
            return Err(error::duplicate(&assignment.key_place, first, path));
        }
        match target.kind.present() {
            Kind::Section(fields) => {
                let names: Vec<_> = fields.iter().map(|field| format!("{path}.{}", field.name)).collect();
                let help = format!("its fields: {}", names.join(", "));
                Err(error::override_of_section(&assignment.key_place, path).help(help))
            }
            list @ Kind::List(_) if list.repeated().is_some() => {
                let count = match tree::find(self.body, path).map(|tree| &tree.form) {
                    Some(Form::List(items)) => items.len(),
                    _ => 0,
                };
                let help = match count {
                    0 => "nodes are given in a file; overrides change them".to_owned(),
                    _ => format!("name one: {path}.0=…"),
                };
                Err(error::no_item(&assignment.key_place, path, count).help(help))
            }
            Kind::Bool | Kind::Int { .. } | Kind::Float | Kind::Choice(_) | Kind::Variant { .. }
                if text.contains(',') || text.contains("..") =>
            {
                let help = format!("a run takes one: `starpo sweep … {}={text}` runs each", assignment.typed);
                Err(error::several_values(&assignment.text_place, path).help(help))
            }
            _ => Ok(()),
        }
    }

    /// A key that no value has now: of another variant, or of none.
    fn unknown(&self, assignment: &Assignment, all: &[Spot<'_>]) -> Diagnostic {
        let entries = schema::entries(self.root);
        let place = &assignment.key_place;
        let elsewhere = entries.iter().filter(|entry| ends_with(&entry.path, &assignment.key));
        let exact = elsewhere.clone().find(|entry| entry.path == assignment.key);
        for entry in exact.into_iter().chain(elsewhere) {
            let Some((parent, member)) = &entry.within else { continue };
            let chosen = all.iter().find(|spot| spot.is(parent)).and_then(|spot| spot.tree);
            if let Some(Tree { form: Form::Variant { name, .. }, .. }) = chosen {
                let help = format!("it belongs to \"{member}\": add {parent}={member}");
                return error::other_variant(place, &entry.path, parent, name).help(help);
            }
        }
        let last = assignment.key.rsplit('.').next().unwrap_or_default();
        let names = entries.iter().map(|entry| entry.field.name);
        let near: Vec<_> = schema::nearest(last, names);
        let mut paths: Vec<&str> = schema::nearest(&assignment.key, entries.iter().map(|entry| entry.path.as_str()));
        for entry in entries.iter().filter(|entry| near.contains(&entry.field.name)) {
            if !paths.contains(&entry.path.as_str()) && paths.len() < 3 {
                paths.push(&entry.path);
            }
        }
        let help = format!("{}`starpo show` lists every path", error::did_you_mean(&paths));
        error::unknown_override(place, &assignment.typed).help(help)
    }
}

/// The spots that a key names: the one of that path, or all whose path ends with it.
pub(super) fn named<'s, 't>(all: &'s [Spot<'t>], key: &str) -> Vec<&'s Spot<'t>> {
    // A node that could repeat and stands alone goes by the list's name; then the node is meant, the last of the two.
    let exact = all.iter().rev().find(|spot| spot.is(key));
    if let Some(spot) = exact {
        return vec![spot];
    }
    let mut found: Vec<&Spot<'_>> = Vec::new();
    for spot in all.iter().filter(|spot| ends_with(&spot.short, key) || ends_with(&spot.path, key)) {
        found.retain(|other| other.short != spot.short);
        found.push(spot);
    }
    found
}

/// A value in the list of candidates.
fn shown(tree: Option<&Tree>) -> String {
    tree.map_or_else(|| "not set".to_owned(), super::show::inline)
}
