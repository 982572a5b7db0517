//! No filter: RAGEN's `top_p` of 1 with zeros included.

use super::Outcome;
use crate::config::section;

section! {
    /// Every group is kept.
    pub struct NoFilter epoch 1 {}
}

impl NoFilter {
    /// Keeps all.
    #[must_use]
    pub fn select(&self, groups: usize) -> Outcome {
        Outcome::new(Vec::new(), &vec![None; groups], None)
    }
}
