//! Causal attention of grouped query heads with rotary positions, over packed rows of ragged length and their past.
//!
//! `qkv: [tokens, (heads + 2·kv_heads)·dim]` = (queries, keys, values) → `[tokens, heads·dim]`. Rows stand one behind
//! the other; a row's tokens see its past and themselves up to their own position.
//!
//! ```text
//! oᵢ = Σ_t pᵢₜ vₜ     pᵢ = softmax over t ≤ i of q̂ᵢ·k̂ₜ / √dim     q̂, k̂: rotated by position, halves against halves
//! dvₜ = Σᵢ pᵢₜ gᵢ     dsᵢₜ = pᵢₜ (gᵢ·vₜ − Σ_u pᵢᵤ gᵢ·vᵤ)     dq̂ᵢ = Σ_t dsᵢₜ k̂ₜ / √dim     dk̂ₜ = Σᵢ dsᵢₜ q̂ᵢ / √dim
//! ```
//! (Vaswani et al. 2017; Ainslie et al. 2023; Su et al. 2021.) Each score is one FMA chain over dim, each output one
//! over t, and the softmax's sum runs in fixed lanes: the result of a token is the same to the bit whether its past
//! comes from the cache or from the same call.

use std::ops::Range;

use crate::exp::exp;
use crate::{LANES, fetch, vectorised};

mod backward;

pub use backward::backward;

/// The heads of one layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heads {
    pub query: usize,
    /// Divides `query`.
    pub kv: usize,
    /// Size of one head; even.
    pub dim: usize,
}

impl Heads {
    /// Columns of `qkv`.
    #[must_use]
    pub fn columns(&self) -> usize {
        (self.query + 2 * self.kv) * self.dim
    }

    /// `dim` padded to whole lanes.
    fn padded(&self) -> usize {
        self.dim.next_multiple_of(LANES)
    }

    /// Columns of kv head `kv`'s key and value, and of query `i` of its group.
    fn key(&self, kv: usize) -> Range<usize> {
        (self.query + kv) * self.dim..(self.query + kv + 1) * self.dim
    }

    fn value(&self, kv: usize) -> Range<usize> {
        (self.query + self.kv + kv) * self.dim..(self.query + self.kv + kv + 1) * self.dim
    }

    fn group(&self) -> usize {
        self.query / self.kv
    }

    fn scale(&self) -> f32 {
        (1.0 / (self.dim as f64).sqrt()) as f32
    }
}

/// Cosines and sines of the rotary embedding: `[positions, dim/2]`, computed in f64, rounded once.
#[derive(Clone, Debug)]
pub struct Rotary {
    half: usize,
    cos: Vec<f32>,
    sin: Vec<f32>,
}

impl Rotary {
    /// Angles position·θ^(−2i/dim).
    #[must_use]
    pub fn new(dim: usize, theta: f64, positions: usize) -> Self {
        let half = dim / 2;
        let angle = |at: usize| (at / half) as f64 * libm::pow(theta, -2.0 * (at % half) as f64 / dim as f64);
        let table = |f: fn(f64) -> f64| (0..positions * half).map(|at| f(angle(at)) as f32).collect();
        Self { half, cos: table(libm::cos), sin: table(libm::sin) }
    }

    /// Positions it has.
    #[must_use]
    pub fn positions(&self) -> usize {
        self.cos.len() / self.half
    }

    /// Turns one head by `position`; `back` turns the other way (the transposed rotation).
    #[inline(always)]
    fn turn(&self, head: &mut [f32], position: usize, back: bool) {
        let at = position * self.half..(position + 1) * self.half;
        let (low, high) = head.split_at_mut(self.half);
        for (((x, y), &cos), &sin) in low.iter_mut().zip(high).zip(&self.cos[at.clone()]).zip(&self.sin[at]) {
            let sin = if back { -sin } else { sin };
            (*x, *y) = (x.mul_add(cos, -(*y * sin)), y.mul_add(cos, *x * sin));
        }
    }
}

/// Rotated keys and values of one kv head of one row.
#[derive(Clone, Debug, Default)]
pub struct Past {
    len: usize,
    keys: Vec<f32>,
    values: Vec<f32>,
}

