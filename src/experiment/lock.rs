//! A run written down, and read back.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use kdl::KdlNode;

use super::FIELDS;
use super::identity::{COMPONENTS, Key};
use super::resolve::{Resolved, finish, sound};
use crate::config::show::{kdl, quoted};
use crate::config::tree::{Form, spots};
use crate::config::{self, Diagnostic, Diagnostics, HEADER, Place, Reader, Source, Top, Value};

/// Versions of a lock's form, and of the canonical text that its key is of.
const VERSIONS: [(&str, i128); 2] = [("lock", 1), ("canon", 1)];

pub(super) fn show(run: &Resolved) -> String {
    let config = kdl(FIELDS, &run.tree, 1);
    let inputs = inputs(run, 1, false);
    format!(
        "experiment {} {{\n{config}}}\ninputs {{\n{inputs}}}\nkey {}\nid {}\n",
        quoted(&run.name),
        quoted(&run.key.to_string()),
        quoted(&run.id().to_string()),
    )
}

pub(super) fn lock(run: &Resolved) -> String {
    let mut out = String::from("/- kdl-version 2\n");
    let versions = VERSIONS.map(|(what, version)| format!("{what}={version}")).join(" ");
    out.push_str(&format!("run {} {versions} {{\n", quoted(&run.id().to_string())));
    out.push_str(&format!("    experiment {}\n", quoted(&run.name)));
    if let Some(note) = &run.note {
        out.push_str(&format!("    note {}\n", quoted(note)));
    }
    out.push_str(&format!("    key {}\n", quoted(&run.key.to_string())));
    for typed in &run.overrides {
        out.push_str(&format!("    override {}\n", quoted(typed)));
    }
    out.push_str(&format!("    config {{\n{}    }}\n", kdl(FIELDS, &run.tree, 2)));
    out.push_str(&format!("    inputs {{\n{}    }}\n    epochs {{\n", inputs(run, 2, true)));
    for (component, epoch) in epochs(&run.canon) {
        out.push_str(&format!("        {component} {epoch}\n"));
    }
    out.push_str("    }\n}\n");
    out
}

/// One node for each file and folder, once, with the text if asked for.
fn inputs(run: &Resolved, indent: usize, texts: bool) -> String {
    let pad = "    ".repeat(indent);
    let mut nodes = BTreeSet::new();
    for spot in spots(FIELDS, &run.tree) {
        match spot.tree.map(|tree| &tree.form) {
            Some(Form::Scalar(Value::Input { text, path: Some(path) })) => {
                let digest = blake3::hash(text.as_bytes()).to_hex();
                let mut node = format!("{pad}file {} blake3=\"{digest}\" bytes={}", quoted(path), text.len());
                if texts {
                    node.push_str(&format!(" {{\n{pad}    text {}\n{pad}}}", raw(text)));
                }
                nodes.insert(node);
            }
            Some(Form::Scalar(Value::Folder { path, digest })) => {
                nodes.insert(format!("{pad}folder {} blake3=\"{digest}\"", quoted(path)));
            }
            _ => {}
        }
    }
    nodes.into_iter().map(|node| node + "\n").collect()
}

/// A raw string where the text can stand in one as it is, or else a quoted one.
fn raw(text: &str) -> String {
    let plain = |c: char| !c.is_control() && (c == ' ' || !c.is_whitespace());
    if !text.chars().all(plain) || quoted(text).contains("\\u{") || text.starts_with('"') {
        return quoted(text);
    }
    let mut hashes = "#".to_owned();
    while text.contains(&format!("\"{hashes}")) {
        hashes.push('#');
    }
    format!("{hashes}\"{text}\"{hashes}")
}

/// That a lock is of a form that this program reads: every one up to its own.
fn check_versions(run: &KdlNode, top: &Place) -> Result<(), Diagnostic> {
    for (form, newest) in VERSIONS {
        let version = run.get(form).and_then(kdl::KdlValue::as_integer);
        if version.is_none_or(|version| !(1..=newest).contains(&version)) {
            let found = version.map_or("no".to_owned(), |version| version.to_string());
            let message = format!("this lock has {form} version {found}, and this program reads up to {newest}");
            return Err(Diagnostic::rule(top, &message, "take the starpo that wrote it, or a newer one"));
        }
    }
    Ok(())
}

