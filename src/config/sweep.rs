//! Sweeps: a document, or a command line alone, that says many runs of one experiment.
//!
//! ```kdl
//! sweep "filters" {
//!     experiment "sokoban"                 // as `extends` names one
//!     grid { seed "1..=5" }                // axes: every combination of their values
//!     case "none" { filter "none" }        // a body of sections, as a part has; the arms that are compared
//!     case "top-p" {
//!         filter "top-p"
//!         case "0.9" { filter { value 0.9 } }      // "top-p 0.9": laid over the outer body
//!         case "low" { grid { filter.value 0.1 0.5 } }   // axes of its own; one of the same path gives way to it
//!     }
//!     exclude { case "top-p low"; seed 5 }  // cells where all of this holds
//!     baseline "none"                       // the case that others are compared with
//!     noise "none again" shift=1000         // the A/A arm: the baseline once more, each seed moved by 1000
//!     report "eval.success"                 // the metrics of the table
//! }
//! ```
//!
//! An override replaces the axis of its path, or else is one more axis; it wins over cases too.

mod document;
mod exclude;

use std::sync::Arc;

use document::{Head, Noise};
use exclude::{Exclude, Met};
use rayon::prelude::*;

use super::axis;
use super::document::{Alias, Documents, Layer, names};
use super::error::{self, Diagnostic};
use super::laid::Laid;
use super::overrides::{Assignment, assignments, named};
use super::schema::{self, ends_with, fold};
use super::tree::{Spot, Tree, spots};
use super::{Diagnostics, Field, Kind, Place, Reader, Resolved, Source, Value};

/// The axis whose values repeat a run with other random draws.
const SEED: &str = "seed";
/// Cells of one sweep.
const MOST: usize = 100_000;
/// Cells that are held at once: a resolved one has the texts of its files.
const TOGETHER: usize = 256;

/// Many runs of one experiment, none of them resolved yet.
pub struct Sweep<'r> {
    /// Its own name, or the experiment's.
    pub name: String,
    /// The case that others are compared with.
    pub baseline: Option<String>,
    /// The name of the A/A arm.
    pub noise: Option<String>,
    /// Paths of the metrics that its table shows; none are said: empty.
    pub report: Vec<(String, Place)>,
    /// The experiment's name, and what its document says of itself.
    experiment: String,
    note: Option<String>,
    /// Where the experiment's document names it.
    place: Place,
    pub cells: Vec<Cell>,
    root: &'static [Field],
    reader: &'r dyn Reader,
    layers: Vec<Layer>,
    aliases: Vec<Alias>,
    cases: Vec<Case>,
}

/// One run of a sweep, as it is asked for.
#[derive(Clone)]
pub struct Cell {
    /// The case's name; empty where there are no cases.
    pub case: String,
    /// Path and value of each axis that has several, the seed among them.
    pub axes: Vec<(String, String)>,
    /// What it takes from the command line, as `path=value`.
    pub overrides: Vec<String>,
    index: usize,
    assignments: Vec<Assignment>,
}

impl Cell {
    /// `top-p 0.9, seed=3`.
    #[must_use]
    pub fn title(&self) -> String {
        title(&self.case, &self.axes).unwrap_or_else(|| "the only cell".to_owned())
    }
}

