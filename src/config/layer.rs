//! Layers on a tree: each node is checked against the description and laid over what is there.

use std::collections::BTreeMap;
use std::sync::Arc;

use kdl::{KdlDocument, KdlEntry, KdlIdentifier, KdlNode, KdlValue};

use super::document::Layer;
use super::error::{self, Diagnostic, MISTAKES_MAX};
use super::leaf::unknown_annotation;
use super::schema::{self, Fields, join};
use super::tree::{Body, Form, Tree};
use super::{Field, Kind, Place, Reader, Source};

/// What a variant starts from: a node of `defaults { … }`.
#[derive(Clone, Copy)]
struct Start<'l> {
    field: &'l str,
    member: &'l str,
    source: &'l Arc<Source>,
    node: &'l KdlNode,
}

/// Lays layers over a tree, and collects what is wrong with them.
pub(super) struct Layers<'l> {
    root: &'static [Field],
    pub(super) reader: &'l dyn Reader,
    starts: Vec<Start<'l>>,
    pub errors: Vec<Diagnostic>,
}

/// A body being written: what it may hold, and where it is.
struct Scope<'s> {
    fields: Fields,
    path: &'s str,
    /// The family, its members, and the one that is chosen.
    variant: Option<(&'static str, &'static [super::Alternative], &'static str)>,
}

impl Scope<'_> {
    fn title(&self) -> String {
        match (self.variant, self.path) {
            (Some((_, _, chosen)), path) => format!("{path} \"{chosen}\""),
            (None, "") => "the experiment".to_owned(),
            (None, path) => format!("`{path}`"),
        }
    }
}

/// A field to be given: its description, what is left of its kind, and its path.
#[derive(Clone, Copy)]
pub(super) struct Slot<'s> {
    pub field: &'static Field,
    pub kind: &'static Kind,
    pub path: &'s str,
}

impl Slot<'_> {
    pub(super) fn of(self, kind: &'static Kind) -> Self {
        Self { kind, ..self }
    }
}

impl<'l> Layers<'l> {
    pub(super) fn new(root: &'static [Field], reader: &'l dyn Reader) -> Self {
        Self { root, reader, starts: Vec::new(), errors: Vec::new() }
    }

    /// The same starts, with other errors.
    pub(super) fn fork(&self, errors: Vec<Diagnostic>) -> Self {
        Self { root: self.root, reader: self.reader, starts: self.starts.clone(), errors }
    }

