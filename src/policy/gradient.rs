//! The gradient of a shard, piece by piece: every layer has a tape of its own, and backward goes from the last to the
//! first, handing on each parameter's gradient as soon as it is known. A layer whose tape has no room keeps what went
//! in, and computes the rest again when backward comes to it, by the same operations in the same order.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Mutex;

use burn::tensor::{Tensor, TensorData};
use starpo_kernels::embedding;

use super::decoder::{Decoder, read};
use super::ops::{Packed, attention, pull};
use super::transformer::Transformer;
use super::weights::Shape;
use super::{Cotangent, Row, Scores};

/// The loss's derivatives, from a row's number and its scores.
pub(super) type Loss<'a> = &'a (dyn Fn(usize, &Scores) -> Cotangent + Sync);

impl Transformer {
    /// Scores of one shard, whose first row has number `first`; its gradient goes to `share`.
    pub(super) fn shard(
        &self,
        rows: &[Row<'_>],
        first: usize,
        temperature: f64,
        loss: Loss<'_>,
        mut share: Share<'_, '_>,
    ) -> Vec<Scores> {
        let Some(pass) = self.pack(rows) else { return vec![Scores::default(); rows.len()] };
        let shape = self.weights().shape();
        let (logits, room) = (4 * pass.targets.len() * shape.vocab, self.memory.activations / self.workers.count());
        let keep = self.speaks && logits <= room;
        let taped = (room - if keep { logits } else { 0 }) / tape(shape, pass.tokens.len());
        let (mut x, mut layers) = (self.decoder.embed(&pass.tokens), Vec::new());
        for layer in 0..shape.layers {
            let mut kept = Kept::Input(x);
            if shape.layers - layer <= taped {
                kept = Kept::Piece(kept.piece(&self.decoder, layer, &pass.packed));
            }
            x = kept.output(&self.decoder, layer, &pass.packed);
            layers.push(kept);
        }
        let end = Piece::new(&self.decoder, self.decoder.of_end(), x, |decoder, x| {
            self.lines(decoder, decoder.finish(x), &pass, temperature, keep)
        });
        let scores = self.split(end.output(), rows);
        let mut embedded = None;
        let mut dx = end.backward(self.derivatives(rows, &scores, first, loss), |number, gradient| match number {
            0 => embedded = Some(gradient),
            _ => share.add(number, gradient),
        });
        for (layer, kept) in layers.into_iter().enumerate().rev() {
            let piece = kept.piece(&self.decoder, layer, &pass.packed);
            dx = piece.backward(dx, |number, gradient| share.add(number, gradient));
        }
        let mut embedded = embedded.unwrap_or_else(|| vec![0.0; shape.vocab * shape.width]);
        embedding::scatter(&read(dx), &pass.tokens, &mut embedded);
        share.add(0, embedded);
        scores
    }

    /// The loss's derivatives in what [`Transformer::lines`] gives.
    fn derivatives(&self, rows: &[Row<'_>], scores: &[Scores], first: usize, loss: Loss<'_>) -> Tensor<2> {
        let mut lines = Vec::new();
        let mut columns = 0;
        for (i, (row, scores)) in rows.iter().zip(scores).enumerate() {
            let Cotangent { logprobs, entropies, values } = loss(first + i, scores);
            let lengths = (logprobs.len(), entropies.len(), values.len());
            let expected = (scores.logprobs.len(), scores.entropies.len(), scores.values.len());
            assert!(lengths == expected, "derivatives of row {}: {lengths:?}, not {expected:?}", first + i);
            for token in 0..row.responses.iter().map(Range::len).sum() {
                let from = lines.len();
                if self.speaks {
                    lines.extend([logprobs[token], entropies[token], 0.0]);
                }
                lines.extend(values.get(token));
                columns = lines.len() - from;
            }
        }
        let size = [lines.len() / columns, columns];
        Tensor::from_data(TensorData::new(lines, size), &self.device)
    }
}

/// A piece of the forward pass on a tape of its own.
struct Piece {
    /// Of the parameters that it asks for.
    numbers: Vec<usize>,
    decoder: Decoder,
    input: Tensor<2>,
    output: Tensor<2>,
}

impl Piece {
    fn new(
        decoder: &Decoder,
        numbers: Vec<usize>,
        input: Tensor<2>,
        run: impl FnOnce(&Decoder, Tensor<2>) -> Tensor<2>,
    ) -> Self {
        let (decoder, input) = (decoder.with_leaves(&numbers), input.autodiff().require_grad());
        let output = run(&decoder, input.clone());
        Self { numbers, decoder, input, output }
    }

    fn output(&self) -> Tensor<2> {
        self.output.clone().inner()
    }

    /// From the derivative in the output, that in the input; `add` is given those in the parameters.
    fn backward(self, derivative: Tensor<2>, mut add: impl FnMut(usize, Vec<f32>)) -> Tensor<2> {
        let mut gradients = pull(self.output, derivative.autodiff()).backward();
        for number in self.numbers {
            if let Some(gradient) = self.decoder.gradient(number, &mut gradients) {
                add(number, gradient);
            }
        }
        self.input.grad_remove(&mut gradients).expect("the output depends on the input")
    }
}

/// What is kept of a layer until backward comes to it.
#[expect(clippy::large_enum_variant, reason = "there are as many as layers")]
enum Kept {
    Input(Tensor<2>),
    Piece(Piece),
}

impl Kept {
    fn output(&self, decoder: &Decoder, layer: usize, packed: &Packed) -> Tensor<2> {
        match self {
            Self::Input(input) => decoder.layer(layer, input.clone(), |qkv| attention(qkv, packed.clone())),
            Self::Piece(piece) => piece.output(),
        }
    }

    fn piece(self, decoder: &Decoder, layer: usize, packed: &Packed) -> Piece {
        match self {
            Self::Input(input) => Piece::new(decoder, decoder.of_layer(layer).collect(), input, |decoder, x| {
                decoder.layer(layer, x, |qkv| attention(qkv, packed.clone()))
            }),
            Self::Piece(piece) => piece,
        }
    }
}

/// Bytes that a layer's tape keeps of so many tokens: what goes into its operations.
fn tape(shape: &Shape, tokens: usize) -> usize {
    let Shape { width, heads, head_dim, ffn, .. } = *shape;
    4 * tokens * (4 * width + shape.qkv() + heads * head_dim + 3 * ffn)
}

/// The sum of the shards' gradients: of each parameter, shards are added in the order of their numbers, whatever the
/// order they come in.
pub(super) struct Sum<'a> {
    parameters: Vec<Mutex<InOrder<'a>>>,
}

struct InOrder<'a> {
    sum: &'a mut [f32],
    /// Whether anything has been added.
    begun: bool,
    next: usize,
    /// None where a shard has no gradient.
    waiting: BTreeMap<usize, Option<Vec<f32>>>,
}

