//! `starpo_kernels::selective_log_softmax` as a burn operation.

use burn::backend::autodiff::checkpoint::{base::Checkpointer, strategy::CheckpointStrategy};
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::tensor::{FloatTensor, IntTensor};
use burn::backend::{Autodiff, Backend, Dispatch, Flex, TensorMetadata, backend_extension};
use burn::tensor::{Int, Tensor};
use starpo_kernels::selective_log_softmax as kernel;

use super::{Values, indices, matrix, tensor};

/// Forward and backward of the operation on one backend; `[rows, 3]` = (logp, entropy, lse).
#[backend_extension(Autodiff, Flex, Cube: cfg(any(feature = "wgpu", feature = "cuda")))]
pub(super) trait SelectiveLogSoftmax: Backend {
    fn selective_log_softmax(logits: FloatTensor<Self>, targets: IntTensor<Self>) -> FloatTensor<Self> {
        let ([rows, vocab], device) = (matrix(&logits), logits.device());
        let out = kernel::forward(&Values::of::<Self>(logits), vocab, &indices::<Self>(targets));
        tensor::<Self, 2>(out, [rows, 3], &device)
    }

    fn selective_log_softmax_backward(
        logits: FloatTensor<Self>,
        targets: IntTensor<Self>,
        out: FloatTensor<Self>,
        grad: FloatTensor<Self>,
    ) -> FloatTensor<Self> {
        let ([rows, vocab], device) = (matrix(&logits), logits.device());
        let (logits, out, grad) = (Values::of::<Self>(logits), Values::of::<Self>(out), Values::of::<Self>(grad));
        let dlogits = kernel::backward(&logits, vocab, &indices::<Self>(targets), &out, &grad);
        tensor::<Self, 2>(dlogits, [rows, vocab], &device)
    }
}

impl SelectiveLogSoftmax for Flex {}

#[cfg(any(feature = "wgpu", feature = "cuda"))]
mod cube {
    use burn::backend::cubecl::dtype_to_storage_type;
    use burn_cubecl::kernel::into_contiguous;
    use burn_cubecl::ops::numeric::empty_device_contiguous_dtype;
    use burn_cubecl::{CubeBackend, tensor::CubeTensor};
    use starpo_kernels::selective_log_softmax::cube;

    use super::{SelectiveLogSoftmax, matrix};

    impl SelectiveLogSoftmax for CubeBackend {
        fn selective_log_softmax(logits: CubeTensor, targets: CubeTensor) -> CubeTensor {
            let (logits, targets) = (into_contiguous(logits), into_contiguous(targets));
            let ([rows, vocab], client) = (matrix(&logits), logits.client.clone());
            let shape = [rows, 3].into();
            let out = empty_device_contiguous_dtype(client.clone(), logits.device.clone(), shape, logits.dtype);
            let integer = dtype_to_storage_type(targets.dtype);
            let buffers = (logits.into_buffer_arg(), targets.into_buffer_arg(), out.clone().into_buffer_arg());
            cube::forward(&client, [rows, vocab], buffers, integer);
            out
        }

        fn selective_log_softmax_backward(
            logits: CubeTensor,
            targets: CubeTensor,
            out: CubeTensor,
            grad: CubeTensor,
        ) -> CubeTensor {
            let [logits, targets, out, grad] = [logits, targets, out, grad].map(into_contiguous);
            let ([rows, vocab], client) = (matrix(&logits), logits.client.clone());
            let shape = [rows, vocab].into();
            let dlogits = empty_device_contiguous_dtype(client.clone(), logits.device.clone(), shape, logits.dtype);
            let integer = dtype_to_storage_type(targets.dtype);
            let [logits, targets, out, grad] = [logits, targets, out, grad].map(CubeTensor::into_buffer_arg);
            let into = dlogits.clone().into_buffer_arg();
            cube::backward(&client, [rows, vocab], (logits, targets, out, grad), into, integer);
            dlogits
        }
    }
}

#[derive(Debug)]
struct Step;

impl<B: SelectiveLogSoftmax> Backward<B, 1> for Step {
    type State = (FloatTensor<B>, IntTensor<B>, FloatTensor<B>);

    fn backward(self, ops: Ops<Self::State, 1>, grads: &mut Gradients, _: &mut Checkpointer) {
        let ([parent], (logits, targets, out)) = (ops.parents, ops.state);
        let grad = grads.consume::<B>(&ops.node);
        if let Some(node) = parent {
            grads.register::<B>(node.id, B::selective_log_softmax_backward(logits, targets, out, grad));
        }
    }
}

impl<B: SelectiveLogSoftmax, C: CheckpointStrategy> SelectiveLogSoftmax for Autodiff<B, C> {
    fn selective_log_softmax(logits: FloatTensor<Self>, targets: IntTensor<Self>) -> FloatTensor<Self> {
        let node = logits.node();
        let logits = logits.into_primitive();
        let out = B::selective_log_softmax(logits.clone(), targets.clone());
        match Step.prepare::<C>([node]).compute_bound().stateful() {
            OpsKind::Tracked(step) => step.finish((logits, targets, out.clone()), out),
            OpsKind::UnTracked(step) => step.finish(out),
        }
    }
}

/// (logp, entropy, lse) of each row: `logits: [rows, vocab]`, `targets: [rows]` → `[rows, 3]`.
pub(in crate::policy) fn selective_log_softmax(logits: Tensor<2>, targets: Tensor<1, Int>) -> Tensor<2> {
    Tensor::from_dispatch(Dispatch::selective_log_softmax(logits.into_dispatch(), targets.into_dispatch()))
}
