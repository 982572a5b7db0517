//! The decoder's operations: `starpo_kernels::{linear, bias, rms_norm, swiglu, attention}`.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use burn::backend::autodiff::NodeId;
use burn::backend::autodiff::checkpoint::{base::Checkpointer, strategy::CheckpointStrategy};
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend, Dispatch, Flex, TensorMetadata, backend_extension};
use burn::tensor::Tensor;
use rayon::iter::{IntoParallelIterator, ParallelIterator};
use starpo_kernels::attention::{self as attention_kernel, Heads, Rotary};
use starpo_kernels::linear::{self as linear_kernel, Columns, Panels};
use starpo_kernels::{bias as bias_kernel, rms_norm as rms_norm_kernel, swiglu as swiglu_kernel};

use super::{Values, matrix, tensor};

/// Rows of ragged length that begin alike, and what attention must know of them: the first `trunk` tokens, which all of
/// them share, then one behind the other what each goes on with.
#[derive(Clone, Debug)]
pub(in crate::policy) struct Packed {
    pub(in crate::policy) heads: Heads,
    pub(in crate::policy) rotary: Arc<Rotary>,
    pub(in crate::policy) trunk: usize,
    pub(in crate::policy) spans: Arc<[Range<usize>]>,
}

/// A weight matrix `[out, in]` as the CPU's products read it, packed once for each value that it takes.
#[derive(Debug)]
pub(in crate::policy) struct Packs {
    forward: Panels,
    backward: OnceLock<Panels>,
}

impl Packs {
    /// Of zeros.
    pub(in crate::policy) fn new([output, input]: [usize; 2]) -> Self {
        Self { forward: Panels::zeros(input, output), backward: OnceLock::new() }
    }

    /// Makes these the packs of `weight`. Those of a backward pass go: sampling has no use for them.
    pub(in crate::policy) fn set(&mut self, weight: &[f32]) {
        self.backward = OnceLock::new();
        self.forward.set_transpose(weight);
    }

    /// For products with Wᵀ.
    pub(super) fn forward(&self) -> &Panels {
        &self.forward
    }

    /// For products with W, made when first asked for.
    pub(super) fn backward(&self) -> &Panels {
        self.backward.get_or_init(|| self.forward.transposed())
    }

    /// Some rows of the matrix.
    pub(in crate::policy) fn rows(&self, numbers: &[u32]) -> Vec<f32> {
        self.forward.gather(numbers)
    }
}

/// x·B, its columns shared out among the threads of the pool that this runs in.
fn product(x: &[f32], b: &Panels) -> Vec<f32> {
    let threads = rayon::current_thread_index().map_or(1, |_| rayon::current_num_threads());
    if threads == 1 {
        return linear_kernel::product(x, b);
    }
    let [depth, columns] = b.size();
    let mut out = vec![0.0; x.len() / depth * columns];
    Columns::split(&mut out, b, threads).into_par_iter().for_each(|part| part.fill(x, b));
    out
}

/// Forward and backward of the operations on one backend.
#[backend_extension(Autodiff, Flex, Cube: cfg(any(feature = "wgpu", feature = "cuda")))]
pub(super) trait Fused: Backend {
    /// x·Wᵀ, by the backend's own product where there are no packs; where there are, `weight` only stands for it in the
    /// graph.
    fn weigh(x: FloatTensor<Self>, weight: FloatTensor<Self>, packs: Option<Arc<Packs>>) -> FloatTensor<Self> {
        let Some(packs) = packs else { return Self::float_matmul(x, Self::float_transpose(weight)) };
        let ([rows, _], [_, output], device) = (matrix(&x), packs.forward.size(), x.device());
        let y = product(&Values::of::<Self>(x), &packs.forward);
        tensor::<Self, 2>(y, [rows, output], &device)
    }

