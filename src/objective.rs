//! Objectives: the loss and its derivative in the log-probs.

use crate::config::{section, variants};

variants! {
    /// The loss.
    pub enum ObjectiveConfig: "objective" {
        "ppo" => Ppo(Ppo),
    }
}

section! {
    /// PPO's clipped surrogate (Schulman et al. 2017).
    pub struct Ppo epoch 1 {
        /// Weight of the entropy bonus.
        pub entropy_coef: f64 where 0.0..=1000.0,
    }
}
