//! Reads runs back: lists them, finds them by a part of their name, and gives their records.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::record::attempt::{APPENDED, STEPWISE, step_of};
use crate::record::error::some;
use crate::record::fields::Read;
use crate::record::lease::Holder;
use crate::record::state::Status;
use crate::record::{Disk, RunDir, RunError, State, tags};

/// A line of `starpo ls`.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    pub path: PathBuf,
    /// The directory's name, `<experiment>-<id>`.
    pub name: String,
    pub experiment: String,
    pub id: String,
    /// [`State::Running`] only if a live process holds it; a killed one's is [`State::Interrupted`].
    pub state: State,
    pub attempt: u32,
    /// The last step with metrics; 0 before the first.
    pub step: usize,
    /// The last line of metrics; null before the first.
    pub metrics: Value,
    /// When the last attempt ended, as `2026-01-31T12:34:56Z`; none while it runs, or if it was killed.
    pub finished: Option<String>,
}

/// The runs in the folder `runs`, by name. What cannot be read is left out and returned beside, as errors.
///
/// # Errors
/// If the folder cannot be listed; none is there: an empty list.
pub fn list(disk: &Disk, runs: &Path) -> Result<(Vec<Summary>, Vec<RunError>), RunError> {
    let (mut summaries, mut errors) = (Vec::new(), Vec::new());
    for name in names(disk, runs)? {
        match summary(disk, &runs.join(name)) {
            Ok(summary) => summaries.push(summary),
            Err(error) => errors.push(error),
        }
    }
    Ok((summaries, errors))
}

/// One run's line.
///
/// # Errors
/// The system's; [`RunError::Corrupt`].
pub fn summary(disk: &Disk, path: &Path) -> Result<Summary, RunError> {
    let run = RunDir::open(disk, path);
    let status = status(disk, path)?;
    let metrics = last(disk, &path.join("metrics.jsonl"))?;
    let attempt = disk.find_text(&path.join(format!("attempts/{:04}.kdl", status.attempt)))?;
    let name = run.name();
    let (experiment, id) = split(&name);
    Ok(Summary {
        path: path.to_owned(),
        experiment: experiment.to_owned(),
        id: id.to_owned(),
        state: status.state,
        attempt: status.attempt,
        step: metrics["step"].as_u64().unwrap_or(0) as usize,
        finished: attempt.and_then(|text| Read::parse(&text)?.text("end")),
        metrics,
        name,
    })
}

/// Where a run stands: [`State::Running`] only if a live process holds it.
///
/// # Errors
/// The system's; [`RunError::Corrupt`].
pub fn status(disk: &Disk, path: &Path) -> Result<Status, RunError> {
    let mut status = RunDir::open(disk, path).status()?;
    if status.state == State::Running && Holder::of(disk, path)?.is_none() {
        status.state = State::Interrupted;
    }
    Ok(status)
}

/// The directory of the run that `name` says: a path, a directory's name in `runs`, a tag, or any prefix of one
/// directory's name or of one id alone.
///
/// # Errors
/// [`RunError::Unknown`], [`RunError::Ambiguous`]; if the folder cannot be listed.
pub fn find(disk: &Disk, runs: &Path, name: &str) -> Result<PathBuf, RunError> {
    let direct = [runs.join(name), PathBuf::from(name)];
    for path in direct {
        if disk.exists(&path.join("run.lock.kdl"))? {
            // `.` and `..` say where a run is, and not what it is called.
            let named = |path: &PathBuf| path.file_name().is_some();
            return Ok(path.canonicalize().ok().filter(|_| !named(&path)).unwrap_or(path));
        }
    }
    if let Some(run) = tags::find(disk, runs, name)? {
        return Ok(runs.join(run));
    }
    let mut candidates = names(disk, runs)?;
    candidates.retain(|run| !name.is_empty() && (run.starts_with(name) || split(run).1.starts_with(name)));
    match candidates.as_slice() {
        [] => Err(RunError::Unknown { name: name.to_owned(), runs: runs.to_owned() }),
        [run] => Ok(runs.join(run)),
        _ => Err(RunError::Ambiguous { name: name.to_owned(), candidates }),
    }
}

/// A run's metrics, one object a step. A torn last line is one that a kill left, and is no step.
///
/// # Errors
/// The system's; [`RunError::Corrupt`] for a line that is no JSON.
pub fn metrics(disk: &Disk, run: &Path) -> Result<Vec<Value>, RunError> {
    lines(disk, &run.join("metrics.jsonl"))
}

