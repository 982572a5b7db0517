//! A longer run goes on from a shorter one: the steps that they share are copied, not computed again.
//!
//! Two runs whose canonical texts differ in `train.steps` alone are one run up to the first step that asked for the
//! number ([`Horizon`](crate::schedule::Horizon)): every checkpoint says whether that was before it. The shorter run is
//! only read, and only if its digest is still that of its files.

use std::path::{Path, PathBuf};

use crate::record::attempt::{APPENDED, STEPWISE, step_of};
use crate::record::checkpoint::{self, Checkpoint};
use crate::record::disk::parent;
use crate::record::{Begun, Disk, RunDir, RunError, State, digest, reader};

/// How the line of the canonical text begins that two such runs differ in.
const LENGTH: &str = "train.steps\tu64\t";

/// What a longer run has in common with a shorter one.
struct Shared {
    run: PathBuf,
    checkpoint: Checkpoint,
    /// That of the best evaluation so far, where it is another.
    best: Option<Checkpoint>,
}

impl Begun {
    /// If the run begins anew, lets it go on from the longest finished run beside it that is this one, only shorter:
    /// that run's name and the step after which this one goes on.
    ///
    /// # Errors
    /// The disk's, in writing; the attempt has then failed. What cannot be read is not gone on from.
    pub fn prolong(&mut self) -> Result<Option<(String, usize)>, RunError> {
        let run = self.attempt.run.clone();
        if self.checkpoint.is_some() {
            return Ok(None);
        }
        let mut found = None;
        for other in shorter(&run.disk, &run) {
            let name = RunDir::open(&run.disk, &other).name();
            match shared(&run.disk, other) {
                Ok(shared) => found = shared,
                Err(why) => self.warnings.push(passed_over(&name, &why)),
            }
            if found.is_some() {
                break;
            }
        }
        let Some(shared) = found else { return Ok(None) };
        let (from, step) = (RunDir::open(&run.disk, &shared.run).name(), shared.checkpoint.step);
        let why = match self.adopt(&run.disk, &shared) {
            Ok(()) => {
                self.checkpoint = Some(shared.checkpoint);
                return Ok(Some((from, step)));
            }
            Err(RunError::Altered { .. }) => Ok(format!("its record is not what its checkpoint {step} knows of")),
            Err(error @ RunError::Io { doing: "read", .. }) => Ok(error.to_string()),
            Err(error) => Err(error),
        };
        match why.and_then(|why| self.attempt.begin_anew().map(|()| why)) {
            Ok(why) => {
                self.warnings.push(passed_over(&from, &why));
                Ok(None)
            }
            Err(error) => {
                let _ = self.attempt.fail(&error.to_string());
                Err(error)
            }
        }
    }

    /// Copies records, then checkpoints: before the last of them is there, the run still begins anew.
    fn adopt(&self, disk: &Disk, shared: &Shared) -> Result<(), RunError> {
        let (theirs, ours) = (&shared.run, self.attempt.path());
        for name in APPENDED {
            let mut bytes = disk.read(&theirs.join(name))?;
            bytes.truncate(shared.checkpoint.offsets.get(name).copied().unwrap_or(0) as usize);
            disk.replace(&ours.join(name), &bytes)?;
        }
        for folder in STEPWISE {
            disk.ensure_folder(&ours.join(folder))?;
            let names = disk.names(&theirs.join(folder))?;
            for name in names.iter().filter(|name| step_of(name).is_some_and(|step| step <= shared.checkpoint.step)) {
                let path = Path::new(folder).join(name);
                disk.replace(&ours.join(&path), &disk.read(&theirs.join(&path))?)?;
            }
        }
        self.attempt.go_on_from(Some(&shared.checkpoint))?;
        let best = shared.best.as_ref().map(|best| best.step);
        for checkpoint in shared.best.iter().chain([&shared.checkpoint]) {
            checkpoint::save(disk, ours, self.attempt.number(), checkpoint, 1, best)?;
        }
        Ok(())
    }
}

/// The finished runs beside `run` that are the same and shorter, the longest first.
fn shorter(disk: &Disk, run: &RunDir) -> Vec<PathBuf> {
    let runs = parent(run.path());
    let Some((canon, length)) = run.canon().ok().and_then(|canon| split(&canon)) else { return Vec::new() };
    let mut found = Vec::new();
    for summary in reader::names(disk, runs).unwrap_or_default() {
        let other = RunDir::open(disk, &runs.join(summary));
        let canon_of = || split(&other.canon().ok()?);
        if let Some((_, steps)) = canon_of().filter(|(text, steps)| *text == canon && *steps < length)
            && other.status().is_ok_and(|status| status.state == State::Done)
        {
            found.push((steps, other.path().to_owned()));
        }
    }
    found.sort_unstable();
    found.into_iter().rev().map(|(_, path)| path).collect()
}

/// A canonical text without its number of steps, and that number.
fn split(canon: &str) -> Option<(String, u64)> {
    let line = canon.lines().find(|line| line.starts_with(LENGTH))?;
    Some((canon.replace(&format!("{line}\n"), ""), line.strip_prefix(LENGTH)?.parse().ok()?))
}

fn passed_over(run: &str, why: &str) -> String {
    format!("{run} is this run, only shorter, and is not gone on from: {why}")
}

/// What of a run does not depend on its length, if anything; why it cannot be told, where its records are not what its
/// result says.
fn shared(disk: &Disk, run: PathBuf) -> Result<Option<Shared>, String> {
    let text = |error: RunError| error.to_string();
    let Some(result) = reader::digest(disk, &run).map_err(text)? else {
        return Err("it is done, and has no result".to_owned());
    };
    if let Some(lost) = reader::lost(disk, &run).map_err(text)? {
        return Err(lost);
    }
    if digest::digest(disk, &run).map_err(text)? != result {
        return Err("its files are not those of its digest".to_owned());
    }
    Ok(independent(disk, run))
}

fn independent(disk: &Disk, run: PathBuf) -> Option<Shared> {
    let load = |step| checkpoint::load(disk, &run, step).ok();
    let early = |found: &Checkpoint| found.counters["stage"]["foreseen"] == false;
    let steps = checkpoint::steps(disk, &run).ok()?;
    steps.into_iter().rev().filter_map(load).filter(early).find_map(|checkpoint| {
        let best = checkpoint.counters["best"]["step"].as_u64().map(|step| step as usize);
        let best = match best.filter(|best| *best < checkpoint.step) {
            // Pruned since, where a later evaluation did better: the longer run would be without it.
            Some(best) => Some(load(best)?),
            None => None,
        };
        Some(Shared { run: run.clone(), checkpoint, best })
    })
}
