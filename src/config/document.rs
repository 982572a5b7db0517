//! Documents: text to layers, and the documents that a document builds on.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use kdl::{KdlDocument, KdlNode};

use super::error::{self, Diagnostic, MISTAKES_MAX};
use super::schema::{self, fold};
use super::{Field, Kind, Place, Reader, Source};

/// Bytes of a document.
const SIZE_MAX: usize = 1 << 20;
/// Braces within braces.
const DEPTH_MAX: usize = 32;
/// Characters that comments are made of.
const COMMENT_MARKS_MAX: usize = 100_000;
/// Digits in a row that every number of the parser can have.
const DIGITS_MAX: usize = 38;
/// Bytes of the parser's stack, which the system gives as they are touched.
const STACK: usize = 1 << 28;
/// Nodes and values of a document.
const NODES_MAX: usize = 10_000;
/// Documents of an experiment, each as often as it is built on.
const DOCUMENTS_MAX: usize = 200;

/// The nodes of one document, without what the document says about itself.
#[derive(Clone)]
pub(super) struct Layer {
    pub source: Arc<Source>,
    /// The name of the experiment, or the start of a part.
    pub place: Place,
    pub nodes: Vec<KdlNode>,
}

/// A short name for a value: `alias "top_p" "filter.value" filter="top-p"`.
pub(super) struct Alias {
    pub name: String,
    pub path: String,
    pub place: Place,
    /// Values that its use chooses besides: path and text.
    pub also: Vec<(String, String)>,
}

/// The documents of an experiment, the lowest layer first.
pub(super) struct Documents<'r> {
    pub reader: &'r dyn Reader,
    pub layers: Vec<Layer>,
    pub aliases: Vec<Alias>,
    pub errors: Vec<Diagnostic>,
    /// What the document read last says of itself.
    pub note: Option<String>,
    /// Those being read, with the places that asked for them.
    open: Vec<(String, Option<Place>)>,
    opened: usize,
}

/// Parses a document that a person wrote, within the limits.
pub(super) fn parse(source: &Arc<Source>) -> Result<KdlDocument, Vec<Diagnostic>> {
    let large = |what| Err(vec![error::too_large(&Place::new(source, 0, 0), what)]);
    let marks = |marks: &[u8]| source.text.bytes().filter(|byte| marks.contains(byte)).count();
    if source.text.len() > SIZE_MAX {
        return large("more than 1 MiB");
    }
    if marks(b"{}") > 2 * NODES_MAX {
        return large("more than 20,000 braces");
    }
    if marks(b"*/") > COMMENT_MARKS_MAX {
        return large("more than 100,000 stars and slashes");
    }
    let document = read(source)?;
    if count(&document) > NODES_MAX { large("more than 10,000 nodes and values") } else { Ok(document) }
}

/// A document and its text.
type Parsed = (Arc<Source>, Arc<KdlDocument>);

/// As [`parse`], of a text that the program carries.
fn parse_once(path: &str, text: &'static str) -> Result<Parsed, Vec<Diagnostic>> {
    static KNOWN: Mutex<BTreeMap<&'static str, Parsed>> = Mutex::new(BTreeMap::new());
    let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(found) = known().get(text).filter(|(source, _)| source.name == path) {
        return Ok(found.clone());
    }
    let source = Source::document(path, text);
    let parsed = (Arc::clone(&source), Arc::new(parse(&source)?));
    known().insert(text, parsed.clone());
    Ok(parsed)
}

/// Parses a document of any size.
pub(super) fn read(source: &Arc<Source>) -> Result<KdlDocument, Vec<Diagnostic>> {
    match beyond(&source.text) {
        Some(Beyond::Depth(at)) => {
            return Err(vec![error::too_large(&Place::new(source, at, 1), "nested deeper than 32")]);
        }
        Some(Beyond::Digits(at, len)) => {
            let wrong = error::long_number(&Place::new(source, at, len), DIGITS_MAX);
            return Err(vec![wrong.help("no value needs them: round it")]);
        }
        None => {}
    }
    on_a_deep_stack(&source.text).map_err(|error| {
        let show = |diagnostic: &kdl::KdlDiagnostic| {
            let message = diagnostic.message.as_deref().unwrap_or("this is no KDL");
            let label = diagnostic.label.as_deref().unwrap_or("here");
            error::syntax(&Place::of(source, diagnostic.span), message, label)
                .help(diagnostic.help.clone().unwrap_or_default())
        };
        // One slip can set off a mistake on every later line.
        error.diagnostics.iter().take(20).map(show).collect()
    })
}