impl Past {
    /// Tokens it holds.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it holds none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Forgets all but the first `len` tokens.
    pub fn truncate(&mut self, len: usize) {
        if len < self.len {
            self.values.truncate(self.values.len() / self.len * len);
            // What stays behind in the last block has no weight, as later tokens have none, and is overwritten.
            let blocks = self.len.div_ceil(LANES);
            self.keys.truncate(self.keys.len() / blocks * len.div_ceil(LANES));
            self.len = len;
        }
    }

    /// Its values as stored, for tests that corrupt them.
    pub fn values_mut(&mut self) -> &mut [f32] {
        &mut self.values
    }

    fn push(&mut self, key: &[f32], value: &[f32], padded: usize) {
        push_blocked(&mut self.keys, self.len, key);
        push_row(&mut self.values, value, padded);
        self.len += 1;
    }
}

/// Appends row `at` to blocks of `[dim][LANES]` rows.
fn push_blocked(blocks: &mut Vec<f32>, at: usize, row: &[f32]) {
    if at.is_multiple_of(LANES) {
        blocks.resize(blocks.len() + row.len() * LANES, 0.0);
    }
    let block = blocks.len() - row.len() * LANES;
    for (d, &x) in row.iter().enumerate() {
        blocks[block + d * LANES + at % LANES] = x;
    }
}

fn push_row(rows: &mut Vec<f32>, row: &[f32], padded: usize) {
    rows.extend_from_slice(row);
    rows.resize(rows.len() + padded - row.len(), 0.0);
}

/// Attention of the tokens `spans[r]` of row r, whose past `pasts[r]` (one for each kv head) grows by them.
///
/// # Panics
/// If shapes disagree, or a position has no entry in `rotary`.
#[must_use]
pub fn forward(
    qkv: &[f32],
    heads: Heads,
    rotary: &Rotary,
    spans: &[Range<usize>],
    pasts: &mut [&mut [Past]],
) -> Vec<f32> {
    let columns = heads.columns();
    let mut out = vec![0.0; qkv.len() / columns * heads.query * heads.dim];
    for (span, past) in spans.iter().zip(pasts) {
        for kv in 0..heads.kv {
            vectorised(
                #[inline(always)]
                || forward_head(qkv, heads, rotary, span, kv, &mut past[kv], &mut out),
            );
        }
    }
    out
}

/// Attention of rows that all go on from one `past` (one for each kv head), none seeing another: what [`forward`] gives
/// each of them with a copy of that past, to the bit.
///
/// # Panics
/// If shapes disagree, or a position has no entry in `rotary`.
#[must_use]
pub fn branches(qkv: &[f32], heads: Heads, rotary: &Rotary, spans: &[Range<usize>], past: &[Past]) -> Vec<f32> {
    let mut out = vec![0.0; qkv.len() / heads.columns() * heads.query * heads.dim];
    for (kv, past) in past.iter().enumerate() {
        branches_of_head(qkv, heads, rotary, spans, kv, past.clone(), &mut out);
    }
    out
}

/// Attention of whole rows that begin alike: the first `trunk` tokens are what they share, and `spans` what each of
/// them goes on with, unseen by the others. What [`forward`] gives each row written out, to the bit.
///
/// # Panics
/// If shapes disagree, or a position has no entry in `rotary`.
#[must_use]
pub fn rows(qkv: &[f32], heads: Heads, rotary: &Rotary, trunk: usize, spans: &[Range<usize>]) -> Vec<f32> {
    let mut out = vec![0.0; qkv.len() / heads.columns() * heads.query * heads.dim];
    for kv in 0..heads.kv {
        let mut past = Past::default();
        vectorised(
            #[inline(always)]
            || forward_head(qkv, heads, rotary, &(0..trunk), kv, &mut past, &mut out),
        );
        branches_of_head(qkv, heads, rotary, spans, kv, past, &mut out);
    }
    out
}

