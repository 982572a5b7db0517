//! Log-probability of one chosen entry of each row of logits, with the row's entropy and log-sum-exp.
//!
//! `logits: [rows, vocab]`, `targets: [rows]` → `out: [rows, 3]` = (logp, entropy, lse)
//!
//! ```text
//! lse = m + ln Σ exp(xᵢ − m)     logp = x_t − lse     entropy = lse − Σ pᵢ xᵢ,  pᵢ = exp(xᵢ − lse),  m = max x
//! ∂/∂xᵢ = g_logp·([i = t] − pᵢ) − g_entropy·pᵢ·(xᵢ − lse + entropy) + g_lse·pᵢ
//! ```
//! A row depends on itself alone. An entry of −∞ has probability 0; a row with NaN or +∞ gives NaN.
//! Within 2e-6·max(1, |x|) of [`reference`].

use crate::exp::exp;
use crate::vectorised;

const LANES: usize = 16;
/// Lanes are added up in f32 over a block, blocks in f64.
const BLOCK: usize = 1024;

/// The formulas, in f64: forward.
#[must_use]
pub fn reference(logits: &[f32], vocab: usize, targets: &[u32]) -> Vec<[f64; 3]> {
    let row = |(row, &target): (&[f32], &u32)| {
        let x: Vec<f64> = row.iter().map(|&x| f64::from(x)).collect();
        let m = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let z: f64 = x.iter().map(|x| (x - m).exp()).sum();
        let s: f64 = x.iter().filter(|x| **x > f64::NEG_INFINITY).map(|x| (x - m).exp() * (x - m)).sum();
        [x[target as usize] - m - z.ln(), z.ln() - s / z, m + z.ln()]
    };
    logits.chunks_exact(vocab).zip(targets).map(row).collect()
}

/// (logp, entropy, lse) of each row.
///
/// # Panics
/// If the shapes disagree or a target is not below `vocab`.
#[must_use]
pub fn forward(logits: &[f32], vocab: usize, targets: &[u32]) -> Vec<f32> {
    assert_eq!(logits.len(), vocab * targets.len(), "logits of {} rows", targets.len());
    let mut out = Vec::with_capacity(3 * targets.len());
    for (row, &target) in logits.chunks_exact(vocab).zip(targets) {
        let (m, z, s) = vectorised(|| sums(row));
        let log_z = libm::log(z);
        let logp = f64::from(row[target as usize]) - f64::from(m) - log_z;
        out.extend([logp as f32, (log_z - s / z) as f32, (f64::from(m) + log_z) as f32]);
    }
    out
}

/// max x, Σ exp(x − max), Σ (x − max)·exp(x − max).
#[inline(always)]
fn sums(row: &[f32]) -> (f32, f64, f64) {
    let (body, tail) = row.as_chunks::<LANES>();
    let mut max = [f32::NEG_INFINITY; LANES];
    for chunk in body {
        for (m, &x) in max.iter_mut().zip(chunk) {
            *m = if x > *m { x } else { *m };
        }
    }
    let m = max.iter().chain(tail).fold(f32::NEG_INFINITY, |m, &x| if x > m { x } else { m });
    let term = |x: f32| {
        let d = x - m;
        let e = exp(d);
        (e, if e == 0.0 { 0.0 } else { e * d })
    };
    let (mut z, mut s) = (0.0f64, 0.0f64);
    for block in body.chunks(BLOCK / LANES) {
        let (mut zs, mut ss) = ([0.0f32; LANES], [0.0f32; LANES]);
        for chunk in block {
            for lane in 0..LANES {
                let (e, ed) = term(chunk[lane]);
                zs[lane] += e;
                ss[lane] += ed;
            }
        }
        z += zs.iter().map(|&z| f64::from(z)).sum::<f64>();
        s += ss.iter().map(|&s| f64::from(s)).sum::<f64>();
    }
    for &x in tail {
        let (e, ed) = term(x);
        z += f64::from(e);
        s += f64::from(ed);
    }
    (m, z, s)
}

/// Derivative of Σ `grad`·`out` in the logits, where `out` is what [`forward`] gave and `grad` has its shape.
///
/// # Panics
/// If the shapes disagree.
#[must_use]
pub fn backward(logits: &[f32], vocab: usize, targets: &[u32], out: &[f32], grad: &[f32]) -> Vec<f32> {
    let rows = targets.len();
    assert!(logits.len() == vocab * rows && out.len() == 3 * rows && grad.len() == 3 * rows, "shapes of {rows} rows");
    let mut dlogits = vec![0.0; logits.len()];
    vectorised(|| {
        for row in 0..rows {
            let span = row * vocab..(row + 1) * vocab;
            let ([_, entropy, lse], [g_logp, g_entropy, g_lse]) =
                (out.as_chunks().0[row], grad.as_chunks().0[row]);
            let dx = &mut dlogits[span.clone()];
            for (dx, &x) in dx.iter_mut().zip(&logits[span]) {
                let logp: f32 = x - lse;
                let p = exp(logp);
                let d = p * (g_lse - g_logp - g_entropy * (logp + entropy));
                *dx = if p == 0.0 { 0.0 } else { d };
            }
            dx[targets[row] as usize] += g_logp;
        }
    });
    dlogits
}