    /// All layers, the lowest first.
    pub(super) fn lay(&mut self, layers: &[&'l Layer]) -> Body {
        for layer in layers {
            for node in layer.nodes.iter().filter(|node| node.name().value() == "defaults") {
                self.start(&layer.source, node);
            }
        }
        let mut body = Body::new();
        for layer in layers {
            let nodes: Vec<_> = layer.nodes.iter().filter(|node| node.name().value() != "defaults").collect();
            let scope = Scope { fields: Fields(self.root, &[]), path: "", variant: None };
            self.body(&scope, &mut body, &layer.source, &[], &nodes);
        }
        body
    }

    /// Takes in a `defaults` node and checks every start in it, chosen later or not.
    fn start(&mut self, source: &'l Arc<Source>, defaults: &'l KdlNode) {
        if !defaults.entries().is_empty() {
            let place = Place::of(source, defaults.name().span());
            self.errors.push(error::wrong_arguments(
                &place,
                "defaults",
                "nodes and no value",
                defaults.entries().len(),
            ));
        }
        let first = self.starts.len();
        for node in defaults.children().map(KdlDocument::nodes).unwrap_or_default() {
            let place = Place::of(source, node.name().span());
            let field = node.name().value();
            let member = node.entries().first().filter(|entry| entry.name().is_none());
            match member.and_then(|entry| entry.value().as_string()) {
                Some(member) => self.starts.push(Start { field, member, source, node }),
                None => self.errors.push(error::wrong_arguments(&place, field, "the name of a variant first", 0)),
            }
        }
        let entries = schema::entries(self.root);
        for index in first..self.starts.len() {
            self.check_start(entries, index);
        }
    }

    fn check_start(&mut self, entries: &[schema::Entry], index: usize) {
        let Start { field, member, source, node } = self.starts[index];
        let called = || entries.iter().filter(|entry| entry.field.name == field);
        let has = |entry: &&schema::Entry| match entry.field.kind.single() {
            Kind::Variant { alternatives, .. } => alternatives.iter().any(|other| other.name == member),
            _ => false,
        };
        if let Some(entry) = called().find(has).or_else(|| called().next()) {
            let slot = Slot { field: entry.field, kind: entry.field.kind.single(), path: &entry.path };
            self.choose(slot, member, &Place::of(source, node.entries()[0].span()), None);
            return;
        }
        let families = entries.iter().filter(|entry| matches!(entry.field.kind.single(), Kind::Variant { .. }));
        let names: Vec<_> = families.map(|entry| entry.field.name).collect();
        let help = error::did_you_mean(&schema::nearest(field, names.iter().copied()));
        let place = Place::of(source, node.name().span());
        self.errors.push(error::unknown_key(&place, field, "`defaults`").help(help));
    }

    /// Chooses a member: keeps the fields of the one already chosen, or else begins with its start.
    pub(super) fn choose(&mut self, slot: Slot<'_>, name: &str, place: &Place, current: Option<Tree>) -> Option<Tree> {
        let Kind::Variant { family, alternatives, common } = slot.kind.present() else {
            self.errors.push(error::wrong_type(place, &slot.kind.expected(), &format!("{name:?}")));
            return current;
        };
        let Some(member) = alternatives.iter().find(|member| member.name == name) else {
            let names: Vec<_> = alternatives.iter().map(|member| member.name).collect();
            let help = error::choices(name, "names", &names);
            self.errors.push(error::unknown_variant(place, family, name).help(help));
            return current;
        };
        if let Some(Tree { form: Form::Variant { name: chosen, fields }, .. }) = &current
            && *chosen == member.name
        {
            return Some(Tree::new(Form::Variant { name: chosen, fields: fields.clone() }, place.clone()));
        }
        let mut fields = Body::new();
        let own = Fields(member.fields, common);
        let scope = Scope { fields: own, path: slot.path, variant: Some((family, alternatives, member.name)) };
        for index in 0..self.starts.len() {
            let Start { field, member: start, source, node } = self.starts[index];
            if field == slot.field.name && start == member.name {
                self.node_body(&scope, &mut fields, source, node);
            }
        }
        Some(Tree::new(Form::Variant { name: member.name, fields }, place.clone()))
    }

    /// The properties and children of a node as fields.
    fn node_body(&mut self, scope: &Scope<'_>, into: &mut Body, source: &Arc<Source>, node: &KdlNode) {
        let properties: Vec<_> = node.entries().iter().filter(|entry| entry.name().is_some()).collect();
        let children: Vec<_> = node.children().map(|children| children.nodes().iter().collect()).unwrap_or_default();
        self.body(scope, into, source, &properties, &children);
    }

    fn body(
        &mut self,
        scope: &Scope<'_>,
        into: &mut Body,
        source: &Arc<Source>,
        properties: &[&KdlEntry],
        children: &[&KdlNode],
    ) {
        let mut seen: BTreeMap<&'static str, (Place, bool)> = BTreeMap::new();
        let mut lists: BTreeMap<&'static str, (&'static Field, Vec<&KdlNode>)> = BTreeMap::new();
        for entry in properties {
            if self.errors.len() > MISTAKES_MAX {
                return;
            }
            let Some(name) = entry.name() else { continue };
            let place = Place::of(source, name.span());
            let Some(field) = self.field(scope, name.value(), &place) else { continue };
            if let Some((first, _)) = seen.insert(field.name, (place.clone(), true)) {
                self.errors.push(error::duplicate(&place, &first, field.name));
                continue;
            }
            let path = join(scope.path, field.name);
            let slot = Slot { field, kind: field.kind, path: &path };
            let current = into.remove(field.name);
            let tree = self.property(slot, source, entry, current);
            into.insert(field.name, tree);
        }
        for node in children {
            if self.errors.len() > MISTAKES_MAX {
                return;
            }
            let place = Place::of(source, node.name().span());
            let Some(field) = self.field(scope, node.name().value(), &place) else { continue };
            if field.kind.present().repeated().is_some() {
                lists.entry(field.name).or_insert((field, Vec::new())).1.push(node);
                continue;
            }
            match seen.insert(field.name, (place.clone(), false)) {
                Some((first, true)) => self.errors.push(error::child_and_property(&place, &first, field.name)),
                Some((first, false)) => self.errors.push(error::duplicate(&place, &first, field.name)),
                None => {
                    let path = join(scope.path, field.name);
                    let slot = Slot { field, kind: field.kind, path: &path };
                    let current = into.remove(field.name);
                    let tree = self.node(slot, source, node, current);
                    into.insert(field.name, tree);
                }
            }
        }
        for (name, (field, nodes)) in lists {
            let current = into.remove(name);
            into.insert(name, self.repeated(scope, field, source, &nodes, current));
        }
    }

