//! Questions to the description: which fields stand where, and which name was meant.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use super::{Alternative, Field, Kind};

impl Kind {
    /// What is left of an optional value once it is there.
    pub(super) fn present(&'static self) -> &'static Kind {
        match self {
            Kind::Optional(inner) => inner.present(),
            kind => kind,
        }
    }

    /// The kind of the nodes of a repeated node.
    pub(super) fn repeated(&'static self) -> Option<&'static Kind> {
        match self {
            Kind::List(item @ (Kind::Section(_) | Kind::Variant { .. })) => Some(item),
            _ => None,
        }
    }

    /// The kind of one value of this field: of an item where nodes repeat.
    pub(super) fn single(&'static self) -> &'static Kind {
        let present = self.present();
        present.repeated().unwrap_or(present)
    }

    /// Whether its values stand alone, so that they cannot be nodes of a list.
    pub(super) fn has_no_fields(&'static self) -> bool {
        !matches!(self.present(), Kind::Section(_) | Kind::Variant { .. })
    }

    /// A phrase for error messages.
    pub(super) fn expected(&self) -> String {
        match self {
            Kind::Bool => "#true or #false".to_owned(),
            Kind::Int { .. } => format!("an integer ({})", super::type_name(self)),
            Kind::Float => "a number".to_owned(),
            Kind::Text => "text".to_owned(),
            Kind::Input => "text or (file)\"path\"".to_owned(),
            Kind::Folder => "(dir)\"path\"".to_owned(),
            Kind::Choice(names) => format!("one of {}", names.join(", ")),
            Kind::List(item) => format!("a list of {}", item.expected()),
            Kind::Optional(inner) => format!("{} or #null", inner.expected()),
            Kind::Section(_) => "a block of fields".to_owned(),
            Kind::Variant { alternatives, .. } => format!("one of {}", names(alternatives)),
        }
    }
}

/// The members' names, as a list for people.
pub(super) fn names(alternatives: &[Alternative]) -> String {
    alternatives.iter().map(|member| member.name).collect::<Vec<_>>().join(", ")
}

/// The fields of a body: those of its section or alternative, and those common to all alternatives.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fields(pub(super) &'static [Field], pub(super) &'static [Field]);

impl Fields {
    pub(super) fn iter(self) -> impl Iterator<Item = &'static Field> {
        self.0.iter().chain(self.1)
    }

    pub(super) fn find(self, name: &str) -> Option<&'static Field> {
        self.iter().find(|field| field.name == name)
    }
}

/// A place in the description, whatever is chosen.
pub(super) struct Entry {
    /// Without the numbers of repeated nodes.
    pub path: String,
    pub field: &'static Field,
    /// The path and the member of the variant that the field belongs to, if it is not common to all.
    pub within: Option<(String, &'static str)>,
}

/// Every field of every alternative, parents first. A description is walked once.
pub(super) fn entries(root: &'static [Field]) -> &'static [Entry] {
    static KNOWN: Mutex<BTreeMap<(usize, usize), &'static [Entry]>> = Mutex::new(BTreeMap::new());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    known.entry((root.as_ptr().addr(), root.len())).or_insert_with(|| {
        let mut found = Vec::new();
        collect(Fields(root, &[]), "", None, &mut found);
        found.leak()
    })
}

fn collect(fields: Fields, prefix: &str, within: Option<&(String, &'static str)>, found: &mut Vec<Entry>) {
    for field in fields.iter() {
        let path = join(prefix, field.name);
        found.push(Entry { path: path.clone(), field, within: within.cloned() });
        match field.kind.single() {
            Kind::Section(inner) => collect(Fields(inner, &[]), &path, within, found),
            Kind::Variant { alternatives, common, .. } => {
                collect(Fields(common, &[]), &path, within, found);
                for member in *alternatives {
                    collect(Fields(member.fields, &[]), &path, Some(&(path.clone(), member.name)), found);
                }
            }
            _ => {}
        }
    }
}

/// Whether some field of that name takes the name of a variant.
pub(super) fn chooses(fields: &'static [Field], name: &str) -> bool {
    fields.iter().any(|field| match field.kind.single() {
        Kind::Section(inner) => chooses(inner, name),
        Kind::Variant { alternatives, common, .. } => {
            let inside = |member: &Alternative| chooses(member.fields, name);
            field.name == name || chooses(common, name) || alternatives.iter().any(inside)
        }
        _ => false,
    })
}

pub(super) fn join(prefix: &str, name: &str) -> String {
    if prefix.is_empty() { name.to_owned() } else { [prefix, ".", name].concat() }
}

/// A name as names are compared: `Top_P` is `top-p`.
pub(super) fn fold(name: &str) -> String {
    name.to_lowercase().replace('_', "-")
}

/// Whether `path` is `name` or ends with it, part by part.
pub(crate) fn ends_with(path: &str, name: &str) -> bool {
    path.strip_suffix(name).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

/// Up to three of the names that `wanted` may have meant, the nearest first.
pub(crate) fn nearest<'n>(wanted: &str, names: impl IntoIterator<Item = &'n str>) -> Vec<&'n str> {
    // Distances grow with the square of the length, and nobody means a name by a page of text.
    let wanted: String = fold(wanted).chars().take(64).collect();
    let length = wanted.chars().count();
    let near = |name: &'n str| {
        let name_folded = fold(name);
        let likeness = strsim::jaro_winkler(&wanted, &name_folded);
        // Names whose lengths differ by more are further apart than that.
        let close = || {
            name_folded.chars().count().abs_diff(length) <= 2 && strsim::damerau_levenshtein(&wanted, &name_folded) <= 2
        };
        (likeness >= 0.85 || close()).then_some((likeness, name))
    };
    let mut found: Vec<(f64, &str)> = names.into_iter().filter_map(near).collect();
    found.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
    found.dedup_by_key(|(_, name)| *name);
    let best = found.first().map_or(0.0, |(likeness, _)| *likeness);
    found.into_iter().filter(|(likeness, _)| *likeness > best - 0.06).take(3).map(|(_, name)| name).collect()
}
