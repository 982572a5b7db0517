//! What a few repeated runs tell: pure functions of slices. The unit of repetition is the run (its seed), since runs of
//! one setting differ by more than the tasks that they are evaluated on.

use crate::rng::Stream;
use crate::stats;

/// Resamples of a bootstrap.
pub const RESAMPLES: usize = 2000;
/// Quantiles of the standard normal distribution: two-sided α = 0.05, and power 0.8.
const Z_ALPHA: f64 = 1.959_963_984_540_054;
const Z_POWER: f64 = 0.841_621_233_572_914_2;

/// Standard error of the mean: s / √n, with s of n − 1 degrees of freedom. None below two values.
#[must_use]
pub fn standard_error(values: &[f64]) -> Option<f64> {
    (values.len() > 1).then(|| stats::std(values, 1) / (values.len() as f64).sqrt())
}

/// A 95 % percentile interval of the mean (Efron 1979) from [`RESAMPLES`] resamples, drawn by a fixed key: the same
/// values give the same interval. None below two values. With few values it is narrower than it should be (for two, it
/// covers half the time): it is shown beside the standard error, not instead of it.
#[must_use]
pub fn bootstrap(values: &[f64]) -> Option<(f64, f64)> {
    let n = values.len();
    if n < 2 {
        return None;
    }
    if stats::constant(values) {
        return Some((values[0], values[0]));
    }
    let mut draws = Stream::new("bootstrap", 0, &[n as u64]);
    let mut means: Vec<f64> =
        (0..RESAMPLES).map(|_| stats::mean(&(0..n).map(|_| values[draws.below(n)]).collect::<Vec<f64>>())).collect();
    means.sort_by(f64::total_cmp);
    Some((quantile(&means, 0.025), quantile(&means, 0.975)))
}

/// The quantile of ascending values, linear between neighbours (type 7 of Hyndman and Fan 1996).
///
/// # Panics
/// If there are none.
#[must_use]
pub fn quantile(ascending: &[f64], share: f64) -> f64 {
    let at = share * (ascending.len() - 1) as f64;
    let (below, part) = (at.floor() as usize, at.fract());
    let above = ascending[(below + 1).min(ascending.len() - 1)];
    ascending[below] + part * (above - ascending[below])
}

/// Runs of each of two settings that a difference of means `effect` needs to be seen with power 0.8 at α = 0.05, where
/// runs of one setting deviate by `deviation`: ⌈2 · ((z₀.₉₇₅ + z₀.₈) · σ / δ)²⌉ (normal approximation, two-sided), at
/// least 2. None for no effect, or where no deviation was seen: that says nothing about the next run.
#[must_use]
pub fn runs_needed(deviation: f64, effect: f64) -> Option<u64> {
    needed(2.0, deviation, effect)
}

/// The same for pairs, whose differences deviate by `deviation`: ⌈((z₀.₉₇₅ + z₀.₈) · σ / δ)²⌉, at least 2.
#[must_use]
pub fn pairs_needed(deviation: f64, effect: f64) -> Option<u64> {
    needed(1.0, deviation, effect)
}

fn needed(factor: f64, deviation: f64, effect: f64) -> Option<u64> {
    let ratio = (Z_ALPHA + Z_POWER) * deviation / effect.abs();
    (ratio > 0.0 && ratio.is_finite()).then(|| ((factor * ratio * ratio).ceil() as u64).max(2))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Mean 3, deviations −2 … 2: s² = 10 / 4, error √(2.5 / 5).
    #[test]
    fn an_error_by_hand() {
        assert_eq!(standard_error(&[1.0, 2.0, 3.0, 4.0, 5.0]), Some(0.5f64.sqrt()));
        assert_eq!(standard_error(&[0.3, 0.3, 0.3]), Some(0.0));
        assert_eq!(standard_error(&[1.0]), None);
    }

    #[test]
    fn quantiles_by_hand() {
        let values = [10.0, 20.0, 30.0, 40.0, 50.0];
        assert_eq!([0.0, 0.25, 0.5, 0.9, 1.0].map(|share| quantile(&values, share)), [10.0, 20.0, 30.0, 46.0, 50.0]);
    }

    /// All resamples of two values: both first (1/4), mixed (1/2), both second (1/4); so the ends are the values.
    #[test]
    fn a_bootstrap_is_a_function_of_its_values() {
        assert_eq!(bootstrap(&[0.0, 1.0]), Some((0.0, 1.0)));
        assert_eq!(bootstrap(&[0.4; 5]), Some((0.4, 0.4)));
        assert_eq!(bootstrap(&[1.0]), None);
        let values = [1.0, 2.0, 3.0, 4.0, 5.0];
        let (low, high) = bootstrap(&values).unwrap();
        // The exact percentiles of the mean of five draws: its deviation is √2 / √5 = 0.632.
        assert_eq!((low, high), bootstrap(&values).unwrap());
        assert!((1.7..=1.9).contains(&low) && (4.1..=4.3).contains(&high), "{low} {high}");
    }

    /// σ = 0.1, δ = 0.05: 2 · (2.801585 · 2)² = 62.79; pairs: half of it.
    #[test]
    fn runs_by_hand() {
        assert_eq!(runs_needed(0.1, 0.05), Some(63));
        assert_eq!(pairs_needed(0.1, 0.05), Some(32));
        assert_eq!((runs_needed(0.001, 0.05), runs_needed(0.0, 0.05)), (Some(2), None));
        assert_eq!(runs_needed(0.1, 0.0), None);
    }
}
