//! Drives numbered steps through a run directory: records, checkpoints, resume, signals. Warm starts and training
//! share it.

use std::path::Path;

use miette::Diagnostic;
use serde::Serialize;
use serde_json::{Value, json};
use thiserror::Error;

use crate::experiment::{ExecutionConfig, LoggingConfig};
use crate::record::sinks::{self, Events};
use crate::record::{Attempt, Begun, Checkpoint, Disk, Progress, RunError, Timings, reader, signals};

/// What is driven: step 0 looks before anything is learnt, steps `1..=steps` learn.
pub trait Stage {
    /// The last step.
    fn steps(&self) -> usize;

    /// Carries out a step.
    ///
    /// # Errors
    /// Why the run cannot go on, for a person.
    fn step(&mut self, step: usize, timings: &mut Timings) -> Result<Report, String>;

    /// Everything that later steps depend on: files, and counters.
    fn save(&self) -> (Vec<(String, Vec<u8>)>, Value);

    /// Takes back what [`Stage::save`] gave.
    ///
    /// # Errors
    /// What does not fit.
    fn restore(&mut self, files: &[(String, Vec<u8>)], counters: &Value) -> Result<(), String>;
}

/// What a step left to record.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// One line of `metrics.jsonl`.
    pub metrics: Value,
    /// One line for a person.
    pub view: String,
    /// Episodes of the step, one JSON object a line.
    pub rollouts: Option<String>,
    /// Episodes of the evaluation after the step.
    pub evals: Option<String>,
    /// Text to show above the progress bar.
    pub message: Option<String>,
    /// Why this step is the last, where it is so before its time.
    pub stop: Option<String>,
    /// How well the step's evaluation went: the checkpoint of the best one is kept. None without an evaluation.
    pub score: Option<f64>,
}

/// How a drive ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    Done {
        digest: String,
    },
    /// By this signal; the run can be resumed.
    Interrupted(i32),
}