    /// Nodes of one name, which together are a list: they replace the list of the layers below, or with `(append)` all
    /// go after it; `(unset)` alone empties it.
    fn repeated(
        &mut self,
        scope: &Scope<'_>,
        field: &'static Field,
        source: &Arc<Source>,
        nodes: &[&KdlNode],
        current: Option<Tree>,
    ) -> Tree {
        let place = Place::of(source, nodes[0].name().span());
        let marked = |node: &&&KdlNode, mark: &str| node.ty().is_some_and(|annotation| annotation.value() == mark);
        if nodes.len() == 1 && is_bare(nodes[0]) && marked(&&nodes[0], "unset") {
            return Tree::new(Form::List(Vec::new()), place);
        }
        let anew = nodes.iter().find(|node| !marked(node, "append"));
        let added = nodes.iter().find(|node| marked(node, "append"));
        if let (Some(_), Some(annotation)) = (anew, added.and_then(|node| node.ty())) {
            let at = Place::of(source, annotation.span());
            let why = "goes after the nodes of other layers, and one beside it begins the list anew";
            self.errors.push(error::bad_annotation(&at, "append", why));
        }
        let mut items = match current {
            Some(Tree { form: Form::List(items), .. }) if anew.is_none() => items,
            _ => Vec::new(),
        };
        let (path, kind) = (join(scope.path, field.name), field.kind.single());
        items.extend(nodes.iter().map(|node| self.node(Slot { field, kind, path: &path }, source, node, None)));
        Tree::new(Form::List(items), place)
    }

    /// A list after another.
    pub(super) fn append(&mut self, name: &str, current: Option<Tree>, added: Tree) -> Tree {
        let Tree { form, place } = added;
        let form = match (current.map(|tree| tree.form), form) {
            (Some(Form::List(mut items)), Form::List(more)) => {
                items.extend(more);
                Form::List(items)
            }
            (None | Some(Form::Unset), form) => form,
            (_, form) => {
                self.errors.extend(place.as_ref().map(|place| error::append_to_ref(place, name)));
                form
            }
        };
        Tree { form, place }
    }

