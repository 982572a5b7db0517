//! The grammar of a sweep's document.

use std::sync::Arc;

use kdl::{KdlDocument, KdlEntry, KdlNode};

use super::exclude::{Exclude, within};
use super::{Axis, Case};
use crate::config::document::{Documents, Layer, NAMES, document_name, names_a_directory, override_text};
use crate::config::schema::{self, fold};
use crate::config::{Diagnostic, Place, Source, error};

/// What stands in a sweep's document.
#[derive(Default)]
pub(super) struct Head {
    pub name: String,
    pub experiment: Option<String>,
    pub cases: Vec<Case>,
    pub excludes: Vec<Exclude>,
    pub baseline: Option<(String, Place)>,
    pub noise: Option<Noise>,
    pub report: Vec<(String, Place)>,
}

/// The A/A arm.
pub(super) struct Noise {
    pub name: String,
    /// Added to each seed.
    pub shift: u64,
    pub place: Place,
}

/// A body that may hold cases: what is around them.
struct Outer<'o> {
    name: &'o str,
    layers: &'o [Layer],
    grid: &'o [Axis],
    level: usize,
}

impl Documents<'_> {
    /// Reads a sweep's document; None if it is no sweep's, or not readable.
    pub(super) fn head(&mut self, path: &str) -> Option<Head> {
        let (source, document) = self.open(path, None)?;
        self.close();
        let node = document.nodes().iter().find(|node| node.name().value() == "sweep")?;
        self.unannotated(&source, node);
        let mut head = Head { name: self.one_name(&source, node).unwrap_or_default(), ..Head::default() };
        if let Some(other) = document.nodes().iter().find(|other| !std::ptr::eq(*other, node)) {
            let place = Place::of(&source, other.name().span());
            self.errors.push(error::wrapping(&place, "a sweep is one node around all others"));
        }
        if !names_a_directory(&head.name) {
            let wrong = error::wrapping(&Place::of(&source, node.name().span()), "a sweep has one name");
            self.errors.push(wrong.help(NAMES));
        }
        let nodes = node.children().map(KdlDocument::nodes).unwrap_or_default();
        self.sweep(&source, nodes, &mut head);
        self.hold_together(&source, node, &head);
        Some(head)
    }

    pub(super) fn experiment_of(&mut self, head: &Head) -> Option<String> {
        self.experiment(&format!("experiments/{}.kdl", head.experiment.as_ref()?), None)
    }

    fn sweep(&mut self, source: &Arc<Source>, nodes: &[KdlNode], head: &mut Head) {
        const WORDS: [&str; 8] = ["note", "experiment", "grid", "case", "exclude", "baseline", "noise", "report"];
        let mut seen: Vec<(&str, Place)> = Vec::new();
        for node in nodes {
            let (word, place) = (node.name().value(), Place::of(source, node.name().span()));
            match word {
                "experiment" | "baseline" | "noise" | "report" => self.bare(source, node),
                "exclude" => self.unannotated(source, node),
                _ => {}
            }
            if matches!(word, "note" | "experiment" | "grid" | "baseline" | "noise" | "report") {
                if let Some((_, first)) = seen.iter().find(|(known, _)| *known == word) {
                    self.errors.push(error::duplicate(&place, first, word));
                    continue;
                }
                seen.push((word, place.clone()));
            }
            match word {
                "experiment" => head.experiment = self.experiment_named(source, node),
                "baseline" => head.baseline = self.one_name(source, node).map(|name| (name, place)),
                "noise" => head.noise = self.noise(source, node),
                "report" => head.report = self.texts(source, node),
                "exclude" => head.excludes.extend(self.exclude(source, node)),
                "note" => drop(self.note_of(source, node)),
                "grid" | "case" => {}
                _ => {
                    let near = error::did_you_mean(&schema::nearest(word, WORDS));
                    let help = format!("{near}known keys: {}", WORDS.join(", "));
                    self.errors.push(error::unknown_key(&place, word, "a sweep").help(help));
                }
            }
        }
        let grid = self.grid(source, nodes);
        let outer = Outer { name: "", layers: &[], grid: &grid, level: 0 };
        let mut cases = self.cases(source, nodes, &outer);
        if cases.is_empty() {
            cases.push(Case { name: String::new(), layers: Vec::new(), grid });
        }
        head.cases = cases;
    }

    /// The leaves below a body.
    fn cases(&mut self, source: &Arc<Source>, nodes: &[KdlNode], outer: &Outer<'_>) -> Vec<Case> {
        let (mut found, mut known) = (Vec::new(), Vec::<String>::new());
        for node in nodes.iter().filter(|node| node.name().value() == "case") {
            let place = Place::of(source, node.name().span());
            self.unannotated(source, node);
            let Some(own) = self.one_name(source, node) else { continue };
            let name = if outer.name.is_empty() { own } else { format!("{} {own}", outer.name) };
            if let Some(wrong) = unsound(&name, &known, &place) {
                self.errors.push(wrong);
                continue;
            }
            known.push(name.clone());
            let nodes = node.children().map(KdlDocument::nodes).unwrap_or_default();
            let layers = [outer.layers, &self.case_body(source, &place, nodes)].concat();
            let mut own = self.grid(source, nodes);
            own.iter_mut().for_each(|axis| axis.level = outer.level + 1);
            let grid = [outer.grid, &own].concat();
            let inner =
                self.cases(source, nodes, &Outer { name: &name, layers: &layers, grid: &grid, level: outer.level + 1 });
            match inner.is_empty() {
                true => found.push(Case { name, layers, grid }),
                false => found.extend(inner),
            }
        }
        found
    }

    /// The layers of a case: the parts that it uses, and its own sections.
    fn case_body(&mut self, source: &Arc<Source>, place: &Place, nodes: &[KdlNode]) -> Vec<Layer> {
        let mut body = Vec::new();
        for node in nodes {
            match node.name().value() {
                "case" | "grid" => {}
                word @ ("extends" | "alias") => {
                    let message = format!("`{word}` has no place in a case");
                    let here = Place::of(source, node.name().span());
                    self.errors.push(error::sweep(&here, &message, "belongs to an experiment"));
                }
                _ => body.push(node.clone()),
            }
        }
        let below = self.layers.len();
        self.body(source, place.clone(), &body);
        self.layers.split_off(below)
    }

    fn grid(&mut self, source: &Arc<Source>, nodes: &[KdlNode]) -> Vec<Axis> {
        let mut axes: Vec<Axis> = Vec::new();
        for node in nodes.iter().filter(|node| node.name().value() == "grid") {
            self.unannotated(source, node);
            for entry in node.entries() {
                let here = Place::of(source, entry.span());
                self.errors.push(error::wrong_arguments(&here, "grid", "axes and no value", node.entries().len()));
            }
            for node in node.children().map(KdlDocument::nodes).unwrap_or_default() {
                axes.extend(self.axis(source, node));
            }
        }
        for (index, axis) in axes.iter().enumerate() {
            if let Some(first) = axes[..index].iter().find(|other| fold(&other.key) == fold(&axis.key)) {
                self.errors.push(error::duplicate(&axis.key_place, &first.key_place, &axis.key));
            }
        }
        axes
    }

    /// A path and its values: each argument is written as on the command line.
    fn axis(&mut self, source: &Arc<Source>, node: &KdlNode) -> Option<Axis> {
        let place = Place::of(source, node.name().span());
        let plain = node.entries().iter().all(|entry| entry.name().is_none() && entry.ty().is_none());
        if node.entries().is_empty() || !plain || node.children().is_some() || node.ty().is_some() {
            let message = format!("axis `{}` takes values alone", node.name().value());
            self.errors.push(
                error::sweep(&place, &message, "an axis")
                    .help("such as `seed 1 2 3`, `seed \"1..=5\"` or `filter \"none\" \"top-p\"`"),
            );
            return None;
        }
        let text = |entry: &KdlEntry| (override_text(entry.value()), Place::of(source, entry.span()));
        let texts = node.entries().iter().map(text).collect();
        Some(Axis { key: node.name().value().to_owned(), key_place: place, texts, level: 0, argument: None })
    }

    fn exclude(&mut self, source: &Arc<Source>, node: &KdlNode) -> Option<Exclude> {
        let place = Place::of(source, node.name().span());
        let nodes = node.children().map(KdlDocument::nodes).unwrap_or_default();
        if nodes.is_empty() || !node.entries().is_empty() {
            let wrong = error::sweep(&place, "`exclude` takes a block of what must hold", "excludes nothing");
            self.errors.push(wrong.help("such as `exclude { case \"top-p\"; seed 3 }`"));
            return None;
        }
        let mut exclude = Exclude { place, case: None, axes: Vec::new() };
        let mut seen: Vec<(&str, Place)> = Vec::new();
        for node in nodes {
            let (word, place) = (node.name().value(), Place::of(source, node.name().span()));
            if let Some((_, first)) = seen.iter().find(|(known, _)| fold(known) == fold(word)) {
                self.errors.push(error::duplicate(&place, first, word));
                continue;
            }
            seen.push((word, place.clone()));
            match word {
                "case" => {
                    self.bare(source, node);
                    exclude.case = self.one_name(source, node).map(|name| (name, place));
                }
                _ => exclude.axes.extend(self.axis(source, node)),
            }
        }
        Some(exclude)
    }

    fn noise(&mut self, source: &Arc<Source>, node: &KdlNode) -> Option<Noise> {
        let place = Place::of(source, node.name().span());
        let name = node.get(0).and_then(|value| value.as_string());
        let shift = node.get("shift").and_then(|value| value.as_integer()).and_then(|shift| u64::try_from(shift).ok());
        match (name, shift) {
            (Some(name), Some(shift)) if shift > 0 && node.entries().len() == 2 => {
                Some(Noise { name: name.to_owned(), shift, place })
            }
            _ => {
                let wrong = error::sweep(&place, "`noise` takes a name, and by how much seeds are moved", "here");
                self.errors.push(wrong.help("such as `noise \"none again\" shift=1000`"));
                None
            }
        }
    }

    /// What the parts of a sweep say about each other.
    fn hold_together(&mut self, source: &Arc<Source>, node: &KdlNode, head: &Head) {
        let here = Place::of(source, node.name().span());
        if head.experiment.is_none() && self.errors.is_empty() {
            let wrong = error::sweep(&here, "the sweep names no experiment", "missing in here");
            self.errors.push(wrong.help("such as `experiment \"sokoban\"`"));
        }
        let names = head.cases.iter().map(|case| case.name.as_str()).filter(|name| !name.is_empty());
        let names: Vec<&str> = names.collect();
        let named = head.excludes.iter().filter_map(|exclude| exclude.case.as_ref());
        let (baseline, at) = head.baseline.as_ref().map_or((None, &here), |(name, place)| (Some(name), place));
        if let Some(name) = baseline.filter(|name| !names.contains(&name.as_str())) {
            let help = error::choices(name, "cases", &names);
            self.errors.push(error::sweep(at, &format!("there is no case \"{name}\""), "the baseline").help(help));
        }
        for (name, place) in named {
            if !names.iter().any(|case| within(case, name)) {
                let help = error::choices(name, "cases", &names);
                self.errors
                    .push(error::sweep(place, &format!("there is no case \"{name}\""), "excludes nothing").help(help));
            }
        }
        if let Some(Noise { name, place, .. }) = &head.noise {
            if baseline.is_none() {
                self.errors.push(error::sweep(place, "`noise` repeats the baseline, and there is none", "here"));
            }
            if names.contains(&name.as_str()) {
                self.errors.push(error::sweep(place, &format!("\"{name}\" is a case already"), "here"));
            }
            self.errors.extend(unsound(name, &[], place));
        }
    }

    fn experiment_named(&mut self, source: &Arc<Source>, node: &KdlNode) -> Option<String> {
        let name = self.one_name(source, node)?;
        let all = self.reader.list("experiments");
        if all.contains(&format!("experiments/{name}.kdl")) {
            return Some(name);
        }
        let names: Vec<&str> = all.iter().map(|path| document_name(path)).collect();
        let place = Place::of(source, node.span());
        self.errors.push(error::unknown_document(&place, &name).help(error::choices(&name, "experiments", &names)));
        None
    }

    /// The one text that a node takes.
    fn one_name(&mut self, source: &Arc<Source>, node: &KdlNode) -> Option<String> {
        let texts: Vec<&str> = node
            .entries()
            .iter()
            .filter(|entry| entry.name().is_none())
            .filter_map(|entry| entry.value().as_string())
            .collect();
        match texts[..] {
            [name] if node.entries().len() == 1 => Some(name.to_owned()),
            _ => {
                let place = Place::of(source, node.name().span());
                let word = node.name().value();
                self.errors.push(error::wrong_arguments(&place, word, "one name in quotes", node.entries().len()));
                None
            }
        }
    }

    fn texts(&mut self, source: &Arc<Source>, node: &KdlNode) -> Vec<(String, Place)> {
        let text = |entry: &KdlEntry| {
            let text = entry.value().as_string().filter(|_| entry.name().is_none())?;
            Some((text.to_owned(), Place::of(source, entry.span())))
        };
        let texts: Vec<(String, Place)> = node.entries().iter().filter_map(text).collect();
        if texts.len() != node.entries().len() || texts.is_empty() {
            let place = Place::of(source, node.name().span());
            self.errors.push(error::wrong_arguments(&place, node.name().value(), "paths of metrics", texts.len()));
        }
        texts
    }
}

/// What is wrong with the name of a case beside others: arms are told apart by the words of their cases.
fn unsound(name: &str, known: &[String], place: &Place) -> Option<Diagnostic> {
    if known.iter().any(|other| other == name) {
        return Some(error::sweep(place, &format!("there are two cases \"{name}\""), "the second"));
    }
    if name.trim().is_empty() || name.chars().any(char::is_control) {
        return Some(error::sweep(place, "the name of a case is words on one line", "here"));
    }
    if name.contains(", ") {
        let wrong = error::sweep(place, &format!("the case \"{name}\" has a comma in its name"), "here");
        return Some(wrong.help("after a comma stand the values of axes"));
    }
    let other = known.iter().find(|other| within(name, other) || within(other, name))?;
    let (inner, outer) = if within(name, other) { (name, other.as_str()) } else { (other.as_str(), name) };
    let wrong = error::sweep(place, &format!("the case \"{inner}\" is called like one within \"{outer}\""), "here");
    Some(wrong.help("set it into the other, or take another word"))
}