    fn weigh_backward(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        grad: FloatTensor<Self>,
        packs: Option<Arc<Packs>>,
    ) -> (FloatTensor<Self>, FloatTensor<Self>) {
        let Some(packs) = packs else {
            let dx = Self::float_matmul(grad.clone(), weight);
            return (dx, Self::float_matmul(Self::float_transpose(grad), x));
        };
        let ([rows, input], [_, output], device) = (matrix(&x), matrix(&grad), x.device());
        let (x, grad) = (Values::of::<Self>(x), Values::of::<Self>(grad));
        let dx = product(&grad, packs.backward());
        let dweight = linear_kernel::weight_gradient(&x, input, &grad, output);
        (tensor::<Self, 2>(dx, [rows, input], &device), tensor::<Self, 2>(dweight, [output, input], &device))
    }

    fn add_bias(x: FloatTensor<Self>, bias: FloatTensor<Self>) -> FloatTensor<Self> {
        let (shape, device) = (matrix(&x), x.device());
        let y = bias_kernel::forward(&Values::of::<Self>(x), &Values::of::<Self>(bias));
        tensor::<Self, 2>(y, shape, &device)
    }

    fn add_bias_backward(grad: FloatTensor<Self>) -> FloatTensor<Self> {
        let ([_, width], device) = (matrix(&grad), grad.device());
        tensor::<Self, 1>(bias_kernel::backward(&Values::of::<Self>(grad), width), [width], &device)
    }

    fn rms_norm(x: FloatTensor<Self>, weight: FloatTensor<Self>, epsilon: f64) -> FloatTensor<Self> {
        let (shape, device) = (matrix(&x), x.device());
        let y = rms_norm_kernel::forward(&Values::of::<Self>(x), &Values::of::<Self>(weight), epsilon);
        tensor::<Self, 2>(y, shape, &device)
    }

    fn rms_norm_backward(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        grad: FloatTensor<Self>,
        epsilon: f64,
    ) -> (FloatTensor<Self>, FloatTensor<Self>) {
        let (shape, device) = (matrix(&x), x.device());
        let (x, weight, grad) = (Values::of::<Self>(x), Values::of::<Self>(weight), Values::of::<Self>(grad));
        let (dx, dweight) = rms_norm_kernel::backward(&x, &weight, epsilon, &grad);
        (tensor::<Self, 2>(dx, shape, &device), tensor::<Self, 1>(dweight, [shape[1]], &device))
    }

    fn swiglu(gate_up: FloatTensor<Self>) -> FloatTensor<Self> {
        let ([rows, columns], device) = (matrix(&gate_up), gate_up.device());
        let y = swiglu_kernel::forward(&Values::of::<Self>(gate_up), columns / 2);
        tensor::<Self, 2>(y, [rows, columns / 2], &device)
    }

    fn swiglu_backward(gate_up: FloatTensor<Self>, grad: FloatTensor<Self>) -> FloatTensor<Self> {
        let (shape, device) = (matrix(&gate_up), gate_up.device());
        let dx = swiglu_kernel::backward(&Values::of::<Self>(gate_up), shape[1] / 2, &Values::of::<Self>(grad));
        tensor::<Self, 2>(dx, shape, &device)
    }

    fn packed_attention(qkv: FloatTensor<Self>, packed: Packed) -> FloatTensor<Self> {
        let ([rows, _], device) = (matrix(&qkv), qkv.device());
        let Packed { heads, rotary, trunk, spans } = packed;
        let y = attention_kernel::rows(&Values::of::<Self>(qkv), heads, &rotary, trunk, &spans);
        tensor::<Self, 2>(y, [rows, heads.query * heads.dim], &device)
    }

    fn packed_attention_backward(qkv: FloatTensor<Self>, grad: FloatTensor<Self>, packed: Packed) -> FloatTensor<Self> {
        let (shape, device) = (matrix(&qkv), qkv.device());
        let (qkv, grad) = (Values::of::<Self>(qkv), Values::of::<Self>(grad));
        let Packed { heads, rotary, trunk, spans } = packed;
        let dqkv = attention_kernel::backward(&qkv, heads, &rotary, trunk, &spans, &grad);
        tensor::<Self, 2>(dqkv, shape, &device)
    }
}

