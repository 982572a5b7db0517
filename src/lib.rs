//! starpo trains and diagnoses reasoning agents by reinforcement learning on whole trajectories (StarPO), reproducibly.
//!
//! In reading order, each module importing only from those above it (see ARCHITECTURE.md):
//!
//! ```text
//! config ─▶ experiment ─▶ record (run directory) ─▶ sweep (many of them)
//!                │
//!                ▼
//! env, chat ─▶ rollout ─▶ filter ─▶ reward ─▶ advantage ─▶ batch ─▶ update ─▶ train ─▶ cli
//!                 ▲          ▲                                 objective ▲
//!                 │          └ reference, critic                         │
//!                 └─────────────────── policy ───────────────────────────┘
//! ```

pub mod rng;
pub mod stats;
pub mod trajectory;
pub mod config;
pub mod env;
pub mod chat;
pub mod filter;
pub mod objective;
pub mod diagnose;
pub mod reward;
pub mod advantage;
pub mod batch;
pub mod schedule;
pub mod stop;
pub mod experiment;
pub mod policy;
pub mod record;
pub mod rollout;
pub mod update;
pub mod learners;
pub mod critic;
pub mod gradients;
pub mod replay;
pub mod gather;
pub mod evaluate;
pub mod stage;
pub mod warm_start;
pub mod train;
pub mod sweep;
pub mod report;
pub mod cli;
