//! The forward pass over packed tokens, in burn tensors.

use std::sync::Arc;

use burn::tensor::{Device, Gradients, Int, Tensor, TensorData};

use super::ops::{self, Packs, add_bias, rms_norm, swiglu};
use super::weights::{Family, Shape, Weights};
use super::workers::Workers;

/// The parameters as tensors, in the order in which the forward pass asks for them (vectors as `[1, width]`), and the
/// value head, if any.
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
        let mut sizes = sizes(&shape);
        sizes.extend(weights.value_head.then_some([1, shape.width]));
        let mut rest = weights.values();
        let parameters: Vec<_> = sizes.iter().map(|[rows, columns]| rest.split_off(..rows * columns)).collect();
        let multiplied = |number: usize| match number {
            0 => shape.tied,
            _ => sizes[number][0] > 1 || (weights.value_head && number + 1 == sizes.len()),
        };
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
        let mut parameters = self.tensors.iter();
        let mut next = || parameters.next().expect("as many as the sizes say");
        let embedding = &next().tensor;
        let mut x = embedding.clone().select(0, integers(tokens, &embedding.device()));
        for layer in 0..self.shape.layers {
            let mut qkv = linear(self.norm(x.clone(), next()), next());
            qkv = match self.shape.family {
                Family::Llama => qkv,
                Family::Qwen2 => add_bias(qkv, vector(next())),
                Family::Qwen3 => self.norm_heads(&qkv, next(), next()),
            };
            x = x + linear(attend(layer, qkv), next());
            let gated = swiglu(linear(self.norm(x.clone(), next()), next()));
            x = x + linear(gated, next());
        }
        self.norm(x, next())
    }

    /// Logits `[rows, vocab]` of hidden states.
    pub(super) fn logits(&self, hidden: Tensor<2>) -> Tensor<2> {
        let head = if self.shape.tied { self.tensors.first() } else { self.tensors.last() };
        linear(hidden, head.expect("there are tensors"))
    }

    /// Values `[rows, 1]` of hidden states, where there is a value head.
    pub(super) fn values(&self, hidden: Tensor<2>) -> Option<Tensor<2>> {
        self.value_head.as_ref().map(|head| linear(hidden, head))
    }

    fn norm(&self, x: Tensor<2>, weight: &Parameter) -> Tensor<2> {
        rms_norm(x, vector(weight), self.shape.norm_eps)
    }

    /// Each query and each key normalised by itself.
    fn norm_heads(&self, qkv: &Tensor<2>, query: &Parameter, key: &Parameter) -> Tensor<2> {
        let Shape { heads, kv_heads, head_dim, .. } = self.shape;
        let part = |from: usize, heads: usize| qkv.clone().narrow(1, from * head_dim, heads * head_dim);
        let normed = |x: Tensor<2>, weight: &Parameter| {
            let [tokens, columns] = x.dims();
            self.norm(x.reshape([tokens * columns / head_dim, head_dim]), weight).reshape([tokens, columns])
        };
        let (queries, keys) = (normed(part(0, heads), query), normed(part(heads, kv_heads), key));
        Tensor::cat(vec![queries, keys, part(heads + kv_heads, kv_heads)], 1)
    }
}

/// The sizes of the tensors that [`Shape::parts`] make, those of one product as one.
fn sizes(shape: &Shape) -> Vec<[usize; 2]> {
    let Shape { vocab, width, heads, head_dim, ffn, .. } = *shape;
    let mut sizes = vec![[vocab, width]];
    for _ in 0..shape.layers {
        sizes.extend([[1, width], [shape.qkv(), width]]);
        match shape.family {
            Family::Llama => {}
            Family::Qwen2 => sizes.push([1, shape.qkv()]),
            Family::Qwen3 => sizes.extend([[1, head_dim]; 2]),
        }
        sizes.extend([[width, heads * head_dim], [1, width], [2 * ffn, width], [width, ffn]]);
    }
    sizes.push([1, width]);
    sizes.extend((!shape.tied).then_some([vocab, width]));
    sizes
}

fn vector(parameter: &Parameter) -> Tensor<1> {
    let [_, width] = parameter.tensor.dims();
    parameter.tensor.clone().reshape([width])
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
