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
use crate::{LANES, vectorised};

/// Lanes are added up in f32 over a block, blocks in f64.
const BLOCK: usize = 1024;

/// The formulas, in f64: forward.
#[must_use]
pub fn reference(logits: &[f64], vocab: usize, targets: &[u32]) -> Vec<[f64; 3]> {
    let row = |(x, &target): (&[f64], &u32)| {
        let m = x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let z: f64 = x.iter().map(|x| libm::exp(x - m)).sum();
        let s: f64 = x.iter().filter(|x| **x > f64::NEG_INFINITY).map(|x| libm::exp(x - m) * (x - m)).sum();
        let log_z = libm::log(z);
        [x[target as usize] - m - log_z, log_z - s / z, m + log_z]
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
        let (m, z, s) = vectorised(
            #[inline(always)]
            || sums(row),
        );
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
    vectorised(
        #[inline(always)]
        || {
            for row in 0..rows {
                let span = row * vocab..(row + 1) * vocab;
                let ([_, entropy, lse], [g_logp, g_entropy, g_lse]) = (out.as_chunks().0[row], grad.as_chunks().0[row]);
                let dx = &mut dlogits[span.clone()];
                for (dx, &x) in dx.iter_mut().zip(&logits[span]) {
                    let logp: f32 = x - lse;
                    let p = exp(logp);
                    let d = p * (g_lse - g_logp - g_entropy * (logp + entropy));
                    *dx = if p == 0.0 { 0.0 } else { d };
                }
                dx[targets[row] as usize] += g_logp;
            }
        },
    );
    dlogits
}

/// The same on a GPU: one cube a row. Within 1e-5·max(1, |x|) of [`reference`] for finite logits; WGSL promises nothing
/// for NaN and infinities.
#[cfg(feature = "cube")]
pub mod cube {
    use cubecl::client::Client;
    use cubecl::ir::ElemType;
    use cubecl::prelude::*;

    /// c·x, and 0 where an exponential c underflowed: 0·∞ must not become NaN.
    #[cube]
    fn scaled(c: f32, x: f32) -> f32 {
        select(c > f32::new(0.0), c * x, f32::new(0.0))
    }

    /// Each unit takes every `units`-th entry in one pass (running max m, Σ exp(x − m), Σ (x − m)·exp(x − m)); the
    /// units' sums meet in a tree.
    #[cube(launch)]
    fn forward_kernel<I: Int>(
        logits: &[f32],
        targets: &[I],
        out: &mut [f32],
        vocab: usize,
        #[comptime] units: usize,
        #[define(I)] _integer: ElemType,
    ) {
        let row = CUBE_POS;
        let unit = UNIT_POS as usize;
        let mut m = f32::new(-3.0e38);
        let mut z = f32::new(0.0);
        let mut s = f32::new(0.0);
        let mut i = unit;
        while i < vocab {
            let x = logits[row * vocab + i];
            if x > m {
                let d = m - x;
                let c = d.exp();
                s = scaled(c, s + d * z);
                z = z * c + f32::new(1.0);
                m = x;
            } else {
                let d = x - m;
                let e = d.exp();
                z += e;
                s += scaled(e, d);
            }
            i += units;
        }
        let mut maxima = Shared::<[f32]>::new_slice(units);
        let mut sums = Shared::<[f32]>::new_slice(units);
        let mut moments = Shared::<[f32]>::new_slice(units);
        maxima[unit] = m;
        sums[unit] = z;
        moments[unit] = s;
        sync_cube();
        let mut step = comptime![units / 2].runtime();
        while step > 0usize {
            if unit < step {
                let top = max(maxima[unit], maxima[unit + step]);
                let da = maxima[unit] - top;
                let db = maxima[unit + step] - top;
                let ca = da.exp();
                let cb = db.exp();
                moments[unit] = scaled(ca, moments[unit] + da * sums[unit])
                    + scaled(cb, moments[unit + step] + db * sums[unit + step]);
                sums[unit] = ca * sums[unit] + cb * sums[unit + step];
                maxima[unit] = top;
            }
            sync_cube();
            step /= 2usize;
        }
        if unit == 0usize {
            let log_z = sums[0usize].ln();
            let target = usize::cast_from(targets[row]);
            out[row * 3] = (logits[row * vocab + target] - maxima[0usize]) - log_z;
            out[row * 3 + 1] = log_z - moments[0usize] / sums[0usize];
            out[row * 3 + 2] = maxima[0usize] + log_z;
        }
    }

    #[cube(launch)]
    fn backward_kernel<I: Int>(
        logits: &[f32],
        targets: &[I],
        out: &[f32],
        grad: &[f32],
        dlogits: &mut [f32],
        vocab: usize,
        #[comptime] units: usize,
        #[define(I)] _integer: ElemType,
    ) {
        let row = CUBE_POS;
        let target = usize::cast_from(targets[row]);
        let entropy = out[row * 3 + 1];
        let lse = out[row * 3 + 2];
        let g_logp = grad[row * 3];
        let g_entropy = grad[row * 3 + 1];
        let g_lse = grad[row * 3 + 2];
        let mut i = UNIT_POS as usize;
        while i < vocab {
            let logp = logits[row * vocab + i] - lse;
            let p = logp.exp();
            let mut d = f32::new(0.0);
            if p > f32::new(0.0) {
                d = p * (g_lse - g_logp - g_entropy * (logp + entropy));
            }
            if i == target {
                d += g_logp;
            }
            dlogits[row * vocab + i] = d;
            i += units;
        }
    }

    /// Units of a cube: on a CPU runtime, where a plane is one unit, they would be threads.
    fn units(client: &Client) -> usize {
        if client.properties().hardware.plane_size_max == 1 { 1 } else { 256 }
    }

    fn shape(client: &Client, rows: usize) -> (CubeCount, CubeDim) {
        (CubeCount::Static(rows as u32, 1, 1), CubeDim::new_1d(units(client) as u32))
    }

    /// [`super::forward`] on buffers: `logits: [rows, vocab]` in f32, `targets: [rows]` of the integer type given,
    /// `out: [rows, 3]`.
    pub fn forward(
        client: &Client,
        [rows, vocab]: [usize; 2],
        (logits, targets, out): (BufferArg, BufferArg, BufferArg),
        integer: ElemType,
    ) {
        let (count, dim) = shape(client, rows);
        forward_kernel::launch(client, count, dim, logits, targets, out, vocab, units(client), integer);
    }

    /// [`super::backward`] on buffers: logits, targets, out, grad → dlogits.
    pub fn backward(
        client: &Client,
        [rows, vocab]: [usize; 2],
        (logits, targets, out, grad): (BufferArg, BufferArg, BufferArg, BufferArg),
        dlogits: BufferArg,
        integer: ElemType,
    ) {
        let (count, dim) = shape(client, rows);
        let units = units(client);
        backward_kernel::launch(client, count, dim, logits, targets, out, grad, dlogits, vocab, units, integer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::{gradient, near, noise, same};

    fn wide(x: &[f32]) -> Vec<f64> {
        x.iter().map(|&x| f64::from(x)).collect()
    }

    #[test]
    fn close_to_the_reference_whatever_the_shape() {
        for vocab in [1, 2, 15, 16, 17, 255, 1024, 1041, 5000] {
            let mut logits: Vec<f32> = noise(vocab as u32, 7 * vocab).iter().map(|x| 10.0 * x).collect();
            logits[vocab / 2] = 90.0;
            let targets: Vec<u32> = (0..7).map(|r| (r * 31 % vocab) as u32).collect();
            let out = forward(&logits, vocab, &targets);
            for (out, wanted) in out.as_chunks::<3>().0.iter().zip(reference(&wide(&logits), vocab, &targets)) {
                out.iter().zip(wanted).for_each(|(&a, b)| near(f64::from(a), b, 2e-6));
            }
            for row in 0..7 {
                let alone = forward(&logits[row * vocab..][..vocab], vocab, &targets[row..=row]);
                alone.iter().zip(&out[3 * row..]).for_each(|(&a, &b)| same(a, b));
            }
        }
    }

    #[test]
    fn extremes() {
        let x = f32::NEG_INFINITY;
        assert_eq!(forward(&[x, 3.0, x, x], 4, &[1]), [0.0, 0.0, 3.0]);
        assert_eq!(forward(&[x, 3.0, x, x], 4, &[0])[0], x);
        assert!(forward(&[1.0, f32::NAN, 2.0], 3, &[0]).iter().all(|v| v.is_nan()));
        assert_eq!(forward(&[1e30, -1e30], 2, &[0]), [0.0, 0.0, 1e30]);
        let out = forward(&[x, 3.0, 3.0], 3, &[1]);
        let d = backward(&[x, 3.0, 3.0], 3, &[1], &out, &[1.0, 1.0, 0.0]);
        assert!(d[0] == 0.0 && (d[1] - 0.5).abs() < 1e-6 && (d[2] + 0.5).abs() < 1e-6, "{d:?}");
    }

    #[test]
    fn the_gradient_is_that_of_central_differences() {
        let (vocab, targets) = (19, [3, 18, 0]);
        let (logits, weights) = (noise(1, 3 * vocab), noise(2, 9));
        let out = forward(&logits, vocab, &targets);
        let d = backward(&logits, vocab, &targets, &out, &weights);
        let loss = |x: &[f64]| {
            let out = reference(x, vocab, &targets);
            out.iter().flatten().zip(&weights).map(|(o, &w)| o * f64::from(w)).sum()
        };
        gradient(loss, &logits, &d, 2e-6);
    }

    /// Launches the kernels on this machine.
    #[cfg(feature = "wgpu")]
    #[test]
    #[expect(clippy::print_stdout, reason = "the log shows the largest difference")]
    fn the_kernels_agree_with_the_reference() {
        use cubecl::prelude::*;

        let client = cubecl::Device::default().client();
        let mut worst = [0.0f64; 2];
        for (rows, vocab) in [(1, 1), (3, 17), (13, 101), (2, 512), (5, 4097)] {
            let logits: Vec<f32> = noise(vocab as u32, rows * vocab).iter().map(|x| 5.0 * x).collect();
            let targets: Vec<u32> = (0..rows).map(|r| (r * 31 % vocab) as u32).collect();
            let grad = noise(9, 3 * rows);
            let upload = |values: &[f32]| client.create_from_slice(f32::as_bytes(values));
            let (x, t, g) = (upload(&logits), client.create_from_slice(u32::as_bytes(&targets)), upload(&grad));
            let (out, dx) = (client.empty(12 * rows), client.empty(4 * rows * vocab));
            #[expect(unsafe_code, reason = "a buffer's length is the caller's word")]
            let arg = |handle: &cubecl::server::Handle, len| unsafe { BufferArg::from_raw_parts(handle.clone(), len) };
            let (xs, ts) = (arg(&x, rows * vocab), arg(&t, rows));
            let integer = cubecl::ir::ElemType::UInt(cubecl::ir::UIntKind::U32);
            cube::forward(&client, [rows, vocab], (xs, ts, arg(&out, 3 * rows)), integer);
            let operands = (arg(&x, rows * vocab), arg(&t, rows), arg(&out, 3 * rows), arg(&g, 3 * rows));
            cube::backward(&client, [rows, vocab], operands, arg(&dx, rows * vocab), integer);
            let (out, dx) = (client.read_one_unchecked(out), client.read_one_unchecked(dx));
            let (out, dx) = (f32::from_bytes(&out), f32::from_bytes(&dx));
            let wanted = reference(&wide(&logits), vocab, &targets);
            for (&a, b) in out.iter().zip(wanted.iter().flatten()) {
                worst[0] = worst[0].max((f64::from(a) - b).abs() / b.abs().max(1.0));
            }
            let wanted = backward(&logits, vocab, &targets, &forward(&logits, vocab, &targets), &grad);
            for (&a, &b) in dx.iter().zip(&wanted) {
                worst[1] = worst[1].max(f64::from((a - b).abs()));
            }
        }
        println!("selective_log_softmax on wgpu: value within {:.1e}, gradient within {:.1e}", worst[0], worst[1]);
        assert!(worst[0] < 1e-5 && worst[1] < 1e-5);
    }
}