/// A lock of any version as a person reads it: whole, but for the texts of its inputs. This program need not know its
/// values.
///
/// # Errors
/// If the text is no lock, or one of a later form.
pub fn read_lock(text: &str) -> Result<String, Diagnostics> {
    let source = Source::lock(text);
    let mut document = config::parse(&source)?;
    let top = Place::new(&source, 0, 0);
    let none = || Diagnostic::rule(&top, "this is no lock: it has no node `run`", "");
    let run = document.get_mut("run").ok_or_else(none)?;
    check_versions(run, &top)?;
    let inputs = run.children_mut().as_mut().and_then(|children| children.get_mut("inputs"));
    let files = inputs.and_then(|inputs| inputs.children_mut().as_mut());
    for file in files.map(kdl::KdlDocument::nodes_mut).into_iter().flatten() {
        file.clear_children();
    }
    Ok(document.to_string())
}

/// The components that a canonical text names, with their versions.
fn epochs(canon: &str) -> BTreeMap<&str, &str> {
    canon.lines().filter_map(|line| line.strip_prefix("@epoch ")?.split_once("\tu32\t")).collect()
}

/// A canonical text with the components of another.
fn with_epochs(canon: &str, epochs: &BTreeMap<&str, &str>) -> String {
    let lines: BTreeSet<String> = canon
        .lines()
        .skip(1)
        .filter(|line| !line.starts_with("@epoch "))
        .map(str::to_owned)
        .chain(epochs.iter().map(|(component, epoch)| format!("@epoch {component}\tu32\t{epoch}")))
        .collect();
    lines.into_iter().fold(format!("{HEADER}\n"), |text, line| text + &line + "\n")
}

/// That components have the versions that they had; those that have others are named.
fn unmoved(
    then: &BTreeMap<&str, &str>,
    now: &BTreeMap<&str, &str>,
    needed: impl Fn(&str) -> bool,
    top: &Place,
) -> Result<(), Diagnostic> {
    let all: BTreeSet<&str> = then.keys().chain(now.keys()).copied().collect();
    let moved = all.into_iter().filter(|name| then.get(name) != now.get(name) && needed(name));
    let word = |side: &BTreeMap<&str, &str>, name: &str| side.get(name).copied().unwrap_or("none").to_owned();
    let moved: Vec<String> =
        moved.map(|name| format!("{name} was at {}, and is at {}", word(then, name), word(now, name))).collect();
    if moved.is_empty() {
        return Ok(());
    }
    let message = format!("this program does not compute what the run did: {}", moved.join("; "));
    Err(Diagnostic::rule(top, &message, "take the starpo that made it, or start the run anew"))
}

/// What is to be done about a config that does not read.
const OTHER: &str = "the lock is damaged, or of another version of starpo: take that one, or start the run anew";

/// The first arguments of a lock's nodes of that name, whatever the lock's version.
#[must_use]
pub fn arguments(text: &str, name: &str) -> Vec<String> {
    let document = config::parse(&Source::lock(text)).ok();
    let run = document.as_ref().and_then(|document| document.get("run"));
    let nodes = run.and_then(KdlNode::children).map(kdl::KdlDocument::nodes).unwrap_or_default();
    nodes.iter().filter(|node| node.name().value() == name).filter_map(first_text).map(str::to_owned).collect()
}

/// What decides how a model plays, as beginnings of components' names.
const PLAYED: [&str; 8] = ["chat", "env.", "eval", "model.", "rng", "rollout", "stats", "window."];

/// The run of a lock's text for whoever has its model play: what it was learnt by may have changed since.
///
/// # Errors
/// As [`from_lock`].
pub fn to_play(text: &str) -> Result<Resolved, Diagnostics> {
    read(text, |component| PLAYED.iter().any(|played| component.starts_with(played)))
}

/// The run of a lock's text for whoever only looks at its config: what would be computed from it today does not matter.
///
/// # Errors
/// As [`from_lock`], but for components that have moved: those are named only where the config does not read.
pub fn to_show(text: &str) -> Result<Resolved, Diagnostics> {
    read(text, |_| false)
}

/// That a lock was not altered, as far as this program can tell: of another version's it cannot.
///
/// # Errors
/// As [`to_show`].
pub fn check_lock(text: &str) -> Result<(), Diagnostics> {
    let source = Source::lock(text);
    let document = config::parse(&source)?;
    let nodes = document.get("run").and_then(KdlNode::children).map(kdl::KdlDocument::nodes).unwrap_or_default();
    let listed = nodes.iter().find(|node| node.name().value() == "epochs").and_then(KdlNode::children);
    let listed = listed.map(kdl::KdlDocument::nodes).unwrap_or_default();
    let known = |(component, epoch): &(&str, u32)| {
        let node = listed.iter().find(|node| node.name().value() == *component);
        node.and_then(|node| node.get(0)?.as_integer()) == Some(i128::from(*epoch))
    };
    if COMPONENTS.iter().all(known) { to_show(text).map(drop) } else { Ok(()) }
}

