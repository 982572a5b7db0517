//! `starpo sweep`: many runs of an experiment, carried out and compared.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;

use clap::{Args, ValueEnum};
use serde_json::{Map, Value, json};

use super::agent::locked;
use super::comparison;
use super::run::{catch_signals, tell};
use super::{CliError, Common, say};
use crate::config::Diagnostics;
use crate::config::sweep::title;
use crate::experiment;
use crate::record::error::some;
use crate::record::{Disk, Progress, RunDir, RunError, reader};
use crate::report;
use crate::sweep::{Launcher, Pool, Record, Room, Slurm, SweepEnded, SweepError, SweepResult, drive, jobs};

/// A sweep, or an experiment with several values to some overrides.
#[derive(Clone, Debug, Args)]
pub(super) struct Sweep {
    /// A name in `experiments/sweeps/` or `experiments/`, a path to a `.kdl` file, or the directory of a sweep
    name: String,
    /// `path=value`, `path=1,2,3`, `path=1..=5`, `path=1e-7..1e-5:log5`
    overrides: Vec<String>,
    /// What carries the runs out
    #[arg(long, value_enum, default_value_t = By::Pool)]
    launcher: By,
    /// Runs at a time; as many as fit the cores, unless said
    #[arg(long)]
    jobs: Option<NonZeroUsize>,
    /// Threads of a run; the cores are shared out, unless said
    #[arg(long)]
    threads: Option<NonZeroUsize>,
    /// An option for `sbatch`, such as `--sbatch=--time=04:00:00`; repeatable
    #[arg(long, value_name = "OPTION", allow_hyphen_values = true)]
    sbatch: Vec<String>,
    /// How often a run that failed begins again
    #[arg(long, default_value_t = 1)]
    retries: u32,
    /// Write down and list the runs, and start none
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    shown: comparison::Shown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum By {
    /// Processes on this machine
    Pool,
    /// Arrays of a Slurm cluster
    Slurm,
}

impl Sweep {
    pub(super) fn run(self, common: &Common) -> Result<(), CliError> {
        self.shown.check()?;
        let disk = Disk::default();
        let record = self.record(&disk, common)?;
        record.cells.short_names.iter().for_each(|name| tell(common, name));
        tell(common, &format!("sweep {}  {}", record.name(), record.path.display()));
        if self.dry_run {
            return list(&disk, &record, common);
        }
        let jobs = jobs(&disk, &common.runs_dir, &record)?;
        if jobs.is_empty() {
            return self.conclude(&disk, &record, common);
        }
        catch_signals()?;
        let output = record.path.join("output");
        disk.ensure_folder(&output)?;
        let mut launcher = self.launcher(&disk, &record, common)?;
        let progress = Progress::new(&record.cells.name, 0, jobs.len(), common.quiet || common.json);
        let ended = drive(&disk, &common.runs_dir, &jobs, &mut *launcher, self.retries, &progress);
        progress.finish();
        match ended? {
            SweepEnded::Interrupted(signal) => Err(CliError::Interrupted(signal)),
            SweepEnded::Done => self.conclude(&disk, &record, common),
            SweepEnded::Failed(runs) => {
                let mut message = failures(&runs);
                if let Err(error) = self.conclude(&disk, &record, common) {
                    message.push_str(&format!("\n{error}"));
                }
                Err(CliError::Failed { message, output })
            }
        }
    }

    /// Of a document or an experiment anew, of a sweep that is written down as it is there.
    fn record(&self, disk: &Disk, common: &Common) -> Result<Record, CliError> {
        let outside = common.outside();
        if experiment::sweep_exists(&self.name, &outside) || experiment::exists(&self.name, &outside) {
            return Ok(Record::make(disk, &common.runs_dir, &self.name, &self.overrides, &outside)??);
        }
        match Record::find(disk, &common.runs_dir, &self.name) {
            Ok(record) if self.overrides.is_empty() => whole(disk, record, common),
            Ok(record) => Err(CliError::Usage {
                message: format!("{} is written down: nothing overrides it", record.name()),
                help: Some(format!("`starpo sweep {} …` makes another", record.cells.name)),
            }),
            // The sweeps and experiments that there are say more than the directories.
            Err(RunError::Unknown { .. }) => {
                let unknown: Diagnostics = experiment::unknown_sweep(&self.name, &outside);
                Err(unknown.into())
            }
            Err(error) => Err(error.into()),
        }
    }

