//! Products with a weight matrix: y = x·Wᵀ and its gradients.
//!
//! `x: [rows, in]`, `W: [out, in]` → `y: [rows, out]`
//!
//! ```text
//! yᵣₒ = Σᵢ xᵣᵢ Wₒᵢ     dxᵣᵢ = Σₒ gᵣₒ Wₒᵢ     dWₒᵢ = Σᵣ gᵣₒ xᵣᵢ
//! ```
//! Every entry is one FMA chain over ascending summands, so it depends on its own row and column alone: not on how many
//! rows there are, nor on blocking.

use crate::vectorised;

/// Columns of a panel: two AVX registers.
const LANES: usize = 16;
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
    /// Of a row-major `[depth, columns]` matrix.
    ///
    /// # Panics
    /// If `matrix` is not so large.
    #[must_use]
    pub fn of(matrix: &[f32], depth: usize, columns: usize) -> Self {
        assert_eq!(matrix.len(), depth * columns, "a matrix [{depth}, {columns}]");
        let mut values = vec![0.0; columns.div_ceil(LANES) * depth * LANES];
        for (panel, values) in values.chunks_exact_mut(depth * LANES).enumerate() {
            let from = panel * LANES;
            let width = LANES.min(columns - from);
            for (row, values) in matrix.chunks_exact(columns).zip(values.as_chunks_mut::<LANES>().0) {
                copy(values, &row[from..from + width]);
            }
        }
        Self { depth, columns, values }
    }

    /// Of the transpose of a row-major `[columns, depth]` matrix.
    ///
    /// # Panics
    /// If `matrix` is not so large.
    #[must_use]
    pub fn of_transpose(matrix: &[f32], depth: usize, columns: usize) -> Self {
        assert_eq!(matrix.len(), depth * columns, "a matrix [{columns}, {depth}]");
        let mut values = vec![0.0; columns.div_ceil(LANES) * depth * LANES];
        for (column, row) in matrix.chunks_exact(depth).enumerate() {
            let panel = &mut values[column / LANES * depth * LANES..][..depth * LANES];
            for (values, &x) in panel.as_chunks_mut::<LANES>().0.iter_mut().zip(row) {
                values[column % LANES] = x;
            }
        }
        Self { depth, columns, values }
    }

    /// Rows and columns of the matrix.
    #[must_use]
    pub fn size(&self) -> [usize; 2] {
        [self.depth, self.columns]
    }

    /// Of the transposed matrix.
    #[must_use]
    pub fn transposed(&self) -> Self {
        let (depth, columns) = (self.columns, self.depth);
        let mut values = vec![0.0; columns.div_ceil(LANES) * depth * LANES];
        for (from, panel) in self.values.chunks_exact(self.depth * LANES).enumerate() {
            let height = LANES.min(depth - from * LANES);
            for (column, row) in panel.as_chunks::<LANES>().0.iter().enumerate() {
                let to = (column / LANES * depth + from * LANES) * LANES + column % LANES;
                row[..height].iter().enumerate().for_each(|(k, &x)| values[to + k * LANES] = x);
            }
        }
        Self { depth, columns, values }
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
    let rows = x.len() / b.depth;
    assert_eq!(x.len(), rows * b.depth, "rows of {}", b.depth);
    let mut out = vec![0.0; rows * b.columns];
    vectorised(
        #[inline(always)]
        || accumulate(x, b.depth, 1, rows, b, &mut out),
    );
    out
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
        vectorised(
            #[inline(always)]
            || accumulate(grad, 1, output, output, &b, out),
        );
    }
}

/// out[i][j] += Σ_k a[i·row + k·column]·b[k][j], each going on from the value that is there.
#[inline(always)]
fn accumulate(a: &[f32], row: usize, column: usize, rows: usize, b: &Panels, out: &mut [f32]) {
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
        for (panel, values) in b.values.chunks_exact(b.depth * LANES).enumerate() {
            let left = panel * LANES;
            let width = LANES.min(b.columns - left);
            for ((at, height), packed) in tiles().zip(packed.chunks_exact(TILE * b.depth)) {
                let out = &mut out[at * b.columns + left..];
                match height {
                    6 => tile::<6>(packed, values, out, b.columns, height, width),
                    5 => tile::<5>(packed, values, out, b.columns, height, width),
                    _ => tile::<4>(packed, values, out, b.columns, height, width),
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

/// The sums of one tile with one panel; `height` rows and `width` columns of them are stored.
#[inline(always)]
fn tile<const M: usize>(a: &[f32], b: &[f32], out: &mut [f32], stride: usize, height: usize, width: usize) {
    let mut sums = [[0.0f32; LANES]; M];
    for (i, sums) in sums.iter_mut().enumerate().take(height) {
        copy(sums, &out[i * stride..][..width]);
    }
    for (a, b) in a.as_chunks::<M>().0.iter().zip(b.as_chunks::<LANES>().0) {
        for i in 0..M {
            for lane in 0..LANES {
                sums[i][lane] = a[i].mul_add(b[lane], sums[i][lane]);
            }
        }
    }
    for (i, sums) in sums.iter().enumerate().take(height) {
        let out = &mut out[i * stride..][..width];
        match out.first_chunk_mut() {
            Some(out) => *out = *sums,
            None => out.copy_from_slice(&sums[..width]),
        }
    }
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
            let dx = product(&g, &panels.transposed());
            assert_eq!(panels.transposed().values, Panels::of(&w, output, input).values);
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
