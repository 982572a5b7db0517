//! The forward pass over packed tokens, in burn tensors.

use std::ops::Range;
use std::sync::{Arc, Mutex};

use burn::tensor::{Device, Gradients, Int, Tensor, TensorData};
use starpo_kernels::head::Chosen;

use super::ops::{self, Packs, add_bias, head, rms_norm, selective_log_softmax, swiglu};
use super::weights::{Family, Shape, Weights};
use super::workers::Workers;

/// The parameters as tensors, numbered in the order in which the forward pass asks for them (vectors as `[1, width]`),
/// a value head last.
pub(super) struct Decoder {
    shape: Shape,
    value_head: bool,
    tensors: Vec<Parameter>,
}

#[derive(Clone)]
struct Parameter {
    /// Where there are packs, it only stands for them.
    tensor: Tensor<2>,
    /// On the CPU, of what is multiplied with.
    packs: Option<Arc<Packs>>,
}

impl Decoder {
    pub(super) fn new(weights: &Weights, device: &Device, workers: &Workers) -> Self {
        let shape = weights.shape().clone();
        let sizes = sizes(weights);
        let multiplied = |number: usize| match number {
            0 => shape.tied,
            _ => sizes[number][0] > 1 || (weights.value_head && number + 1 == sizes.len()),
        };
        let parameter = |number: usize| Parameter {
            tensor: Tensor::from_data(TensorData::new(vec![0.0f32], [1, 1]), device),
            packs: (multiplied(number) && *device == Device::flex()).then(|| Arc::new(Packs::new(sizes[number]))),
        };
        let tensors = (0..sizes.len()).map(parameter).collect();
        let mut decoder = Self { shape, value_head: weights.value_head, tensors };
        decoder.set(weights, workers);
        decoder
    }

    /// Takes over the values of `weights`, of the same sizes.
    ///
    /// # Panics
    /// If a pass is under way.
    pub(super) fn set(&mut self, weights: &Weights, workers: &Workers) {
        let mut rest = weights.values();
        let mut parts = Vec::new();
        for (parameter, size) in self.tensors.iter_mut().zip(sizes(weights)) {
            let values = rest.split_off(..size[0] * size[1]).expect("the sizes are those of the weights");
            parts.push(Mutex::new((parameter, values, size)));
        }
        workers.map(parts.len(), |number| {
            let (Parameter { tensor, packs }, values, size) = &mut *parts[number].lock().expect("no thread panicked");
            match packs {
                Some(packs) => Arc::get_mut(packs).expect("no pass is under way").set(values),
                None => *tensor = Tensor::from_data(TensorData::new(values.to_vec(), *size), &tensor.device()),
            }
        });
    }

    /// The same parameters, those of these numbers as leaves of a new graph, which shares no node, so no lock, with any
    /// other.
    pub(super) fn with_leaves(&self, numbers: &[usize]) -> Self {
        let mut tensors = self.tensors.clone();
        for &number in numbers {
            let tensor = &mut tensors[number].tensor;
            *tensor = tensor.clone().autodiff().require_grad();
        }
        Self { shape: self.shape.clone(), tensors, ..*self }
    }

    /// A leaf's gradient, if anything depends on it, as one array in the order of [`Weights::parts`].
    pub(super) fn gradient(&self, number: usize, gradients: &mut Gradients) -> Option<Vec<f32>> {
        self.tensors[number].tensor.grad_remove(gradients).map(read)
    }

    /// Numbers of what [`Decoder::layer`] asks for.
    pub(super) fn of_layer(&self, layer: usize) -> Range<usize> {
        let each = match self.shape.family {
            Family::Llama => 6,
            Family::Qwen2 => 7,
            Family::Qwen3 => 8,
        };
        1 + each * layer..1 + each * (layer + 1)
    }

    /// Number of the last norm.
    fn last(&self) -> usize {
        self.of_layer(self.shape.layers).start
    }

    /// Number of what [`Decoder::logits`] multiplies with: the embedding, or a head of its own.
    fn head(&self) -> usize {
        if self.shape.tied { 0 } else { self.last() + 1 }
    }

    /// Numbers of what is asked for after the layers.
    pub(super) fn of_end(&self) -> Vec<usize> {
        let last = self.last()..self.tensors.len();
        self.shape.tied.then_some(0).into_iter().chain(last).collect()
    }

