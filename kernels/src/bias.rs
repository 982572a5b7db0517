//! A bias added to every row: y = x + b.
//!
//! `x: [rows, width]`, `b: [width]` → `[rows, width]`. ∂/∂bᵢ = Σ_rows gᵢ, one chain over rows in their order; ∂/∂x = g.

use crate::vectorised;

/// yᵢ = xᵢ + bᵢ for each row.
#[must_use]
pub fn forward(x: &[f32], bias: &[f32]) -> Vec<f32> {
    let mut out = x.to_vec();
    vectorised(
        #[inline(always)]
        || out.chunks_exact_mut(bias.len()).for_each(|row| add(row, bias)),
    );
    out
}

/// Derivative of Σ `grad`·y in the bias, which has `width` numbers.
#[must_use]
pub fn backward(grad: &[f32], width: usize) -> Vec<f32> {
    let mut sum = vec![0.0; width];
    vectorised(
        #[inline(always)]
        || grad.chunks_exact(width).for_each(|row| add(&mut sum, row)),
    );
    sum
}

#[inline(always)]
fn add(to: &mut [f32], from: &[f32]) {
    to.iter_mut().zip(from).for_each(|(to, from)| *to += from);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_get_the_bias_and_it_gets_their_sum() {
        assert_eq!(forward(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], &[10.0, 20.0, 30.0]), [11.0, 22.0, 33.0, 14.0, 25.0, 36.0]);
        assert_eq!(backward(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 3), [5.0, 7.0, 9.0]);
    }
}
