//! What a run has recorded so far, as a few digests: so it is told whether that is still what its files hold.

use std::collections::BTreeMap;
use std::path::Path;

use blake3::Hasher;

use crate::record::attempt::{APPENDED, STEPWISE};
use crate::record::{Disk, RunError, reader};

/// BLAKE3 of `metrics.jsonl`, and of the files of each folder of episodes: their names and digests, in the order of
/// their steps. A line or a file more costs as much as it is long, however long the run is.
#[derive(Clone, Debug, Default)]
pub(super) struct Ledger {
    metrics: Hasher,
    episodes: [Hasher; STEPWISE.len()],
}

impl Ledger {
    /// What lies in the folder `run`.
    ///
    /// # Errors
    /// The system's; [`RunError::Corrupt`] for two files of a step.
    pub(super) fn read(disk: &Disk, run: &Path) -> Result<Self, RunError> {
        let (mut ledger, metrics) = (Self::default(), run.join(APPENDED[0]));
        ledger.metrics.update_reader(disk.open(&metrics)?).map_err(RunError::io("read", &metrics))?;
        for (folder, files) in STEPWISE.into_iter().zip([reader::rollouts(disk, run)?, reader::evals(disk, run)?]) {
            for (_, path) in files {
                ledger.add(folder, &path, &disk.read(&path)?);
            }
        }
        Ok(ledger)
    }

    /// A line more of `metrics.jsonl`.
    pub(super) fn append(&mut self, line: &[u8]) {
        self.metrics.update(line);
    }

    /// A file more in a folder of episodes.
    pub(super) fn add(&mut self, folder: &str, path: &Path, bytes: &[u8]) {
        let name = path.file_name().unwrap_or_default().as_encoded_bytes();
        for (_, hasher) in STEPWISE.iter().zip(&mut self.episodes).filter(|(of, _)| **of == folder) {
            hasher.update(name).update(b"\n").update(blake3::hash(bytes).as_bytes());
        }
    }

    /// Bytes of `metrics.jsonl`.
    #[must_use]
    pub(super) fn length(&self) -> u64 {
        self.metrics.count()
    }

    /// Each digest in hex, by the name of its file or folder.
    #[must_use]
    pub(super) fn digests(&self) -> BTreeMap<String, String> {
        let hashers = [&self.metrics].into_iter().chain(&self.episodes);
        let names = [APPENDED[0]].into_iter().chain(STEPWISE);
        names.zip(hashers).map(|(name, hasher)| (name.to_owned(), hasher.finalize().to_hex().to_string())).collect()
    }

    /// That these are the digests `known` of the run in the folder `run`; those that are not known are not asked for.
    ///
    /// # Errors
    /// [`RunError::Altered`], which names the files; the system's.
    pub(super) fn check(&self, known: &BTreeMap<String, String>, disk: &Disk, run: &Path) -> Result<(), RunError> {
        if let Some(what) = reader::lost(disk, run)? {
            return Err(RunError::Altered { path: run.to_owned(), what });
        }
        let found = self.digests();
        match known.iter().find(|(name, digest)| found.get(*name) != Some(digest)) {
            Some((name, _)) => Err(RunError::Altered {
                path: run.join(name),
                what: "it does not hold what the run wrote there".to_owned(),
            }),
            None => Ok(()),
        }
    }
}
