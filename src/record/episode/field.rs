//! Fields of a record: names of ends and splits, and where in a document an error stands.

use std::fmt;

use serde::de::{Error, Unexpected, Visitor};

/// Where in an open object or array a reader stands.
enum Place {
    Key(String),
    Index(usize),
}

/// The path of the value that `read`, a document's text up to an error, was in or had just ended: `turns[0].reward`.
pub(super) fn path_at(read: &str) -> String {
    let mut open: Vec<Place> = Vec::new();
    let mut text: Option<String> = None;
    let mut last = String::new();
    let mut chars = read.chars();
    while let Some(c) = chars.next() {
        match (&mut text, c) {
            (Some(_), '"') => last = text.take().unwrap_or_default(),
            (Some(_), '\\') => {
                chars.next();
            }
            (Some(text), c) => text.push(c),
            (None, '"') => text = Some(String::new()),
            (None, '{') => open.push(Place::Key(String::new())),
            (None, '[') => open.push(Place::Index(0)),
            (None, '}' | ']') => {
                open.pop();
            }
            (None, ':') => {
                if let Some(Place::Key(key)) = open.last_mut() {
                    key.clone_from(&last);
                }
            }
            (None, ',') => match open.last_mut() {
                Some(Place::Key(key)) => key.clear(),
                Some(Place::Index(index)) => *index += 1,
                None => {}
            },
            (None, _) => {}
        }
    }
    let mut path = String::new();
    for place in &open {
        match place {
            Place::Key(key) if key.is_empty() => {}
            Place::Key(key) if path.is_empty() => path.push_str(key),
            Place::Key(key) => path.extend([".", key]),
            Place::Index(index) => path.push_str(&format!("[{index}]")),
        }
    }
    path
}

/// Reads one of some names. A visitor, so that the error stands where the name does.
struct Names<'a, T>(&'a [(T, &'static str)]);

impl<T: Copy> Visitor<'_> for Names<'_, T> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.0.iter().map(|(_, name)| *name).collect();
        write!(f, "one of {}", names.join(", "))
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<T, E> {
        let found = self.0.iter().find(|(_, known)| *known == name).map(|(value, _)| *value);
        found.ok_or_else(|| E::invalid_value(Unexpected::Str(name), &self))
    }
}

/// An episode's end, by name.
pub(super) mod end {
    use serde::{Deserializer, Serializer};

    use super::Names;
    use crate::trajectory::End;

    pub(in super::super) fn serialize<S: Serializer>(end: &End, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(end.name())
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<End, D::Error> {
        from.deserialize_str(Names(&End::NAMES))
    }
}

/// A split, by name.
pub(super) mod split {
    use serde::{Deserializer, Serializer};

    use super::Names;
    use crate::trajectory::Split;

    pub(in super::super) fn serialize<S: Serializer>(split: &Split, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(split.name())
    }

    pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Split, D::Error> {
        from.deserialize_str(Names(&[Split::Train, Split::Eval].map(|split| (split, split.name()))))
    }
}