impl Fused for Flex {}

#[cfg(any(feature = "wgpu", feature = "cuda"))]
impl Fused for burn_cubecl::CubeBackend {}

/// Hands the derivatives to those of the parents that ask for one.
pub(super) fn register<B: Backend>(
    grads: &mut Gradients,
    parents: [Option<NodeId>; 2],
    derivatives: [FloatTensor<B>; 2],
) {
    for (parent, derivative) in parents.into_iter().zip(derivatives) {
        if let Some(node) = parent {
            grads.register::<B>(node, derivative);
        }
    }
}

#[derive(Debug)]
struct Linear;

impl<B: Fused> Backward<B, 2> for Linear {
    type State = (FloatTensor<B>, FloatTensor<B>, Option<Arc<Packs>>);

    fn backward(self, ops: Ops<Self::State, 2>, grads: &mut Gradients, _: &mut Checkpointer) {
        let ((x, weight, packs), grad) = (ops.state, grads.consume::<B>(&ops.node));
        let (dx, dweight) = B::weigh_backward(x, weight, grad, packs);
        register::<B>(grads, ops.parents.map(|parent| parent.map(|node| node.id)), [dx, dweight]);
    }
}

#[derive(Debug)]
struct AddBias;

impl<B: Fused> Backward<B, 2> for AddBias {
    type State = ();

    fn backward(self, ops: Ops<Self::State, 2>, grads: &mut Gradients, _: &mut Checkpointer) {
        let grad = grads.consume::<B>(&ops.node);
        let dbias = B::add_bias_backward(grad.clone());
        register::<B>(grads, ops.parents.map(|parent| parent.map(|node| node.id)), [grad, dbias]);
    }
}

#[derive(Debug)]
struct RmsNorm;

impl<B: Fused> Backward<B, 2> for RmsNorm {
    type State = (FloatTensor<B>, FloatTensor<B>, f64);

    fn backward(self, ops: Ops<Self::State, 2>, grads: &mut Gradients, _: &mut Checkpointer) {
        let ((x, weight, epsilon), grad) = (ops.state, grads.consume::<B>(&ops.node));
        let (dx, dweight) = B::rms_norm_backward(x, weight, grad, epsilon);
        register::<B>(grads, ops.parents.map(|parent| parent.map(|node| node.id)), [dx, dweight]);
    }
}

#[derive(Debug)]
struct Swiglu;

impl<B: Fused> Backward<B, 1> for Swiglu {
    type State = FloatTensor<B>;

    fn backward(self, ops: Ops<Self::State, 1>, grads: &mut Gradients, _: &mut Checkpointer) {
        let ([parent], grad) = (ops.parents, grads.consume::<B>(&ops.node));
        if let Some(node) = parent {
            grads.register::<B>(node.id, B::swiglu_backward(ops.state, grad));
        }
    }
}

#[derive(Debug)]
struct PackedAttention;

impl<B: Fused> Backward<B, 1> for PackedAttention {
    type State = (FloatTensor<B>, Packed);

    fn backward(self, ops: Ops<Self::State, 1>, grads: &mut Gradients, _: &mut Checkpointer) {
        let ([parent], (qkv, packed)) = (ops.parents, ops.state);
        let grad = grads.consume::<B>(&ops.node);
        if let Some(node) = parent {
            grads.register::<B>(node.id, B::packed_attention_backward(qkv, grad, packed));
        }
    }
}

impl<B: Fused, C: CheckpointStrategy> Fused for Autodiff<B, C> {
    fn weigh(x: FloatTensor<Self>, weight: FloatTensor<Self>, packs: Option<Arc<Packs>>) -> FloatTensor<Self> {
        let nodes = [x.node(), weight.node()];
        let (x, weight) = (x.into_primitive(), weight.into_primitive());
        let y = B::weigh(x.clone(), weight.clone(), packs.clone());
        match Linear.prepare::<C>(nodes).compute_bound().stateful() {
            OpsKind::Tracked(step) => step.finish((x, weight, packs), y),
            OpsKind::UnTracked(step) => step.finish(y),
        }
    }

