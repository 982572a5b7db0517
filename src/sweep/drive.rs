//! Carries a sweep out: warm starts first, each run once, what failed again a set number of times.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use std::time::Duration;

use miette::Diagnostic;
use thiserror::Error;

use super::launch::{Job, Launcher};
use super::record::Record;
use crate::record::reader;
use crate::record::{Disk, Progress, RunError, State, signals};

/// Between two looks at the launcher.
const PAUSE: Duration = Duration::from_millis(200);
/// Looks between two that read what the runs have recorded.
const BETWEEN: u32 = 10;
/// Runs that are shown one by one.
const NAMED: usize = 8;

/// How a sweep ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SweepEnded {
    Done,
    /// Runs that failed for good, each with the reason.
    Failed(Vec<(String, String)>),
    /// By this signal; the sweep can be gone on with.
    Interrupted(i32),
}

/// Why a sweep could not go on.
#[derive(Debug, Error, Diagnostic)]
pub enum SweepError {
    #[error(transparent)]
    #[diagnostic(transparent)]
    Run(#[from] RunError),

    #[error("cannot carry out runs: {0}")]
    #[diagnostic(help("what has been done is kept; the same command goes on"))]
    Launcher(#[from] io::Error),
}

/// A sweep under way.
struct Drive<'d> {
    disk: &'d Disk,
    runs: &'d Path,
    launcher: &'d mut dyn Launcher,
    /// What is not done yet, with the retries that it has left.
    open: BTreeMap<String, (Job, u32)>,
    /// Runs that some other process carries out.
    elsewhere: BTreeSet<String>,
    failed: Vec<(String, String)>,
    stopped: Option<i32>,
}

/// The runs of a sweep that are not done, each once: the warm starts that are needed and not made come first.
///
/// # Errors
/// A directory that cannot be read, or of a run that says it is done and is damaged.
pub fn jobs(disk: &Disk, runs: &Path, record: &Record) -> Result<Vec<Job>, RunError> {
    let done = |run: &String| {
        let run = runs.join(run);
        let done = reader::status(disk, &run)?.state == State::Done;
        done.then(|| reader::finished(disk, &run)).transpose().map(|result| result.is_some())
    };
    let (mut warm, mut own, mut known) = (Vec::new(), Vec::new(), BTreeSet::new());
    for cell in &record.cells.cells {
        if !known.insert(&cell.run) || done(&cell.run)? {
            continue;
        }
        let mut after = None;
        if let Some(name) = &cell.warm_start
            && !done(name)?
        {
            if known.insert(name) {
                warm.push(Job { run: name.clone(), after: None });
            }
            after = Some(name.clone());
        }
        own.push(Job { run: cell.run.clone(), after });
    }
    warm.append(&mut own);
    Ok(warm)
}

/// Carries out runs. One that ends without being done begins again up to `retries` times.
///
/// # Errors
/// The launcher's; a directory that cannot be read.
pub fn drive(
    disk: &Disk,
    runs: &Path,
    jobs: &[Job],
    launcher: &mut dyn Launcher,
    retries: u32,
    progress: &Progress,
) -> Result<SweepEnded, SweepError> {
    let (failed, elsewhere) = (Vec::new(), BTreeSet::new());
    let mut drive = Drive { disk, runs, launcher, open: BTreeMap::new(), elsewhere, failed, stopped: None };
    drive.open = jobs.iter().map(|job| (job.run.clone(), (job.clone(), retries))).collect();
    drive.launcher.start(jobs)?;
    let mut looks: u32 = 0;
    loop {
        if let (Some(signal), None) = (signals::interrupted(), drive.stopped) {
            progress.message("every run ends after its step; again: at once");
            drive.stopped = Some(signal);
            drive.launcher.stop(signal)?;
        }
        let before = drive.open.len();
        for message in drive.look()? {
            progress.message(&message);
        }
        let view = drive.view();
        if drive.open.len() < before {
            progress.step(jobs.len() - drive.open.len(), &view, None);
        }
        if drive.open.is_empty() {
            break;
        }
        if looks.is_multiple_of(BETWEEN) {
            progress.within(&format!("{view}{}", drive.going(jobs)));
        }
        looks += 1;
        std::thread::sleep(PAUSE);
    }
    Ok(match (drive.stopped, drive.failed) {
        (Some(signal), _) => SweepEnded::Interrupted(signal),
        (None, failed) if failed.is_empty() => SweepEnded::Done,
        (None, failed) => SweepEnded::Failed(failed),
    })
}

impl Drive<'_> {
    fn state(&self, run: &str) -> Result<State, RunError> {
        Ok(reader::status(self.disk, &self.runs.join(run))?.state)
    }

    /// Takes in what has ended, and starts again what should be. What a person should know.
    fn look(&mut self) -> Result<Vec<String>, SweepError> {
        let mut ended = self.launcher.poll()?;
        for name in std::mem::take(&mut self.elsewhere) {
            match (self.state(&name)?, self.stopped) {
                (State::Running, None) => drop(self.elsewhere.insert(name)),
                _ => ended.push(name),
            }
        }
        // Of a warm start and a run that came after it, both ended, the warm start says whether there is a way on.
        ended.sort_by_key(|name| self.open.get(name).is_some_and(|(job, _)| job.after.is_some()));
        let (mut again, mut messages) = (Vec::new(), Vec::new());
        for name in ended {
            let Some((job, left)) = self.open.get(&name).cloned() else { continue };
            let state = self.state(&name)?;
            let unbegun = self.unmade(&job)?;
            match (state, unbegun) {
                _ if self.stopped.is_some() => drop(self.open.remove(&name)),
                (State::Done, _) => drop(self.open.remove(&name)),
                (State::Running, _) => drop(self.elsewhere.insert(name)),
                (_, Some(warm)) if self.open.contains_key(&warm) => again.push(job),
                (_, Some(warm)) => self.give_up(&name, format!("its warm start {warm} failed")),
                (state, None) if left == 0 => self.give_up(&name, reason(state)),
                (state, None) => {
                    messages.push(format!("{name} begins again: {}", reason(state)));
                    self.open.insert(name, (job.clone(), left - 1));
                    again.push(job);
                }
            }
        }
        if !again.is_empty() {
            self.launcher.start(&again)?;
        }
        Ok(messages)
    }

    /// The warm start that a run waits for, if it is not made.
    fn unmade(&self, job: &Job) -> Result<Option<String>, RunError> {
        match &job.after {
            Some(warm) if self.state(warm)? != State::Done => Ok(Some(warm.clone())),
            _ => Ok(None),
        }
    }

    fn give_up(&mut self, name: &str, reason: String) {
        self.open.remove(name);
        self.failed.push((name.to_owned(), reason));
    }

    /// What is left, in one line.
    fn view(&self) -> String {
        let failed = match self.failed.len() {
            0 => String::new(),
            count => format!(" · {count} failed"),
        };
        format!("{} to do{failed}", self.open.len())
    }

    /// Steps of the first runs that go: a bar has no room for more.
    fn going(&self, jobs: &[Job]) -> String {
        let open = jobs.iter().filter(|job| self.open.contains_key(&job.run)).take(NAMED);
        let runs = open.filter_map(|job| reader::summary(self.disk, &self.runs.join(&job.run)).ok());
        let going = runs.filter(|run| run.state == State::Running);
        going.map(|run| format!(" · {} step {}", run.name, run.step)).collect()
    }
}

fn reason(state: State) -> String {
    match state {
        State::Failed(reason) => reason,
        State::New => "it never began".to_owned(),
        _ => "it was killed, or lost its machine".to_owned(),
    }
}
