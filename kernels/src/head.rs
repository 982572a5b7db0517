//! Scores of chosen tokens from hidden states: the product with the head, then `selective_log_softmax`, some rows at a
//! time, so that neither the logits nor their derivative need ever be there as a whole.
//!
//! `x: [rows, width]`, `W: [vocab, width]`, `targets: [rows]` → `out: [rows, 3]` = (logp, entropy, lse) of scale·x·Wᵀ
//!
//! Bits are those of the two operations one after the other.

use crate::linear::{Panels, add_weight_gradient, product};
use crate::selective_log_softmax as scores;

/// Rows whose logits are there at a time.
const BLOCK: usize = 256;

/// Of the product: the targets' ids, and what logits are multiplied by.
#[derive(Clone, Debug)]
pub struct Chosen {
    pub targets: Vec<u32>,
    pub scale: f32,
}

/// Logits of some rows, with the panels of Wᵀ.
fn logits(x: &[f32], head: &Panels, scale: f32) -> Vec<f32> {
    let mut logits = product(x, head);
    scaled(&mut logits, scale);
    logits
}

fn scaled(values: &mut [f32], scale: f32) {
    if scale != 1.0 {
        values.iter_mut().for_each(|x| *x *= scale);
    }
}

/// (logp, entropy, lse) of each row, with the panels of Wᵀ; the logits too if they are to be kept, else nothing.
///
/// # Panics
/// If the shapes disagree or a target is not below `vocab`.
#[must_use]
pub fn forward(x: &[f32], head: &Panels, chosen: &Chosen, keep: bool) -> (Vec<f32>, Vec<f32>) {
    let [width, vocab] = head.size();
    let rows = chosen.targets.len();
    let (mut out, mut kept) = (Vec::with_capacity(3 * rows), Vec::with_capacity(if keep { rows * vocab } else { 0 }));
    for (x, targets) in x.chunks(BLOCK * width).zip(chosen.targets.chunks(BLOCK)) {
        let logits = logits(x, head, chosen.scale);
        out.extend(scores::forward(&logits, vocab, targets));
        if keep {
            kept.extend(logits);
        }
    }
    (out, kept)
}

/// Derivatives of Σ `grad`·`out` in `x` and in `W`, from what [`forward`] gave; with the panels of Wᵀ and of W.
///
/// # Panics
/// If the shapes disagree.
#[must_use]
pub fn backward(
    x: &[f32],
    [head, transposed]: [&Panels; 2],
    chosen: &Chosen,
    (out, kept): (&[f32], &[f32]),
    grad: &[f32],
) -> (Vec<f32>, Vec<f32>) {
    let [width, vocab] = head.size();
    let (mut dx, mut dweight) = (Vec::with_capacity(x.len()), vec![0.0; vocab * width]);
    let mut kept = kept.chunks(BLOCK * vocab);
    let blocks = x.chunks(BLOCK * width).zip(chosen.targets.chunks(BLOCK));
    for ((x, targets), (out, grad)) in blocks.zip(out.chunks(BLOCK * 3).zip(grad.chunks(BLOCK * 3))) {
        let again;
        let logits = match kept.next() {
            Some(logits) => logits,
            None => {
                again = logits(x, head, chosen.scale);
                &again
            }
        };
        let mut dlogits = scores::backward(logits, vocab, targets, out, grad);
        scaled(&mut dlogits, chosen.scale);
        dx.extend(product(&dlogits, transposed));
        add_weight_gradient(x, width, &dlogits, vocab, &mut dweight);
    }
    (dx, dweight)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::{noise, same};
    use crate::linear::weight_gradient;

    #[test]
    fn it_is_the_product_and_then_the_scores() {
        let (rows, width, vocab) = (2 * BLOCK + 3, 24, 37);
        let (x, w, grad) = (noise(1, rows * width), noise(2, vocab * width), noise(3, 3 * rows));
        let head = Panels::of_transpose(&w, width, vocab);
        let transposed = head.transposed();
        for scale in [1.0, 0.7] {
            let chosen = Chosen { targets: (0..rows as u32).map(|r| r * 5 % vocab as u32).collect(), scale };
            let mut logits = product(&x, &head);
            logits.iter_mut().for_each(|x| *x *= scale);
            let out = scores::forward(&logits, vocab, &chosen.targets);
            let mut dlogits = scores::backward(&logits, vocab, &chosen.targets, &out, &grad);
            dlogits.iter_mut().for_each(|x| *x *= scale);
            let wanted = [product(&dlogits, &transposed), weight_gradient(&x, width, &dlogits, vocab)];
            for keep in [false, true] {
                let (scores, kept) = forward(&x, &head, &chosen, keep);
                scores.iter().zip(&out).for_each(|(&a, &b)| same(a, b));
                let (dx, dweight) = backward(&x, [&head, &transposed], &chosen, (&scores, &kept), &grad);
                [dx, dweight].concat().iter().zip(wanted.concat()).for_each(|(&a, b)| same(a, b));
            }
        }
    }
}
