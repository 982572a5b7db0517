//! Diagnostics: what a policy has become, seen from outside. Pure functions; what they need of a policy is handed in.

pub mod collapse;
pub mod information;
pub mod regime;
pub mod thought;

pub use collapse::{Collapse, CollapseConfig, Cross, Family};
pub use information::{Information, Matrix, Retrieval};
pub use regime::{History, Regime, RegimeConfig};
pub use thought::{Place, Thought};
