//! What a run leaves on disk, and what it shows while it goes.
//!
//! ```text
//! RunDir::open_or_create ─ begin ─▶ Attempt ─ metrics, rollouts, evals, checkpoint … ─ finish ─▶ result.kdl
//!                            │
//!                            └─ the lease, the newest sound checkpoint, everything after it cut away
//! ```
//!
//! A run directory is written so that a kill at any instant leaves it resumable: files appear whole or not at all
//! ([`disk`]), append-only files are cut back to the checkpoint that a resumed attempt starts from ([`checkpoint`]),
//! and one process at a time holds the lease ([`lease`]).

pub mod archive;
pub mod attempt;
pub mod checkpoint;
pub mod compare;
pub mod digest;
pub mod disk;
pub mod episode;
pub mod error;
mod fields;
pub mod garbage;
pub mod lease;
mod ledger;
pub mod log;
pub mod progress;
mod prolong;
mod provenance;
pub mod reader;
pub mod run_dir;
pub mod signals;
pub mod sinks;
pub mod state;
pub mod tags;
pub mod timings;
pub mod values;

/// The folder of sweeps in a folder of runs.
pub const SWEEPS: &str = "sweeps";

pub use attempt::{Attempt, Begun, Facts};
pub use checkpoint::Checkpoint;
pub use disk::Disk;
pub use error::RunError;
pub use progress::Progress;
pub use run_dir::RunDir;
pub use state::State;
pub use timings::Timings;
