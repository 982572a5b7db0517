//! Validation floor: RAGEN's `low_validation_success` (Wang et al. 2025, arXiv:2504.20073; its trainer).
//!
//! The run ends once `eval.success` was below `below` in `for` evaluations in a row. The one before the first step does
//! not count.
//!
//! How it differs from RAGEN: one success over the whole panel (there one for each environment, any of which may end
//! the run).

use serde_json::Value;

use super::{Action, Memory, metric};
use crate::config::section;

section! {
    /// Evaluations in a row solve next to nothing (RAGEN, arXiv:2504.20073).
    pub struct ValidationFloor epoch 1 {
        /// A share of tasks solved, as sampled.
        pub below: f64 where 0.0..=1.0,
        /// Consecutive evaluations; the one before the first step does not count.
        pub r#for: usize where 1..=1000000,
    }
}

impl ValidationFloor {
    pub(super) fn feed(&self, memory: &mut Memory, record: &Value) -> Result<Option<Action>, String> {
        let Some(success) = metric(record, "eval.success")?.filter(|_| record["step"] != 0) else { return Ok(None) };
        Ok(memory.count(success < self.below, self.r#for).then(|| {
            Action::Stop(format!("eval.success was below {} in {} consecutive evaluations", self.below, self.r#for))
        }))
    }
}
