//! DAPO's filter (Yu et al. 2025, arXiv:2503.14476, eq. 11): groups whose members all got the same.
//!
//! Such a group's centred advantages are 0: it carries no gradient and dilutes the loss of the others. DAPO asks for
//! 0 < correct answers < G and plays on until the batch is full, which is `empty "refill"` here.
//!
//! How it differs from DAPO: it compares episode scores, which need not be 0 or 1, up to rounding
//! ([`stats::constant`](crate::stats::constant)); and a lone member, which verl's code keeps, is refused with the
//! config.

use super::{Dropped, EmptyConfig, Outcome};
use crate::config::section;

section! {
    /// Drops the groups whose episode scores do not differ (DAPO, arXiv:2503.14476).
    pub struct EqualRewards epoch 1 {
        /// What a step does that keeps fewer groups than it plays.
        pub empty: EmptyConfig,
        /// Consecutive steps that keep nothing after which the run stops; 0 never stops it.
        pub empty_stop: usize where 0..=1000000,
    }
}

impl EqualRewards {
    /// The verdict on groups whose episode scores have these deviations, which are exactly 0 where they are equal.
    #[must_use]
    pub fn select(&self, deviations: &[f64]) -> Outcome {
        let verdict = |deviation: &f64| match deviation {
            deviation if deviation.is_nan() => Some(Dropped::NoScore),
            deviation => (*deviation == 0.0).then_some(Dropped::EqualRewards),
        };
        Outcome::new(deviations.to_vec(), &deviations.iter().map(verdict).collect::<Vec<_>>(), None)
    }
}