impl<'a> Sum<'a> {
    /// Adds to `flat`, which is zeros if it is not `begun`; `sizes` are those of its parameters.
    pub(super) fn new(mut flat: &'a mut [f32], begun: bool, sizes: &[[usize; 2]]) -> Self {
        let parameter = |[rows, columns]: &[usize; 2]| {
            let sum = flat.split_off_mut(..rows * columns).expect("the sizes are those of the weights");
            Mutex::new(InOrder { sum, begun, next: 0, waiting: BTreeMap::new() })
        };
        Self { parameters: sizes.iter().map(parameter).collect() }
    }

    /// What shard `shard` adds.
    pub(super) fn share(&self, shard: usize) -> Share<'_, 'a> {
        Share { sum: self, shard, missing: vec![true; self.parameters.len()] }
    }
}

/// One shard's gradients on their way into the sum. What was not added when this is dropped is none.
pub(super) struct Share<'s, 'a> {
    sum: &'s Sum<'a>,
    shard: usize,
    missing: Vec<bool>,
}

impl Share<'_, '_> {
    fn add(&mut self, number: usize, gradient: Vec<f32>) {
        self.missing[number] = false;
        self.sum.parameters[number].lock().expect("no thread panicked").add(self.shard, Some(gradient));
    }
}

impl Drop for Share<'_, '_> {
    fn drop(&mut self) {
        for (parameter, _) in self.sum.parameters.iter().zip(&self.missing).filter(|(_, missing)| **missing) {
            // A panic elsewhere is enough.
            if let Ok(mut parameter) = parameter.lock() {
                parameter.add(self.shard, None);
            }
        }
    }
}

