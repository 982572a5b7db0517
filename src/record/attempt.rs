//! One process's go at a run, from taking the lease to giving it back.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use crate::record::checkpoint::{self, Checkpoint, Found};
use crate::record::disk::parent;
use crate::record::fields::Fields;
use crate::record::lease::{self, Lease};
use crate::record::ledger::Ledger;
use crate::record::state::{State, Status};
use crate::record::timings::{unix_time, utc};
use crate::record::values::leaves;
use crate::record::{Disk, RunDir, RunError, digest, provenance, reader};

/// The files that grow line by line and are cut back to a checkpoint.
pub(super) const APPENDED: [&str; 2] = ["metrics.jsonl", "timings.jsonl"];
/// The folders with one file a step.
pub(super) const STEPWISE: [&str; 2] = ["rollouts", "evals"];
/// Room that the run keeps for the reason why it failed, should the disk be full by then.
const RESERVE: (&str, usize) = ("reserve", 8192);
/// How hard zstd tries. Part of no digest: those are over uncompressed bytes.
const COMPRESSION: i32 = 3;

type Result<T> = std::result::Result<T, RunError>;

/// How an attempt is carried out: recorded beside the run, part of no key.
#[derive(Clone, Debug)]
pub struct Facts {
    pub command: String,
    pub device: String,
    pub threads: usize,
}

/// A begun attempt and what it goes on from.
#[derive(Debug)]
pub struct Begun {
    pub attempt: Attempt,
    /// None: from the beginning.
    pub checkpoint: Option<Checkpoint>,
    /// What was wrong with newer checkpoints, and what is lost of the record, a line each.
    pub warnings: Vec<String>,
}

/// The right to write to a run's directory. Everything of a step is written before the step's checkpoint. Dropped
/// without an end, it leaves a run that resumes, as a kill does.
#[derive(Debug)]
pub struct Attempt {
    pub(super) run: RunDir,
    lease: Lease,
    number: u32,
    description: Fields,
    ledger: Mutex<Ledger>,
}

impl Attempt {
    pub(super) fn begin(run: &RunDir, lease: Lease, last: u32, facts: &Facts) -> Result<Begun> {
        let names = run.disk.names(&run.path().join("attempts"))?;
        let described = names.iter().filter_map(|name| name.strip_suffix(".kdl")?.parse().ok()).max();
        let number = last.max(described.unwrap_or(0)).saturating_add(1);
        let description = Fields::default()
            .with("attempt", number)
            .with_text("command", &facts.command)
            .with_text("host", &lease::host())
            .with("pid", std::process::id())
            .with_text("device", &facts.device)
            .with("threads", facts.threads);
        let description = provenance::describe(description).with_text("start", &utc(unix_time()));
        let attempt = Self { run: run.clone(), lease, number, description, ledger: Mutex::default() };
        match attempt.set_out() {
            Ok(found) => Ok(Begun { attempt, checkpoint: found.checkpoint, warnings: found.warnings }),
            Err(error) => {
                let _ = attempt.fail(&error.to_string());
                Err(error)
            }
        }
    }

    /// The newest checkpoint, with what was written after it removed.
    fn set_out(&self) -> Result<Found> {
        let (disk, reserve) = (&self.run.disk, self.path().join(RESERVE.0));
        for folder in [self.path().to_owned(), self.path().join("attempts")] {
            disk.remove_drafts(&folder)?;
        }
        if disk.length(&reserve)? != RESERVE.1 as u64 {
            disk.replace(&reserve, &[b'.'; RESERVE.1])?;
        }
        self.describe(self.description.clone())?;
        self.run.set_status(&Status { state: State::Running, attempt: self.number })?;
        checkpoint::remove_drafts(disk, self.path())?;
        let mut found = checkpoint::latest(disk, self.path())?;
        found.warnings.extend(self.beyond(found.checkpoint.as_ref())?);
        self.cut_back(found.checkpoint.as_ref())?;
        self.sync_folders()?;
        self.go_on_from(found.checkpoint.as_ref())?;
        Ok(found)
    }

    /// Removes all that is recorded.
    pub(super) fn begin_anew(&self) -> Result<()> {
        self.cut_back(None)?;
        self.go_on_from(None)
    }

    /// What was recorded after `checkpoint`, in words, if anything was.
    fn beyond(&self, checkpoint: Option<&Checkpoint>) -> Result<Option<String>> {
        let (last, kept) = (reader::last_step(&self.run.disk, self.path())?, checkpoint.map_or(0, |kept| kept.step));
        let what =
            || format!("steps {} to {last} were recorded, and are made again: no checkpoint holds them", kept + 1);
        Ok((last > kept).then(what))
    }

