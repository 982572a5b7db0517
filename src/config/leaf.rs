//! Values without fields: from the arguments of a node, or from the text of an override.

use std::sync::Arc;

use kdl::{KdlEntry, KdlValue};

use super::error::{self, Diagnostic};
use super::layer::{Layers, Slot};
use super::tree::{Form, Tree};
use super::{Field, Kind, Place, Source, Value, scalar};

impl Layers<'_> {
    /// A value without fields, from its arguments.
    pub(super) fn arguments(
        &mut self,
        slot: Slot<'_>,
        source: &Arc<Source>,
        place: &Place,
        arguments: &[&KdlEntry],
    ) -> Tree {
        let whole = |entry: &KdlEntry| entry.ty().is_some_and(|annotation| annotation.value() == "ref");
        match (slot.kind, arguments) {
            (Kind::List(_), [entry]) if whole(entry) => self.scalar(slot, source, entry),
            (Kind::List(item), _) => {
                let items = arguments.iter().map(|entry| self.scalar(slot.of(item), source, entry)).collect();
                Tree::new(Form::List(items), place.clone())
            }
            (_, [entry]) => self.scalar(slot, source, entry),
            (_, _) => {
                let wrong = error::wrong_arguments(place, slot.field.name, "one value", arguments.len());
                self.errors.push(wrong);
                Tree::new(Form::Unset, place.clone())
            }
        }
    }

    fn scalar(&mut self, slot: Slot<'_>, source: &Arc<Source>, entry: &KdlEntry) -> Tree {
        let place = Place::of(source, entry.span());
        let read = match (entry.ty(), entry.value()) {
            (None, literal) => self.literal(slot.kind, slot.field.range, literal, &place),
            (Some(annotation), value) => {
                let at = Place::of(source, annotation.span());
                let said = (annotation.value(), &at);
                return self.annotated(slot.field, slot.kind, said, value.as_string(), place);
            }
        };
        self.keep(read, place)
    }

    /// What `(annotation)text` says; there is no text where another value stands.
    fn annotated(
        &mut self,
        field: &'static Field,
        kind: &'static Kind,
        (annotation, at): (&str, &Place),
        text: Option<&str>,
        place: Place,
    ) -> Tree {
        let read = match (annotation, kind.present(), text) {
            ("ref", _, Some(path)) => return Tree::new(Form::Ref(path.to_owned()), place),
            ("file", Kind::Input, Some(path)) => self.file(path, &place),
            ("dir", Kind::Folder, Some(path)) => self.folder(path, &place),
            ("run", Kind::Folder, Some(name)) => self.run(name, &place),
            ("ref", ..) => Err(error::bad_annotation(at, annotation, "takes the path of a value")),
            ("file", ..) => Err(error::bad_annotation(at, annotation, "is for texts that may come from a file")),
            ("dir" | "run", ..) => Err(error::bad_annotation(at, annotation, "is for folders")),
            _ => Err(unknown_annotation(at, annotation, field)),
        };
        self.keep(read, place)
    }

    /// A value given in place: a text that would be the name of a file was meant to be the file.
    fn literal(&self, kind: &Kind, range: scalar::Range, literal: &KdlValue, at: &Place) -> Result<Value, Diagnostic> {
        if let (Kind::Input, KdlValue::String(text)) = (kind, literal)
            && is_path(text)
            && self.reader.read(text).is_ok()
        {
            let help = format!("write (file){}: its text enters the key", super::show::quoted(text));
            return Err(error::forgotten_file(at, text).help(help));
        }
        scalar::check(kind, range, literal, at)
    }

    fn keep(&mut self, read: Result<Value, Diagnostic>, place: Place) -> Tree {
        let form = match read {
            Ok(value) => Form::Scalar(value),
            Err(error) => {
                self.errors.push(error);
                Form::Unset
            }
        };
        Tree::new(form, place)
    }

    fn file(&self, path: &str, place: &Place) -> Result<Value, Diagnostic> {
        let bytes = self.reader.read(path).map_err(|error| error::unreadable(place, path, &error.to_string()))?;
        let text = String::from_utf8(bytes).map_err(|_| error::unreadable(place, path, "it is not UTF-8"))?;
        Ok(Value::Input { text, path: Some(path.to_owned()) })
    }

    fn folder(&self, path: &str, place: &Place) -> Result<Value, Diagnostic> {
        let digest = self.reader.folder(path).map_err(|error| error::unreadable(place, path, &error.to_string()))?;
        Ok(Value::Folder { path: path.to_owned(), digest })
    }

    /// A finished run in the place of a folder.
    fn run(&self, name: &str, place: &Place) -> Result<Value, Diagnostic> {
        let path = self.reader.run(name).map_err(|error| error::unreadable(place, name, &error.to_string()))?;
        self.folder(&path, place)
    }

    /// A list, from the text of an override.
    pub(super) fn items(&mut self, field: &'static Field, item: &'static Kind, text: &str, place: &Place) -> Tree {
        let items = text.split(',').filter(|_| !text.is_empty());
        let items = items.map(|text| self.typed(field, item, text, place)).collect();
        Tree::new(Form::List(items), place.clone())
    }

    /// A value without fields, from the text of an override.
    pub(super) fn typed(&mut self, field: &'static Field, kind: &'static Kind, text: &str, place: &Place) -> Tree {
        if matches!(kind, Kind::Optional(_)) && text == "null" {
            return Tree::new(Form::Unset, place.clone());
        }
        let read = match (kind.present(), annotation(text)) {
            (Kind::List(item), word) if word.is_none_or(|(word, _)| word != "ref") || text.contains(',') => {
                return self.items(field, item, text, place);
            }
            (kind, Some((word, rest))) => {
                let at = place.part(0, word.len() + 2);
                return self.annotated(field, kind, (word, &at), Some(rest), place.clone());
            }
            (Kind::Folder, None) => self.folder(text, place),
            (kind, None) => self.literal(kind, field.range, &scalar::literal(kind, text), place),
        };
        self.keep(read, place.clone())
    }
}

/// An annotation before the text of an override, as it stands before a value in a document.
fn annotation(text: &str) -> Option<(&str, &str)> {
    let (word, rest) = text.strip_prefix('(')?.split_once(')')?;
    matches!(word, "ref" | "file" | "dir" | "run").then_some((word, rest))
}

/// Whether a text looks like the path of a file, which saves looking for most others.
fn is_path(text: &str) -> bool {
    text.len() < 1000 && text.contains(['/', '.']) && !text.contains(['\n', ' '])
}

/// An annotation that means nothing here; of one that would say a type or a unit, what the field's own is.
pub(super) fn unknown_annotation(at: &Place, annotation: &str, field: &'static Field) -> Diagnostic {
    const UNITS: [&str; 12] =
        ["duration", "date-time", "time", "date", "decimal", "bytes", "percent", "s", "ms", "min", "h", "steps"];
    let is_type = matches!(annotation.split_at_checked(1), Some(("i" | "u" | "f", bits)) if bits.parse::<u8>().is_ok());
    if is_type || UNITS.contains(&annotation) {
        let why = "says a type or a unit: values have those of their fields";
        let doc = field.doc.lines().next().unwrap_or_default().trim();
        let help = format!("`{}` is {}: {doc}", field.name, field.kind.expected());
        return error::bad_annotation(at, annotation, why).help(help);
    }
    let why = "is not known; there are (ref), (file), (dir), (run), and before nodes (local), (unset), (append)";
    error::bad_annotation(at, annotation, why)
}