/// A case and values of axes in words; None if there are neither.
#[must_use]
pub fn title(case: &str, axes: &[(String, String)]) -> Option<String> {
    let axes = axes.iter().map(|(path, text)| format!("{path}={text}"));
    let parts: Vec<String> = Some(case.to_owned()).filter(|case| !case.is_empty()).into_iter().chain(axes).collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// A leaf of the cases: an arm, or several where axes cross it.
struct Case {
    name: String,
    layers: Vec<Layer>,
    grid: Vec<Axis>,
}

/// A path, and texts that each are one or several values.
#[derive(Clone)]
struct Axis {
    key: String,
    key_place: Place,
    texts: Vec<(String, Place)>,
    /// How many cases it stands in: an inner axis takes the place of an outer one.
    level: usize,
    /// The number of its argument and the whole of it, if it stands on the command line.
    argument: Option<(usize, Place)>,
}

impl<'r> Sweep<'r> {
    /// Reads the sweep, or the experiment, of the document at `path`. Beside it what is wrong with its axes and cases:
    /// cells that could be made are there all the same.
    ///
    /// # Errors
    /// Every mistake in the documents that leaves no cells to look at.
    pub fn read(
        root: &'static [Field],
        path: &str,
        overrides: &[String],
        reader: &'r dyn Reader,
    ) -> Result<(Self, Vec<Diagnostic>), Diagnostics> {
        let mut documents = Documents::new(reader);
        let head = documents.head(path);
        let mut wrong = Vec::new();
        let command = Self::command(overrides, reader, &mut wrong);
        if head.is_none() && !documents.errors.is_empty() {
            return Err(Diagnostics::of(documents.errors));
        }
        let (experiment, head) = match head {
            Some(head) => (documents.experiment_of(&head), head),
            None => (documents.experiment(path, None), Head::default()),
        };
        if !documents.errors.is_empty() {
            documents.errors.append(&mut wrong);
            return Err(Diagnostics::of(documents.errors));
        }
        let Documents { layers, aliases, note, .. } = documents;
        let experiment = experiment.unwrap_or_default();
        let place = layers.last().map_or_else(|| Place::typed(path), |layer| layer.place.clone());
        let mut cases = head.cases;
        if cases.is_empty() {
            cases.push(Case { name: String::new(), layers: Vec::new(), grid: Vec::new() });
        }
        let mut sweep = Self {
            name: if head.name.is_empty() { experiment.clone() } else { head.name },
            baseline: head.baseline.as_ref().map(|(name, _)| name.clone()),
            noise: head.noise.as_ref().map(|noise| noise.name.clone()),
            report: head.report,
            experiment,
            note,
            place,
            cells: Vec::new(),
            root,
            reader,
            layers,
            aliases,
            cases,
        };
        sweep.expand(&command, &head.excludes, head.noise.as_ref(), &mut wrong);
        if let Some((name, place)) = head.baseline.filter(|_| wrong.is_empty())
            && !sweep.cells.iter().any(|cell| cell.case == name)
        {
            let message = format!("every cell of \"{name}\" is excluded, and others are compared with it");
            wrong.push(error::sweep(&place, &message, "the baseline").help("exclude fewer, or take another case"));
        }
        if sweep.cells.is_empty() && wrong.is_empty() {
            wrong.extend(exclude::all(&head.excludes));
        }
        Ok((sweep, wrong))
    }

    /// The axes of a command line, which gives values: it adds to no list, and lays no text over the documents.
    fn command(arguments: &[String], reader: &dyn Reader, wrong: &mut Vec<Diagnostic>) -> Vec<Axis> {
        let places = Source::command_line(arguments);
        for (argument, place) in arguments.iter().zip(&places).filter(|(argument, _)| argument.starts_with('@')) {
            let help = format!("`use` it in the sweep's document or in the experiment: {}", &argument[1..]);
            wrong.push(error::sweep(place, "a sweep takes no overlays", "an overlay").help(help));
        }
        let (adding, giving): (Vec<_>, Vec<_>) =
            assignments(arguments, &places, reader, wrong).into_iter().partition(|assignment| assignment.adds);
        for Assignment { key_place, typed, .. } in adding {
            let message = format!("`{typed}+=` adds to a list, and an axis gives values");
            wrong.push(error::sweep(&key_place, &message, "no axis").help(format!("write the whole list: {typed}=…")));
        }
        giving.into_iter().enumerate().map(Axis::of_command).collect()
    }

    /// Resolves the cells that `wanted` asks for by number, case by case. What `make` makes of each, on all threads, is
    /// visited in order.
    pub fn each<T: Send>(
        &self,
        wanted: &dyn Fn(usize) -> bool,
        make: &(dyn Fn(usize, Result<Resolved, Diagnostics>) -> T + Sync),
        visit: &mut dyn FnMut(usize, T),
    ) {
        for index in 0..self.cases.len() {
            let mine = |number: &usize| self.cells[*number].index == index && wanted(*number);
            let numbers: Vec<usize> = (0..self.cells.len()).filter(mine).collect();
            if numbers.is_empty() {
                continue;
            }
            let laid = self.lay(&self.cases[index], &mut Vec::new());
            let one = |&number: &usize| {
                let resolved = laid.resolve(self.cells[number].assignments.clone(), Vec::new(), true);
                let (name, note) = (Some(self.experiment.clone()), self.note.clone());
                let (documents, place) = (names(&self.layers), self.place.clone());
                let whole = |(body, short_names)| Resolved { name, note, body, short_names, documents, place };
                make(number, resolved.map(whole))
            };
            for numbers in numbers.chunks(TOGETHER) {
                let made: Vec<T> = numbers.par_iter().map(one).collect();
                numbers.iter().zip(made).for_each(|(&number, made)| visit(number, made));
            }
        }
    }

    fn lay<'s>(&'s self, case: &'s Case, errors: &mut Vec<Diagnostic>) -> Laid<'s> {
        let texts: Vec<&Layer> = self.layers.iter().chain(&case.layers).collect();
        let top = case.layers.last().map_or(&self.place, |layer| &layer.place);
        Laid::new(self.root, &texts, top, &self.aliases, self.reader, errors)
    }

    /// Makes the cells.
    fn expand(&mut self, command: &[Axis], excludes: &[Exclude], noise: Option<&Noise>, wrong: &mut Vec<Diagnostic>) {
        let (mut cells, mut repeated, mut met, mut sound) = (Vec::new(), Vec::new(), Vec::<Met<'_>>::new(), true);
        for (index, case) in self.cases.iter().enumerate() {
            let mut broken = Vec::new();
            let laid = self.lay(case, &mut broken);
            let whole = broken.is_empty();
            wrong.append(&mut broken);
            if !whole {
                sound = false;
                continue;
            }
            let spots = spots(self.root, &laid.body);
            let axes = self.axes(&spots, case, command, wrong);
            let empty = Cell {
                case: case.name.clone(),
                axes: Vec::new(),
                overrides: vec![String::new(); command.len()],
                index,
                assignments: Vec::new(),
            };
            let mut made = product(empty, &axes, wrong);
            for exclude in excludes.iter().filter(|exclude| exclude.covers(&case.name)) {
                let mut told = Vec::new();
                let values: Vec<Values> = exclude
                    .axes
                    .iter()
                    .map(|axis| self.values(self.path(&axis.key, &spots), axis, &spots, &mut told))
                    .collect();
                told.extend(twice(&values));
                // What is wrong with an exclude is told once, by the first case that it covers.
                let first = self.cases.iter().position(|case| exclude.covers(&case.name)) == Some(index);
                wrong.extend(told.into_iter().filter(|_| first));
                met.extend(exclude.apply(values, &axes, &mut made));
            }
            if let Some(noise) = noise.filter(|_| self.baseline.as_ref() == Some(&case.name)) {
                let seed = laid.body.get(SEED).map(Tree::value);
                let again: Vec<Cell> =
                    made.iter().filter_map(|cell| again(cell, noise, seed.as_ref(), wrong)).collect();
                let seeded = |own: &&Cell| own.axes.iter().any(|(path, _)| path == SEED);
                let same = |own: &Cell| again.iter().any(|cell| own.axes.iter().all(|axis| cell.axes.contains(axis)));
                if made.iter().filter(seeded).any(same) {
                    let message = format!("a shift of {} moves seeds to others of the baseline", noise.shift);
                    wrong.push(error::sweep(&noise.place, &message, "take a larger one"));
                }
                repeated.extend(again);
            }
            cells.append(&mut made);
        }
        if sound {
            wrong.extend(exclude::idle(excludes, &met));
        }
        cells.append(&mut repeated);
        self.cells = cells;
    }

    /// The axes that cross a case, each with its values as far as they are sound.
    fn axes(&self, spots: &[Spot<'_>], case: &Case, command: &[Axis], wrong: &mut Vec<Diagnostic>) -> Vec<Values> {
        let mut axes: Vec<(String, &Axis)> = Vec::new();
        for axis in case.grid.iter().chain(command) {
            let path = self.path(&axis.key, spots);
            match axes.iter_mut().find(|(known, _)| *known == path) {
                Some((path, known)) if axis.argument.is_none() && axis.level == known.level => {
                    wrong.push(error::duplicate(&axis.key_place, &known.key_place, path));
                }
                // The same path twice on the command line is an error like any other.
                Some((_, known)) if known.argument.is_none() => *known = axis,
                _ => axes.push((path, axis)),
            }
        }
        let mut found = Vec::new();
        for (path, axis) in axes {
            let here = named(spots, &path);
            let said = here.iter().find_map(|spot| spot.tree?.place.as_ref()).filter(|_| axis.argument.is_none());
            if let Some(place) = said.filter(|place| Arc::ptr_eq(&place.source, &axis.key_place.source)) {
                let message = format!("`{}` is an axis, and case \"{}\" gives it a value", axis.key, case.name);
                wrong.push(error::sweep(&axis.key_place, &message, "an axis").at(place, "given here"));
                continue;
            }
            found.push(self.values(path, axis, spots, wrong));
        }
        found
    }

    /// The values of an axis that is at `path`, as the field there reads them.
    fn values(&self, path: String, axis: &Axis, spots: &[Spot<'_>], wrong: &mut Vec<Diagnostic>) -> Values {
        let kinds: Vec<&'static Kind> = match named(spots, &path).as_slice() {
            [] => self.kinds(&path),
            here => here.iter().map(|spot| spot.kind).collect(),
        };
        let kind = kinds.iter().find(|kind| !axis::splits(kind)).or(kinds.first());
        axis.values(path, kind.copied(), wrong)
    }

    /// The whole path of a key, where there is no doubt about it: among the values that there are, or among all.
    fn path(&self, key: &str, spots: &[Spot<'_>]) -> String {
        let key = fold(key);
        let entries = schema::entries(self.root);
        if entries.iter().any(|entry| entry.path == key) {
            return key;
        }
        let key = self.aliases.iter().find(|alias| alias.name == key).map_or(key, |alias| fold(&alias.path));
        if let [spot] = named(spots, &key)[..] {
            return spot.short().to_owned();
        }
        let mut ends: Vec<&str> =
            entries.iter().map(|entry| entry.path.as_str()).filter(|path| ends_with(path, &key)).collect();
        ends.dedup();
        if let [path] = ends[..] { path.to_owned() } else { key }
    }

    /// The kinds of all values that a path could name under any choice.
    fn kinds(&self, path: &str) -> Vec<&'static Kind> {
        let plain: Vec<&str> = path.split('.').filter(|part| part.parse::<usize>().is_err()).collect();
        let plain = plain.join(".");
        schema::entries(self.root)
            .iter()
            .filter(|entry| ends_with(&entry.path, &plain))
            .map(|entry| entry.field.kind)
            .collect()
    }
}

/// An axis with all of its values.
#[derive(Clone)]
struct Values {
    path: String,
    axis: Axis,
    texts: axis::Texts,
}

impl Axis {
    fn of_command((number, assignment): (usize, Assignment)) -> Self {
        let Assignment { typed, text, place, key_place, text_place, .. } = assignment;
        Self { key: typed, key_place, texts: vec![(text, text_place)], level: 0, argument: Some((number, place)) }
    }

    fn values(&self, path: String, kind: Option<&'static Kind>, wrong: &mut Vec<Diagnostic>) -> Values {
        let mut texts = axis::Texts::new();
        for (text, place) in &self.texts {
            match kind.map_or_else(|| Ok(vec![(text.clone(), place.clone())]), |kind| axis::values(kind, text, place)) {
                Ok(values) => texts.extend(values),
                Err(error) => wrong.push(error),
            }
        }
        Values { path, axis: self.clone(), texts }
    }
}

/// Axes of one path under different names.
fn twice(values: &[Values]) -> impl Iterator<Item = Diagnostic> {
    values.iter().enumerate().filter_map(|(number, axis)| {
        let first = values[..number].iter().find(|other| other.path == axis.path)?;
        Some(error::duplicate(&axis.axis.key_place, &first.axis.key_place, &axis.path))
    })
}

/// Every combination of values, the last axis fastest.
fn product(empty: Cell, axes: &[Values], wrong: &mut Vec<Diagnostic>) -> Vec<Cell> {
    let mut cells = vec![empty];
    for Values { path, axis, texts } in axes.iter().filter(|values| !values.texts.is_empty()) {
        if cells.len().saturating_mul(texts.len()) > MOST {
            wrong.push(error::sweep(&axis.key_place, "a sweep has at most 100,000 cells", "too many with this axis"));
            return Vec::new();
        }
        let several = texts.len() > 1 || path == SEED;
        let extended = |cell: &Cell, (text, place): &(String, Place)| {
            let mut cell = cell.clone();
            let whole = axis.argument.as_ref().map_or(place, |(_, whole)| whole);
            cell.assignments.push(Assignment::new(&axis.key, text, whole, &axis.key_place, place));
            if let Some((number, _)) = axis.argument {
                cell.overrides[number] = format!("{}={text}", axis.key);
            }
            if several {
                cell.axes.push((path.clone(), text.clone()));
            }
            cell
        };
        cells = cells.iter().flat_map(|cell| texts.iter().map(move |text| extended(cell, text))).collect();
    }
    cells
}

/// A cell of the baseline once more, with another seed.
fn again(cell: &Cell, noise: &Noise, seed: Option<&Value>, wrong: &mut Vec<Diagnostic>) -> Option<Cell> {
    let place = &noise.place;
    let axis = cell.axes.iter().find(|(path, _)| path == SEED).and_then(|(_, text)| text.parse::<u64>().ok());
    let own = match seed {
        Some(Value::Int(seed)) => u64::try_from(*seed).ok(),
        _ => None,
    };
    let Some(seed) = axis.or(own).and_then(|seed| seed.checked_add(noise.shift)) else {
        wrong.push(error::sweep(place, "a seed moved this far is no seed", "beyond the largest seed"));
        return None;
    };
    let mut cell = cell.clone();
    cell.case = noise.name.clone();
    cell.assignments.retain(|assignment| assignment.key != SEED);
    cell.assignments.push(Assignment::new(SEED, &seed.to_string(), place, place, place));
    for text in &mut cell.overrides {
        if text.split('=').next().is_some_and(|key| fold(key) == SEED) {
            *text = format!("{SEED}={seed}");
        }
    }
    cell.axes.retain(|(path, _)| path != SEED);
    cell.axes.push((SEED.to_owned(), seed.to_string()));
    Some(cell)
}