    /// Sees that what is recorded is what `checkpoint` knows of it.
    pub(super) fn go_on_from(&self, checkpoint: Option<&Checkpoint>) -> Result<()> {
        let found = Ledger::read(&self.run.disk, self.path())?;
        let known = checkpoint.map(|checkpoint| checkpoint.recorded.clone()).unwrap_or_default();
        found.check(&known, &self.run.disk, self.path())?;
        *self.ledger() = found;
        Ok(())
    }

    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forces the names of what this attempt builds on: whoever made it may have been killed before that.
    fn sync_folders(&self) -> Result<()> {
        let (disk, checkpoints, runs) = (&self.run.disk, checkpoint::checkpoints(self.path()), parent(self.path()));
        disk.ensure_folder(&checkpoints)?;
        disk.sync_folder(&checkpoints)?;
        disk.sync_folder(self.path())?;
        disk.sync_folder(runs)?;
        for above in runs.ancestors().skip(1) {
            // Those that are not ours may be closed to us.
            let _ = disk.sync_folder(if above == Path::new("") { Path::new(".") } else { above });
        }
        Ok(())
    }

    /// Removes what was recorded after `checkpoint`: lines, files of later steps, half-written files; what others put
    /// there stays. What grows line by line is there from now on.
    fn cut_back(&self, checkpoint: Option<&Checkpoint>) -> Result<()> {
        let disk = &self.run.disk;
        for name in APPENDED {
            let offset = checkpoint.and_then(|checkpoint| checkpoint.offsets.get(name)).copied().unwrap_or(0);
            disk.ensure_file(&self.path().join(name))?;
            disk.truncate(&self.path().join(name), offset)?;
        }
        for folder in STEPWISE.map(|folder| self.path().join(folder)) {
            disk.remove_drafts(&folder)?;
            for name in disk.names(&folder)? {
                if step_of(&name).is_some_and(|step| checkpoint.is_none_or(|kept| step > kept.step)) {
                    disk.remove_file(&folder.join(name))?;
                }
            }
        }
        disk.remove_file(&self.path().join("result.kdl"))
    }

