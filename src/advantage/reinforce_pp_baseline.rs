//! REINFORCE++-baseline (Hu 2025, arXiv:2501.03262, section 3): a group's mean as baseline, whitened over the batch.
//!
//! A = whitened (s − μ), with μ over the group's units; constant over all response tokens before whitening, which runs
//! over all response tokens of the kept groups ([`crate::stats::whitened`]).
//!
//! How it differs from verl: the unit is said; a lone unit's difference is 0, or with `lone "raw"` its score as there;
//! a constant group's differences are exactly 0.

use super::unit::{Lone, Unit, relative};
use super::{Credit, Rewards};
use crate::config::section;

section! {
    /// Scores less their group's mean, whitened over the batch (REINFORCE++-baseline, arXiv:2501.03262).
    pub struct ReinforcePpBaseline epoch 1 {
        /// What the group's mean counts.
        pub unit: Unit,
        /// The difference of a group's only unit.
        pub lone: Lone,
        /// Whether advantages are whitened over all response tokens of the kept groups.
        pub whiten: bool,
    }
}

impl ReinforcePpBaseline {
    pub(super) fn credit(&self, group: &Rewards<'_>) -> Credit {
        Credit::of(self.unit.spread(group, &relative(self.unit.scores(group), None, self.lone)))
    }
}
