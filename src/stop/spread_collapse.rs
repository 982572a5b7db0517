//! Reward-spread collapse: RAGEN's `reward_variance_collapse` (Wang et al. 2025, arXiv:2504.20073; its trainer).
//!
//! The baseline is the mean of `rollout.reward_std` over the first `window` steps whose filter kept something. The run
//! ends once `window` such steps in a row, after those, were all below `share` of it.
//!
//! How it differs from RAGEN: judged after the step's update (there before it), and whatever the filter's score is
//! (there only scores of rewards write the metric). As there: a baseline of 0 is never undercut.

use serde_json::Value;

use super::{Action, Memory, metric};
use crate::config::section;
use crate::stats;

section! {
    /// The spread of rewards within groups has fallen to a small share of what it was (RAGEN, arXiv:2504.20073).
    pub struct SpreadCollapse epoch 1 {
        /// Steps of the baseline, and steps in a row that must be below its share; empty ones do not count.
        pub window: usize where 1..=1000000,
        /// Of the baseline.
        pub share: f64 where 0.0..=1.0,
    }
}

impl SpreadCollapse {
    pub(super) fn feed(&self, memory: &mut Memory, record: &Value) -> Result<Option<Action>, String> {
        let kept = metric(record, "filter.kept")?.is_some_and(|kept| kept > 0.0);
        let Some(spread) = metric(record, "rollout.reward_std")?.filter(|_| kept) else { return Ok(None) };
        if memory.baseline.len() < self.window {
            memory.baseline.push(spread);
            return Ok(None);
        }
        let base = stats::mean(&memory.baseline);
        Ok(memory.count(spread < self.share * base, self.window).then(|| {
            let Self { window, share } = self;
            Action::Stop(format!(
                "rollout.reward_std was below {share} of its first {window} steps' mean, {base}, in {window} steps"
            ))
        }))
    }
}
