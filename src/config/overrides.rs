//! The command line over the layers: `path=value` or `list+=value`, by path, alias, or the end of a path.
//!
//! Variants are chosen first, then fields are given; lists are given, then added to. A list is given whole: `stop=a,b`
//! is two nodes (`stop=` is none), each of which keeps the fields of the node in its place if that has the same name.

use std::sync::Arc;

use super::document::Alias;
use super::error::{self, Diagnostic};
use super::layer::{Layers, Slot};
use super::schema::{self, ends_with, fold};
use super::tree::{self, Body, Form, Spot, Step, Tree, spots};
use super::{Field, Kind, Place, Reader, Source};

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
    /// Of the argument.
    pub index: usize,
    /// Folded, and led through the aliases.
    pub key: String,
    pub typed: String,
    /// `+=`: goes after what is there.
    pub adds: bool,
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
            index: 0,
            key: fold(key),
            typed: key.to_owned(),
            adds: false,
            text: text.to_owned(),
            place: place.clone(),
            key_place: key_place.clone(),
            text_place: text_place.clone(),
            alias: None,
        }
    }

    /// Of an argument of the command line, `key=text` or `key+=text`.
    fn parse(index: usize, argument: &str, place: &Place, reader: &dyn Reader) -> Result<Self, Diagnostic> {
        let Some((left, text)) = argument.split_once('=') else {
            let foreign = reader.foreign(argument);
            let help = foreign.unwrap_or_else(|| "an override is path=value, list+=value or @overlay.kdl".to_owned());
            return Err(error::not_an_override(place, argument).help(help));
        };
        let key = left.strip_suffix('+').unwrap_or(left);
        let text_place = place.part(left.len() + 1, text.len());
        let plain = Self::new(key, text, place, &place.part(0, key.len()), &text_place);
        Ok(Self { index, adds: key != left, ..plain })
    }
}

/// The assignments of a command line: all its arguments but for `@overlay`s, which are layers.
pub(super) fn assignments(
    arguments: &[String],
    places: &[Place],
    reader: &dyn Reader,
    errors: &mut Vec<Diagnostic>,
) -> Vec<Assignment> {
    let mut found = Vec::new();
    for (index, (argument, place)) in arguments.iter().zip(places).enumerate() {
        if argument.starts_with('@') {
            continue;
        }
        match Assignment::parse(index, argument, place, reader) {
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
        Self { steps: spot.steps.clone(), path: spot.short().to_owned(), field: spot.field, kind: spot.kind }
    }

    /// Whether its value is a name to choose, or a list of such.
    fn is_variant(&self) -> bool {
        matches!(self.kind.single(), Kind::Variant { .. })
    }

    fn slot(&self) -> Slot<'_> {
        Slot { field: self.field, kind: self.kind.single(), path: &self.path }
    }
}

/// Applies overrides, variants first.
pub(super) struct Overrides<'a, 'l> {
    root: &'static [Field],
    layers: &'a mut Layers<'l>,
    body: &'a mut Body,
    /// Texts that the arguments of these numbers laid over the documents.
    overlays: &'a [(usize, Arc<Source>)],
    pub short_names: Vec<ShortName>,
    done: Vec<(String, Place)>,
}

impl<'a, 'l> Overrides<'a, 'l> {
    pub(super) fn new(
        root: &'static [Field],
        layers: &'a mut Layers<'l>,
        body: &'a mut Body,
        overlays: &'a [(usize, Arc<Source>)],
    ) -> Self {
        Self { root, layers, body, overlays, short_names: Vec::new(), done: Vec::new() }
    }

    pub(super) fn apply(&mut self, assignments: Vec<Assignment>, aliases: &[Alias]) {
        let mut added = Vec::new();
        let mut pending: Vec<Assignment> =
            assignments.into_iter().map(|assignment| self.expand(assignment, aliases, &mut added)).collect();
        // What an alias chooses gives way to what is chosen by name.
        self.variants(&mut added);
        self.done.clear();
        self.variants(&mut pending);
        self.fields(&added);
        self.done.clear();
        pending.sort_by_key(|assignment| assignment.adds);
        self.fields(&pending);
    }

