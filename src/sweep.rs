//! Sweeps: many runs of one experiment, carried out by a launcher and compared.
//!
//! ```text
//! experiment::sweep ─▶ Record (locks of all runs, then sweep.kdl) ─▶ drive ─▶ Launcher: pool, slurm
//!                                       │                                        └ starpo exec RUN_DIR
//!                                       └─▶ SweepResult: states, metrics, scores by task ─▶ Comparison
//! ```
//!
//! A run knows nothing of sweeps: it is an ordinary run directory. So a run that is finished is reused, one that was
//! interrupted goes on, and two sweeps share what they have in common. What a sweep itself is stands in
//! `runs/sweeps/<name>-<id>/sweep.kdl`, written after the locks of all its runs and before any of them starts.

mod comparison;
mod drive;
mod launch;
mod pool;
mod record;
mod result;
mod slurm;
pub mod statistics;

pub use comparison::{Arm, Comparison, Measured, Paired};
pub use drive::{SweepEnded, SweepError, drive, jobs};
pub use launch::{Job, Launcher};
pub use pool::{Pool, Room};
pub use record::Record;
pub use result::{CellResult, SweepResult, Task, chosen};
pub use slurm::Slurm;
