//! The run's `log.txt`: what `tracing` reports, for people. Never part of a result.

use std::io::{self, Write};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use tracing_subscriber::EnvFilter;

use crate::record::disk::Handle;
use crate::record::{Disk, RunError};

/// Where the process's log goes at present.
static TARGET: Mutex<Option<Box<dyn Handle>>> = Mutex::new(None);

/// Sends the process's log to the end of `log.txt` in the folder `run`: first for good, later calls only move it (a
/// warm start is a run of its own inside another's process). `filter` as `tracing_subscriber` reads it, such as
/// `info` or `starpo=debug`.
///
/// # Errors
/// The system's; a filter that does not parse reads as `info`.
pub fn log_to(disk: &Disk, run: &Path, filter: &str) -> Result<(), RunError> {
    let file = disk.open_log(&run.join("log.txt"))?;
    *TARGET.lock().unwrap_or_else(PoisonError::into_inner) = Some(file);
    let filter = EnvFilter::try_new(filter).unwrap_or_else(|_| EnvFilter::new("info"));
    // Fails only where a subscriber is there already, which is ours or the embedding program's choice.
    let _ = tracing_subscriber::fmt().with_env_filter(filter).with_ansi(false).with_writer(|| Target).try_init();
    Ok(())
}

struct Target;

impl Write for Target {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match TARGET.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            Some(file) => file.write(bytes),
            None => Ok(bytes.len()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
