//! exp(x) in f32 by range reduction and Cephes' polynomial: 1 ulp or so, branch-free, the same bits everywhere.
//!
//! x = n·ln 2 + r, |r| ≤ ln 2 / 2; exp(x) = 2ⁿ · exp(r). Below −87.3 it is 0, above 88.3 infinity; NaN stays NaN.

use crate::vectorised;

/// Adding 1.5·2²³ rounds to an integer, which then stands in the low bits.
const ROUND: f32 = 12_582_912.0;

/// exp(x − shift) of each of `values`.
#[must_use]
pub fn shifted(values: &[f32], shift: f32) -> Vec<f32> {
    let mut out = vec![0.0; values.len()];
    vectorised(
        #[inline(always)]
        || out.iter_mut().zip(values).for_each(|(y, &x)| *y = exp(x - shift)),
    );
    out
}

/// The exponential; see the head of the file. To be called from vectorised code: elsewhere its FMAs are calls.
#[inline(always)]
pub(crate) fn exp(x: f32) -> f32 {
    // Comparisons are written so that NaN passes through.
    let bounded = if x < -87.5 { -87.5 } else { x };
    let bounded = if bounded > 89.0 { 89.0 } else { bounded };
    let shifted = bounded.mul_add(std::f32::consts::LOG2_E, ROUND);
    let n = shifted - ROUND;
    let r = n.mul_add(2.121_944_4e-4, n.mul_add(-0.693_359_4, bounded));
    let mut p = 1.987_569_1e-4_f32;
    for c in [1.398_2e-3, 8.333_452e-3, 4.166_579_6e-2, 1.666_666_5e-1, 0.5] {
        p = p.mul_add(r, c);
    }
    let y = p.mul_add(r * r, r) + 1.0;
    let scale = f32::from_bits(shifted.to_bits().wrapping_sub(ROUND.to_bits()).wrapping_add(127) << 23);
    if x < -87.3 { 0.0 } else { y * scale }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn close_to_the_real_one() {
        let mut worst = 0.0f64;
        for i in 0..2_000_000 {
            let x = -87.0 + 175.0 * i as f32 / 2_000_000.0;
            let real = f64::from(x).exp();
            worst = worst.max(((f64::from(exp(x)) - real) / real).abs());
        }
        assert!(worst < 1.5e-7, "{worst:e}");
    }

    #[test]
    fn extremes() {
        assert_eq!(exp(0.0), 1.0);
        assert_eq!(exp(f32::NEG_INFINITY), 0.0);
        assert_eq!(exp(-1e30), 0.0);
        assert_eq!(exp(f32::INFINITY), f32::INFINITY);
        assert!(exp(f32::NAN).is_nan());
    }
}
