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
        let annotation = entry.ty().map(|annotation| (annotation.value(), Place::of(source, annotation.span())));
        let read = match (annotation, entry.value()) {
            (None, literal) => self.literal(slot.kind, slot.field.range, literal, &place),
            (Some(("ref", _)), KdlValue::String(path)) => return Tree::new(Form::Ref(path.clone()), place),
            (Some(("file", _)), KdlValue::String(path)) if matches!(slot.kind, Kind::Input) => self.file(path, &place),
            (Some(("dir", _)), KdlValue::String(path)) if matches!(slot.kind, Kind::Folder) => {
                self.folder(path, &place)
            }
            (Some(("run", _)), KdlValue::String(name)) if matches!(slot.kind, Kind::Folder) => self.run(name, &place),
            (Some((other, at)), _) => Err(match other {
                "ref" => error::bad_annotation(&at, other, "takes the path of a value"),
                "file" => error::bad_annotation(&at, other, "is for texts that may come from a file"),
                "dir" | "run" => error::bad_annotation(&at, other, "is for folders"),
                _ => unknown_annotation(&at, other, slot.field),
            }),
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

    /// A value without fields, from the text of an override.
    pub(super) fn typed(&mut self, field: &'static Field, kind: &'static Kind, text: &str, place: &Place) -> Tree {
        if matches!(kind, Kind::Optional(_)) && text == "null" {
            return Tree::new(Form::Unset, place.clone());
        }
        let read = match kind.present() {
            Kind::List(item) => {
                let items = text.split(',').filter(|_| !text.is_empty());
                let items = items.map(|text| self.typed(field, item, text, place)).collect();
                return Tree::new(Form::List(items), place.clone());
            }
            Kind::Folder => match text.strip_prefix("(run)") {
                Some(name) => self.run(name, place),
                None => self.folder(text.strip_prefix("(dir)").unwrap_or(text), place),
            },
            Kind::Input if text.starts_with("(file)") => self.file(&text["(file)".len()..], place),
            kind => self.literal(kind, field.range, &scalar::literal(kind, text), place),
        };
        self.keep(read, place.clone())
    }
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