/// The parser calls itself for every stray brace and every star of a comment.
fn on_a_deep_stack(text: &str) -> Result<KdlDocument, kdl::KdlError> {
    std::thread::scope(|scope| {
        let parser = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, || KdlDocument::parse_v2(text));
        match parser {
            Ok(parser) => parser.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            Err(_) => KdlDocument::parse_v2(text),
        }
    })
}

fn count(document: &KdlDocument) -> usize {
    document.nodes().iter().map(|node| 1 + node.entries().len() + node.children().map_or(0, count)).sum()
}

/// What [`names_a_directory`] asks for.
pub(super) const NAMES: &str = "a letter or a digit, and up to 199 more, `-`, `_` or `.`: it names a directory";

/// Whether a name can begin that of a directory, on every system and with what is added to it.
pub(crate) fn names_a_directory(name: &str) -> bool {
    let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    name.len() <= 200 && name.chars().all(legal) && name.starts_with(|c: char| c.is_ascii_alphanumeric())
}

/// What is more than the parser can take.
enum Beyond {
    /// Braces, comments, or marks of comments before one another, nested here: it recurses into them.
    Depth(usize),
    /// So many digits of a number from here on: it takes the number for a slip in what is around it.
    Digits(usize, usize),
}

fn beyond(text: &str) -> Option<Beyond> {
    let bytes = text.as_bytes();
    let (mut at, mut depth, mut comments, mut marks, mut word) = (0, 0_usize, 0_usize, 0_usize, 0);
    while at < bytes.len() {
        let two = bytes.get(at..at + 2).unwrap_or_default();
        let char = text.get(at..).and_then(|rest| rest.chars().next());
        let blank = char.is_none_or(|c| c.is_whitespace() || c == '\\');
        if let Some(c) = char.filter(|c| c.is_whitespace() || r#"\/{}()[]=;""#.contains(*c)) {
            word = at + c.len_utf8();
        }
        if comments == 0 && !blank && !matches!(two, b"/-" | b"//" | b"/*") {
            marks = 0;
        }
        match (two, bytes[at]) {
            (b"/*", _) => (comments, at) = (comments + 1, at + 1),
            (b"*/", _) => (comments, at) = (comments.saturating_sub(1), at + 1),
            _ if comments > 0 => {}
            (b"/-", _) => (marks, at) = (marks + 1, at + 1),
            (b"//", _) => at += text[at..].find('\n').unwrap_or(text.len() - at),
            (_, b'"') => at = end_of_string(bytes, at),
            (_, b'0'..=b'9') if decimal(&bytes[word..]) => {
                let row = bytes[at..].iter().take_while(|byte| matches!(byte, b'0'..=b'9' | b'_')).count();
                if bytes[at..at + row].iter().filter(|byte| **byte != b'_').count() > DIGITS_MAX {
                    return Some(Beyond::Digits(at, row));
                }
                at += row - 1;
            }
            (_, b'{') => depth += 1,
            (_, b'}') => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth.max(comments).max(marks) > DEPTH_MAX {
            return Some(Beyond::Depth(at));
        }
        at += 1;
    }
    None
}

/// Whether a word is a decimal number, as far as its first bytes tell.
fn decimal(word: &[u8]) -> bool {
    let unsigned = word.strip_prefix(b"-").or(word.strip_prefix(b"+")).unwrap_or(word);
    unsigned.first().is_some_and(u8::is_ascii_digit) && !matches!(unsigned.get(1), Some(b'x' | b'o' | b'b'))
}

/// The last byte of the string, raw or not, that opens at `at`.
fn end_of_string(bytes: &[u8], at: usize) -> usize {
    let hashes = bytes[..at].iter().rev().take_while(|byte| **byte == b'#').count();
    let quotes = if bytes[at..].starts_with(b"\"\"\"") { 3 } else { 1 };
    let mut close = vec![b'"'; quotes];
    close.resize(quotes + hashes, b'#');
    let mut end = at + quotes;
    while end < bytes.len() && !bytes[end..].starts_with(&close) {
        end += if bytes[end] == b'\\' && hashes == 0 { 2 } else { 1 };
    }
    end + close.len() - 1
}

impl<'r> Documents<'r> {
    pub(super) fn new(reader: &'r dyn Reader) -> Self {
        Self {
            reader,
            layers: Vec::new(),
            aliases: Vec::new(),
            errors: Vec::new(),
            note: None,
            open: Vec::new(),
            opened: 0,
        }
    }

    /// Reads an experiment, after all that it builds on. Its name, if the document is one.
    pub(super) fn experiment(&mut self, path: &str, asked: Option<&Place>) -> Option<String> {
        let (source, document) = self.open(path, asked)?;
        let name = match document.nodes() {
            [node] if node.name().value() == "experiment" => self.wrapped(&source, node),
            nodes => {
                let place = nodes.iter().find(|node| node.name().value() != "experiment").or(nodes.get(1));
                let place = Place::of(&source, place.map_or((0, 0).into(), |node| node.name().span()));
                let wrong = error::wrapping(&place, "an experiment is one node around all others");
                self.errors.push(wrong.help("write `experiment \"name\" { extends \"base\"; … }` around it"));
                None
            }
        };
        self.close();
        name
    }

    fn wrapped(&mut self, source: &Arc<Source>, node: &KdlNode) -> Option<String> {
        self.unannotated(source, node);
        let name = match node.entries() {
            [entry] if entry.name().is_none() => entry.value().as_string(),
            _ => None,
        };
        let name = name.filter(|name| names_a_directory(name));
        let place = Place::of(source, node.entries().first().map_or(node.name().span(), kdl::KdlEntry::span));
        if name.is_none() {
            let wrong = error::wrapping(&place, "an experiment has one name");
            self.errors.push(wrong.help(NAMES));
        }
        let nodes = node.children().map(KdlDocument::nodes).unwrap_or_default();
        self.body(source, place, nodes);
        name.map(str::to_owned)
    }

    /// Reads a part, after all that it builds on.
    pub(super) fn part(&mut self, path: &str, asked: Option<&Place>) {
        let Some((source, document)) = self.open(path, asked) else { return };
        match document.nodes().iter().find(|node| node.name().value() == "experiment") {
            None => self.body(&source, Place::new(&source, 0, 0), document.nodes()),
            Some(node) => {
                let place = Place::of(&source, node.name().span());
                self.errors.push(error::wrapping(&place, "a part has bare sections, with no node around them"));
            }
        }
        self.close();
    }

    /// Reads text that builds on nothing else.
    pub(super) fn text(&mut self, source: &Arc<Source>, nodes: &[KdlNode]) {
        self.body(source, Place::new(source, 0, 0), nodes);
    }

    /// Reads the parts that arguments of the form `@path` name: the texts of each, with the argument's number.
    pub(super) fn overlays(&mut self, arguments: &[String], places: &[Place]) -> Vec<(usize, Arc<Source>)> {
        let mut found = Vec::new();
        for (index, (argument, place)) in arguments.iter().zip(places).enumerate() {
            if let Some(path) = argument.strip_prefix('@') {
                let first = self.layers.len();
                self.part(path, Some(&place.part(1, path.len())));
                found.extend(self.layers[first..].iter().map(|layer| (index, Arc::clone(&layer.source))));
            }
        }
        found
    }

    pub(super) fn open(&mut self, path: &str, asked: Option<&Place>) -> Option<(Arc<Source>, Arc<KdlDocument>)> {
        self.opened += 1;
        if self.opened > DOCUMENTS_MAX {
            if let (true, Some(place)) = (self.opened == DOCUMENTS_MAX + 1, asked) {
                self.errors.push(error::too_large(place, "more than 200 documents in all"));
            }
            return None;
        }
        let parsed = match self.reader.carried(path) {
            Some(text) => parse_once(path, text),
            None => {
                let text = match self.reader.read(path).map(String::from_utf8) {
                    Ok(Ok(text)) => text,
                    Ok(Err(_)) => return self.unreadable(path, asked, "it is not UTF-8"),
                    Err(error) => return self.unreadable(path, asked, &error.to_string()),
                };
                let source = Source::document(path, text);
                parse(&source).map(|document| (source, Arc::new(document)))
            }
        };
        match parsed {
            Ok(parsed) => {
                self.open.push((path.to_owned(), asked.cloned()));
                Some(parsed)
            }
            Err(errors) => {
                self.errors.extend(errors);
                None
            }
        }
    }

    /// Ends the document that was opened last.
    pub(super) fn close(&mut self) {
        self.open.pop();
    }

    fn unreadable<T>(&mut self, path: &str, asked: Option<&Place>, why: &str) -> Option<T> {
        self.errors.push(error::unreadable(asked.unwrap_or(&Place::typed(path)), path, why));
        None
    }

    /// Reads the nodes of a body, after all that it builds on.
    pub(super) fn body(&mut self, source: &Arc<Source>, place: Place, nodes: &[KdlNode]) {
        let (mut own, mut extended, mut noted, mut note) = (Vec::new(), None, None, None);
        let mut head = true;
        for node in nodes {
            let name = node.name();
            let here = Place::of(source, name.span());
            match name.value() {
                word @ ("extends" | "use") => {
                    self.bare(source, node);
                    if !head {
                        let wrong = error::not_first(&here, word);
                        self.errors.push(wrong.help("what a document builds on comes first; its own nodes win"));
                    }
                    if word == "extends"
                        && let Some(first) = extended.replace(here.clone())
                    {
                        self.errors.push(error::duplicate(&here, &first, word));
                        continue;
                    }
                    self.build_on(source, node);
                }
                "note" => {
                    if let Some(first) = noted.replace(here.clone()) {
                        self.errors.push(error::duplicate(&here, &first, "note"));
                    }
                    note = self.note_of(source, node);
                }
                "alias" => self.alias(source, node),
                _ => own.push(node.clone()),
            }
            head &= matches!(name.value(), "extends" | "use" | "note" | "alias");
        }
        self.note = note.map(str::to_owned);
        self.layers.push(Layer { source: Arc::clone(source), place, nodes: own });
    }

    /// The text of a `note`, which takes one and nothing else.
    pub(super) fn note_of<'n>(&mut self, source: &Arc<Source>, node: &'n KdlNode) -> Option<&'n str> {
        self.bare(source, node);
        let wrong = match node.entries() {
            [only] if only.name().is_none() => match only.value().as_string() {
                Some(text) => return Some(text),
                None => error::wrong_type(&Place::of(source, only.span()), "a text", &only.value().to_string()),
            },
            all => error::wrong_arguments(&Place::of(source, node.span()), "note", "one text", all.len()),
        };
        self.errors.push(wrong.help("such as `note \"why this is run\"`"));
        None
    }

    fn build_on(&mut self, source: &Arc<Source>, node: &KdlNode) {
        let word = node.name().value();
        if node.entries().is_empty() {
            let place = Place::of(source, node.span());
            self.errors.push(error::wrong_arguments(&place, word, "the name of a document", 0));
        }
        for entry in node.entries() {
            let place = Place::of(source, entry.span());
            let Some(name) = entry.value().as_string().filter(|_| entry.name().is_none()) else {
                self.errors.push(error::wrong_type(&place, "the name of a document", &entry.value().to_string()));
                continue;
            };
            let part = format!("configs/{name}.kdl");
            let experiment = format!("experiments/{name}.kdl");
            let experiments = if word == "extends" { self.reader.list("experiments") } else { Vec::new() };
            let parts = self.reader.list("configs");
            let (path, is_part) = match (experiments.contains(&experiment), parts.contains(&part)) {
                (true, _) => (experiment, false),
                (false, true) => (part, true),
                (false, false) => {
                    let all: Vec<&str> = experiments.iter().chain(&parts).map(|path| document_name(path)).collect();
                    let help = error::choices(name, "documents", &all);
                    self.errors.push(error::unknown_document(&place, name).help(help));
                    continue;
                }
            };
            if let Some(at) = self.open.iter().position(|(open, _)| *open == path) {
                let first = self.open.get(at + 1).and_then(|(_, asked)| asked.as_ref()).unwrap_or(&place);
                self.errors.push(error::cycle("documents", &place, first));
            } else if is_part {
                self.part(&path, Some(&place));
            } else {
                self.experiment(&path, Some(&place));
            }
        }
    }

    /// Refuses annotations before a node and its arguments.
    pub(super) fn unannotated(&mut self, source: &Arc<Source>, node: &KdlNode) {
        let annotations = node.ty().into_iter().chain(node.entries().iter().filter_map(kdl::KdlEntry::ty));
        for annotation in annotations {
            let at = Place::of(source, annotation.span());
            self.errors.push(error::bad_annotation(&at, annotation.value(), "is not known here"));
        }
    }

    /// What the document says about itself has neither annotations nor children.
    pub(super) fn bare(&mut self, source: &Arc<Source>, node: &KdlNode) {
        self.unannotated(source, node);
        if node.children().is_some() {
            self.errors.push(error::not_a_block(&Place::of(source, node.name().span()), node.name().value()));
        }
    }

    fn alias(&mut self, source: &Arc<Source>, node: &KdlNode) {
        let place = Place::of(source, node.span());
        self.bare(source, node);
        let arguments: Vec<_> = node.entries().iter().filter(|entry| entry.name().is_none()).collect();
        let texts: Vec<_> = arguments.iter().filter_map(|entry| entry.value().as_string()).collect();
        let ([name, path], 2) = (texts.as_slice(), arguments.len()) else {
            let wrong = error::wrong_arguments(&place, "alias", "a name and a path", arguments.len());
            self.errors.push(wrong.help("such as `alias \"top_p\" \"filter.value\" filter=\"top-p\"`"));
            return;
        };
        let also =
            |entry: &kdl::KdlEntry| entry.name().map(|name| (name.value().to_owned(), override_text(entry.value())));
        let also = node.entries().iter().filter_map(also).collect();
        let same = self.aliases.iter().position(|alias| alias.name == fold(name));
        // A document that is built on twice says it twice.
        if let Some(first) = same.map(|index| self.aliases.remove(index).place)
            && Arc::ptr_eq(&first.source, source)
            && first != place
        {
            self.errors.push(error::duplicate(&place, &first, name));
        }
        self.aliases.push(Alias { name: fold(name), path: (*path).to_owned(), place, also });
    }
}

