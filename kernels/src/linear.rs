//! Products with a weight matrix: y = x·Wᵀ and its gradients.
//!
//! `x: [rows, in]`, `W: [out, in]` → `y: [rows, out]`
//!
//! ```text
//! yᵣₒ = Σᵢ xᵣᵢ Wₒᵢ     dxᵣᵢ = Σₒ gᵣₒ Wₒᵢ     dWₒᵢ = Σᵣ gᵣₒ xᵣᵢ
//! ```
//! Every entry is one FMA chain over ascending summands, so it depends on its own row and column alone: not on how many
//! rows there are, nor on blocking.

use std::ops::Range;

use crate::{LANES, fetch, vectorised};

/// Rows of a tile: with two registers each, twelve sums stay in registers.
const TILE: usize = 6;
/// Tiles whose packed copy stays in the second-level cache while the panels pass.
const BLOCK: usize = 8;
/// Rows of x that a gradient of W takes in at once; the sum goes on from one block to the next.
const SUMMANDS: usize = 256;

/// A `[depth, columns]` matrix in panels `[columns/16][depth][16]`, the last one padded with zeros.
#[derive(Clone, Debug)]
pub struct Panels {
    depth: usize,
    columns: usize,
    values: Vec<f32>,
}

impl Panels {
    /// Of zeros.
    #[must_use]
    pub fn zeros(depth: usize, columns: usize) -> Self {
        Self { depth, columns, values: vec![0.0; columns.div_ceil(LANES) * depth * LANES] }
    }

    /// Of a row-major `[depth, columns]` matrix.
    ///
    /// # Panics
    /// If `matrix` is not so large.
    #[must_use]
    pub fn of(matrix: &[f32], depth: usize, columns: usize) -> Self {
        assert_eq!(matrix.len(), depth * columns, "a matrix [{depth}, {columns}]");
        let mut panels = Self::zeros(depth, columns);
        for (panel, values) in panels.values.chunks_exact_mut(depth * LANES).enumerate() {
            let from = panel * LANES;
            let width = LANES.min(columns - from);
            for (row, values) in matrix.chunks_exact(columns).zip(values.as_chunks_mut::<LANES>().0) {
                copy(values, &row[from..from + width]);
            }
        }
        panels
    }

    /// Of the transpose of a row-major `[columns, depth]` matrix.
    ///
    /// # Panics
    /// If `matrix` is not so large.
    #[must_use]
    pub fn of_transpose(matrix: &[f32], depth: usize, columns: usize) -> Self {
        let mut panels = Self::zeros(depth, columns);
        panels.set_transpose(matrix);
        panels
    }

    /// Makes this the panels of the transpose of a row-major `[columns, depth]` matrix.
    ///
    /// # Panics
    /// If `matrix` is not so large.
    pub fn set_transpose(&mut self, matrix: &[f32]) {
        let Self { depth, columns, ref mut values } = *self;
        assert_eq!(matrix.len(), depth * columns, "a matrix [{columns}, {depth}]");
        for (column, row) in matrix.chunks_exact(depth).enumerate() {
            let panel = &mut values[column / LANES * depth * LANES..][..depth * LANES];
            for (values, &x) in panel.as_chunks_mut::<LANES>().0.iter_mut().zip(row) {
                values[column % LANES] = x;
            }
        }
    }

    /// Of the transposed matrix.
    #[must_use]
    pub fn transposed(&self) -> Self {
        let mut panels = Self::zeros(self.columns, self.depth);
        for (from, panel) in self.values.chunks_exact(self.depth * LANES).enumerate() {
            let height = LANES.min(self.columns - from * LANES);
            for (column, row) in panel.as_chunks::<LANES>().0.iter().enumerate() {
                let to = (column / LANES * self.columns + from * LANES) * LANES + column % LANES;
                row[..height].iter().enumerate().for_each(|(k, &x)| panels.values[to + k * LANES] = x);
            }
        }
        panels
    }

    /// Rows and columns of the matrix.
    #[must_use]
    pub fn size(&self) -> [usize; 2] {
        [self.depth, self.columns]
    }

    /// Some columns of the matrix, one behind the other.
    ///
    /// # Panics
    /// If there is no such column.
    #[must_use]
    pub fn gather(&self, columns: &[u32]) -> Vec<f32> {
        let column = |&column: &u32| {
            let (panel, lane) = (column as usize / LANES, column as usize % LANES);
            assert!((column as usize) < self.columns, "column {column} of {}", self.columns);
            self.values[panel * self.depth * LANES..].as_chunks::<LANES>().0[..self.depth]
                .iter()
                .map(move |row| row[lane])
        };
        columns.iter().flat_map(column).collect()
    }
}

/// x·B for `x: [rows, depth]`: y with the panels of Wᵀ, dx with those of W.
///
/// # Panics
/// If `x` is not whole rows.
#[must_use]
pub fn product(x: &[f32], b: &Panels) -> Vec<f32> {
    let mut out = vec![0.0; x.len() / b.depth * b.columns];
    Columns::split(&mut out, b, 1).into_iter().for_each(|all| all.fill(x, b));
    out
}

