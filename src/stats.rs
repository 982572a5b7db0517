//! The only mean and deviation. Sums run in f64, in the order of the slice.

/// Mean; NaN for an empty slice.
#[must_use]
pub fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Whether all values are equal up to rounding: max − min ≤ 1e-9 · max(1, |max|). True for one value and for none.
#[must_use]
pub fn constant(values: &[f64]) -> bool {
    let max = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let min = values.iter().copied().fold(f64::INFINITY, f64::min);
    values.is_empty() || max - min <= 1e-9 * max.abs().max(1.0)
}

/// Standard deviation with `ddof` degrees of freedom taken off the count. Exactly 0 for constant values
/// (so for a lone one), so that no rounding of a mean looks like spread.
///
/// # Panics
/// If `ddof` is not below the count of values that are not constant.
#[must_use]
pub fn std(values: &[f64], ddof: u32) -> f64 {
    if constant(values) {
        return 0.0;
    }
    assert!(values.len() > ddof as usize, "{} values, ddof {ddof}", values.len());
    let mu = mean(values);
    (values.iter().map(|v| (v - mu) * (v - mu)).sum::<f64>() / (values.len() - ddof as usize) as f64).sqrt()
}

/// Values less their mean; exactly 0 where they are constant.
#[must_use]
pub fn centred(values: &[f64]) -> Vec<f64> {
    if constant(values) {
        return vec![0.0; values.len()];
    }
    let mu = mean(values);
    values.iter().map(|v| v - mu).collect()
}

/// Values less their mean over their deviation, as verl whitens advantages: with Σ over n values,
/// m = Σx / (n + 1e-8), v = Σ(x − m)² / (n + 1e-8) · n / (n − 1), and (x − m) / √(v + 1e-8). Exactly 0 where they are
/// constant.
#[must_use]
pub fn whitened(values: &[f64]) -> Vec<f64> {
    const EPSILON: f64 = 1e-8;
    if constant(values) {
        return vec![0.0; values.len()];
    }
    let n = values.len() as f64;
    let mu = values.iter().sum::<f64>() / (n + EPSILON);
    let variance = values.iter().map(|v| (v - mu) * (v - mu)).sum::<f64>() / (n + EPSILON) * n / (n - 1.0);
    values.iter().map(|v| (v - mu) / (variance + EPSILON).sqrt()).collect()
}

/// Standard error of a proportion of `n` (Wald); 0 for none.
#[must_use]
pub fn proportion_error(share: f64, n: usize) -> f64 {
    if n == 0 { 0.0 } else { (share * (1.0 - share) / n as f64).sqrt() }
}

/// A 95 % interval of a proportion of `n` (Wilson 1927); all of [0, 1] for none.
#[must_use]
pub fn wilson(share: f64, n: usize) -> (f64, f64) {
    if n == 0 {
        return (0.0, 1.0);
    }
    let (n, z2) = (n as f64, 1.96 * 1.96);
    let middle = (share + z2 / (2.0 * n)) / (1.0 + z2 / n);
    let half = 1.96 / (1.0 + z2 / n) * (share * (1.0 - share) / n + z2 / (4.0 * n * n)).sqrt();
    ((middle - half).max(0.0), (middle + half).min(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deviations_by_hand() {
        assert_eq!(std(&[1.0, 0.0, 0.0, 1.0], 1), (1.0f64 / 3.0).sqrt());
        assert_eq!(std(&[1.0, 0.0, 0.0, 1.0], 0), 0.5);
        assert_eq!(std(&[10.9; 100], 1), 0.0);
        assert_eq!(std(&[3.0], 1), 0.0);
        assert!(constant(&[]) && constant(&[1e12, 1e12 + 1.0]) && !constant(&[0.0, 1e-8]));
    }
}
