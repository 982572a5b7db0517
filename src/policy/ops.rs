//! The operations of `kernels/` as burn operations with their own gradients.
//!
//! Their bodies run on host slices. On the CPU that is where tensors live; a backend that keeps them elsewhere and has
//! no kernel of its own yet reads its operands back.

use std::any::Any;

use burn::backend::tensor::{FloatTensor, IntTensor};
use burn::backend::{Backend, TensorMetadata};
use burn::tensor::TensorData;
use burn_flex::FlexTensor;

mod fused;
mod head;
mod pull;
mod selective_log_softmax;

pub(super) use fused::{Packed, Packs, add_bias, attention, linear, rms_norm, swiglu};
pub(super) use head::head;
pub(super) use pull::pull;
pub(super) use selective_log_softmax::selective_log_softmax;

/// The values of a tensor, in row-major order.
enum Values {
    Shared(FlexTensor),
    Read(Vec<f32>),
}

impl Values {
    fn of<B: Backend>(tensor: FloatTensor<B>) -> Self {
        let boxed: Box<dyn Any> = Box::new(tensor);
        match boxed.downcast::<FlexTensor>() {
            Ok(flex) => Self::Shared(flex.to_contiguous()),
            Err(other) => {
                let tensor = *other.downcast::<FloatTensor<B>>().expect("it was put in as this type");
                let read = burn::tensor::try_read_sync(B::float_into_data(tensor));
                let data = read.and_then(Result::ok).expect("the device answers synchronously");
                Self::Read(data.iter::<f32>().collect())
            }
        }
    }
}

impl std::ops::Deref for Values {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        match self {
            Self::Shared(tensor) => tensor.as_slice().expect("contiguous f32"),
            Self::Read(values) => values,
        }
    }
}

/// Indices from a tensor of integers.
fn indices<B: Backend>(tensor: IntTensor<B>) -> Vec<u32> {
    let read = burn::tensor::try_read_sync(B::int_into_data(tensor));
    let data = read.and_then(Result::ok).expect("the device answers synchronously");
    data.iter::<i64>().map(|i| u32::try_from(i).expect("an index")).collect()
}

/// A tensor on the device of `like`.
fn tensor<B: Backend, const D: usize>(values: Vec<f32>, shape: [usize; D], like: &B::Device) -> FloatTensor<B> {
    B::float_from_data(TensorData::new(values, shape), like)
}

/// Rows and columns of a matrix.
fn matrix<T: TensorMetadata>(tensor: &T) -> [usize; 2] {
    tensor.shape().dims()
}
