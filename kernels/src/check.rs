//! What the tests of several operations need.

/// Reproducible numbers in ±2.
pub(crate) fn noise(seed: u32, count: usize) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9E37_79B9) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state as f32 / u32::MAX as f32 * 4.0 - 2.0
    };
    (0..count).map(|_| next()).collect()
}

/// Equal to the bit.
#[track_caller]
pub(crate) fn same(a: f32, b: f32) {
    assert_eq!(a.to_bits(), b.to_bits(), "{a} and {b}");
}

/// Within `tolerance`, absolute or relative, or both NaN or equal infinities.
#[track_caller]
pub(crate) fn near(a: f64, b: f64, tolerance: f64) {
    let fits = a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= tolerance * b.abs().max(1.0);
    assert!(fits, "{a} is not {b} within {tolerance}");
}

/// `gradient` is that of `f` (evaluated in f64) at `x`, by central differences.
#[track_caller]
pub(crate) fn gradient(f: impl Fn(&[f64]) -> f64, x: &[f32], gradient: &[f32], tolerance: f64) {
    let x: Vec<f64> = x.iter().map(|&x| f64::from(x)).collect();
    for (i, &g) in gradient.iter().enumerate() {
        let at = |delta: f64| {
            let mut x = x.clone();
            x[i] += delta;
            f(&x)
        };
        near(f64::from(g), (at(1e-5) - at(-1e-5)) / 2e-5, tolerance);
    }
}
