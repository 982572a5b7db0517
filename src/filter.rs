//! Filters: which groups the update sees.

use crate::config::{section, variants};

variants! {
    /// Which groups the update sees.
    pub enum FilterConfig: "filter" {
        "none" => None(NoFilter),
        "top-p" => TopP(TopP),
    }
}

section! {
    /// Every group is kept.
    pub struct NoFilter epoch 1 {}
}

section! {
    /// The groups of largest score that reach a share of the total.
    pub struct TopP epoch 1 {
        /// Share of the mass to reach.
        pub value: f64 where 0.0..=1.0,
    }
}
