//! Root-mean-square normalisation (Zhang and Sennrich 2019).
//!
//! `x: [rows, width]`, `weight: [width]` → `[rows, width]`, yᵢ = wᵢ·xᵢ·r, r = 1/√(mean x² + ε)
//!
//! ```text
//! ∂/∂xᵢ = r·(gᵢwᵢ − xᵢ·r²·mean(g·w·x))     ∂/∂wᵢ = Σ_rows gᵢ·xᵢ·r
//! ```

use crate::{LANES, vectorised};

/// The formula, in f64.
#[must_use]
pub fn reference(x: &[f64], weight: &[f64], epsilon: f64) -> Vec<f64> {
    let row = |x: &[f64]| {
        let r = 1.0 / (x.iter().map(|x| x * x).sum::<f64>() / x.len() as f64 + epsilon).sqrt();
        x.iter().zip(weight).map(|(x, w)| w * x * r).collect::<Vec<_>>()
    };
    x.chunks_exact(weight.len()).flat_map(row).collect()
}

/// yᵢ = wᵢ·xᵢ·r for each row.
#[must_use]
pub fn forward(x: &[f32], weight: &[f32], epsilon: f64) -> Vec<f32> {
    let mut out = vec![0.0; x.len()];
    vectorised(
        #[inline(always)]
        || {
            for (x, y) in x.chunks_exact(weight.len()).zip(out.chunks_exact_mut(weight.len())) {
                let r = inverse_rms(x, epsilon);
                for ((y, &x), &w) in y.iter_mut().zip(x).zip(weight) {
                    *y = w * (x * r);
                }
            }
        },
    );
    out
}

/// Derivatives of Σ `grad`·y in `x` and in `weight` (summed over rows in their order).
#[must_use]
pub fn backward(x: &[f32], weight: &[f32], epsilon: f64, grad: &[f32]) -> (Vec<f32>, Vec<f32>) {
    let width = weight.len();
    let (mut dx, mut dw) = (vec![0.0; x.len()], vec![0.0; width]);
    vectorised(
        #[inline(always)]
        || {
            let mut gw = vec![0.0; width];
            let rows = x.chunks_exact(width).zip(grad.chunks_exact(width)).zip(dx.chunks_exact_mut(width));
            for ((x, grad), dx) in rows {
                let r = inverse_rms(x, epsilon);
                for i in 0..width {
                    gw[i] = grad[i] * weight[i];
                    dw[i] = (grad[i] * r).mul_add(x[i], dw[i]);
                }
                let c = (dot(&gw, x) / width as f64) as f32 * r * r;
                for i in 0..width {
                    dx[i] = r * x[i].mul_add(-c, gw[i]);
                }
            }
        },
    );
    (dx, dw)
}

#[inline(always)]
fn inverse_rms(x: &[f32], epsilon: f64) -> f32 {
    (1.0 / (dot(x, x) / x.len() as f64 + epsilon).sqrt()) as f32
}

#[inline(always)]
fn dot(a: &[f32], b: &[f32]) -> f64 {
    let mut lanes = [0.0f32; LANES];
    let ((a, a_tail), (b, b_tail)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
    for (a, b) in a.iter().zip(b) {
        for lane in 0..LANES {
            lanes[lane] = a[lane].mul_add(b[lane], lanes[lane]);
        }
    }
    let tail = a_tail.iter().zip(b_tail).map(|(&a, &b)| f64::from(a) * f64::from(b));
    lanes.iter().map(|&l| f64::from(l)).chain(tail).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::{gradient, near, noise};

    #[test]
    fn close_to_the_reference_in_value_and_gradient() {
        let (width, epsilon) = (37, 1e-5);
        let (x, w, g) = (noise(1, 3 * width), noise(2, width), noise(3, 3 * width));
        let wide = |x: &[f32]| x.iter().map(|&x| f64::from(x)).collect::<Vec<_>>();
        let (x64, w64) = (wide(&x), wide(&w));
        let y = forward(&x, &w, epsilon);
        y.iter().zip(reference(&x64, &w64, epsilon)).for_each(|(&a, b)| near(f64::from(a), b, 1e-6));
        let dot = |y: Vec<f64>| y.iter().zip(&g).map(|(y, &g)| y * f64::from(g)).sum();
        let (dx, dw) = backward(&x, &w, epsilon, &g);
        gradient(|x| dot(reference(x, &w64, epsilon)), &x, &dx, 3e-6);
        gradient(|w| dot(reference(&x64, w, epsilon)), &w, &dw, 3e-6);
    }
}
