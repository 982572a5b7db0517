//! What carries out runs: processes here, a cluster elsewhere.

use std::io;

/// A run directory to be carried out by `starpo exec`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// The directory's name.
    pub run: String,
    /// The name of the run that must be done before: its warm start.
    pub after: Option<String>,
}

/// Carries out runs. It is told names alone, and says only that a run is no longer being carried out: how it went
/// stands in the run's directory.
pub trait Launcher {
    /// Takes on more runs. One that comes after another that is being carried out begins once that one ended well; if
    /// it ended otherwise, this one ends unbegun.
    ///
    /// # Errors
    /// The system's, or the cluster's.
    fn start(&mut self, jobs: &[Job]) -> io::Result<()>;

    /// The runs that have ended since the last call.
    ///
    /// # Errors
    /// The system's, or the cluster's.
    fn poll(&mut self) -> io::Result<Vec<String>>;

    /// Begins no more runs, and passes the signal on to those that go: each ends after its step, with a checkpoint.
    ///
    /// # Errors
    /// The system's, or the cluster's.
    fn stop(&mut self, signal: i32) -> io::Result<()>;
}
