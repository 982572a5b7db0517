//! Estimators: credit of each response token.

use crate::config::{section, variants};

variants! {
    /// Credit.
    pub enum AdvantageConfig: "advantage" {
        "grpo" => Grpo(Grpo),
    }
}

section! {
    /// Group-relative (Shao et al. 2024).
    pub struct Grpo epoch 1 {
        /// Whether advantages are divided by the group's deviation.
        pub std: bool,
    }
}
