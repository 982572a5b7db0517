//! The gate of Llama's feed-forward block (Shazeer 2020): silu(a)·b.
//!
//! `gate_up: [rows, 2·ffn]` = (a, b) → `[rows, ffn]`, y = a·σ(a)·b
//!
//! ```text
//! ∂/∂a = g·b·σ(a)·(1 + a·(1 − σ(a)))     ∂/∂b = g·a·σ(a)
//! ```

use crate::exp::exp;
use crate::vectorised;

/// The formula, in f64.
#[must_use]
pub fn reference(gate_up: &[f64], ffn: usize) -> Vec<f64> {
    let row = |row: &[f64]| (0..ffn).map(|i| row[i] / (1.0 + libm::exp(-row[i])) * row[ffn + i]).collect::<Vec<_>>();
    gate_up.chunks_exact(2 * ffn).flat_map(row).collect()
}

/// silu(a)·b for each row.
#[must_use]
pub fn forward(gate_up: &[f32], ffn: usize) -> Vec<f32> {
    let mut out = vec![0.0; gate_up.len() / 2];
    vectorised(
        #[inline(always)]
        || {
            for (row, y) in gate_up.chunks_exact(2 * ffn).zip(out.chunks_exact_mut(ffn)) {
                let (a, b) = row.split_at(ffn);
                for ((y, &a), &b) in y.iter_mut().zip(a).zip(b) {
                    *y = a / (1.0 + exp(-a)) * b;
                }
            }
        },
    );
    out
}

/// Derivative of Σ `grad`·y in `gate_up`.
#[must_use]
pub fn backward(gate_up: &[f32], ffn: usize, grad: &[f32]) -> Vec<f32> {
    let mut dx = vec![0.0; gate_up.len()];
    vectorised(
        #[inline(always)]
        || {
            let rows = gate_up.chunks_exact(2 * ffn).zip(grad.chunks_exact(ffn)).zip(dx.chunks_exact_mut(2 * ffn));
            for ((row, grad), dx) in rows {
                let ((a, b), (da, db)) = (row.split_at(ffn), dx.split_at_mut(ffn));
                for i in 0..ffn {
                    let (a, b, g) = (a[i], b[i], grad[i]);
                    let sigmoid = 1.0 / (1.0 + exp(-a));
                    da[i] = g * b * sigmoid * (1.0 + a * (1.0 - sigmoid));
                    db[i] = g * a * sigmoid;
                }
            }
        },
    );
    dx
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::{gradient, near, noise};

    #[test]
    fn close_to_the_reference_in_value_and_gradient() {
        let (ffn, x, g) = (11, noise(1, 66), noise(2, 33));
        let x: Vec<f32> = x.iter().map(|x| 4.0 * x).collect();
        let wide: Vec<f64> = x.iter().map(|&x| f64::from(x)).collect();
        forward(&x, ffn).iter().zip(reference(&wide, ffn)).for_each(|(&a, b)| near(f64::from(a), b, 1e-6));
        let loss = |x: &[f64]| reference(x, ffn).iter().zip(&g).map(|(y, &g)| y * f64::from(g)).sum();
        gradient(loss, &x, &backward(&x, ffn, &g), 2e-6);
    }

    #[test]
    fn extremes() {
        assert_eq!(forward(&[-1e30, 1.0], 1), [0.0]);
        assert_eq!(forward(&[1e3, 2.0], 1), [2e3]);
        assert!(forward(&[f32::NAN, 1.0], 1)[0].is_nan());
    }
}
