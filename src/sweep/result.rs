//! What a sweep's runs have come to, read from their directories.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

use super::comparison::Comparison;
use super::record::Record;
use crate::record::{Disk, RunDir, RunError, State, reader, values};

/// What a table shows when a sweep does not say.
const METRICS: [&str; 3] = ["eval.success", "eval.greedy.success", "eval.reward"];

/// A sweep as far as its runs have come.
#[derive(Clone, Debug)]
pub struct SweepResult {
    /// The name of its directory; several subjects have none.
    pub name: String,
    /// In the order of the sweep's document; cells of one case stand together.
    pub cells: Vec<CellResult>,
    /// Runs whose directories are not there any more, so that their cells are not among those above.
    pub missing: Vec<String>,
    /// Statistics of its arms.
    pub comparison: Comparison,
}

/// A cell and where its run stands.
#[derive(Clone, Debug)]
pub struct CellResult {
    /// The case's name; empty where there are no cases.
    pub case: String,
    /// Path and value of each axis that has several, without the seed.
    pub axes: Vec<(String, String)>,
    pub seed: u64,
    /// The name of the run's directory.
    pub run: String,
    pub path: PathBuf,
    pub state: State,
    /// Of a finished run.
    pub digest: Option<String>,
    /// The records of its steps, one object a step.
    pub metrics: Vec<Value>,
    /// By metric, where it is a mean over tasks: the values of the last evaluation by task.
    pub tasks: BTreeMap<String, BTreeMap<Task, f64>>,
}

/// A task of the held-out panel: its place there, its environment, its index.
pub type Task = (usize, String, u64);

impl SweepResult {
    /// Reads the runs of a sweep. Metrics are those asked for, or else the sweep's own, or else success and reward of
    /// the last evaluation.
    ///
    /// # Errors
    /// The system's; [`RunError::Corrupt`].
    pub fn read(disk: &Disk, runs: &Path, record: &Record, metrics: &[String], effect: f64) -> Result<Self, RunError> {
        let sweep = &record.cells;
        let mut known: BTreeMap<&str, usize> = BTreeMap::new();
        let (mut cells, mut missing) = (Vec::<CellResult>::with_capacity(sweep.cells.len()), Vec::new());
        for cell in &sweep.cells {
            if missing.contains(&cell.run) {
                continue;
            }
            if !known.contains_key(cell.run.as_str()) && !disk.exists(&runs.join(&cell.run).join("run.lock.kdl"))? {
                missing.push(cell.run.clone());
                continue;
            }
            let read = match known.get(cell.run.as_str()) {
                Some(number) => cells[*number].clone(),
                None => CellResult::read(disk, &runs.join(&cell.run))?,
            };
            known.insert(&cell.run, cells.len());
            cells.push(CellResult { case: cell.case.clone(), axes: cell.axes.clone(), seed: cell.seed, ..read });
        }
        let metrics = chosen(metrics, &sweep.report);
        let comparison = Comparison::new(&cells, metrics, sweep.baseline.as_deref(), sweep.noise.as_deref(), effect);
        Ok(Self { name: record.name(), cells, missing, comparison })
    }
}

/// The metrics of a table: those asked for, or those of the sweep, or the usual ones.
#[must_use]
pub fn chosen(asked: &[String], own: &[String]) -> Vec<String> {
    let usual = || METRICS.map(str::to_owned).to_vec();
    [asked, own].into_iter().find(|metrics| !metrics.is_empty()).map_or_else(usual, <[String]>::to_vec)
}

impl CellResult {
    /// A run alone, as a cell without a sweep.
    ///
    /// # Errors
    /// The system's; [`RunError::Corrupt`].
    pub fn read(disk: &Disk, run: &Path) -> Result<Self, RunError> {
        let state = reader::status(disk, run)?.state;
        let result = (state == State::Done).then(|| reader::finished(disk, run)).transpose()?;
        let metrics = reader::metrics(disk, run)?;
        let seedless = || RunError::Corrupt { path: run.to_owned(), what: "canon.txt has no seed".to_owned() };
        let seed = seed(&disk.read_text(&run.join("canon.txt"))?).ok_or_else(seedless)?;
        let evaluated = metrics.iter().rev().find(|line| line["eval"].is_object());
        let tasks = match evaluated.and_then(|line| line["step"].as_u64()) {
            Some(step) => {
                let file = reader::evals(disk, run)?.into_iter().find(|(found, _)| *found as u64 == step);
                let what = || format!("evals/ lacks step {step}");
                let (_, file) = file.ok_or_else(|| RunError::Corrupt { path: run.to_owned(), what: what() })?;
                tasks(disk, &file)?
            }
            None => BTreeMap::new(),
        };
        Ok(Self {
            case: String::new(),
            axes: Vec::new(),
            seed,
            run: RunDir::open(disk, run).name(),
            path: run.to_owned(),
            state,
            digest: result.map(|result| result.digest),
            metrics,
            tasks,
        })
    }

    /// The last value of a metric, such as `eval.success`; None if no step has it.
    #[must_use]
    pub fn value(&self, metric: &str) -> Option<f64> {
        self.metrics.iter().rev().find_map(|line| values::at(line, metric))
    }
}

/// The seed in the canonical text of a run, or of a warm start, which has one of its own.
fn seed(canon: &str) -> Option<u64> {
    let of = |path: &str| canon.lines().find_map(|line| line.strip_prefix(path)?.strip_prefix("\tu64\t")?.parse().ok());
    of("seed").or_else(|| of("warm-start.seed"))
}

/// What pairing reads of an episode.
#[derive(Deserialize)]
struct Line {
    group: usize,
    task: LineTask,
    end: String,
    turns: Vec<LineTurn>,
}

#[derive(Deserialize)]
struct LineTask {
    env: String,
    index: u64,
}

#[derive(Deserialize)]
struct LineTurn {
    reward: f64,
    #[serde(default)]
    penalty: f64,
}

/// Success and reward by task of an evaluation: its file holds the sampled pass, then the greedy one.
fn tasks(disk: &Disk, path: &Path) -> Result<BTreeMap<String, BTreeMap<Task, f64>>, RunError> {
    let mut found: BTreeMap<String, BTreeMap<Task, f64>> = BTreeMap::new();
    let text = reader::episodes(disk, path)?;
    for (number, line) in text.lines().enumerate() {
        let line: Line = serde_json::from_str(line).map_err(|error| RunError::Corrupt {
            path: path.to_owned(),
            what: format!("line {}: {error}", number + 1),
        })?;
        let task = (line.group, line.task.env, line.task.index);
        let sampled = found.get("eval.success").is_none_or(|scores| !scores.contains_key(&task));
        let pass = if sampled { "eval" } else { "eval.greedy" };
        let success = f64::from(u8::from(line.end == "solved"));
        let reward: f64 = line.turns.iter().map(|turn| turn.reward + turn.penalty).sum();
        found.entry(format!("{pass}.success")).or_default().insert(task.clone(), success);
        found.entry(format!("{pass}.reward")).or_default().insert(task, reward);
    }
    Ok(found)
}
