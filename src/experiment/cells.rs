//! The runs of a sweep, resolved: all of them, or everything that is wrong with any.

use std::collections::BTreeSet;

use super::FIELDS;
use super::outside::{Once, SWEEPS};
use super::resolve::{Resolved, finish, sound};
use super::rules::{self, Asked};
use crate::config::sweep::{Cell, Sweep};
use crate::config::{self, Diagnostic, Diagnostics, Reader, ShortName};
use crate::stop;

/// Titles of cells that an error names.
const NAMED: usize = 3;

/// A cell of a sweep and the run that it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CellRun {
    /// The case's name; empty where there are no cases.
    pub case: String,
    /// Path and value of each axis that has several, without the seed.
    pub axes: Vec<(String, String)>,
    pub seed: u64,
    /// The name of the run's directory.
    pub run: String,
    /// The name of its warm start's directory.
    pub warm_start: Option<String>,
}

/// A sweep as it was asked for.
#[derive(Clone, Debug)]
pub struct Cells {
    pub name: String,
    /// The case that others are compared with.
    pub baseline: Option<String>,
    /// The name of the A/A arm: the baseline with other seeds.
    pub noise: Option<String>,
    /// Paths of the metrics to show; none said: empty.
    pub report: Vec<String>,
    /// Two cells may be one run.
    pub cells: Vec<CellRun>,
    /// What short names were taken for, where it has just been resolved.
    pub short_names: Vec<String>,
}

/// Whether `name_or_path` says a sweep of `experiments/sweeps/`, or any document.
#[must_use]
pub fn sweep_exists(name_or_path: &str, reader: &dyn Reader) -> bool {
    name_or_path.ends_with(".kdl") || reader.list(SWEEPS).contains(&format!("{SWEEPS}/{name_or_path}.kdl"))
}

/// Resolves every cell of a sweep of `experiments/sweeps/`, or of an experiment crossed with the axes among
/// `overrides`. When all are sound, `begin` gets them, then `visit` the first cell of each run that is `wanted`: what
/// has to be written.
///
/// # Errors
/// Everything that is wrong with the sweep or with any of its cells.
pub fn sweep<E>(
    name_or_path: &str,
    overrides: &[String],
    reader: &dyn Reader,
    wanted: &dyn Fn(&CellRun) -> bool,
    begin: &mut dyn FnMut(&Cells) -> Result<(), E>,
    visit: &mut dyn FnMut(Resolved) -> Result<(), E>,
) -> Result<Result<Cells, E>, Diagnostics> {
    let reader = Once::new(reader);
    let path = document(name_or_path, &reader)?;
    let (sweep, mut wrong) = Sweep::read(FIELDS, &path, overrides, &reader)?;
    let mut found: Vec<Option<CellRun>> = vec![None; sweep.cells.len()];
    let (mut mistakes, mut short_names, asked) = (Mistakes::default(), BTreeSet::new(), Asked::default());
    let resolve = |number: usize, values: Result<config::Resolved, Diagnostics>| {
        values.and_then(|values| resolved(&sweep.cells[number], values, &asked))
    };
    let summed = |number: usize, values| {
        resolve(number, values).map(|run| (CellRun::new(&sweep.cells[number], &run), run.short_names))
    };
    sweep.each(&|_| true, &summed, &mut |number, summed| match summed {
        Ok((cell, names)) => {
            short_names.extend(names.iter().map(ShortName::to_string));
            found[number] = Some(cell);
        }
        Err(errors) => mistakes.add(number, errors),
    });
    wrong.extend(mistakes.told(&sweep.cells));
    wrong.extend(sweep.report.iter().filter_map(|(metric, place)| {
        let (message, help) = stop::no_metric(metric)?;
        Some(Diagnostic::rule(place, &message, &help))
    }));
    Diagnostics::check(wrong)?;
    let cells = Cells {
        name: sweep.name.clone(),
        baseline: sweep.baseline.clone(),
        noise: sweep.noise.clone(),
        report: sweep.report.iter().map(|(metric, _)| metric.clone()).collect(),
        cells: found.into_iter().flatten().collect(),
        short_names: short_names.into_iter().collect(),
    };
    let (mut written, mut known) = (begin(&cells), BTreeSet::new());
    let firsts: Vec<bool> = cells.cells.iter().map(|cell| known.insert(&cell.run) && wanted(cell)).collect();
    sweep.each(&|number| firsts[number], &resolve, &mut |_, run| {
        if let (true, Ok(run)) = (written.is_ok(), run) {
            written = visit(run);
        }
    });
    Ok(written.map(|()| cells))
}

fn document(name_or_path: &str, reader: &dyn Reader) -> Result<String, Diagnostic> {
    if name_or_path.ends_with(".kdl") {
        return Ok(name_or_path.to_owned());
    }
    let (sweep, experiment) = (format!("{SWEEPS}/{name_or_path}.kdl"), format!("experiments/{name_or_path}.kdl"));
    let (sweeps, experiments) = (reader.list(SWEEPS), reader.list("experiments"));
    match (sweeps.contains(&sweep), experiments.contains(&experiment)) {
        (true, _) => Ok(sweep),
        (_, true) => Ok(experiment),
        _ => Err(unknown(name_or_path, reader)),
    }
}

fn unknown(name: &str, reader: &dyn Reader) -> Diagnostic {
    let all: Vec<String> = reader.list(SWEEPS).into_iter().chain(reader.list("experiments")).collect();
    Diagnostic::unknown_experiment(name, &all)
}

/// That no sweep and no experiment is called `name`, with those that are.
#[must_use]
pub fn unknown_sweep(name: &str, reader: &dyn Reader) -> Diagnostics {
    unknown(name, reader).into()
}

fn resolved(cell: &Cell, values: config::Resolved, asked: &Asked) -> Result<Resolved, Diagnostics> {
    let run = finish(values, &cell.overrides);
    let objections = rules::objections(&run, asked);
    sound(run, objections)
}

impl CellRun {
    fn new(cell: &Cell, run: &Resolved) -> Self {
        let axes = cell.axes.iter().filter(|(path, _)| path != "seed").cloned().collect();
        let warm_start = run.warm_start().map(|(_, id)| id.to_string());
        Self { case: cell.case.clone(), axes, seed: run.config.seed, run: run.id().to_string(), warm_start }
    }
}

/// What is wrong with cells: each mistake once, with the numbers of the cells that it is in.
#[derive(Default)]
struct Mistakes(Vec<(Diagnostic, Vec<usize>)>);

impl Mistakes {
    fn add(&mut self, number: usize, errors: Diagnostics) {
        for error in errors.into_vec() {
            match self.0.iter_mut().find(|(known, _)| known.is_same(&error)) {
                Some((_, numbers)) => numbers.push(number),
                None => self.0.push((error, vec![number])),
            }
        }
    }

    fn told(self, cells: &[Cell]) -> impl Iterator<Item = Diagnostic> {
        self.0.into_iter().map(move |(error, numbers)| {
            let titles: Vec<String> = numbers.iter().take(NAMED).map(|number| cells[*number].title()).collect();
            let more = if numbers.len() > NAMED { "; …" } else { "" };
            match numbers.len() == cells.len() {
                true if cells.len() == 1 => error,
                true => error.note(&format!("in every one of {} cells", cells.len())),
                false => {
                    error.note(&format!("in {} of {} cells: {}{more}", numbers.len(), cells.len(), titles.join("; ")))
                }
            }
        })
    }
}