fn branches_of_head(
    qkv: &[f32],
    heads: Heads,
    rotary: &Rotary,
    spans: &[Range<usize>],
    kv: usize,
    mut past: Past,
    out: &mut [f32],
) {
    let before = past.len;
    for span in spans {
        vectorised(
            #[inline(always)]
            || forward_head(qkv, heads, rotary, span, kv, &mut past, out),
        );
        past.truncate(before);
    }
}

#[inline(always)]
fn forward_head(
    qkv: &[f32],
    heads: Heads,
    rotary: &Rotary,
    span: &Range<usize>,
    kv: usize,
    past: &mut Past,
    out: &mut [f32],
) {
    let before = past.len;
    let mut key = vec![0.0; heads.dim];
    for (i, token) in qkv.chunks_exact(heads.columns()).take(span.end).skip(span.start).enumerate() {
        key.copy_from_slice(&token[heads.key(kv)]);
        rotary.turn(&mut key, before + i, false);
        past.push(&key, &token[heads.value(kv)], heads.padded());
    }
    let queries = rotated_queries(qkv, heads, rotary, span, kv, before);
    let count = queries.len() / heads.padded();
    let mut weights = vec![0.0; 4 * past.len.next_multiple_of(LANES)];
    let mut mixed = vec![0.0; 4 * heads.padded()];
    let mut at = 0;
    while at < count {
        let step = largest_step(count - at);
        match (step, at == 0 && span.len() == 1) {
            (4, true) => mix::<4, true>(&queries, heads, at, before, past, &mut weights, &mut mixed),
            (4, _) => mix::<4, false>(&queries, heads, at, before, past, &mut weights, &mut mixed),
            (3, true) => mix::<3, true>(&queries, heads, at, before, past, &mut weights, &mut mixed),
            (3, _) => mix::<3, false>(&queries, heads, at, before, past, &mut weights, &mut mixed),
            (2, true) => mix::<2, true>(&queries, heads, at, before, past, &mut weights, &mut mixed),
            (2, _) => mix::<2, false>(&queries, heads, at, before, past, &mut weights, &mut mixed),
            (_, true) => mix::<1, true>(&queries, heads, at, before, past, &mut weights, &mut mixed),
            _ => mix::<1, false>(&queries, heads, at, before, past, &mut weights, &mut mixed),
        }
        for q in 0..step {
            let into = output(heads, span.start, kv, at + q);
            out[into].copy_from_slice(&mixed[q * heads.padded()..][..heads.dim]);
        }
        at += step;
    }
}

fn largest_step(left: usize) -> usize {
    match left {
        4.. => 4,
        left => left,
    }
}

/// Where query `at` of the group of `kv` (tokens in order, heads within a token) has its output.
fn output(heads: Heads, start: usize, kv: usize, at: usize) -> Range<usize> {
    let head = kv * heads.group() + at % heads.group();
    let from = ((start + at / heads.group()) * heads.query + head) * heads.dim;
    from..from + heads.dim
}

/// The group's queries, rotated and scaled: `[tokens · group, padded]`.
#[inline(always)]
fn rotated_queries(
    qkv: &[f32],
    heads: Heads,
    rotary: &Rotary,
    span: &Range<usize>,
    kv: usize,
    before: usize,
) -> Vec<f32> {
    let (group, dim) = (heads.group(), heads.dim);
    let mut queries = Vec::with_capacity(span.len() * group * heads.padded());
    for (i, token) in qkv.chunks_exact(heads.columns()).take(span.end).skip(span.start).enumerate() {
        for head in kv * group..(kv + 1) * group {
            let from = queries.len();
            push_row(&mut queries, &token[head * dim..(head + 1) * dim], heads.padded());
            rotary.turn(&mut queries[from..from + dim], before + i, false);
            queries[from..].iter_mut().for_each(|x| *x *= heads.scale());
        }
    }
    queries
}

