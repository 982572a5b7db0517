//! Where a backward pass begins with derivatives that are known, not with ones.

use burn::backend::autodiff::checkpoint::{base::Checkpointer, strategy::CheckpointStrategy};
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend, Dispatch, Flex, backend_extension};
use burn::tensor::Tensor;

/// The identity, whose derivative is another one.
#[backend_extension(Autodiff, Flex, Cube: cfg(any(feature = "wgpu", feature = "cuda")))]
pub(super) trait Pull: Backend {
    fn pull(y: FloatTensor<Self>, _derivative: FloatTensor<Self>) -> FloatTensor<Self> {
        y
    }
}

impl Pull for Flex {}

#[cfg(any(feature = "wgpu", feature = "cuda"))]
impl Pull for burn_cubecl::CubeBackend {}

#[derive(Debug)]
struct Step;

impl<B: Backend> Backward<B, 1> for Step {
    type State = FloatTensor<B>;

    fn backward(self, ops: Ops<Self::State, 1>, grads: &mut Gradients, _: &mut Checkpointer) {
        // What comes from behind are the ones that burn begins with.
        let _ = grads.consume::<B>(&ops.node);
        if let [Some(node)] = ops.parents {
            grads.register::<B>(node.id, ops.state);
        }
    }
}

impl<B: Pull, C: CheckpointStrategy> Pull for Autodiff<B, C> {
    fn pull(y: FloatTensor<Self>, derivative: FloatTensor<Self>) -> FloatTensor<Self> {
        let node = y.node();
        let (y, derivative) = (y.into_primitive(), derivative.into_primitive());
        match Step.prepare::<C>([node]).compute_bound().stateful() {
            OpsKind::Tracked(step) => step.finish(derivative, y),
            OpsKind::UnTracked(step) => step.finish(y),
        }
    }
}

/// `y`; a backward pass from it goes on with `derivative`, of the same shape.
pub(in crate::policy) fn pull(y: Tensor<2>, derivative: Tensor<2>) -> Tensor<2> {
    Tensor::from_dispatch(Dispatch::pull(y.into_dispatch(), derivative.into_dispatch()))
}
