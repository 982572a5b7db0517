//! Aggregation: how the losses of tokens become one number, as a weight for each token.
//!
//! `token-mean` is DAPO's (Yu et al. 2025, arXiv:2503.14476), `seq-mean-token-mean` GRPO's (arXiv:2402.03300),
//! `seq-mean-token-sum-norm` Dr. GRPO's (arXiv:2503.20783); the names are verl's.
//!
//! How it differs from verl and RAGEN:
//! - Counts are those of the whole mini-batch. There they are a micro-batch's, so that the loss depends on the split
//!   (with micro-batches of one row, `token-mean` is `seq-mean-token-mean`).
//! - A row without response tokens counts in no mean; there it is NaN or counts, depending on the version.
//! - No 1e-8 in a denominator.
//! - The width of `seq-mean-token-sum-norm` is a constant of the config, not the padded width of whatever came
//!   together. As there, and despite the name, the sum is not divided by the number of rows.

use crate::config::{section, variants};

variants! {
    /// How the losses of tokens become one number.
    pub enum AggregateConfig: "aggregate" {
        "token-mean" => TokenMean(TokenMean),
        "seq-mean-token-sum" => SeqMeanTokenSum(SeqMeanTokenSum),
        "seq-mean-token-mean" => SeqMeanTokenMean(SeqMeanTokenMean),
        "seq-mean-token-sum-norm" => SeqMeanTokenSumNorm(SeqMeanTokenSumNorm),
    }
}

section! {
    /// Mean over all response tokens of the mini-batch.
    pub struct TokenMean epoch 1 {}
}

section! {
    /// Mean over rows of the sum over a row's response tokens.
    pub struct SeqMeanTokenSum epoch 1 {}
}

section! {
    /// Mean over rows of the mean over a row's response tokens.
    pub struct SeqMeanTokenMean epoch 1 {}
}

section! {
    /// Sum over all response tokens, divided by a constant width.
    pub struct SeqMeanTokenSumNorm epoch 1 {
        /// The width, in tokens.
        pub width: usize where 1..=100000000,
    }
}

impl AggregateConfig {
    /// The weight of each token of rows with these numbers of response tokens, one weight a row; 0 for an empty row.
    #[must_use]
    pub fn weights(&self, counts: &[usize]) -> Vec<f64> {
        let tokens: usize = counts.iter().sum();
        let rows = counts.iter().filter(|count| **count > 0).count();
        let weight = |count: usize| match self {
            _ if count == 0 => 0.0,
            AggregateConfig::TokenMean(_) => 1.0 / tokens as f64,
            AggregateConfig::SeqMeanTokenSum(_) => 1.0 / rows as f64,
            AggregateConfig::SeqMeanTokenMean(_) => 1.0 / (rows as f64 * count as f64),
            AggregateConfig::SeqMeanTokenSumNorm(norm) => 1.0 / norm.width as f64,
        };
        counts.iter().map(|count| weight(*count)).collect()
    }
}