/// Why a drive could not go on. The run is left to be resumed.
#[derive(Debug, Error, Diagnostic)]
pub enum StageError {
    #[error(transparent)]
    #[diagnostic(transparent)]
    Run(#[from] RunError),

    #[error("step {step} of {run}: {reason}")]
    #[diagnostic(help("everything up to the last checkpoint is kept; the same command goes on from it"))]
    Step { run: String, step: usize, reason: String },

    #[error("the checkpoint of step {step} of {run} does not fit: {reason}")]
    #[diagnostic(help("start the run again with --fresh, which moves this directory aside"))]
    Restore { run: String, step: usize, reason: String },
}

/// How the last step of a drive ended.
enum Last {
    /// The run is over, with these final metrics.
    Done {
        step: usize,
        metrics: Value,
        stop: Option<String>,
        best: Option<usize>,
    },
    Signal(i32),
}

/// Runs `stage` from the attempt's checkpoint to its end, or to a signal.
///
/// # Errors
/// A step that cannot go on, a checkpoint that does not fit, the disk's. The run is then `failed`, with the reason.
pub fn drive(
    stage: &mut dyn Stage,
    begun: Begun,
    execution: &ExecutionConfig,
    logging: &LoggingConfig,
    progress: &Progress,
) -> Result<Ended, StageError> {
    let Begun { attempt, checkpoint, warnings } = begun;
    for warning in &warnings {
        tracing::warn!("{warning}");
        progress.message(warning);
    }
    let ended = events(&attempt, logging)
        .and_then(|events| steps(stage, &attempt, events.as_ref(), checkpoint, execution, progress))
        .and_then(|last| tabulate(&attempt, logging, last))
        .and_then(|last| end(&attempt, last));
    if let Err(error) = &ended {
        let reason = match error {
            StageError::Step { reason, .. } | StageError::Restore { reason, .. } => reason.clone(),
            StageError::Run(error) => error.to_string(),
        };
        // Where the lease is lost or the disk is gone this fails too: the run then resumes as after a kill.
        let _ = attempt.fail(&reason);
    }
    ended
}

fn end(attempt: &Attempt, last: Last) -> Result<Ended, StageError> {
    match last {
        Last::Done { step, metrics, stop, best } => {
            Ok(Ended::Done { digest: attempt.finish(step, &metrics, stop.as_deref(), best)? })
        }
        Last::Signal(signal) => {
            attempt.interrupt(&format!("signal {signal}"))?;
            Ok(Ended::Interrupted(signal))
        }
    }
}

/// The attempt's events for TensorBoard, if the run is to write them.
fn events(attempt: &Attempt, logging: &LoggingConfig) -> Result<Option<Events>, StageError> {
    Ok(logging.tensorboard.then(|| Events::begin(attempt)).transpose()?)
}

/// Writes the records of a run that is at its end as Parquet, if it is to.
fn tabulate(attempt: &Attempt, logging: &LoggingConfig, last: Last) -> Result<Last, StageError> {
    if logging.parquet && matches!(last, Last::Done { .. }) {
        sinks::parquet::write_run(attempt.disk(), attempt.path())?;
    }
    Ok(last)
}

/// Writes what a finished run is to have of its records for other tools and has not, as it would have done on its way.
///
/// # Errors
/// The system's; what is wrong with the records.
pub fn catch_up(disk: &Disk, run: &Path, logging: &LoggingConfig) -> Result<(), RunError> {
    if logging.tensorboard {
        let (events, attempt) = (run.join(sinks::tensorboard::FOLDER), reader::status(disk, run)?.attempt);
        sinks::tensorboard::complete(disk, &events, attempt, &reader::metrics(disk, run)?)?;
    }
    if logging.parquet && sinks::parquet::check().is_ok() {
        let there = sinks::parquet::FILES.iter().map(|name| disk.exists(&run.join(name)));
        if !there.collect::<Result<Vec<_>, _>>()?.into_iter().all(|there| there) {
            sinks::parquet::write_run(disk, run)?;
        }
    }
    Ok(())
}

fn steps(
    stage: &mut dyn Stage,
    attempt: &Attempt,
    events: Option<&Events>,
    checkpoint: Option<Checkpoint>,
    execution: &ExecutionConfig,
    progress: &Progress,
) -> Result<Last, StageError> {
    let run = || attempt.path().display().to_string();
    let mut timings = Timings::new();
    let (mut step, mut best) = (0, None);
    if let Some(checkpoint) = checkpoint {
        step = checkpoint.step;
        let counters = &checkpoint.counters;
        let fits = stage.restore(&checkpoint.files, &counters["stage"]);
        fits.map_err(|reason| StageError::Restore { run: run(), step, reason })?;
        progress.message(&format!("goes on after step {step}"));
        best = Best::read(counters);
        if is_last(stage, &checkpoint) {
            let (metrics, stop) = (counters["metrics"].clone(), counters["stop"].as_str().map(str::to_owned));
            return Ok(Last::Done { step, metrics, stop, best: best.map(|best| best.step) });
        }
        step += 1;
    }
    loop {
        let report = stage.step(step, &mut timings);
        let report = report.map_err(|reason| StageError::Step { run: run(), step, reason })?;
        write(attempt, step, &report)?;
        if let Some(events) = events {
            events.add(&report.metrics)?;
        }
        progress.step(step, &report.view, timings.seconds_left(stage.steps().saturating_sub(step)));
        if let Some(message) = &report.message {
            progress.message(message);
        }
        if let Some(reason) = &report.stop {
            progress.message(&format!("ends after step {step}: {reason}"));
        }
        let last = step >= stage.steps() || report.stop.is_some();
        let signal = signals::interrupted();
        let better = report.score.filter(|score| best.is_none_or(|best: Best| *score > best.score));
        best = better.map(|score| Best { step, score }).or(best);
        let pinned = best.map(|best| best.step);
        if last || better.is_some() || signal.is_some() || step.is_multiple_of(execution.checkpoint_every) {
            let (files, counters) = timings.phase("save", || stage.save());
            let counters = json!({ "stage": counters, "stop": report.stop, "best": best, "metrics": report.metrics });
            let keep = execution.checkpoints;
            timings.phase("checkpoint", || attempt.save_checkpoint(step, files, counters, keep, pinned))?;
        }
        attempt.append_timings(&timings.end_step(step))?;
        if last {
            return Ok(Last::Done { step, metrics: report.metrics, stop: report.stop, best: pinned });
        }
        if let Some(signal) = signal {
            return Ok(Last::Signal(signal));
        }
        step += 1;
    }
}

/// Writes a step's records down.
fn write(attempt: &Attempt, step: usize, report: &Report) -> Result<(), RunError> {
    if let Some(lines) = &report.rollouts {
        attempt.write_rollouts(step, lines)?;
    }
    if let Some(lines) = &report.evals {
        attempt.write_evals(step, lines)?;
    }
    attempt.append_metrics(&report.metrics)
}

/// The best evaluation so far, of equal ones the earliest.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
struct Best {
    step: usize,
    score: f64,
}

impl Best {
    /// From a checkpoint's counters.
    fn read(counters: &Value) -> Option<Self> {
        let (step, score) = (&counters["best"]["step"], &counters["best"]["score"]);
        Some(Self { step: step.as_u64()? as usize, score: score.as_f64()? })
    }
}

/// Whether nothing but the result is left to write.
fn is_last(stage: &dyn Stage, checkpoint: &Checkpoint) -> bool {
    checkpoint.step >= stage.steps() || !checkpoint.counters["stop"].is_null()
}