/// A run's timings, one object a step.
///
/// # Errors
/// As [`metrics`].
pub fn timings(disk: &Disk, run: &Path) -> Result<Vec<Value>, RunError> {
    lines(disk, &run.join("timings.jsonl"))
}

fn lines(disk: &Disk, path: &Path) -> Result<Vec<Value>, RunError> {
    let text = disk.find_text(path)?.unwrap_or_default();
    whole(&text).lines().enumerate().map(|(before, line)| record(path, before, line)).collect()
}

/// The last of [`lines`] alone, since a record grows long; null before the first.
fn last(disk: &Disk, path: &Path) -> Result<Value, RunError> {
    let text = disk.find_text(path)?.unwrap_or_default();
    match whole(&text).rsplit_once('\n').unwrap_or(("", whole(&text))) {
        (_, "") => Ok(Value::Null),
        (before, line) => record(path, before.lines().count(), line),
    }
}

/// The last step that a run's metrics are of, however damaged the lines before it; 0 before the first.
///
/// # Errors
/// The system's.
pub fn last_step(disk: &Disk, run: &Path) -> Result<usize, RunError> {
    let path = run.join(APPENDED[0]);
    let bytes = if disk.exists(&path)? { disk.read(&path)? } else { Vec::new() };
    let text = String::from_utf8_lossy(&bytes);
    let step = |line: &str| serde_json::from_str::<Value>(line).ok()?["step"].as_u64();
    Ok(text.lines().rev().find_map(step).unwrap_or(0) as usize)
}

/// What of a record's text is not torn, without its last line's end.
fn whole(text: &str) -> &str {
    text.rfind('\n').map_or("", |end| &text[..end])
}

fn record(path: &Path, before: usize, line: &str) -> Result<Value, RunError> {
    let corrupt = |error| RunError::Corrupt { path: path.to_owned(), what: format!("line {}: {error}", before + 1) };
    serde_json::from_str(line).map_err(corrupt)
}

/// The text of a run's file of episodes, of which every one has some.
///
/// # Errors
/// The system's; [`RunError::Corrupt`] if it is empty, and as [`unpacked`].
pub fn episodes(disk: &Disk, path: &Path) -> Result<String, RunError> {
    match unpacked(path, disk.read(path)?)? {
        text if text.is_empty() => Err(RunError::Corrupt { path: path.to_owned(), what: "it is empty".to_owned() }),
        text => Ok(text),
    }
}

/// The text of episodes, compressed by zstd or plain: their first bytes tell. They were read from `path`.
///
/// # Errors
/// [`RunError::Corrupt`] if they cannot be decompressed or are not UTF-8.
pub fn unpacked(path: &Path, mut bytes: Vec<u8>) -> Result<String, RunError> {
    const ZSTD: [u8; 4] = [0x28, 0xB5, 0x2F, 0xFD];
    let corrupt = |what: String| RunError::Corrupt { path: path.to_owned(), what };
    if bytes.starts_with(&ZSTD) {
        bytes = zstd::decode_all(bytes.as_slice()).map_err(|error| corrupt(error.to_string()))?;
    }
    String::from_utf8(bytes).map_err(|error| corrupt(error.to_string()))
}

/// The steps whose episodes a run recorded while training, ascending, each with its file.
///
/// # Errors
/// If the folder cannot be listed; none is there: an empty list. [`RunError::Corrupt`] for two files of a step.
pub fn rollouts(disk: &Disk, run: &Path) -> Result<Vec<(usize, PathBuf)>, RunError> {
    stepwise(disk, &run.join(STEPWISE[0]))
}

/// The steps after which a run was evaluated, ascending, each with its file of episodes.
///
/// # Errors
/// As [`rollouts`].
pub fn evals(disk: &Disk, run: &Path) -> Result<Vec<(usize, PathBuf)>, RunError> {
    stepwise(disk, &run.join(STEPWISE[1]))
}

fn stepwise(disk: &Disk, folder: &Path) -> Result<Vec<(usize, PathBuf)>, RunError> {
    let step = |name: String| Some((step_of(&name)?, folder.join(name)));
    let mut steps: Vec<(usize, PathBuf)> = disk.names(folder)?.into_iter().filter_map(step).collect();
    steps.sort();
    match steps.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        Some(pair) => Err(RunError::Corrupt {
            path: folder.to_owned(),
            what: format!("it holds two files of step {}: an archive was unpacked over the run?", pair[0].0),
        }),
        None => Ok(steps),
    }
}

