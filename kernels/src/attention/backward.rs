//! The derivative of attention, for rows without a past.

use std::ops::Range;

use super::{
    Heads, LANES, Rotary, combine, largest_step, output, products, push_blocked, push_row, rotated_queries, softmax,
};
use crate::vectorised;

/// Derivative of Σ `grad`·o in `qkv`, for rows without a past. Recomputes what [`forward`] computed.
///
/// # Panics
/// If shapes disagree, or a position has no entry in `rotary`.
#[must_use]
pub fn backward(qkv: &[f32], heads: Heads, rotary: &Rotary, spans: &[Range<usize>], grad: &[f32]) -> Vec<f32> {
    let mut dqkv = vec![0.0; qkv.len()];
    for span in spans {
        for kv in 0..heads.kv {
            vectorised(
                #[inline(always)]
                || backward_head(qkv, heads, rotary, span, kv, grad, &mut dqkv),
            );
        }
    }
    dqkv
}

/// One kv head of one row: keys and values in both layouts, the group's queries and output gradients, and the
/// derivatives under way.
struct Backward {
    heads: Heads,
    keys: Vec<f32>,
    key_rows: Vec<f32>,
    values: Vec<f32>,
    queries: Vec<f32>,
    grads: Vec<f32>,
    dkeys: Vec<f32>,
    dvalues: Vec<f32>,
    weights: Vec<f32>,
    dscores: Vec<f32>,
    dqueries: Vec<f32>,
}

#[inline(always)]
fn backward_head(
    qkv: &[f32],
    heads: Heads,
    rotary: &Rotary,
    span: &Range<usize>,
    kv: usize,
    grad: &[f32],
    dqkv: &mut [f32],
) {
    let (padded, group, columns) = (heads.padded(), heads.group(), heads.columns());
    let (mut keys, mut key_rows, mut values) = (vec![], vec![], vec![]);
    for (i, token) in qkv.chunks_exact(columns).take(span.end).skip(span.start).enumerate() {
        push_row(&mut key_rows, &token[heads.key(kv)], padded);
        let key = &mut key_rows[i * padded..][..heads.dim];
        rotary.turn(key, i, false);
        push_blocked(&mut keys, i, key);
        push_blocked(&mut values, i, &token[heads.value(kv)]);
    }
    let queries = rotated_queries(qkv, heads, rotary, span, kv, 0);
    let count = span.len() * group;
    let mut grads = Vec::with_capacity(queries.len());
    (0..count).for_each(|at| push_row(&mut grads, &grad[output(heads, span.start, kv, at)], padded));
    let scores = 4 * span.len().next_multiple_of(LANES);
    let mut work = Backward {
        heads,
        keys,
        values,
        queries,
        grads,
        dkeys: vec![0.0; key_rows.len()],
        dvalues: vec![0.0; key_rows.len()],
        key_rows,
        weights: vec![0.0; scores],
        dscores: vec![0.0; scores],
        dqueries: vec![0.0; count * padded],
    };
    let mut at = 0;
    while at < count {
        let step = largest_step(count - at);
        match step {
            4 => work.queries::<4>(at),
            2 => work.queries::<2>(at),
            _ => work.queries::<1>(at),
        }
        at += step;
    }
    for i in 0..span.len() {
        let token = &mut dqkv[(span.start + i) * columns..][..columns];
        token[heads.value(kv)].copy_from_slice(&work.dvalues[i * padded..][..heads.dim]);
        token[heads.key(kv)].copy_from_slice(&work.dkeys[i * padded..][..heads.dim]);
        rotary.turn(&mut token[heads.key(kv)], i, true);
        for g in 0..group {
            let head = &mut token[(kv * group + g) * heads.dim..][..heads.dim];
            for (to, from) in head.iter_mut().zip(&work.dqueries[(i * group + g) * padded..]) {
                *to = from * heads.scale();
            }
            rotary.turn(head, i, true);
        }
    }
}

impl Backward {
    #[inline(always)]
    fn queries<const Q: usize>(&mut self, at: usize) {
        let (padded, dim) = (self.heads.padded(), self.heads.dim);
        let lens: [usize; Q] = std::array::from_fn(|q| (at + q) / self.heads.group() + 1);
        let (len, stride) = (lens[Q - 1], lens[Q - 1].next_multiple_of(LANES));
        let (queries, grads) = (&self.queries[at * padded..], &self.grads[at * padded..]);
        products::<Q>(queries, padded, dim, &self.keys, stride, &mut self.weights);
        products::<Q>(grads, padded, dim, &self.values, stride, &mut self.dscores);
        for (q, &len) in lens.iter().enumerate() {
            let weights = &mut self.weights[q * stride..(q + 1) * stride];
            softmax(weights, len);
            let dscores = self.dscores[q * stride..(q + 1) * stride].as_chunks_mut::<LANES>().0;
            let weights = weights.as_chunks::<LANES>().0;
            let mut lanes = [0.0f32; LANES];
            for (p, g) in weights.iter().zip(&*dscores) {
                for lane in 0..LANES {
                    lanes[lane] = p[lane].mul_add(g[lane], lanes[lane]);
                }
            }
            let mean = lanes.iter().map(|&l| f64::from(l)).sum::<f64>() as f32;
            for (p, g) in weights.iter().zip(dscores) {
                for lane in 0..LANES {
                    g[lane] = p[lane] * (g[lane] - mean);
                }
            }
        }
        combine::<Q>(&self.dscores, stride, len, &self.key_rows, padded, &mut self.dqueries[at * padded..]);
        spread::<Q>(&self.dscores, stride, len, queries, padded, &mut self.dkeys);
        spread::<Q>(&self.weights, stride, len, grads, padded, &mut self.dvalues);
    }
}

/// rows[t] += Σ_q weights[q][t]·vectors[q].
#[inline(always)]
fn spread<const Q: usize>(
    weights: &[f32],
    stride: usize,
    len: usize,
    vectors: &[f32],
    padded: usize,
    rows: &mut [f32],
) {
    let weights: [&[f32]; Q] = std::array::from_fn(|q| &weights[q * stride..][..len]);
    for part in (0..padded).step_by(LANES) {
        let vectors: [[f32; LANES]; Q] =
            std::array::from_fn(|q| *vectors[q * padded + part..].first_chunk().expect("padded"));
        for (t, row) in rows.chunks_exact_mut(padded).take(len).enumerate() {
            let row: &mut [f32; LANES] = row[part..].first_chunk_mut().expect("rows are padded to whole lanes");
            let mut sum = *row;
            for q in 0..Q {
                for lane in 0..LANES {
                    sum[lane] = weights[q][t].mul_add(vectors[q][lane], sum[lane]);
                }
            }
            *row = sum;
        }
    }
}
