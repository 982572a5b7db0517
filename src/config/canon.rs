//! The canonical text of a tree: one fact a line, sorted by path, types from the description.

use std::collections::BTreeMap;

use super::tree::{Body, Form, Step, spots};
use super::{Field, Kind, Value, scalar};

/// The first line of every canonical text: moves when the form of the lines moves.
pub const HEADER: &str = "starpo-canon 1";

/// The text that a run's key is the digest of. `components` are those that every run uses, with their versions.
/// Fields that came later and say what runs did before are not in it, so that runs keep their names.
///
/// Lines are `@epoch component⇥u32⇥version`, `@input path⇥blob⇥BLAKE3` and `path⇥type⇥value`. A list is its length
/// and its items; an absent optional value is `unset`; floats are the shortest digits that read back as the same
/// number; texts are JSON strings. What is local, and where anything came from, is not in it.
#[must_use]
pub fn canonical(root: &'static [Field], body: &Body, components: &[(&str, u32)]) -> String {
    let mut lines: Vec<String> = components.iter().map(|(name, epoch)| epoch_line(name, *epoch)).collect();
    for spot in spots(root, body).iter().filter(|spot| !spot.local) {
        let Some(tree) = spot.tree else { continue };
        if matches!(spot.steps.last(), Some(Step::Field(_)))
            && before(spot.field).is_some_and(|old| old == tree.value())
        {
            continue;
        }
        let path = &spot.path;
        let line = match (&tree.form, spot.kind.present()) {
            (Form::Section(_) | Form::Ref(_), _) => continue,
            (Form::Unset, _) => format!("{path}\toption\tunset"),
            (Form::List(items), _) => format!("{path}\tlist\t{}", items.len()),
            (Form::Variant { name, .. }, Kind::Variant { family, alternatives, .. }) => {
                if let Some(member) = alternatives.iter().find(|member| member.name == *name) {
                    lines.push(epoch_line(&format!("{family}.{name}"), member.epoch));
                }
                format!("{path}\tvariant\t{name}")
            }
            (Form::Variant { name, .. }, _) => format!("{path}\tvariant\t{name}"),
            (Form::Scalar(value), kind) => leaf(path, kind, value),
        };
        lines.push(line);
    }
    lines.sort_unstable();
    lines.dedup();
    lines.insert(0, HEADER.to_owned());
    lines.push(String::new());
    lines.join("\n")
}

/// The value of a field that says what runs did before it was there.
pub(super) fn before(field: &'static Field) -> Option<Value> {
    fn read(kind: &'static Kind, field: &'static Field, text: &str) -> Option<Value> {
        match kind {
            Kind::Optional(_) if text == "null" => Some(Value::Unset),
            Kind::Optional(inner) => read(inner, field, text),
            Kind::List(_) if text.is_empty() => Some(Value::List(Vec::new())),
            Kind::Variant { alternatives, .. } => {
                let member = alternatives.iter().find(|member| member.name == text && member.fields.is_empty())?;
                Some(Value::Variant { name: member.name, fields: BTreeMap::new() })
            }
            kind => scalar::parse(kind, field.range, text),
        }
    }
    read(field.kind, field, field.before?)
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

#[cfg(test)]
#[expect(unreachable_pub, dead_code, reason = "sections are declared as those of an experiment are")]
mod tests {
    use std::io;
    use std::sync::Arc;

    use super::*;
    use crate::config::{Reader, Section, Source, Top, parse, resolve, section, variants};

    section! {
        /// As it was.
        pub struct Early {
            /// A field.
            pub width: u32,
        }
    }

    section! {
        /// With fields that came later.
        pub struct Late {
            /// A field.
            pub width: u32,
            /// A later one.
            pub tall: bool as "false",
            /// A later one.
            pub share: f64 where 0.0..=1.0 as "1",
            /// A later one.
            pub most: Option<u32> as "null",
            /// A later one.
            pub sizes: Vec<u32> as "",
            /// A later one.
            pub extra: Extra as "none",
        }
    }

    section! {
        /// Nothing.
        pub struct Nothing {}
    }

    section! {
        /// Something.
        pub struct Something epoch 3 {
            /// A field.
            pub weight: f64,
        }
    }

    variants! {
        /// Something more.
        pub enum Extra: "extra" { "none" => None(Nothing), "some" => Some(Something) }
    }

    struct Nowhere;

    impl Reader for Nowhere {
        fn read(&self, _: &str) -> io::Result<Vec<u8>> {
            Err(io::ErrorKind::NotFound.into())
        }

        fn list(&self, _: &str) -> Vec<String> {
            Vec::new()
        }

        fn folder(&self, _: &str) -> io::Result<String> {
            Err(io::ErrorKind::NotFound.into())
        }
    }

    fn canon(root: &'static [Field], text: &str) -> String {
        let source: Arc<Source> = Source::document("test", text);
        let document = parse(&source).unwrap();
        let resolved = resolve(root, &Top::Block(&source, document.nodes()), &[], &Nowhere).unwrap();
        canonical(root, &resolved.body, &[])
    }

    #[test]
    fn a_later_field_keeps_old_keys() {
        let old = canon(Early::FIELDS, "width 3");
        assert_eq!(old, format!("{HEADER}\nwidth\tu32\t3\n"));
        assert_eq!(canon(Late::FIELDS, "width 3"), old);
        let same = "width 3; tall #false; share 1.0; (unset)most; extra \"none\"";
        assert_eq!(canon(Late::FIELDS, same), old);
        for other in ["tall #true", "share 0.5", "most 2", "sizes 1", "extra \"some\" { weight 1.0 }"] {
            let new = canon(Late::FIELDS, &format!("width 3; {other}"));
            assert!(new != old && new.starts_with(HEADER), "{new}");
        }
        assert!(canon(Late::FIELDS, "width 3; extra \"some\" { weight 1.0 }").contains("@epoch extra.some\tu32\t3"));
    }
}
