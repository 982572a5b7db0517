//! A tree as KDL that reads back as the same tree.

use super::schema::Fields;
use super::tree::{Body, Form, Tree};
use super::{Field, Kind, Value};

/// A line of the listing: text, and the origin of what it says.
struct Line {
    text: String,
    origin: Option<String>,
}

/// The body as KDL nodes, each with its origin in a comment.
#[must_use]
pub fn kdl(root: &'static [Field], body: &Body, indent: usize) -> String {
    let mut lines = Vec::new();
    write_body(Fields(root, &[]), body, indent, &mut lines);
    let longest = |line: &Line| line.origin.as_ref().map_or(0, |_| line.text.chars().count());
    let width = lines.iter().map(longest).filter(|width| *width <= 60).max().unwrap_or(0);
    let mut out = String::new();
    for Line { text, origin } in lines {
        out.push_str(&text);
        if let Some(origin) = origin {
            let pad = width.saturating_sub(text.chars().count());
            // A line break would end the comment.
            let origin =
                origin.replace(|c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}' | '\u{85}'), " ");
            out.push_str(&format!("{:pad$}  // {origin}", ""));
        }
        out.push('\n');
    }
    out
}

fn write_body(fields: Fields, body: &Body, indent: usize, lines: &mut Vec<Line>) {
    for field in fields.iter() {
        if let Some(tree) = body.get(field.name) {
            write(field, field.kind, tree, indent, lines);
        }
    }
}

fn write(field: &'static Field, kind: &'static Kind, tree: &Tree, indent: usize, lines: &mut Vec<Line>) {
    let pad = "    ".repeat(indent);
    let inside_local = matches!(kind.present(), Kind::Section(_)) && field.local;
    let head = format!("{pad}{}{}", if inside_local { "(local)" } else { "" }, field.name);
    let origin = Some(tree.origin());
    match (&tree.form, kind.present()) {
        (Form::Unset | Form::Ref(_), _) => lines.push(Line { text: format!("{pad}(unset){}", field.name), origin }),
        (Form::Section(body), Kind::Section(fields)) => {
            lines.push(Line { text: format!("{head} {{"), origin: None });
            write_body(Fields(fields, &[]), body, indent + 1, lines);
            lines.push(Line { text: format!("{pad}}}"), origin: None });
        }
        (Form::Variant { name, fields: body }, Kind::Variant { alternatives, common, .. }) => {
            let member = alternatives.iter().find(|member| member.name == *name);
            let fields = Fields(member.map_or(&[][..], |member| member.fields), common);
            let block = fields.iter().next().is_some();
            let brace = if block { " {" } else { "" };
            lines.push(Line { text: format!("{head} {}{brace}", quoted(name)), origin });
            if block {
                write_body(fields, body, indent + 1, lines);
                lines.push(Line { text: format!("{pad}}}"), origin: None });
            }
        }
        (Form::List(items), list @ Kind::List(item)) if list.repeated().is_some() => {
            for tree in items {
                write(field, item, tree, indent, lines);
            }
        }
        _ => lines.push(Line { text: format!("{head} {}", inline(tree)).trim_end().to_owned(), origin }),
    }
}

/// A value on one line, as KDL writes arguments; of a block, its name alone.
#[must_use]
pub fn inline(tree: &Tree) -> String {
    match &tree.form {
        Form::Scalar(value) => argument(value),
        Form::Ref(path) => format!("(ref){}", quoted(path)),
        Form::Unset => "#null".to_owned(),
        Form::List(items) => items.iter().map(inline).collect::<Vec<_>>().join(" "),
        Form::Section(_) => "{ … }".to_owned(),
        Form::Variant { name, .. } => quoted(name),
    }
}

fn argument(value: &Value) -> String {
    match value {
        Value::Bool(value) => format!("#{value}"),
        Value::Int(value) => value.to_string(),
        Value::Float(value) => number(*value),
        Value::Text(text) | Value::Input { text, path: None } => quoted(text),
        Value::Input { path: Some(path), .. } => format!("(file){}", quoted(path)),
        Value::Folder { path, .. } => format!("(dir){}", quoted(path)),
        Value::List(_) | Value::Unset | Value::Section(_) | Value::Variant { .. } => String::new(),
    }
}

/// The shortest digits that read back as the same number; with an exponent where zeros would pile up.
#[must_use]
pub fn number(value: f64) -> String {
    let size = value.abs();
    if value == 0.0 || (1e-3..1e7).contains(&size) { format!("{value:?}") } else { format!("{value:e}") }
}

/// A KDL string: every character that KDL may not hold, or that an editor may lose, is escaped.
#[must_use]
pub fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            c if c.is_control() || c.is_whitespace() && c != ' ' || is_mark(c) => {
                out.push_str(&format!("\\u{{{:x}}}", u32::from(c)));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// Direction marks and byte order marks, which KDL refuses as they stand.
fn is_mark(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}