    /// First hidden states `[tokens, width]`.
    pub(super) fn embed(&self, tokens: &[u32]) -> Tensor<2> {
        let Parameter { tensor, packs } = &self.tensors[0];
        match packs {
            None => rows(tensor.clone(), tokens),
            Some(packs) => {
                let data = TensorData::new(packs.rows(tokens), [tokens.len(), self.shape.width]);
                Tensor::from_data(data, &tensor.device())
            }
        }
    }

    /// The hidden states after a layer; `attend` maps its qkv to the heads' outputs.
    pub(super) fn layer(&self, layer: usize, x: Tensor<2>, attend: impl FnOnce(Tensor<2>) -> Tensor<2>) -> Tensor<2> {
        let mut parameters = self.tensors[self.of_layer(layer)].iter();
        let mut next = || parameters.next().expect("as many as the family has");
        let mut qkv = linear(self.norm(x.clone(), next()), next());
        qkv = match self.shape.family {
            Family::Llama => qkv,
            Family::Qwen2 => add_bias(qkv, vector(next())),
            Family::Qwen3 => self.norm_heads(&qkv, next(), next()),
        };
        let x = x + linear(attend(qkv), next());
        let gated = swiglu(linear(self.norm(x.clone(), next()), next()));
        x + linear(gated, next())
    }

    /// The hidden states that heads read, from those after all layers.
    pub(super) fn finish(&self, x: Tensor<2>) -> Tensor<2> {
        self.norm(x, &self.tensors[self.last()])
    }

    /// Last hidden states `[tokens, width]`; `attend` maps a layer's number and its qkv to the heads' outputs.
    pub(super) fn hidden(&self, tokens: &[u32], mut attend: impl FnMut(usize, Tensor<2>) -> Tensor<2>) -> Tensor<2> {
        let layers = 0..self.shape.layers;
        self.finish(layers.fold(self.embed(tokens), |x, layer| self.layer(layer, x, |qkv| attend(layer, qkv))))
    }

    /// Logits `[rows, vocab]` of hidden states.
    pub(super) fn logits(&self, hidden: Tensor<2>) -> Tensor<2> {
        linear(hidden, &self.tensors[self.head()])
    }

    /// (logp, entropy, lse) of each target from the hidden state before it, `[targets, 3]`, where logits are multiplied
    /// by `scale`. `keep` says whether a tape keeps the logits.
    pub(super) fn scores(&self, hidden: Tensor<2>, targets: &[u32], scale: f32, keep: bool) -> Tensor<2> {
        let Parameter { tensor, packs } = &self.tensors[self.head()];
        if let Some(packs) = packs {
            return head(hidden, tensor.clone(), packs.clone(), Chosen { targets: targets.to_vec(), scale }, keep);
        }
        let mut logits = self.logits(hidden);
        if scale != 1.0 {
            logits = logits.mul_scalar(scale);
        }
        let targets = integers(targets, &logits.device());
        selective_log_softmax(logits, targets)
    }

    /// Values `[rows, 1]` of hidden states, where there is a value head.
    pub(super) fn values(&self, hidden: Tensor<2>) -> Option<Tensor<2>> {
        let head = self.tensors.last().filter(|_| self.value_head);
        head.map(|head| linear(hidden, head))
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

/// The sizes of the tensors that [`Weights::parts`] make, those of one product as one.
pub(super) fn sizes(weights: &Weights) -> Vec<[usize; 2]> {
    let Shape { family, vocab, width, layers, heads, head_dim, ffn, tied, .. } = *weights.shape();
    let qkv = weights.shape().qkv();
    let mut sizes = vec![[vocab, width]];
    for _ in 0..layers {
        sizes.extend([[1, width], [qkv, width]]);
        match family {
            Family::Llama => {}
            Family::Qwen2 => sizes.push([1, qkv]),
            Family::Qwen3 => sizes.extend([[1, head_dim]; 2]),
        }
        sizes.extend([[width, heads * head_dim], [1, width], [2 * ffn, width], [width, ffn]]);
    }
    sizes.push([1, width]);
    sizes.extend((!tied).then_some([vocab, width]));
    sizes.extend(weights.value_head.then_some([1, width]));
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

fn integers(values: &[u32], device: &Device) -> Tensor<1, Int> {
    let values: Vec<i64> = values.iter().map(|&v| i64::from(v)).collect();
    let count = values.len();
    Tensor::from_data(TensorData::new(values, [count]), device)
}

/// The values of a tensor on the host.
pub(super) fn read(tensor: Tensor<2>) -> Vec<f32> {
    tensor.into_data().try_into_vec().expect("the tensor is f32")
}