/// A literal as an override is written.
pub(super) fn override_text(literal: &kdl::KdlValue) -> String {
    match literal {
        kdl::KdlValue::String(text) => text.clone(),
        kdl::KdlValue::Null => "null".to_owned(),
        kdl::KdlValue::Bool(value) => value.to_string(),
        kdl::KdlValue::Integer(value) => value.to_string(),
        kdl::KdlValue::Float(value) => format!("{value:?}"),
    }
}

/// The name by which `extends` and `use` know a path.
pub(super) fn document_name(path: &str) -> &str {
    let name = path.strip_prefix("configs/").or(path.strip_prefix("experiments/")).unwrap_or(path);
    name.strip_suffix(".kdl").unwrap_or(name)
}

/// The paths of the documents, each once, the lowest first.
pub(super) fn names(layers: &[Layer]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for layer in layers {
        if !names.contains(&layer.source.name) {
            names.push(layer.source.name.clone());
        }
    }
    names
}

/// Reports aliases that lead nowhere, whatever is chosen.
pub(super) fn check_aliases(root: &'static [Field], aliases: &[Alias], errors: &mut Vec<Diagnostic>) {
    let entries = schema::entries(root);
    for alias in aliases {
        if errors.len() > MISTAKES_MAX {
            return;
        }
        if entries.iter().any(|entry| entry.path == alias.name) {
            errors.push(error::alias_hidden(&alias.place, &alias.name));
        }
        for path in std::iter::once(&alias.path).chain(alias.also.iter().map(|(path, _)| path)) {
            // The schema knows repeated nodes without their numbers.
            let parts: Vec<_> = path.split('.').filter(|part| part.parse::<usize>().is_err()).collect();
            let plain = fold(&parts.join("."));
            match entries.iter().find(|entry| entry.path == plain) {
                None => {
                    let near = schema::nearest(&plain, entries.iter().map(|entry| entry.path.as_str()));
                    errors.push(error::alias_to_nothing(&alias.place, path).help(error::did_you_mean(&near)));
                }
                Some(entry) if matches!(entry.field.kind.present(), Kind::Section(_)) => {
                    errors.push(error::alias_to_section(&alias.place, path));
                }
                Some(_) => {}
            }
        }
    }
}