/// Some columns of a product that is on its way: as many as there are can be filled at the same time.
#[derive(Debug)]
pub struct Columns<'a> {
    panels: Range<usize>,
    rows: Vec<&'a mut [f32]>,
}

impl<'a> Columns<'a> {
    /// Those of `out`, `[rows, columns]`, in at most `parts` parts of about the same size.
    #[must_use]
    pub fn split(out: &'a mut [f32], b: &Panels, parts: usize) -> Vec<Self> {
        let panels = b.columns.div_ceil(LANES);
        let parts = parts.min(panels);
        let at = |part: usize| part * panels / parts;
        let mut columns: Vec<_> =
            (0..parts).map(|part| Self { panels: at(part)..at(part + 1), rows: Vec::new() }).collect();
        for mut row in out.chunks_exact_mut(b.columns) {
            for part in &mut columns {
                let width = (part.panels.len() * LANES).min(row.len());
                part.rows.push(row.split_off_mut(..width).expect("no wider than the rest"));
            }
        }
        columns
    }

    /// Adds theirs of x·B.
    ///
    /// # Panics
    /// If `x` has not as many rows, each of B's depth.
    pub fn fill(self, x: &[f32], b: &Panels) {
        assert_eq!(x.len(), self.rows.len() * b.depth, "rows of {}", b.depth);
        self.add(x, b.depth, 1, b);
    }

    fn add(mut self, a: &[f32], row: usize, column: usize, b: &Panels) {
        vectorised(
            #[inline(always)]
            || accumulate(a, row, column, b, self.panels, &mut self.rows),
        );
    }
}

/// dW of `x: [rows, in]` and the gradient of y, `grad: [rows, out]`.
///
/// # Panics
/// If the numbers of rows disagree.
#[must_use]
pub fn weight_gradient(x: &[f32], input: usize, grad: &[f32], output: usize) -> Vec<f32> {
    let mut out = vec![0.0; output * input];
    add_weight_gradient(x, input, grad, output, &mut out);
    out
}

/// Goes on with the sums of [`weight_gradient`] in `out`: rows in parts give what all of them give at once.
///
/// # Panics
/// If the numbers of rows disagree, or `out` is not `[out, in]`.
pub fn add_weight_gradient(x: &[f32], input: usize, grad: &[f32], output: usize, out: &mut [f32]) {
    assert_eq!(x.len() / input, grad.len() / output, "rows of x and of the gradient");
    assert_eq!(out.len(), output * input, "a matrix [{output}, {input}]");
    for (x, grad) in x.chunks(SUMMANDS * input).zip(grad.chunks(SUMMANDS * output)) {
        let b = Panels::of(x, x.len() / input, input);
        Columns::split(out, &b, 1).into_iter().for_each(|all| all.add(grad, 1, output, &b));
    }
}

/// out[i][j] += Σ_k a[i·row + k·column]·b[k][j] for the columns of `panels`, each going on from the value there.
#[inline(always)]
fn accumulate(a: &[f32], row: usize, column: usize, b: &Panels, panels: Range<usize>, out: &mut [&mut [f32]]) {
    let rows = out.len();
    let count = rows.div_ceil(TILE);
    // Of equal heights as far as may be: what a low tile lacks is computed for nothing.
    let at = |tile: usize| tile * rows / count;
    let mut packed = vec![0.0; BLOCK.min(count) * TILE * b.depth];
    for from in (0..count).step_by(BLOCK) {
        let tiles = || (from..count.min(from + BLOCK)).map(|tile| (at(tile), at(tile + 1) - at(tile)));
        for ((at, height), packed) in tiles().zip(packed.chunks_exact_mut(TILE * b.depth)) {
            match height {
                6 => pack::<6>(&a[at * row..], row, column, height, packed),
                5 => pack::<5>(&a[at * row..], row, column, height, packed),
                _ => pack::<4>(&a[at * row..], row, column, height, packed),
            }
        }
        let size = b.depth * LANES;
        let values = &b.values[panels.start * size..panels.end * size];
        for (panel, values) in values.chunks_exact(size).enumerate() {
            // While the second tile passes, what it reads being in a cache, the next panel is on its way there.
            let next = &b.values[((panels.start + panel + 1) * size).min(b.values.len() - size)..][..size];
            for (i, ((at, height), packed)) in tiles().zip(packed.chunks_exact(TILE * b.depth)).enumerate() {
                let out = &mut out[at..];
                match (height, i) {
                    (6, 1) => tile::<6, true>(packed, values, next, out, panel, height),
                    (6, _) => tile::<6, false>(packed, values, next, out, panel, height),
                    (5, 1) => tile::<5, true>(packed, values, next, out, panel, height),
                    (5, _) => tile::<5, false>(packed, values, next, out, panel, height),
                    (_, 1) => tile::<4, true>(packed, values, next, out, panel, height),
                    _ => tile::<4, false>(packed, values, next, out, panel, height),
                }
            }
        }
    }
}

