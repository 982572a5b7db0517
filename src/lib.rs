//! starpo trains and diagnoses reasoning agents by reinforcement learning on whole trajectories (StarPO), reproducibly.

pub mod rng;
pub mod stats;
pub mod trajectory;
pub mod config;
pub mod env;
pub mod filter;
pub mod advantage;
pub mod objective;
pub mod experiment;
pub mod policy;
pub mod record;