    fn launcher(&self, disk: &Disk, record: &Record, common: &Common) -> Result<Box<dyn Launcher>, CliError> {
        let said = |error: std::io::Error| CliError::Agent(format!("cannot find this program: {error}"));
        let program = std::env::current_exe().map_err(said)?;
        let runs = std::path::absolute(&common.runs_dir).map_err(said)?;
        let output = std::path::absolute(record.path.join("output")).map_err(said)?;
        // One run stands for all: settings that are local seldom differ within a sweep.
        let first = &record.cells.cells[0].run;
        let execution = locked(&RunDir::open(disk, &common.runs_dir.join(first)))?.config.execution;
        let (jobs, threads) = (self.jobs.map(NonZeroUsize::get), self.threads.map(NonZeroUsize::get));
        let threads = threads.or(execution.threads);
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let alone = (execution.device != "cpu").then_some(1);
        if self.launcher == By::Pool {
            return Ok(Box::new(Pool::new(program, runs, output, Room::new(jobs.or(alone), threads, cores))));
        }
        let (options, threads) = (self.sbatch.clone(), threads.unwrap_or(1));
        let slurm = Slurm::new(program, runs, output, record.name(), jobs, threads, options);
        Ok(Box::new(slurm.map_err(SweepError::from)?))
    }

    /// The table, and the page beside the sweep.
    fn conclude(&self, disk: &Disk, record: &Record, common: &Common) -> Result<(), CliError> {
        let result = self.result(disk, record, common)?;
        self.shown.say(&result, common)?;
        let page = record.path.join("report.html");
        disk.replace(&page, report::sweep::page(disk, &result)?.as_bytes())?;
        tell(common, &format!("page {}", page.display()));
        if result.missing.is_empty() {
            return Ok(());
        }
        let message = format!("runs, or their locks, are gone: {}", some(&result.missing));
        Err(CliError::Failed { message, output: record.path.join("output") })
    }

    fn result(&self, disk: &Disk, record: &Record, common: &Common) -> Result<SweepResult, CliError> {
        let shown = &self.shown;
        Ok(SweepResult::read(disk, &common.runs_dir, record, &shown.metric, shown.effect)?)
    }
}

/// A sweep that is written down, if the directories of its runs, and of the warm starts that are left to do, are still
/// there with their locks: it is names alone.
fn whole(disk: &Disk, record: Record, common: &Common) -> Result<Record, CliError> {
    let left = jobs(disk, &common.runs_dir, &record)?.into_iter().map(|job| job.run);
    let runs: BTreeSet<String> = record.cells.cells.iter().map(|cell| cell.run.clone()).chain(left).collect();
    let mut gone = Vec::new();
    for run in runs {
        let path = common.runs_dir.join(&run);
        match (disk.exists(&path)?, disk.exists(&path.join("run.lock.kdl"))?) {
            (true, true) => {}
            (true, false) => {
                return Err(RunError::Corrupt { path, what: "its run.lock.kdl is missing".to_owned() }.into());
            }
            (false, _) => gone.push(run),
        }
    }
    if gone.is_empty() {
        return Ok(record);
    }
    let message = format!("runs of {} are gone: {}", record.name(), some(&gone));
    let name = &record.cells.name;
    let help = format!("the sweep given anew (`starpo sweep {name} …`) makes them again and keeps what is there");
    Err(CliError::usage(&message, &help))
}

/// The cells and where their runs stand.
fn list(disk: &Disk, record: &Record, common: &Common) -> Result<(), CliError> {
    let mut cells = Vec::new();
    for cell in &record.cells.cells {
        let state = reader::status(disk, &common.runs_dir.join(&cell.run))?.state.name();
        let axes: Map<String, Value> = cell.axes.iter().map(|(path, value)| (path.clone(), json!(value))).collect();
        match common.json {
            true => {
                cells.push(json!({"case": cell.case, "axes": axes, "seed": cell.seed, "run": cell.run, "state": state}))
            }
            false => {
                let name = title(&cell.case, &cell.axes).unwrap_or_else(|| "all".to_owned());
                say(&format!("{state:<12} {}  {name}, seed {}", cell.run, cell.seed));
            }
        }
    }
    if common.json {
        say(&json!({ "sweep": record.name(), "cells": cells }).to_string());
    }
    Ok(())
}

fn failures(runs: &[(String, String)]) -> String {
    let lines: Vec<String> = runs.iter().map(|(run, reason)| format!("{run}: {reason}")).collect();
    let count = if runs.len() == 1 { "a run failed".to_owned() } else { format!("{} runs failed", runs.len()) };
    format!("{count}\n{}", lines.join("\n"))
}