/// `height` rows of a as `[depth][M]`, the missing ones as zeros: the compiler keeps tiles of 4 to 6 rows in registers,
/// but not those of fewer.
#[inline(always)]
fn pack<const M: usize>(a: &[f32], row: usize, column: usize, height: usize, packed: &mut [f32]) {
    let depth = packed.len() / TILE;
    let packed = &mut packed.as_chunks_mut::<M>().0[..depth];
    if height < M {
        for (k, to) in packed.iter_mut().enumerate() {
            for i in 0..M {
                to[i] = if i < height { a[i * row + k * column] } else { 0.0 };
            }
        }
    } else if column == 1 {
        let rows: [&[f32]; M] = std::array::from_fn(|i| &a[i * row..][..depth]);
        for (k, to) in packed.iter_mut().enumerate() {
            for i in 0..M {
                to[i] = rows[i][k];
            }
        }
    } else {
        for (k, to) in packed.iter_mut().enumerate() {
            *to = *a[k * column..].first_chunk().expect("rows stand side by side");
        }
    }
}

/// The sums of one tile, of `height` rows, with the columns of one panel; `AHEAD` has the next one fetched.
#[inline(always)]
fn tile<const M: usize, const AHEAD: bool>(
    a: &[f32],
    b: &[f32],
    next: &[f32],
    out: &mut [&mut [f32]],
    panel: usize,
    height: usize,
) {
    let mut sums = [[0.0f32; LANES]; M];
    for (i, sums) in sums.iter_mut().enumerate().take(height) {
        copy(sums, lanes(out[i], panel));
    }
    let rows = a.as_chunks::<M>().0.iter().zip(b.as_chunks::<LANES>().0).zip(next.as_chunks::<LANES>().0);
    for ((a, b), next) in rows {
        if AHEAD {
            fetch(next);
        }
        for i in 0..M {
            for lane in 0..LANES {
                sums[i][lane] = a[i].mul_add(b[lane], sums[i][lane]);
            }
        }
    }
    for (i, sums) in sums.iter().enumerate().take(height) {
        let out = &mut out[i][panel * LANES..];
        match out.first_chunk_mut() {
            Some(out) => *out = *sums,
            None => out.copy_from_slice(&sums[..out.len()]),
        }
    }
}

/// A row's columns of one panel.
#[inline(always)]
fn lanes(row: &[f32], panel: usize) -> &[f32] {
    let rest = &row[panel * LANES..];
    &rest[..rest.len().min(LANES)]
}

/// Copies a whole vector as two registers, the rest of a row as it is.
#[inline(always)]
fn copy(to: &mut [f32; LANES], from: &[f32]) {
    match from.first_chunk() {
        Some(from) => *to = *from,
        None => to[..from.len()].copy_from_slice(from),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::{noise, same};

    /// One chain in order, whatever the shape.
    #[test]
    fn every_entry_is_one_chain() {
        for (rows, input, output) in [(1, 1, 1), (1, 33, 40), (7, 16, 16), (53, 130, 17), (300, 12, 35)] {
            let (x, w, g) = (noise(1, rows * input), noise(2, output * input), noise(3, rows * output));
            let chain = |terms: &mut dyn Iterator<Item = (f32, f32)>| terms.fold(0.0f32, |s, (a, b)| a.mul_add(b, s));
            let panels = Panels::of_transpose(&w, input, output);
            let y = product(&x, &panels);
            for parts in [2, 3, 64] {
                let mut shared = vec![0.0; y.len()];
                Columns::split(&mut shared, &panels, parts).into_iter().rev().for_each(|part| part.fill(&x, &panels));
                assert_eq!(shared, y);
            }
            let dx = product(&g, &panels.transposed());
            assert_eq!(panels.transposed().values, Panels::of(&w, output, input).values);
            let mut again = Panels::of_transpose(&noise(4, output * input), input, output);
            assert_ne!(again.values, panels.values);
            again.set_transpose(&w);
            assert_eq!(again.values, panels.values);
            let last = output as u32 - 1;
            assert_eq!(panels.gather(&[last, 0]), [&w[w.len() - input..], &w[..input]].concat());
            let dw = weight_gradient(&x, input, &g, output);
            for r in 0..rows {
                for o in 0..output {
                    same(y[r * output + o], chain(&mut (0..input).map(|i| (x[r * input + i], w[o * input + i]))));
                }
                for i in 0..input {
                    same(dx[r * input + i], chain(&mut (0..output).map(|o| (g[r * output + o], w[o * input + i]))));
                }
            }
            for (at, &dw) in dw.iter().enumerate() {
                let (o, i) = (at / input, at % input);
                same(dw, chain(&mut (0..rows).map(|r| (g[r * output + o], x[r * input + i]))));
            }
        }
    }
}
