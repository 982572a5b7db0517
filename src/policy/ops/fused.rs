//! The decoder's fused operations: `starpo_kernels::{rms_norm, swiglu, attention}`.

use std::ops::Range;
use std::sync::Arc;

use burn::backend::autodiff::checkpoint::{base::Checkpointer, strategy::CheckpointStrategy};
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend, Dispatch, Flex, TensorMetadata, backend_extension};
use burn::tensor::Tensor;
use starpo_kernels::attention::{self as attention_kernel, Heads, Past, Rotary};
use starpo_kernels::{rms_norm as rms_norm_kernel, swiglu as swiglu_kernel};

use super::{Values, matrix, tensor};

/// Rows of ragged length, one behind the other, and what attention must know of them.
#[derive(Clone, Debug)]
pub(in crate::policy) struct Packed {
    pub(in crate::policy) heads: Heads,
    pub(in crate::policy) rotary: Arc<Rotary>,
    pub(in crate::policy) spans: Arc<[Range<usize>]>,
}

/// Forward and backward of the operations on one backend.
#[backend_extension(Autodiff, Flex, Cube: cfg(any(feature = "wgpu", feature = "cuda")))]
pub(super) trait Fused: Backend {
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
        let Packed { heads, rotary, spans } = packed;
        let mut pasts = vec![vec![Past::default(); heads.kv]; spans.len()];
        let mut pasts: Vec<&mut [Past]> = pasts.iter_mut().map(Vec::as_mut_slice).collect();
        let y = attention_kernel::forward(&Values::of::<Self>(qkv), heads, &rotary, &spans, &mut pasts);
        tensor::<Self, 2>(y, [rows, heads.query * heads.dim], &device)
    }

    fn packed_attention_backward(
        qkv: FloatTensor<Self>,
        grad: FloatTensor<Self>,
        packed: Packed,
    ) -> FloatTensor<Self> {
        let (shape, device) = (matrix(&qkv), qkv.device());
        let (qkv, grad) = (Values::of::<Self>(qkv), Values::of::<Self>(grad));
        let dqkv = attention_kernel::backward(&qkv, packed.heads, &packed.rotary, &packed.spans, &grad);
        tensor::<Self, 2>(dqkv, shape, &device)
    }
}

impl Fused for Flex {}

#[cfg(any(feature = "wgpu", feature = "cuda"))]
impl Fused for burn_cubecl::CubeBackend {}

#[derive(Debug)]
struct RmsNorm;

impl<B: Fused> Backward<B, 2> for RmsNorm {
    type State = (FloatTensor<B>, FloatTensor<B>, f64);

    fn backward(self, ops: Ops<Self::State, 2>, grads: &mut Gradients, _: &mut Checkpointer) {
        let ((x, weight, epsilon), grad) = (ops.state, grads.consume::<B>(&ops.node));
        let (dx, dweight) = B::rms_norm_backward(x, weight, grad, epsilon);
        for (parent, derivative) in ops.parents.into_iter().zip([dx, dweight]) {
            if let Some(node) = parent {
                grads.register::<B>(node.id, derivative);
            }
        }
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
