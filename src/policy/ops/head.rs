//! `starpo_kernels::head` as a burn operation, on the CPU.

use std::sync::Arc;

use burn::backend::autodiff::checkpoint::{base::Checkpointer, strategy::CheckpointStrategy};
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend, Dispatch, Flex, TensorMetadata, backend_extension};
use burn::tensor::Tensor;
use starpo_kernels::head::{self as kernel, Chosen};

use super::fused::{Packs, register};
use super::{Values, matrix, tensor};

/// `[rows, 3]` = (logp, entropy, lse) from hidden states, the head's stand-in and its packs.
#[backend_extension(Autodiff, Flex, Cube: cfg(any(feature = "wgpu", feature = "cuda")))]
pub(super) trait Head: Backend {
    fn head(
        x: FloatTensor<Self>,
        _weight: FloatTensor<Self>,
        packs: Arc<Packs>,
        chosen: Arc<Chosen>,
        _keep: bool,
    ) -> FloatTensor<Self> {
        let ([rows, _], device) = (matrix(&x), x.device());
        let (out, _) = kernel::forward(&Values::of::<Self>(x), packs.forward(), &chosen, false);
        tensor::<Self, 2>(out, [rows, 3], &device)
    }
}

impl Head for Flex {}

#[cfg(any(feature = "wgpu", feature = "cuda"))]
impl Head for burn_cubecl::CubeBackend {}

#[derive(Debug)]
struct Step;

/// What [`kernel::backward`] asks for.
#[derive(Clone, Debug)]
struct State<T> {
    x: T,
    packs: Arc<Packs>,
    chosen: Arc<Chosen>,
    out: T,
    /// Empty where logits are computed again.
    logits: Arc<Vec<f32>>,
}

impl<B: Backend> Backward<B, 2> for Step {
    type State = State<FloatTensor<B>>;

    fn backward(self, ops: Ops<Self::State, 2>, grads: &mut Gradients, _: &mut Checkpointer) {
        let (State { x, packs, chosen, out, logits }, grad) = (ops.state, grads.consume::<B>(&ops.node));
        let ([rows, width], device) = (matrix(&x), x.device());
        let (x, out, grad) = (Values::of::<B>(x), Values::of::<B>(out), Values::of::<B>(grad));
        let panels = [packs.forward(), packs.backward()];
        let (dx, dweight) = kernel::backward(&x, panels, &chosen, (&out, &logits), &grad);
        let vocab = dweight.len() / width;
        let (dx, dweight) =
            (tensor::<B, 2>(dx, [rows, width], &device), tensor::<B, 2>(dweight, [vocab, width], &device));
        register::<B>(grads, ops.parents.map(|parent| parent.map(|node| node.id)), [dx, dweight]);
    }
}

impl<B: Head, C: CheckpointStrategy> Head for Autodiff<B, C> {
    fn head(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        packs: Arc<Packs>,
        chosen: Arc<Chosen>,
        keep: bool,
    ) -> FloatTensor<Self> {
        let nodes = [x.node(), weight.node()];
        let x = x.into_primitive();
        let ([rows, _], device) = (matrix(&x), x.device());
        let (out, logits) = kernel::forward(&Values::of::<B>(x.clone()), packs.forward(), &chosen, keep);
        let out = tensor::<B, 2>(out, [rows, 3], &device);
        match Step.prepare::<C>(nodes).compute_bound().stateful() {
            OpsKind::Tracked(step) => {
                let logits = Arc::new(logits);
                step.finish(State { x, packs, chosen, out: out.clone(), logits }, out)
            }
            OpsKind::UnTracked(step) => step.finish(out),
        }
    }
}

/// (logp, entropy, lse) of the chosen tokens from hidden states `x: [rows, width]` and a head's packs, for which
/// `weight` stands in the graph. `keep` says whether the logits stay for the backward pass or are computed again.
pub(in crate::policy) fn head(
    x: Tensor<2>,
    weight: Tensor<2>,
    packs: Arc<Packs>,
    chosen: Chosen,
    keep: bool,
) -> Tensor<2> {
    Tensor::from_dispatch(Dispatch::head(x.into_dispatch(), weight.into_dispatch(), packs, Arc::new(chosen), keep))
}