    /// The run's directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.run.path()
    }

    pub(crate) fn disk(&self) -> &Disk {
        &self.run.disk
    }

    /// Counts from 1.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Adds a step's metrics: one line of `metrics.jsonl`, with keys in the order given, floats at their shortest, and
    /// null for what is not finite.
    ///
    /// # Errors
    /// The system's; [`RunError::LeaseLost`].
    pub fn append_metrics(&self, metrics: &Value) -> Result<()> {
        let line = self.append(APPENDED[0], metrics)?;
        self.ledger().append(line.as_bytes());
        Ok(())
    }

    /// Adds a line to `timings.jsonl`, the one record that may differ between equal runs.
    ///
    /// # Errors
    /// The system's; [`RunError::LeaseLost`].
    pub fn append_timings(&self, timings: &Value) -> Result<()> {
        self.append(APPENDED[1], timings).map(drop)
    }

    fn append(&self, name: &str, line: &Value) -> Result<String> {
        self.lease.check()?;
        let line = format!("{line}\n");
        self.run.disk.append(&self.path().join(name), line.as_bytes())?;
        Ok(line)
    }

    /// Writes the episodes of a step, one JSON object a line.
    ///
    /// # Errors
    /// The system's; [`RunError::LeaseLost`].
    pub fn write_rollouts(&self, step: usize, lines: &str) -> Result<()> {
        self.write_episodes(STEPWISE[0], step, lines)
    }

    /// Writes the episodes of the evaluation after a step (0: before the first), one JSON object a line.
    ///
    /// # Errors
    /// The system's; [`RunError::LeaseLost`].
    pub fn write_evals(&self, step: usize, lines: &str) -> Result<()> {
        self.write_episodes(STEPWISE[1], step, lines)
    }

    fn write_episodes(&self, folder: &str, step: usize, lines: &str) -> Result<()> {
        self.lease.check()?;
        let path = self.folder(folder)?.join(format!("step-{step:06}.jsonl.zst"));
        let bytes = compress(lines.as_bytes(), COMPRESSION).map_err(RunError::io("compress", &path))?;
        self.run.disk.replace(&path, &bytes)?;
        self.ledger().add(folder, &path, &bytes);
        Ok(())
    }

    /// A folder of the run's, made if need be: but not the run's own, which somebody may have removed.
    fn folder(&self, name: &str) -> Result<PathBuf> {
        let (disk, folder) = (&self.run.disk, self.path().join(name));
        if !disk.exists(&folder)? {
            disk.create_folder(&folder)?;
            disk.sync_folder(self.path())?;
        }
        Ok(folder)
    }

    /// Saves a checkpoint after step `step`, and keeps the newest `keep` and that of step `best`. `files` are the
    /// learner's, `counters` whatever else the next steps depend on.
    ///
    /// # Errors
    /// The system's; [`RunError::LeaseLost`]; [`RunError::Altered`] if somebody else wrote to the metrics.
    ///
    /// # Panics
    /// If a file's name is no plain name, or two are the same.
    pub fn save_checkpoint(
        &self,
        step: usize,
        files: Vec<(String, Vec<u8>)>,
        counters: Value,
        keep: usize,
        best: Option<usize>,
    ) -> Result<()> {
        self.lease.check()?;
        let (disk, mut offsets) = (&self.run.disk, BTreeMap::new());
        for name in APPENDED {
            let path = self.path().join(name);
            disk.sync(&path)?;
            offsets.insert(name.to_owned(), disk.length(&path)?);
        }
        let ledger = self.ledger().clone();
        if offsets[APPENDED[0]] != ledger.length() {
            let what = format!("it holds {} bytes, and the run wrote {}", offsets[APPENDED[0]], ledger.length());
            return Err(RunError::Altered { path: self.path().join(APPENDED[0]), what });
        }
        // The names of the append-only files, and of the folders with one file a step.
        disk.sync_folder(self.path())?;
        let checkpoint = Checkpoint { step, files, offsets, recorded: ledger.digests(), counters };
        checkpoint::save(disk, self.path(), self.number, &checkpoint, keep, best)
    }

    /// Records the result after the run's last step: the digest of what is there. `metrics` are the final ones, as
    /// nested objects; `stop` says why the step is the last, if before its time, and `best` which step's checkpoint did
    /// best in an evaluation. Returns the digest.
    ///
    /// # Errors
    /// The system's; [`RunError::LeaseLost`]; [`RunError::Corrupt`] if the newest checkpoint is not the last step's;
    /// [`RunError::Altered`] if the record is not what the run wrote.
    pub fn finish(&self, step: usize, metrics: &Value, stop: Option<&str>, best: Option<usize>) -> Result<String> {
        self.lease.check()?;
        let disk = &self.run.disk;
        if checkpoint::steps(disk, self.path())?.last() != Some(&step) {
            let what = format!("the checkpoint of its last step, {step}, is missing");
            return Err(RunError::Corrupt { path: self.path().to_owned(), what });
        }
        Ledger::read(disk, self.path())?.check(&self.ledger().digests(), disk, self.path())?;
        let digest = digest::digest(disk, self.path())?;
        let mut result = Fields::default().with("step", step);
        result = best.into_iter().fold(result, |result, best| result.with("best", best));
        result = stop.into_iter().fold(result, |result, stop| result.with_text("stop", stop));
        let result = result.with_lines("metrics", &flat(metrics)).with_text("digest", &digest);
        disk.replace(&self.path().join("result.kdl"), result.to_string().as_bytes())?;
        self.end(State::Done, "done")?;
        Ok(digest)
    }

    /// Ends the attempt before the run's end, by a signal: the run is left to be resumed from its last checkpoint.
    ///
    /// # Errors
    /// The system's; [`RunError::LeaseLost`].
    pub fn interrupt(&self, reason: &str) -> Result<()> {
        self.end(State::Interrupted, reason)
    }

    /// Ends the attempt by an error: the run can be resumed from its last checkpoint once that is mended.
    ///
    /// # Errors
    /// The system's; [`RunError::LeaseLost`].
    pub fn fail(&self, reason: &str) -> Result<()> {
        // Where the disk is full, what is half written makes room for the reason too.
        let _ = checkpoint::remove_drafts(&self.run.disk, self.path());
        self.end(State::Failed(reason.to_owned()), reason)
    }

    fn end(&self, state: State, reason: &str) -> Result<()> {
        self.lease.check()?;
        self.run.disk.remove_file(&self.path().join(RESERVE.0))?;
        let description = self.description.clone().with_text("end", &utc(unix_time())).with_text("reason", reason);
        let described = self.describe(description);
        // Of the two, the reason of a failure is where people and programs look.
        if !matches!(state, State::Failed(_)) {
            described?;
        }
        self.run.set_status(&Status { state, attempt: self.number })
    }

    fn describe(&self, description: Fields) -> Result<()> {
        let attempts = self.folder("attempts")?;
        self.run.disk.replace(&attempts.join(format!("{:04}.kdl", self.number)), description.to_string().as_bytes())
    }
}

/// The step that a file of episodes is of; unpacked from an archive it is plain. What is called otherwise is not ours.
pub(super) fn step_of(name: &str) -> Option<usize> {
    let stem = name.strip_suffix(".zst").unwrap_or(name).strip_suffix(".jsonl")?;
    let step = stem.strip_prefix("step-")?.parse().ok()?;
    (stem == format!("step-{step:06}")).then_some(step)
}

/// By zstd, with a checksum.
pub(super) fn compress(bytes: &[u8], level: i32) -> std::io::Result<Vec<u8>> {
    let mut encoder = zstd::Encoder::new(Vec::new(), level)?;
    encoder.include_checksum(true)?;
    std::io::copy(&mut &*bytes, &mut encoder)?;
    encoder.finish()
}

/// Nested objects as lines of `rollout.success 0.5`.
fn flat(metrics: &Value) -> Fields {
    leaves(metrics).into_iter().fold(Fields::default(), |fields, (path, value)| match value {
        Value::Null => fields.with(&path, "#null"),
        Value::Bool(value) => fields.with(&path, format_args!("#{value}")),
        Value::Number(number) => fields.with(&path, number),
        Value::String(text) => fields.with_text(&path, text),
        other => fields.with_text(&path, &other.to_string()),
    })
}