    /// The field of that name, or an error that says where the name belongs.
    fn field(&mut self, scope: &Scope<'_>, name: &str, place: &Place) -> Option<&'static Field> {
        let found = scope.fields.find(name);
        if found.is_none() {
            self.errors.push(self.stray(scope, name, place));
        }
        found
    }

    fn stray(&self, scope: &Scope<'_>, name: &str, place: &Place) -> Diagnostic {
        if let Some((family, alternatives, chosen)) = scope.variant {
            let has = |member: &&super::Alternative| Fields(member.fields, &[]).find(name).is_some();
            let owners: Vec<_> = alternatives.iter().filter(has).map(|member| member.name).collect();
            if let Some(owner) = owners.first() {
                let node = scope.path.rsplit('.').next().unwrap_or_default();
                let help = format!("it belongs to {family} {}: choose it with `{node} \"{owner}\"`", owners.join(", "));
                return error::other_variant(place, name, family, chosen).help(help);
            }
        }
        let known: Vec<_> = scope.fields.iter().map(|field| field.name).collect();
        let near = schema::nearest(name, known.iter().copied());
        let known =
            if known.is_empty() { "it has no keys".to_owned() } else { format!("known keys: {}", known.join(", ")) };
        let mut help = error::did_you_mean(&near);
        if near.is_empty() {
            let entries = schema::entries(self.root);
            let exact = entries.iter().filter(|entry| entry.field.name == schema::fold(name));
            let mut homes: Vec<_> =
                exact.map(|entry| entry.path.rsplit_once('.').map_or("", |(parent, _)| parent)).collect();
            homes.dedup();
            help = match homes.as_slice() {
                [] => String::new(),
                ["", ..] => "this key stands at the top; ".to_owned(),
                homes => format!("this key lives in `{}`; ", homes.join("`, `")),
            };
        }
        error::unknown_key(place, name, &scope.title()).help(help + &known)
    }

    /// A field given by a node.
    fn node(&mut self, slot: Slot<'_>, source: &Arc<Source>, node: &KdlNode, current: Option<Tree>) -> Tree {
        let place = Place::of(source, node.name().span());
        if let Some(annotation) = node.ty()
            && self.unset(slot, source, node, annotation)
        {
            return Tree::new(Form::Unset, place);
        }
        let arguments: Vec<_> = node.entries().iter().filter(|entry| entry.name().is_none()).collect();
        if let (Kind::Optional(_), [entry]) = (slot.kind, arguments.as_slice())
            && *entry.value() == KdlValue::Null
        {
            return Tree::new(Form::Unset, Place::of(source, entry.span()));
        }
        let current = current.filter(|tree| !matches!(tree.form, Form::Unset));
        match slot.kind.present() {
            Kind::Section(fields) => self.section(slot, fields, source, node, current),
            Kind::Variant { .. } => self.variant(slot, source, node, &arguments, current),
            kind => {
                for entry in node.entries().iter().filter(|entry| entry.name().is_some()) {
                    self.errors.push(error::not_a_block(&Place::of(source, entry.span()), slot.field.name));
                }
                if node.children().is_some() {
                    self.errors.push(error::not_a_block(&place, slot.field.name));
                }
                let tree = self.arguments(slot.of(kind), source, &place, &arguments);
                match node.ty() {
                    Some(mark) if mark.value() == "append" && matches!(kind, Kind::List(_)) => {
                        self.append(slot.field.name, current, tree)
                    }
                    _ => tree,
                }
            }
        }
    }

    /// Checks what stands before a node: whether it takes the value away.
    fn unset(&mut self, slot: Slot<'_>, source: &Arc<Source>, node: &KdlNode, annotation: &KdlIdentifier) -> bool {
        let at = Place::of(source, annotation.span());
        let bare = is_bare(node);
        let error = match (annotation.value(), slot.kind) {
            ("unset", Kind::Optional(_)) if bare => return true,
            ("unset", Kind::Optional(_)) => {
                error::bad_annotation(&at, "unset", "takes the value away: none can follow")
            }
            ("unset", _) => error::bad_annotation(&at, "unset", "is for optional values, and alone for lists of nodes"),
            ("append", _) if matches!(slot.field.kind.present(), Kind::List(_)) => return false,
            ("append", _) => error::bad_annotation(&at, "append", "is for lists"),
            ("local", _) if slot.field.local => return false,
            ("local", _) => {
                let why = "is for settings that cannot change a number; this one can";
                error::bad_annotation(&at, "local", why)
            }
            (other, _) => unknown_annotation(&at, other, slot.field),
        };
        self.errors.push(error);
        annotation.value() == "unset"
    }

    fn section(
        &mut self,
        slot: Slot<'_>,
        fields: &'static [Field],
        source: &Arc<Source>,
        node: &KdlNode,
        current: Option<Tree>,
    ) -> Tree {
        let place = Place::of(source, node.name().span());
        let count = node.entries().iter().filter(|entry| entry.name().is_none()).count();
        if count > 0 {
            self.errors.push(error::wrong_arguments(&place, slot.field.name, "fields and no value", count));
        }
        let mut body = match current {
            Some(Tree { form: Form::Section(body), .. }) => body,
            _ => Body::new(),
        };
        let scope = Scope { fields: Fields(fields, &[]), path: slot.path, variant: None };
        self.node_body(&scope, &mut body, source, node);
        Tree::new(Form::Section(body), place)
    }

    fn variant(
        &mut self,
        slot: Slot<'_>,
        source: &Arc<Source>,
        node: &KdlNode,
        arguments: &[&KdlEntry],
        current: Option<Tree>,
    ) -> Tree {
        let place = Place::of(source, node.name().span());
        let broken = || Tree::new(Form::Unset, place.clone());
        let errors = self.errors.len();
        let chosen = match arguments {
            [] => current,
            [entry] => self.named(slot, source, entry, current),
            _ => {
                let wrong = error::wrong_arguments(&place, slot.field.name, "one name", arguments.len());
                self.errors.push(wrong);
                current
            }
        };
        let Some(tree) = chosen else {
            if self.errors.len() == errors {
                let Kind::Variant { alternatives, .. } = slot.kind.present() else { return broken() };
                let help = format!("names: {}", schema::names(alternatives));
                self.errors.push(error::not_chosen(&place, slot.path).help(help));
            }
            return broken();
        };
        // Below a name that is wrong, the fields are nobody's.
        if self.errors.len() > errors {
            return tree;
        }
        match (tree.form, slot.kind.present()) {
            (Form::Variant { name, mut fields }, Kind::Variant { family, alternatives, common }) => {
                let own =
                    alternatives.iter().find(|member| member.name == name).map_or(&[][..], |member| member.fields);
                let variant = Some((*family, *alternatives, name));
                let scope = Scope { fields: Fields(own, common), path: slot.path, variant };
                self.node_body(&scope, &mut fields, source, node);
                Tree { form: Form::Variant { name, fields }, place: tree.place }
            }
            (form, _) => Tree { form, place: tree.place },
        }
    }

    /// A member named by an argument or a property.
    fn named(&mut self, slot: Slot<'_>, source: &Arc<Source>, entry: &KdlEntry, current: Option<Tree>) -> Option<Tree> {
        let place = Place::of(source, entry.span());
        if let Some(annotation) = entry.ty() {
            let at = Place::of(source, annotation.span());
            self.errors.push(error::bad_annotation(&at, annotation.value(), "is not known before a name"));
        }
        match entry.value().as_string() {
            Some(name) => self.choose(slot, name, &place, current),
            None => {
                let found = entry.value().to_string();
                self.errors.push(error::wrong_type(&place, &slot.kind.expected(), &found));
                current
            }
        }
    }

    /// A field given by a property.
    fn property(&mut self, slot: Slot<'_>, source: &Arc<Source>, entry: &KdlEntry, current: Option<Tree>) -> Tree {
        let place = Place::of(source, entry.span());
        if matches!(slot.kind, Kind::Optional(_)) && *entry.value() == KdlValue::Null {
            return Tree::new(Form::Unset, place);
        }
        match slot.kind.present() {
            Kind::Variant { .. } => {
                let broken = Tree::new(Form::Unset, place);
                self.named(slot, source, entry, current).unwrap_or(broken)
            }
            Kind::Section(_) | Kind::List(Kind::Section(_) | Kind::Variant { .. }) => {
                let wrong = error::wrong_arguments(&place, slot.field.name, "fields and no value", 1);
                self.errors.push(wrong.help("give it as a child node"));
                current.unwrap_or(Tree::new(Form::Unset, place))
            }
            kind => self.arguments(slot.of(kind), source, &place, &[entry]),
        }
    }
}

fn is_bare(node: &KdlNode) -> bool {
    node.entries().is_empty() && node.children().is_none()
}