    fn add_bias(x: FloatTensor<Self>, bias: FloatTensor<Self>) -> FloatTensor<Self> {
        let nodes = [x.node(), bias.node()];
        let y = B::add_bias(x.into_primitive(), bias.into_primitive());
        match AddBias.prepare::<C>(nodes).compute_bound().stateful() {
            OpsKind::Tracked(step) => step.finish((), y),
            OpsKind::UnTracked(step) => step.finish(y),
        }
    }

    fn rms_norm(x: FloatTensor<Self>, weight: FloatTensor<Self>, epsilon: f64) -> FloatTensor<Self> {
        let nodes = [x.node(), weight.node()];
        let (x, weight) = (x.into_primitive(), weight.into_primitive());
        let y = B::rms_norm(x.clone(), weight.clone(), epsilon);
        match RmsNorm.prepare::<C>(nodes).compute_bound().stateful() {
            OpsKind::Tracked(step) => step.finish((x, weight, epsilon), y),
            OpsKind::UnTracked(step) => step.finish(y),
        }
    }

    fn swiglu(gate_up: FloatTensor<Self>) -> FloatTensor<Self> {
        let nodes = [gate_up.node()];
        let gate_up = gate_up.into_primitive();
        let y = B::swiglu(gate_up.clone());
        match Swiglu.prepare::<C>(nodes).compute_bound().stateful() {
            OpsKind::Tracked(step) => step.finish(gate_up, y),
            OpsKind::UnTracked(step) => step.finish(y),
        }
    }

    fn packed_attention(qkv: FloatTensor<Self>, packed: Packed) -> FloatTensor<Self> {
        let nodes = [qkv.node()];
        let qkv = qkv.into_primitive();
        let y = B::packed_attention(qkv.clone(), packed.clone());
        match PackedAttention.prepare::<C>(nodes).compute_bound().stateful() {
            OpsKind::Tracked(step) => step.finish((qkv, packed), y),
            OpsKind::UnTracked(step) => step.finish(y),
        }
    }
}

/// x·Wᵀ for `x: [rows, in]`, `weight: [out, in]`; on the CPU with the packs of that weight, for which `weight` stands.
pub(in crate::policy) fn linear(x: Tensor<2>, weight: Tensor<2>, packs: Option<Arc<Packs>>) -> Tensor<2> {
    Tensor::from_dispatch(Dispatch::weigh(x.into_dispatch(), weight.into_dispatch(), packs))
}

/// x + b for each row of `x: [rows, width]`.
pub(in crate::policy) fn add_bias(x: Tensor<2>, bias: Tensor<1>) -> Tensor<2> {
    Tensor::from_dispatch(Dispatch::add_bias(x.into_dispatch(), bias.into_dispatch()))
}

/// Root-mean-square normalisation of each row of `x: [rows, width]`, scaled by `weight: [width]`.
pub(in crate::policy) fn rms_norm(x: Tensor<2>, weight: Tensor<1>, epsilon: f64) -> Tensor<2> {
    Tensor::from_dispatch(Dispatch::rms_norm(x.into_dispatch(), weight.into_dispatch(), epsilon))
}

/// silu(a)·b for rows (a, b): `[rows, 2·ffn]` → `[rows, ffn]`.
pub(in crate::policy) fn swiglu(gate_up: Tensor<2>) -> Tensor<2> {
    Tensor::from_dispatch(Dispatch::swiglu(gate_up.into_dispatch()))
}

/// Causal attention of whole rows: `[tokens, (heads + 2·kv_heads)·dim]` → `[tokens, heads·dim]`.
pub(in crate::policy) fn attention(qkv: Tensor<2>, packed: Packed) -> Tensor<2> {
    Tensor::from_dispatch(Dispatch::packed_attention(qkv.into_dispatch(), packed))
}