    /// Leads an assignment through the alias that it names, and adds what the alias chooses besides.
    fn expand(&self, mut assignment: Assignment, aliases: &[Alias], added: &mut Vec<Assignment>) -> Assignment {
        let path = |alias: &&Alias| schema::entries(self.root).iter().any(|entry| entry.path == alias.name);
        let named = aliases.iter().find(|alias| alias.name == assignment.key);
        let Some(alias) = named.filter(|alias| !path(alias)) else { return assignment };
        for (key, text) in &alias.also {
            let place = &assignment.place;
            let also = Assignment::new(key, text, place, &assignment.key_place, place);
            added.push(Assignment { index: assignment.index, alias: Some(alias.place.origin()), ..also });
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
        if !pending.iter().any(|assignment| may_choose(self.root, &assignment.key)) {
            return None;
        }
        let all = spots(self.root, self.body);
        let found =
            pending.iter().enumerate().filter_map(|(index, assignment)| match named(&all, &assignment.key)[..] {
                [spot] => Some((index, Target::of(spot))).filter(|(_, target)| target.is_variant()),
                _ => None,
            });
        found.min_by_key(|(index, target)| (target.steps.len(), pending[*index].adds, *index))
    }

    /// Gives fields their values, in this order.
    fn fields(&mut self, assignments: &[Assignment]) {
        let mut left = assignments;
        while !left.is_empty() {
            let all = spots(self.root, self.body);
            let found: Vec<_> = left.iter().map(|assignment| self.target(assignment, &all)).collect();
            for target in found {
                let (assignment, rest) = (&left[0], &left[1..]);
                left = rest;
                match target {
                    Ok(target) => {
                        self.set(&target, assignment);
                        // Anything else leaves the paths of the others as they are.
                        if matches!(target.kind.present(), Kind::List(_)) {
                            break;
                        }
                    }
                    Err(error) => self.layers.errors.push(error),
                }
            }
        }
    }

    /// Where an assignment's key leads among all values.
    fn target(&self, assignment: &Assignment, all: &[Spot<'_>]) -> Result<Target, Diagnostic> {
        match &named(all, &assignment.key)[..] {
            [spot] => Ok(Target::of(spot)),
            [] => Err(self.unknown(assignment, all)),
            several => {
                let show = |spot: &&Spot<'_>| format!("  {} = {}", spot.short(), shown(spot.tree));
                let list: Vec<_> = several.iter().map(show).collect();
                let help = format!("write more of the path:\n{}", list.join("\n"));
                Err(error::ambiguous(&assignment.key_place, &assignment.typed).help(help))
            }
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
        if !assignment.adds {
            self.done.push((target.path.clone(), assignment.key_place.clone()));
        }
        let layers = &mut *self.layers;
        tree::put(self.body, &target.steps, |current| match target.kind.present() {
            list if list.repeated().is_some() => nodes(layers, target, assignment, current),
            Kind::Variant { .. } => chosen(layers, target, assignment, current),
            _ => {
                let Assignment { text, text_place, .. } = assignment;
                match target.kind.present() {
                    Kind::List(item) if assignment.adds => {
                        let more = layers.items(target.field, item, text, text_place);
                        layers.append(&target.path, current, more)
                    }
                    _ => layers.typed(target.field, target.kind, text, text_place),
                }
            }
        });
    }

    fn settable(&self, target: &Target, assignment: &Assignment) -> Result<(), Diagnostic> {
        let (path, text) = (target.path.as_str(), assignment.text.as_str());
        let key_place = &assignment.key_place;
        if let Kind::Section(fields) = target.kind.single() {
            let names: Vec<_> = fields.iter().map(|field| format!("{path}.{}", field.name)).collect();
            let help = format!("its fields: {}", names.join(", "));
            return Err(error::override_of_section(key_place, path).help(help));
        }
        let is_list = matches!(target.kind.present(), Kind::List(_));
        if assignment.adds {
            let help = format!("write {}=…", assignment.typed);
            return if is_list { Ok(()) } else { Err(error::not_a_list(key_place, path).help(help)) };
        }
        if let Some((_, first)) = self.done.iter().find(|(other, _)| other == path) {
            return Err(error::duplicate(key_place, first, path));
        }
        let there = tree::find(self.body, path).and_then(|tree| tree.place.as_ref());
        let later = |place: &&Place| {
            self.overlays.iter().any(|(at, text)| *at > assignment.index && Arc::ptr_eq(text, &place.source))
        };
        if let Some(overlaid) = there.filter(later) {
            let help = "an overlay wins over what stands before it: put it first, or leave one of the two out";
            return Err(error::duplicate(key_place, overlaid, path).help(help));
        }
        let may_be_several = text.contains(',') || text.contains("..");
        match target.kind.present() {
            Kind::Bool | Kind::Int { .. } | Kind::Float | Kind::Choice(_) | Kind::Variant { .. } if may_be_several => {
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
            if let Some(Tree { form: Form::Variant { name, .. }, place: there }) = chosen {
                let given = there.as_ref().is_some_and(|there| Arc::ptr_eq(&there.source, &place.source));
                let advice = match given {
                    true => format!("give {parent}={member}, and not {name}"),
                    false => format!("add {parent}={member}"),
                };
                let help = format!("it belongs to \"{member}\": {advice}");
                return error::other_variant(place, &entry.path, parent, name).help(help);
            }
        }
        // Of a list that has no such member.
        if let Some(help) = misnumbered(&assignment.key, all) {
            return error::unknown_override(place, &assignment.typed).help(help);
        }
        let plain: Vec<&str> = assignment.key.split('.').filter(|part| part.parse::<usize>().is_err()).collect();
        let plain = plain.join(".");
        let members: Vec<_> =
            entries.iter().filter(|entry| entry.path == plain).filter_map(|entry| entry.within.as_ref()).collect();
        if let Some(help) = members.iter().find_map(|member| has_it(&plain, member, all)) {
            return error::unknown_override(place, &assignment.typed).help(help);
        }
        if !members.is_empty() {
            return error::unknown_override(place, &assignment.typed).help(absent(assignment, &members, all));
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
        let foreign = self.layers.reader.foreign(&format!("{}={}", assignment.typed, assignment.text));
        let help = foreign.unwrap_or_else(|| format!("{}`starpo show` lists every path", error::did_you_mean(&paths)));
        error::unknown_override(place, &assignment.typed).help(help)
    }
}

/// Whether a key may lead to a variant, which saves looking for most others.
fn may_choose(root: &'static [Field], key: &str) -> bool {
    let last = key.rsplit('.').find(|part| part.parse::<usize>().is_err());
    last.is_none_or(|name| schema::chooses(root, name))
}

/// The variant that an override names, or none.
fn chosen(layers: &mut Layers<'_>, target: &Target, assignment: &Assignment, current: Option<Tree>) -> Tree {
    let place = &assignment.place;
    let unset = Tree::new(Form::Unset, place.clone());
    if matches!(target.kind, Kind::Optional(_)) && assignment.text == "null" {
        return unset;
    }
    let errors = layers.errors.len();
    let tree = layers.choose(target.slot(), &assignment.text, &assignment.text_place, current).unwrap_or(unset);
    if layers.errors.len() > errors { tree } else { Tree::new(tree.form, place.clone()) }
}

/// Nodes by their names, in the place of those that are there, or after them.
fn nodes(layers: &mut Layers<'_>, target: &Target, assignment: &Assignment, current: Option<Tree>) -> Tree {
    let there = match current {
        Some(Tree { form: Form::List(items), .. }) => items,
        _ => Vec::new(),
    };
    let (mut items, old) = if assignment.adds { (there, Vec::new()) } else { (Vec::new(), there) };
    let (mut old, mut at) = (old.into_iter(), 0);
    for name in assignment.text.split(',').filter(|_| !assignment.text.is_empty()) {
        let place = assignment.text_place.part(at, name.len());
        let node = layers.choose(target.slot(), name, &place, old.next());
        items.extend(node.map(|node| Tree::new(node.form, assignment.place.clone())));
        at += name.len() + 1;
    }
    Tree::new(Form::List(items), assignment.place.clone())
}

/// The spots that a key names: the one of that path, or all whose path ends with it.
pub(super) fn named<'s, 't>(all: &'s [Spot<'t>], key: &str) -> Vec<&'s Spot<'t>> {
    // A node that could repeat and stands alone goes by the list's name: the list is meant, which comes first.
    if let Some(spot) = all.iter().find(|spot| spot.is(key)) {
        return vec![spot];
    }
    let mut found: Vec<&Spot<'_>> = Vec::new();
    for spot in all.iter().filter(|spot| spot.ends_with(key)) {
        if found.iter().all(|other| other.short() != spot.short()) {
            found.push(spot);
        }
    }
    found
}

/// A value in the list of candidates.
fn shown(tree: Option<&Tree>) -> String {
    tree.map_or_else(|| "not set".to_owned(), super::show::inline)
}

/// Which of these members of a list a key needs, where there is none, and how to have one.
fn absent(assignment: &Assignment, members: &[&(String, &str)], all: &[Spot<'_>]) -> String {
    let names: Vec<String> = members.iter().map(|(_, member)| format!("\"{member}\"")).collect();
    let Some((list, member)) = members.first() else { return String::new() };
    let counted: Vec<&str> = assignment.key.split('.').collect();
    let counted = counted.iter().position(|part| part.parse::<usize>().is_ok()).map(|at| counted[..=at].join("."));
    let there = all.iter().find(|spot| spot.is(list)).and_then(|spot| spot.tree?.place.as_ref());
    let advice = match (counted.filter(|counted| all.iter().any(|spot| spot.path == *counted)), there) {
        (Some(counted), _) => format!("add such as {counted}={member}"),
        (None, Some(there)) if Arc::ptr_eq(&there.source, &assignment.place.source) => {
            format!("{list} as given has none")
        }
        (None, _) => format!("add such as {list}={member}"),
    };
    format!("it belongs to {}: {advice}", names.join(" and "))
}

/// What the first number in `key` gets wrong: it counts in no list, or beyond the end of one.
fn misnumbered(key: &str, all: &[Spot<'_>]) -> Option<String> {
    let parts: Vec<&str> = key.split('.').collect();
    for (at, part) in parts.iter().enumerate().skip(1) {
        let Ok(number) = part.parse::<usize>() else { continue };
        let list = parts[..at].join(".");
        let [spot] = named(all, &list)[..] else { return None };
        match &spot.tree?.form {
            Form::List(items) if items.is_empty() => return None,
            Form::List(items) if number < items.len() => {}
            Form::List(items) => return Some(format!("`{list}` is a list of {}, counted from 0", items.len())),
            _ if matches!(spot.kind.present(), Kind::List(_)) => return None,
            _ => return Some(format!("`{list}` is no list: leave out `.{part}`")),
        }
    }
    None
}

/// Where the members of a list have the field that is at `plain`, which has no numbers, and belongs to `member`.
fn has_it(plain: &str, (list, member): &(String, &str), all: &[Spot<'_>]) -> Option<String> {
    let field = plain.strip_prefix(list.as_str())?;
    let is_it = |spot: &&Spot<'_>| {
        let number = spot.path.strip_prefix(list.as_str()).and_then(|rest| rest.strip_prefix('.'));
        let name = spot.tree.map(|tree| &tree.form);
        number.is_some_and(|number| number.parse::<usize>().is_ok())
            && matches!(name, Some(Form::Variant { name, .. }) if name == member)
    };
    all.iter().find(is_it).map(|spot| format!("it is called {}{field} here", spot.path))
}
