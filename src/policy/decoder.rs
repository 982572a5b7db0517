//! The forward pass: Llama's decoder over packed tokens, in burn tensors.

use std::sync::Arc;

use burn::tensor::{Device, Gradients, Int, Tensor, TensorData};

use super::ops::{self, Packs, rms_norm, swiglu};
use super::weights::{Shape, Weights};
use super::workers::Workers;

/// Tensors of one layer: norm, qkv, output, norm, gate and up, down.
const LAYER: usize = 6;

/// The parameters as tensors: embedding, layers, last norm (norms as `[1, width]`), and the value head, if any.
pub(super) struct Decoder {
    shape: Shape,
    tensors: Vec<Parameter>,
    value_head: Option<Parameter>,
}

struct Parameter {
    tensor: Tensor<2>,
    /// On the CPU, of what is multiplied with.
    packs: Option<Arc<Packs>>,
}

impl Decoder {
    pub(super) fn new(weights: &Weights, device: &Device, workers: &Workers) -> Self {
        let shape = weights.shape().clone();
        let (width, kv) = (shape.width, shape.kv_heads * shape.head());
        let mut sizes = vec![[shape.vocab, width]];
        for _ in 0..shape.layers {
            let attention = [[1, width], [width + 2 * kv, width], [width, width]];
            sizes.extend(attention.into_iter().chain([[1, width], [2 * shape.ffn, width], [width, shape.ffn]]));
        }
        sizes.push([1, width]);
        sizes.extend(weights.value_head.then_some([1, width]));
        let mut rest = weights.values();
        let parameters: Vec<_> = sizes.iter().map(|[rows, columns]| rest.split_off(..rows * columns)).collect();
        let multiplied = |number: usize| sizes[number][0] > 1 || (weights.value_head && number + 1 == sizes.len());
        let mut tensors = workers.map(sizes.len(), |number| {
            let (values, size) = (parameters[number].expect("the sizes are those of the weights"), sizes[number]);
            let packs = (multiplied(number) && *device == Device::flex()).then(|| Arc::new(Packs::new(values, size)));
            Parameter { tensor: Tensor::from_data(TensorData::new(values.to_vec(), size), device), packs }
        });
        let value_head = if weights.value_head { tensors.pop() } else { None };
        Self { shape, tensors, value_head }
    }

    /// The same parameters as leaves of a new graph, which shares no node, so no lock, with any other.
    pub(super) fn leaves(&self) -> Self {
        let leaf = |Parameter { tensor, packs }: &Parameter| Parameter {
            tensor: tensor.clone().autodiff().require_grad(),
            packs: packs.clone(),
        };
        let (tensors, value_head) = (self.tensors.iter().map(leaf).collect(), self.value_head.as_ref().map(leaf));
        Self { shape: self.shape.clone(), tensors, value_head }
    }

    /// The leaves' gradients as a flat array in the order of [`Weights::parts`]. A leaf without one counts as 0.
    pub(super) fn gradient(&self, gradients: &Gradients) -> Vec<f32> {
        let mut flat = Vec::new();
        for Parameter { tensor, .. } in self.tensors.iter().chain(&self.value_head) {
            match tensor.grad(gradients) {
                Some(gradient) => flat.extend_from_slice(&read(gradient)),
                None => flat.resize(flat.len() + tensor.dims().iter().product::<usize>(), 0.0),
            }
        }
        flat
    }

    /// Last hidden states `[tokens, width]`; `attend` maps a layer's number and its qkv to the heads' outputs.
    pub(super) fn hidden(&self, tokens: &[u32], mut attend: impl FnMut(usize, Tensor<2>) -> Tensor<2>) -> Tensor<2> {
        let [embedding, layers @ .., last] = self.tensors.as_slice() else { unreachable!("two tensors at least") };
        let mut x = embedding.tensor.clone().select(0, integers(tokens, &embedding.tensor.device()));
        for (number, layer) in layers.as_chunks::<LAYER>().0.iter().enumerate() {
            let [norm, qkv, output, ffn_norm, gate_up, down] = layer;
            let heads = attend(number, linear(self.norm(x.clone(), norm), qkv));
            x = x + linear(heads, output);
            let gated = swiglu(linear(self.norm(x.clone(), ffn_norm), gate_up));
            x = x + linear(gated, down);
        }
        self.norm(x, last)
    }

    /// Logits `[rows, vocab]` of hidden states.
    pub(super) fn logits(&self, hidden: Tensor<2>) -> Tensor<2> {
        linear(hidden, &self.tensors[0])
    }

    /// Values `[rows, 1]` of hidden states, where there is a value head.
    pub(super) fn values(&self, hidden: Tensor<2>) -> Option<Tensor<2>> {
        self.value_head.as_ref().map(|head| linear(hidden, head))
    }

    fn norm(&self, x: Tensor<2>, weight: &Parameter) -> Tensor<2> {
        rms_norm(x, weight.tensor.clone().reshape([self.shape.width]), self.shape.norm_eps)
    }
}

fn linear(x: Tensor<2>, weight: &Parameter) -> Tensor<2> {
    ops::linear(x, weight.tensor.clone(), weight.packs.clone())
}

/// Some rows of a matrix.
pub(super) fn rows(x: Tensor<2>, numbers: &[u32]) -> Tensor<2> {
    let numbers = integers(numbers, &x.device());
    x.select(0, numbers)
}

pub(super) fn integers(values: &[u32], device: &Device) -> Tensor<1, Int> {
    let values: Vec<i64> = values.iter().map(|&v| i64::from(v)).collect();
    let count = values.len();
    Tensor::from_data(TensorData::new(values, [count]), device)
}

/// The values of a tensor on the host.
pub(super) fn read(tensor: Tensor<2>) -> Vec<f32> {
    tensor.into_data().try_into_vec().expect("the tensor is f32")
}