/// The files of episodes that a run's metrics tell of and that are not there, in words; None if all are.
///
/// # Errors
/// As [`metrics`] and [`rollouts`].
pub fn lost(disk: &Disk, run: &Path) -> Result<Option<String>, RunError> {
    let metrics = metrics(disk, run)?;
    let lacks = |found: Vec<(usize, PathBuf)>, field: &str| -> Vec<String> {
        let told = metrics.iter().filter(|line| line[field].is_object()).filter_map(|line| line["step"].as_u64());
        let there = |step: &u64| found.iter().any(|(found, _)| *found as u64 == *step);
        told.filter(|step| !there(step)).map(|step| step.to_string()).collect()
    };
    let folders = [lacks(rollouts(disk, run)?, "rollout"), lacks(evals(disk, run)?, "eval")];
    let words = STEPWISE.iter().zip(folders).filter(|(_, steps)| !steps.is_empty());
    let words: Vec<String> = words.map(|(folder, steps)| format!("{folder}/ lacks steps {}", some(&steps))).collect();
    Ok((!words.is_empty()).then(|| words.join("; ")))
}

/// What a run's attempts say of themselves, in their order: names and values as they are written.
///
/// # Errors
/// The system's.
pub fn attempts(disk: &Disk, run: &Path) -> Result<Vec<Vec<(String, String)>>, RunError> {
    let folder = run.join("attempts");
    let mut names = disk.names(&folder)?;
    names.retain(|name| name.ends_with(".kdl"));
    let read = |name: String| Ok(Read::parse(&disk.read_text(&folder.join(name))?).map_or_else(Vec::new, Read::all));
    names.into_iter().map(read).collect()
}

/// What a finished run came to, beside its metrics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunResult {
    /// Its last step.
    pub step: u64,
    pub digest: String,
    /// Why it ended before its last step, if it did.
    pub stop: Option<String>,
    /// The step whose checkpoint did best in an evaluation, if there was one.
    pub best: Option<u64>,
}

/// A run's result, if it is done.
///
/// # Errors
/// The system's.
pub fn result(disk: &Disk, run: &Path) -> Result<Option<RunResult>, RunError> {
    let read = disk.find_text(&run.join("result.kdl"))?.and_then(|text| Read::parse(&text));
    let result = |read: Read| {
        let (step, digest) = (read.count("step")?, read.text("digest")?);
        Some(RunResult { step, digest, stop: read.text("stop"), best: read.count("best") })
    };
    Ok(read.and_then(result))
}

/// The result of a run that says it is done, if its records still reach that far.
///
/// # Errors
/// The system's; [`RunError::Corrupt`] if there is no result, or steps or episodes that it is of are gone.
pub fn finished(disk: &Disk, run: &Path) -> Result<RunResult, RunError> {
    let corrupt = |what: String| RunError::Corrupt { path: run.to_owned(), what };
    let result = result(disk, run)?;
    let result = result.ok_or_else(|| corrupt("it is done, and its result.kdl is missing or damaged".to_owned()))?;
    let last = last(disk, &run.join("metrics.jsonl"))?["step"].as_u64().unwrap_or(0);
    if last != result.step {
        let what = format!("metrics.jsonl ends at step {last}, and result.kdl is of step {}", result.step);
        return Err(corrupt(what));
    }
    match lost(disk, run)? {
        Some(lost) => Err(corrupt(lost)),
        None => Ok(result),
    }
}

/// The digest in a run's result, if it is done.
///
/// # Errors
/// The system's.
pub fn digest(disk: &Disk, run: &Path) -> Result<Option<String>, RunError> {
    Ok(result(disk, run)?.map(|result| result.digest))
}

/// Names of the run directories in a folder, and of what cannot be looked into and might be one.
pub(super) fn names(disk: &Disk, runs: &Path) -> Result<Vec<String>, RunError> {
    let mut found = Vec::new();
    for name in disk.names(runs)?.into_iter().filter(|name| !name.starts_with('.')) {
        let has = |file| disk.exists(&runs.join(&name).join(file)).unwrap_or(true);
        if has("run.lock.kdl") || has("canon.txt") {
            found.push(name);
        }
    }
    Ok(found)
}

/// Experiment and id of a directory's name.
pub(super) fn split(name: &str) -> (&str, &str) {
    name.rsplit_once('-').unwrap_or(("", name))
}