/// Outputs of `Q` queries from `at` on. `AHEAD` has the past fetched before its use: a single token's queries read it
/// from memory, and once, as hardware does not foresee across pages.
#[inline(always)]
fn mix<const Q: usize, const AHEAD: bool>(
    queries: &[f32],
    heads: Heads,
    at: usize,
    before: usize,
    past: &Past,
    weights: &mut [f32],
    mixed: &mut [f32],
) {
    let padded = heads.padded();
    let lens: [usize; Q] = std::array::from_fn(|q| before + (at + q) / heads.group() + 1);
    let stride = lens[Q - 1].next_multiple_of(LANES);
    products::<Q, AHEAD>(&queries[at * padded..], [padded, heads.dim], &past.keys, &past.values, stride, weights);
    for q in 0..Q {
        softmax(&mut weights[q * stride..(q + 1) * stride], lens[q]);
    }
    combine::<Q>(weights, stride, lens[Q - 1], &past.values, padded, mixed);
}

/// `out[q][t]` = vectors[q]·row t, for t < `stride`, rows in blocks. `AHEAD` has the next block fetched meanwhile, and
/// as many rows of `then`.
#[inline(always)]
fn products<const Q: usize, const AHEAD: bool>(
    vectors: &[f32],
    [padded, dim]: [usize; 2],
    blocks: &[f32],
    then: &[f32],
    stride: usize,
    out: &mut [f32],
) {
    let vectors: [&[f32]; Q] = std::array::from_fn(|q| &vectors[q * padded..][..dim]);
    let (lines, then) = (blocks.as_chunks::<LANES>().0, then.as_chunks::<LANES>().0);
    for (b, block) in lines.chunks_exact(dim).take(stride / LANES).enumerate() {
        let mut acc = [[0.0f32; LANES]; Q];
        for (d, row) in block.iter().enumerate() {
            if AHEAD {
                lines.get((b + 1) * dim + d).into_iter().chain(then.get(b * padded + d)).for_each(fetch);
            }
            for q in 0..Q {
                for lane in 0..LANES {
                    acc[q][lane] = vectors[q][d].mul_add(row[lane], acc[q][lane]);
                }
            }
        }
        for q in 0..Q {
            out[q * stride + b * LANES..][..LANES].copy_from_slice(&acc[q]);
        }
    }
}

/// `out[q]` = Σ over t < `len` of weights[q][t]·rows[t], one chain each. Few queries take two parts of a row at once:
/// registers are left, and rows pass half as often.
#[inline(always)]
fn combine<const Q: usize>(weights: &[f32], stride: usize, len: usize, rows: &[f32], padded: usize, out: &mut [f32]) {
    let weights: [&[f32]; Q] = std::array::from_fn(|q| &weights[q * stride..][..len]);
    let mut at = 0;
    while at < padded {
        let both = Q <= 2 && at + LANES < padded;
        let (mut acc, mut next) = ([[0.0f32; LANES]; Q], [[0.0f32; LANES]; Q]);
        let part = |row: &[f32], at: usize| -> [f32; LANES] { *row[at..].first_chunk().expect("padded to lanes") };
        let rows = rows.chunks_exact(padded).take(len).enumerate();
        if both {
            for (t, row) in rows {
                let (row, beside) = (part(row, at), part(row, at + LANES));
                for q in 0..Q {
                    add_scaled(&mut acc[q], weights[q][t], &row);
                    add_scaled(&mut next[q], weights[q][t], &beside);
                }
            }
            for q in 0..Q {
                out[q * padded + at + LANES..][..LANES].copy_from_slice(&next[q]);
            }
        } else {
            for (t, row) in rows {
                let row = part(row, at);
                for q in 0..Q {
                    add_scaled(&mut acc[q], weights[q][t], &row);
                }
            }
        }
        for q in 0..Q {
            out[q * padded + at..][..LANES].copy_from_slice(&acc[q]);
        }
        at += if both { 2 * LANES } else { LANES };
    }
}

#[inline(always)]
fn add_scaled(sums: &mut [f32; LANES], factor: f32, row: &[f32; LANES]) {
    for lane in 0..LANES {
        sums[lane] = factor.mul_add(row[lane], sums[lane]);
    }
}

