//! The derivative of attention, for whole rows that may begin alike.

use std::iter::once;
use std::ops::Range;

use super::{Heads, Rotary, combine, largest_step, output, products, push_blocked, push_row, rotated_queries, softmax};
use crate::{LANES, vectorised};

/// Derivative of Σ `grad`·o in `qkv`, for the rows of [`rows`](super::rows). Recomputes what that computed. Of a shared
/// token, it is the sum over what the trunk itself and then the rows in their order make of it.
///
/// # Panics
/// If shapes disagree, or a position has no entry in `rotary`.
#[must_use]
pub fn backward(
    qkv: &[f32],
    heads: Heads,
    rotary: &Rotary,
    trunk: usize,
    spans: &[Range<usize>],
    grad: &[f32],
) -> Vec<f32> {
    let mut dqkv = vec![0.0; qkv.len()];
    let pieces = once((0, 0..trunk)).chain(spans.iter().map(|span| (trunk, span.clone())));
    for (before, span) in pieces.filter(|(_, span)| !span.is_empty()) {
        for kv in 0..heads.kv {
            vectorised(
                #[inline(always)]
                || backward_head(qkv, heads, rotary, before, &span, kv, grad, &mut dqkv),
            );
        }
    }
    dqkv
}

/// One kv head of one row: keys and values in both layouts, the group's queries and output gradients, and the
/// derivatives under way.
struct Backward {
    heads: Heads,
    /// Tokens before those that ask.
    before: usize,
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

/// The derivative of the tokens `span`, which see the first `before` tokens and themselves.
#[inline(always)]
#[expect(clippy::too_many_arguments, reason = "a kernel's operands")]
fn backward_head(
    qkv: &[f32],
    heads: Heads,
    rotary: &Rotary,
    before: usize,
    span: &Range<usize>,
    kv: usize,
    grad: &[f32],
    dqkv: &mut [f32],
) {
    let (padded, group, columns) = (heads.padded(), heads.group(), heads.columns());
    let tokens = || (0..before).chain(span.clone()).enumerate();
    let (mut keys, mut key_rows, mut values) = (vec![], vec![], vec![]);
    for (i, t) in tokens() {
        let token = &qkv[t * columns..][..columns];
        push_row(&mut key_rows, &token[heads.key(kv)], padded);
        let key = &mut key_rows[i * padded..][..heads.dim];
        rotary.turn(key, i, false);
        push_blocked(&mut keys, i, key);
        push_blocked(&mut values, i, &token[heads.value(kv)]);
    }
    let queries = rotated_queries(qkv, heads, rotary, span, kv, before);
    let count = span.len() * group;
    let mut grads = Vec::with_capacity(queries.len());
    (0..count).for_each(|at| push_row(&mut grads, &grad[output(heads, span.start, kv, at)], padded));
    let scores = 4 * (before + span.len()).next_multiple_of(LANES);
    let mut work = Backward {
        heads,
        before,
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
            3 => work.queries::<3>(at),
            2 => work.queries::<2>(at),
            _ => work.queries::<1>(at),
        }
        at += step;
    }
    for (i, t) in tokens() {
        let token = &mut dqkv[t * columns..][..columns];
        add(&mut token[heads.value(kv)], &work.dvalues[i * padded..]);
        let key = &mut work.dkeys[i * padded..][..heads.dim];
        rotary.turn(key, i, true);
        add(&mut token[heads.key(kv)], key);
    }
    for (i, t) in span.clone().enumerate() {
        for g in 0..group {
            let head = &mut dqkv[t * columns + (kv * group + g) * heads.dim..][..heads.dim];
            for (to, from) in head.iter_mut().zip(&work.dqueries[(i * group + g) * padded..]) {
                *to = from * heads.scale();
            }
            rotary.turn(head, before + i, true);
        }
    }
}

#[inline(always)]
fn add(to: &mut [f32], from: &[f32]) {
    to.iter_mut().zip(from).for_each(|(to, from)| *to += from);
}

impl Backward {
    #[inline(always)]
    fn queries<const Q: usize>(&mut self, at: usize) {
        let (padded, dim) = (self.heads.padded(), self.heads.dim);
        let lens: [usize; Q] = std::array::from_fn(|q| self.before + (at + q) / self.heads.group() + 1);
        let (len, stride) = (lens[Q - 1], lens[Q - 1].next_multiple_of(LANES));
        let (queries, grads) = (&self.queries[at * padded..], &self.grads[at * padded..]);
        products::<Q, false>(queries, [padded, dim], &self.keys, &[], stride, &mut self.weights);
        products::<Q, false>(grads, [padded, dim], &self.values, &[], stride, &mut self.dscores);
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
