//! How much thoughts tell of their prompts: what a matrix of log-probs says.
//!
//! L: `[reasonings][prompts]`, L[i][j] = log p(zᵢ | xⱼ) in nats; c(i): the prompt that zᵢ was sampled after; N prompts.
//!
//! ```text
//! matchedᵢ = L[i][c(i)]     marginalᵢ = logsumexpⱼ L[i][j] − ln N     MI = mean(matched − marginal) ≤ ln N
//! H(Z|X) = −mean matched    H(Z) = −mean marginal    MI = H(Z) − H(Z|X)    z = MI / (std(marginal) + 0.001)
//! ```
//! (RAGEN-2, arXiv:2604.06268, `collapse_metrics.py`.) With sums over a reasoning's tokens this estimates the mutual
//! information of a prompt, each of the N as likely, and its reasoning. With means over its tokens (`per_token`,
//! RAGEN's `mi_estimate`) lengths compare, and ln N bounds it too, but it is no mutual information: an average over
//! tokens is not the log of a probability. Either can be below 0, since reasonings are few.
//!
//! Retrieval asks which prompt makes a reasoning likeliest; a prompt with the tokens of its own is as good as its own.
//!
//! How it differs from RAGEN:
//! - `mi` is the sequences' (there `mi_seq_estimate`); what is per token says so.
//! - A constant marginal has a deviation of exactly 0, and z is 0 then; there −450 was seen.
//! - Chance levels at k > 1 are exact: 1 − C(N−m, k)/C(N, k) for m equal prompts, not min(1, k·m/N).
//! - Ties go to the prompt of lowest index; there they depend on the device's sort.
//! - f64 in the order of the matrix.

use serde::Serialize;

use crate::stats;

/// Added to the deviation that z divides by, as in RAGEN.
const Z_EPSILON: f64 = 1e-3;

/// Reasonings scored after prompts.
#[derive(Clone, Debug, PartialEq)]
pub struct Matrix {
    /// `[reasonings][prompts]`: log-probs summed over the reasoning's tokens.
    pub sums: Vec<Vec<f64>>,
    /// Tokens of each reasoning, at least 1.
    pub lengths: Vec<usize>,
    /// The prompt that each reasoning was sampled after.
    pub own: Vec<usize>,
    /// For each prompt the first one with the same tokens.
    pub same: Vec<usize>,
}

/// Information and entropies, in nats.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Information {
    /// H(Z) − H(Z|X).
    pub mi: f64,
    /// H(Z|X).
    pub conditional_entropy: f64,
    /// H(Z).
    pub marginal_entropy: f64,
    /// Deviation of the marginals over reasonings, ddof 0.
    pub marginal_std: f64,
    /// `mi` in units of `marginal_std`.
    pub mi_z: f64,
    /// Moving average of `marginal_std` over measurements.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub marginal_std_ema: Option<f64>,
    /// `mi` in units of that average.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mi_z_ema: Option<f64>,
}

/// Shares of reasonings whose own prompt is among the 1, 2, 4, 8 (at most all) that make them likeliest, and what
/// guessing would reach.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Retrieval {
    pub retrieval: f64,
    pub retrieval_chance: f64,
    pub retrieval_2: f64,
    pub retrieval_2_chance: f64,
    pub retrieval_4: f64,
    pub retrieval_4_chance: f64,
    pub retrieval_8: f64,
    pub retrieval_8_chance: f64,
}

impl Matrix {
    /// ln N: what `mi` cannot exceed.
    #[must_use]
    pub fn bound(&self) -> f64 {
        libm::log(self.same.len() as f64)
    }

    /// Of whole reasonings, and of their tokens' means.
    #[must_use]
    pub fn information(&self) -> (Information, Information) {
        let means = self.sums.iter().zip(&self.lengths);
        let means: Vec<Vec<f64>> = means.map(|(row, &n)| row.iter().map(|sum| sum / n as f64).collect()).collect();
        (self.of(&self.sums), self.of(&means))
    }

    fn of(&self, logprobs: &[Vec<f64>]) -> Information {
        let matched: Vec<f64> = logprobs.iter().zip(&self.own).map(|(row, &own)| row[own]).collect();
        let marginal: Vec<f64> = logprobs.iter().map(|row| marginal(row)).collect();
        let gains: Vec<f64> = matched.iter().zip(&marginal).map(|(matched, marginal)| matched - marginal).collect();
        let (mi, marginal_std) = (stats::mean(&gains), stats::std(&marginal, 0));
        Information {
            mi,
            conditional_entropy: -stats::mean(&matched),
            marginal_entropy: -stats::mean(&marginal),
            marginal_std,
            mi_z: z(mi, marginal_std),
            marginal_std_ema: None,
            mi_z_ema: None,
        }
    }

    /// matched − marginal of each whole reasoning.
    #[must_use]
    pub fn pointwise(&self) -> Vec<f64> {
        self.sums.iter().zip(&self.own).map(|(row, &own)| row[own] - marginal(row)).collect()
    }

    /// How often reasonings find their prompts.
    #[must_use]
    pub fn retrieval(&self) -> Retrieval {
        let [(retrieval, retrieval_chance), two, four, eight] = [1, 2, 4, 8].map(|k| self.found_among(k));
        Retrieval {
            retrieval,
            retrieval_chance,
            retrieval_2: two.0,
            retrieval_2_chance: two.1,
            retrieval_4: four.0,
            retrieval_4_chance: four.1,
            retrieval_8: eight.0,
            retrieval_8_chance: eight.1,
        }
    }

    /// Share of reasonings whose own prompt is among the `k` likeliest, and the share among any `k`.
    fn found_among(&self, k: usize) -> (f64, f64) {
        let (prompts, k) = (self.same.len(), k.min(self.same.len()));
        let found = |(row, &own): (&Vec<f64>, &usize)| {
            let mut order: Vec<usize> = (0..prompts).collect();
            order.sort_by(|&a, &b| row[b].total_cmp(&row[a]));
            f64::from(u8::from(order[..k].iter().any(|&prompt| self.same[prompt] == self.same[own])))
        };
        let chance = |&own: &usize| {
            let others = self.same.iter().filter(|&&prompt| prompt != self.same[own]).count();
            1.0 - (0..k).map(|i| others.saturating_sub(i) as f64 / (prompts - i) as f64).product::<f64>()
        };
        let found: Vec<f64> = self.sums.iter().zip(&self.own).map(found).collect();
        (stats::mean(&found), stats::mean(&self.own.iter().map(chance).collect::<Vec<_>>()))
    }
}

/// log of the mean probability.
fn marginal(row: &[f64]) -> f64 {
    let max = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = row.iter().map(|l| libm::exp(l - max)).sum();
    max + libm::log(sum) - libm::log(row.len() as f64)
}

/// `mi` in units of a deviation; 0 where there is none.
pub(super) fn z(mi: f64, std: f64) -> f64 {
    if std == 0.0 { 0.0 } else { mi / (std + Z_EPSILON) }
}
