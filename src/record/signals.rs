//! Signals: the first asks the run to end in order, the second ends the process at once.

use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use signal_hook::consts::{SIGINT, SIGTERM, SIGUSR1};
use signal_hook::flag;

/// The signal that came first; 0 before.
static RECEIVED: AtomicUsize = AtomicUsize::new(0);
/// Whether the next one ends the process.
static ARMED: AtomicBool = AtomicBool::new(false);

/// Catches SIGINT, SIGTERM and SIGUSR1 (which schedulers send ahead of a time limit) from now on. Further
/// calls do nothing.
///
/// # Errors
/// The system's.
pub fn catch() -> io::Result<()> {
    static CAUGHT: OnceLock<Result<(), io::ErrorKind>> = OnceLock::new();
    // Registered twice, the first signal would end the process.
    let caught = CAUGHT.get_or_init(|| register().map_err(|error| error.kind()));
    (*caught).map_err(io::Error::from)
}

fn register() -> io::Result<()> {
    for signal in [SIGINT, SIGTERM, SIGUSR1] {
        // In this order: a signal must find the door still closed that it opens for the next.
        flag::register_conditional_shutdown(signal, i32::from(exit_code(signal)), &ARMED)?;
        flag::register_usize(signal, &RECEIVED, signal as usize)?;
        flag::register(signal, &ARMED)?;
    }
    Ok(())
}

/// The signal that asked this process to end, if one did.
#[must_use]
pub fn interrupted() -> Option<i32> {
    Some(RECEIVED.load(Ordering::SeqCst) as i32).filter(|signal| *signal != 0)
}

/// Exit code of a process that a signal ended: 130 by SIGINT, else 143.
#[must_use]
pub fn exit_code(signal: i32) -> u8 {
    if signal == SIGINT { 130 } else { 143 }
}