/// Makes the run of a lock's text again. Needs no other file.
///
/// # Errors
/// If the text is no lock, or its config not that of its key; the components whose versions have moved since.
pub fn from_lock(text: &str) -> Result<Resolved, Diagnostics> {
    read(text, |_| true)
}

fn read(text: &str, needed: impl Fn(&str) -> bool) -> Result<Resolved, Diagnostics> {
    let source = Source::lock(text);
    let document = config::parse(&source)?;
    let top = Place::new(&source, 0, 0);
    let broken = |what: &str| Diagnostic::rule(&top, &format!("this is no lock: {what}"), "");
    let run = document.get("run").ok_or_else(|| broken("it has no node `run`"))?;
    check_versions(run, &top)?;
    let nodes = run.children().map(kdl::KdlDocument::nodes).unwrap_or_default();
    let named = |name: &'static str| nodes.iter().filter(move |node| node.name().value() == name);
    let argument = |name: &'static str| named(name).next().and_then(first_text).ok_or_else(|| broken(name));
    let children = |name: &'static str| {
        let block = named(name).next().ok_or_else(|| broken(name))?;
        Ok::<_, Diagnostic>(block.children().map(kdl::KdlDocument::nodes).unwrap_or_default())
    };
    let inputs = Locked::new(children("inputs")?);
    let overrides: Vec<String> = named("override").filter_map(first_text).map(str::to_owned).collect();
    let listed = children("epochs")?.iter();
    let listed: Vec<(&str, String)> =
        listed.filter_map(|node| Some((node.name().value(), node.get(0)?.to_string()))).collect();
    let then: BTreeMap<&str, &str> = listed.iter().map(|(component, epoch)| (*component, epoch.as_str())).collect();
    // At first those of every run: the config of another version may have what this one cannot read.
    let always = COMPONENTS.iter().map(|(component, epoch)| format!("@epoch {component}\tu32\t{epoch}\n"));
    let always: String = always.collect();
    let always = epochs(&always);
    unmoved(&then, &always, |component| always.contains_key(component) && needed(component), &top)?;
    let config = config::resolve(FIELDS, &Top::Block(&source, children("config")?), &[], &inputs);
    let moved = unmoved(&then, &always, |component| always.contains_key(component), &top);
    let mut resolved = config.map_err(|found| match moved {
        Err(moved) => moved.into(),
        Ok(()) => found.note(OTHER),
    })?;
    resolved.name = Some(argument("experiment")?.to_owned());
    resolved.note = argument("note").ok().map(str::to_owned);
    let run = sound(finish(resolved, &overrides), [])?;
    let (key, found) = (argument("key")?, Key::of(&with_epochs(&run.canon, &then)));
    if found.to_string() != key {
        let message = format!("the lock's key is {key}, and that of its config {found}");
        return Err(Diagnostic::rule(&top, &message, "the lock was edited or damaged: start the run anew").into());
    }
    unmoved(&then, &epochs(&run.canon), needed, &top)?;
    Ok(run)
}

fn first_text(node: &KdlNode) -> Option<&str> {
    node.entries().iter().find(|entry| entry.name().is_none()).and_then(|entry| entry.value().as_string())
}

/// The inputs that a lock holds.
struct Locked {
    files: BTreeMap<String, String>,
    folders: BTreeMap<String, String>,
}

impl Locked {
    fn new(nodes: &[KdlNode]) -> Self {
        let (mut files, mut folders) = (BTreeMap::new(), BTreeMap::new());
        for node in nodes {
            let Some(path) = first_text(node) else { continue };
            let text = node.children().and_then(|children| children.get("text")).and_then(first_text);
            let digest = node.get("blake3").and_then(|value| value.as_string());
            match (node.name().value(), text, digest) {
                ("file", Some(text), _) => drop(files.insert(path.to_owned(), text.to_owned())),
                ("folder", _, Some(digest)) => drop(folders.insert(path.to_owned(), digest.to_owned())),
                _ => {}
            }
        }
        Self { files, folders }
    }
}

impl Reader for Locked {
    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        self.files.get(path).map(|text| text.clone().into_bytes()).ok_or_else(missing)
    }

    fn list(&self, _: &str) -> Vec<String> {
        Vec::new()
    }

    fn folder(&self, path: &str) -> io::Result<String> {
        self.folders.get(path).cloned().ok_or_else(missing)
    }
}

fn missing() -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, "the lock does not hold it")
}