/// Softmax of the first `len` scores; the others become 0.
#[inline(always)]
fn softmax(scores: &mut [f32], len: usize) {
    scores[len..].fill(f32::NEG_INFINITY);
    let chunks = scores.as_chunks_mut::<LANES>().0;
    let mut max = [f32::NEG_INFINITY; LANES];
    for chunk in &*chunks {
        for lane in 0..LANES {
            max[lane] = if chunk[lane] > max[lane] { chunk[lane] } else { max[lane] };
        }
    }
    let m = max.iter().fold(f32::NEG_INFINITY, |m, &x| if x > m { x } else { m });
    let mut sums = [0.0f32; LANES];
    for chunk in &mut *chunks {
        for lane in 0..LANES {
            chunk[lane] = exp(chunk[lane] - m);
            sums[lane] += chunk[lane];
        }
    }
    let scale = (1.0 / sums.iter().map(|&s| f64::from(s)).sum::<f64>()) as f32;
    for chunk in chunks {
        chunk.iter_mut().for_each(|p| *p *= scale);
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::single_range_in_vec_init, reason = "rows are spans, and there may be one")]

    use super::*;
    use crate::check::{gradient, near, noise, same};

    const HEADS: Heads = Heads { query: 4, kv: 2, dim: 6 };

    fn rotate(head: &[f64], position: usize) -> Vec<f64> {
        let half = head.len() / 2;
        let angle = |i: usize| position as f64 * 100.0f64.powf(-(i as f64) / half as f64);
        let low = (0..half).map(|i| head[i] * angle(i).cos() - head[half + i] * angle(i).sin());
        low.chain((0..half).map(|i| head[half + i] * angle(i).cos() + head[i] * angle(i).sin())).collect()
    }

    /// The formula, in f64.
    fn reference(qkv: &[f64], spans: &[Range<usize>]) -> Vec<f64> {
        let Heads { query, kv, dim } = HEADS;
        let token = |t: usize, head: usize| &qkv[t * HEADS.columns() + head * dim..][..dim];
        let mut out = vec![0.0; qkv.len() / HEADS.columns() * query * dim];
        for (span, head) in spans.iter().flat_map(|s| (0..query).map(move |h| (s, h))) {
            let of = head / (query / kv);
            for i in span.clone() {
                let q = rotate(token(i, head), i - span.start);
                let score = |t: usize| {
                    let k = rotate(token(t, query + of), t - span.start);
                    q.iter().zip(k).map(|(q, k)| q * k).sum::<f64>() / (dim as f64).sqrt()
                };
                let weights: Vec<f64> = (span.start..=i).map(|t| score(t).exp()).collect();
                let total: f64 = weights.iter().sum();
                for (t, w) in (span.start..).zip(weights) {
                    for (d, v) in token(t, query + kv + of).iter().enumerate() {
                        out[(i * query + head) * dim + d] += w / total * v;
                    }
                }
            }
        }
        out
    }

    fn whole(qkv: &[f32], spans: &[Range<usize>]) -> Vec<f32> {
        rows(qkv, HEADS, &Rotary::new(HEADS.dim, 100.0, 64), 0, spans)
    }

    #[test]
    fn close_to_the_reference_in_value_and_gradient() {
        let spans = [0..19, 19..20, 20..23];
        let (qkv, g) = (noise(1, 23 * HEADS.columns()), noise(2, 23 * HEADS.query * HEADS.dim));
        let wide: Vec<f64> = qkv.iter().map(|&x| f64::from(x)).collect();
        whole(&qkv, &spans).iter().zip(reference(&wide, &spans)).for_each(|(&a, b)| near(f64::from(a), b, 2e-6));
        let d = backward(&qkv, HEADS, &Rotary::new(HEADS.dim, 100.0, 64), 0, &spans, &g);
        let loss = |x: &[f64]| reference(x, &spans).iter().zip(&g).map(|(y, &g)| y * f64::from(g)).sum();
        gradient(loss, &qkv, &d, 5e-6);
    }

    /// Token by token, or in one piece: the same bits.
    #[test]
    fn the_cache_leaves_no_trace() {
        let (columns, width) = (HEADS.columns(), HEADS.query * HEADS.dim);
        let qkv = noise(3, 50 * columns);
        let wanted = whole(&qkv, &[0..50]);
        let rotary = Rotary::new(HEADS.dim, 100.0, 64);
        let mut past = vec![Past::default(); HEADS.kv];
        let mut from = 0;
        for piece in [7, 1, 1, 1, 22, 1, 2, 15] {
            let part = &qkv[from * columns..][..piece * columns];
            let out = forward(part, HEADS, &rotary, &[0..piece], &mut [&mut past]);
            out.iter().zip(&wanted[from * width..]).for_each(|(&a, &b)| same(a, b));
            from += piece;
        }
        assert!(from == 50 && past[0].len() == 50);
        for from in [49, 33, 32, 16, 5, 0] {
            past.iter_mut().for_each(|past| past.truncate(from));
            let part = &qkv[from * columns..];
            let out = forward(part, HEADS, &rotary, &[0..50 - from], &mut [&mut past]);
            out.iter().zip(&wanted[from * width..]).for_each(|(&a, &b)| same(a, b));
        }
    }

    /// Rows that share their first tokens are as they would be written out, and so is the gradient but for rounding:
    /// that of a shared token is the sum over the rows.
    #[test]
    fn a_trunk_leaves_no_trace() {
        let (columns, width) = (HEADS.columns(), HEADS.query * HEADS.dim);
        let rotary = Rotary::new(HEADS.dim, 100.0, 64);
        for trunk in [0, 1, 15, 16, 21] {
            let (qkv, g) = (noise(4, (trunk + 24) * columns), noise(5, (trunk + 24) * width));
            let spans = [0..2, 2..20, 20..20, 20..24].map(|span| trunk + span.start..trunk + span.end);
            let together = rows(&qkv, HEADS, &rotary, trunk, &spans);
            let mut summed = vec![0.0; qkv.len()];
            for (number, span) in spans.iter().enumerate() {
                let written = |of: &[f32], columns: usize, shared: f32| -> Vec<f32> {
                    let shared = of[..trunk * columns].iter().map(|x| x * shared);
                    shared.chain(of[span.start * columns..span.end * columns].iter().copied()).collect()
                };
                let row = written(&qkv, columns, 1.0);
                let alone = whole(&row, &[0..trunk + span.len()]);
                written(&together, width, 1.0).iter().zip(&alone).for_each(|(&a, &b)| same(a, b));
                let own = written(&g, width, if number == 0 { 1.0 } else { 0.0 });
                let own = backward(&row, HEADS, &rotary, 0, &[0..trunk + span.len()], &own);
                let (shared, rest) = own.split_at(trunk * columns);
                summed.iter_mut().zip(shared).for_each(|(s, d)| *s += d);
                summed[span.start * columns..span.end * columns].copy_from_slice(rest);
            }
            let d = backward(&qkv, HEADS, &rotary, trunk, &spans, &g);
            d.iter().zip(&summed).for_each(|(&a, &b)| near(f64::from(a), f64::from(b), 1e-6));
        }
    }

    /// A row that goes on from a shared past is as it would be behind its own copy of it.
    #[test]
    fn branches_leave_no_trace() {
        let (columns, width) = (HEADS.columns(), HEADS.query * HEADS.dim);
        let rotary = Rotary::new(HEADS.dim, 100.0, 64);
        for before in [0, 1, 15, 16, 21] {
            let qkv = noise(4, (before + 24) * columns);
            let (head, tail) = qkv.split_at(before * columns);
            let mut past = vec![Past::default(); HEADS.kv];
            let _ = forward(head, HEADS, &rotary, &[0..before], &mut [&mut past]);
            let spans = [0..2, 2..20, 20..20, 20..24];
            let together = branches(tail, HEADS, &rotary, &spans, &past);
            for span in spans {
                let row = [head, &tail[span.start * columns..span.end * columns]].concat();
                let alone = whole(&row, &[0..before + span.len()]);
                let parts = together[span.start * width..span.end * width].iter().zip(&alone[before * width..]);
                parts.for_each(|(&a, &b)| same(a, b));
            }
            assert_eq!(past[0].len(), before);
        }
    }
}