impl InOrder<'_> {
    fn add(&mut self, shard: usize, gradient: Option<Vec<f32>>) {
        self.waiting.insert(shard, gradient);
        while let Some(gradient) = self.waiting.remove(&self.next) {
            self.next += 1;
            match gradient {
                Some(gradient) if self.begun => self.sum.iter_mut().zip(&gradient).for_each(|(s, g)| *s += g),
                Some(gradient) => {
                    self.sum.copy_from_slice(&gradient);
                    self.begun = true;
                }
                None => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{Family, Learner, Memory, Weights, device};

    fn shape(family: Family, tied: bool) -> Shape {
        let (rope_theta, norm_eps) = (1e4, 1e-6);
        Shape {
            family,
            vocab: 40,
            width: 24,
            layers: 3,
            heads: 4,
            kv_heads: 2,
            head_dim: 6,
            ffn: 40,
            rope_theta,
            norm_eps,
            tied,
        }
    }

    fn loss(row: usize, scores: &Scores) -> Cotangent {
        let some = |values: &[f32]| (0..values.len()).map(|t| ((row + 3 * t) % 5) as f32 * 0.3 - 0.7).collect();
        Cotangent { logprobs: some(&scores.logprobs), entropies: some(&scores.entropies), values: some(&scores.values) }
    }

    /// Scores and gradient of one shard by a single tape for all layers.
    fn whole(policy: &Transformer, rows: &[Row<'_>]) -> (Vec<Scores>, Vec<f32>) {
        let pass = policy.pack(rows).expect("there are responses");
        let sizes = crate::policy::decoder::sizes(policy.weights());
        let leaves = policy.decoder.with_leaves(&(0..sizes.len()).collect::<Vec<_>>());
        let embedded = policy.decoder.embed(&pass.tokens).autodiff().require_grad();
        let hidden = (0..policy.weights().shape().layers)
            .fold(embedded.clone(), |x, layer| leaves.layer(layer, x, |qkv| attention(qkv, pass.packed.clone())));
        let lines = policy.lines(&leaves, leaves.finish(hidden), &pass, 0.8, true);
        let scores = policy.split(lines.clone().inner(), rows);
        let derivatives = policy.derivatives(rows, &scores, 0, &loss);
        let mut gradients = pull(lines, derivatives.autodiff()).backward();
        let parts = sizes.iter().enumerate().map(|(number, [rows, columns])| {
            leaves.gradient(number, &mut gradients).unwrap_or_else(|| vec![0.0; rows * columns])
        });
        let mut parts: Vec<Vec<f32>> = parts.collect();
        let dx = embedded.grad_remove(&mut gradients).expect("everything depends on it");
        embedding::scatter(&read(dx), &pass.tokens, &mut parts[0]);
        (scores, parts.concat())
    }

    #[test]
    fn pieces_give_what_a_single_tape_gives_whatever_there_is_room_for() {
        let prompt: Vec<u32> = (0..11).map(|i| 2 + i * 7 % 30).collect();
        let tokens: Vec<Vec<u32>> = (0..4u32).map(|row| [&prompt[..], &[9 + row % 2, 3, 5 + row]].concat()).collect();
        let response = 9..14;
        let rows: Vec<Row<'_>> =
            tokens.iter().map(|tokens| Row { tokens, responses: std::slice::from_ref(&response) }).collect();
        for (number, family) in [Family::Llama, Family::Qwen2, Family::Qwen3, Family::Llama].into_iter().enumerate() {
            let shape = shape(family, number != 1);
            let mut weights = Weights::random(shape.clone(), 0.3, 5).expect("the sizes fit");
            if number > 1 {
                weights = weights.with_value_head();
            }
            weights.values_mut().iter_mut().step_by(3).for_each(|x| *x += 0.125);
            let mut policy = Transformer::new(weights, device("cpu").expect("a CPU"), 1);
            policy.speaks = number != 3;
            let wanted = whole(&policy, &rows);
            assert!(wanted.1.iter().filter(|g| **g != 0.0).count() * 2 > wanted.1.len());
            let layer = tape(&shape, 40);
            for activations in [usize::MAX, 0, layer, 4 * 20 * shape.vocab + 2 * layer] {
                policy = policy.within(Memory { activations, ..Memory::AMPLE });
                policy.discard();
                let scores = policy.gradient(&rows, std::slice::from_ref(&(0..4)), 0.8, &loss);
                let gradient = policy.pending.clone().expect("there is one");
                assert!((scores, gradient) == wanted, "{family:?}, room for {activations} bytes");
            }
        }
    }
}
