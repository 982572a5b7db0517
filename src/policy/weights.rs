//! The parameters of a decoder in Llama's layout, on the host: one flat array and the names of its parts.

use std::ops::Range;

use safetensors::{Dtype, SafeTensors, tensor::TensorView};

use crate::rng::Stream;

/// The sizes of a decoder with a tied head.
#[derive(Clone, Debug, PartialEq)]
pub struct Shape {
    pub vocab: usize,
    /// Size of the residual stream.
    pub width: usize,
    pub layers: usize,
    /// Query heads.
    pub heads: usize,
    /// Key and value heads; divides `heads`.
    pub kv_heads: usize,
    /// Hidden size of the feed-forward block.
    pub ffn: usize,
    /// Base of the rotary positions.
    pub rope_theta: f64,
    /// Added to the mean square before its root.
    pub norm_eps: f64,
}

/// One named tensor of the flat array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Hugging Face's name.
    pub name: String,
    pub shape: Vec<usize>,
    /// Where it stands.
    pub range: Range<usize>,
}

impl Shape {
    /// Size of one head.
    #[must_use]
    pub fn head(&self) -> usize {
        self.width / self.heads
    }

    /// # Errors
    /// Sizes that do not fit each other.
    pub fn check(&self) -> Result<(), String> {
        let Self { width, heads, kv_heads, .. } = *self;
        if [self.vocab, width, self.layers, heads, kv_heads, self.ffn].contains(&0) {
            return Err("a size of the model is 0".into());
        }
        if !width.is_multiple_of(heads) || !self.head().is_multiple_of(2) {
            return Err(format!("{heads} heads do not divide a width of {width} into even parts"));
        }
        if !heads.is_multiple_of(kv_heads) {
            return Err(format!("{kv_heads} key and value heads do not divide {heads} heads"));
        }
        Ok(())
    }

    /// All tensors, in the order of the flat array: what one product multiplies (q, k, v; gate, up) stands together.
    #[must_use]
    pub fn parts(&self) -> Vec<Part> {
        let (width, kv) = (self.width, self.kv_heads * self.head());
        let mut parts = Vec::new();
        let mut add = |name: String, shape: &[usize]| {
            let start = parts.last().map_or(0, |p: &Part| p.range.end);
            let range = start..start + shape.iter().product::<usize>();
            parts.push(Part { name, shape: shape.to_vec(), range });
        };
        add("model.embed_tokens.weight".into(), &[self.vocab, width]);
        for layer in 0..self.layers {
            let mut add = |name: &str, shape: &[usize]| add(format!("model.layers.{layer}.{name}.weight"), shape);
            add("input_layernorm", &[width]);
            add("self_attn.q_proj", &[width, width]);
            add("self_attn.k_proj", &[kv, width]);
            add("self_attn.v_proj", &[kv, width]);
            add("self_attn.o_proj", &[width, width]);
            add("post_attention_layernorm", &[width]);
            add("mlp.gate_proj", &[self.ffn, width]);
            add("mlp.up_proj", &[self.ffn, width]);
            add("mlp.down_proj", &[width, self.ffn]);
        }
        add("model.norm.weight".into(), &[width]);
        parts
    }
}

/// The parameters of a decoder, and of a value head if it has one.
#[derive(Clone, Debug, PartialEq)]
pub struct Weights {
    pub(super) shape: Shape,
    /// The decoder's, then the head's.
    pub(super) values: Vec<f32>,
    pub(super) value_head: bool,
}

impl Weights {
    /// Normal weights of deviation `std`, residual projections divided by √(2·layers) (GPT-2), norms 1.
    ///
    /// # Errors
    /// Sizes that do not fit each other.
    pub fn random(shape: Shape, std: f64, seed: u64) -> Result<Self, String> {
        shape.check()?;
        let parts = shape.parts();
        let mut values = Vec::with_capacity(parts.last().map_or(0, |p| p.range.end));
        for (index, part) in parts.iter().enumerate() {
            let residual = part.name.contains("o_proj") || part.name.contains("down_proj");
            let scale = if residual { std / ((2 * shape.layers) as f64).sqrt() } else { std };
            let stream = Stream::new("weights", seed, &[index as u64]);
            if part.shape.len() == 1 {
                values.resize(part.range.end, 1.0);
            } else {
                values.extend((0..part.range.len() as u64).map(|i| (scale * normal(&stream, i)) as f32));
            }
        }
        Ok(Self { shape, values, value_head: false })
    }

    /// The same decoder with a value head of zeros: every value is 0 until it learns.
    #[must_use]
    pub fn with_value_head(mut self) -> Self {
        assert!(!self.value_head, "one value head");
        self.values.resize(self.values.len() + self.shape.width, 0.0);
        Self { value_head: true, ..self }
    }

    /// The value head, if there is one: a row that the last hidden state is multiplied with.
    pub(super) fn head(&self) -> Option<Part> {
        let range = self.values.len() - self.shape.width..self.values.len();
        let shape = vec![1, self.shape.width];
        self.value_head.then(|| Part { name: "value_head.weight".into(), shape, range })
    }

    /// All tensors: the decoder's, then the value head's.
    pub(super) fn parts(&self) -> Vec<Part> {
        self.shape.parts().into_iter().chain(self.head()).collect()
    }

    /// Its sizes.
    #[must_use]
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// All parameters, in the order of [`Shape::parts`].
    #[must_use]
    pub fn values(&self) -> &[f32] {
        &self.values
    }

    /// All parameters, to be changed.
    pub fn values_mut(&mut self) -> &mut [f32] {
        &mut self.values
    }

    /// The bytes of a `model.safetensors`, in f32; a value head is not in it.
    #[must_use]
    pub fn to_safetensors(&self) -> Vec<u8> {
        to_safetensors(&self.shape.parts(), &[("", &self.values)], None)
    }

    /// Reads the bytes of a `model.safetensors` (f32 or bf16) with exactly the tensors of `shape`.
    ///
    /// # Errors
    /// What is missing, extra, truncated, misshapen or of another type, by name.
    pub fn from_safetensors(shape: Shape, bytes: &[u8]) -> Result<Self, String> {
        shape.check()?;
        let ([values], _) = from_safetensors(&shape.parts(), [""], false, bytes)?;
        Ok(Self { shape, values, value_head: false })
    }
}

/// Normal number `i` of a stream (Box and Muller 1958): numbers 2j and 2j + 1 share two uniforms.
fn normal(stream: &Stream, i: u64) -> f64 {
    let (u, v) = (1.0 - stream.uniform_at(i & !1), stream.uniform_at(i | 1));
    let (radius, angle) = ((-2.0 * libm::log(u)).sqrt(), std::f64::consts::TAU * v);
    radius * if i.is_multiple_of(2) { libm::cos(angle) } else { libm::sin(angle) }
}

/// Flat arrays as safetensors; each array's names get its prefix. `steps` is stored as a tensor of that name.
pub(super) fn to_safetensors(parts: &[Part], arrays: &[(&str, &[f32])], steps: Option<u64>) -> Vec<u8> {
    let bytes: Vec<Vec<u8>> =
        arrays.iter().map(|(_, values)| values.iter().flat_map(|v| v.to_le_bytes()).collect()).collect();
    let steps = steps.map(u64::to_le_bytes);
    let view = |dtype, shape: Vec<usize>, bytes| TensorView::new(dtype, shape, bytes).expect("shape and bytes agree");
    let mut tensors = Vec::new();
    for ((prefix, _), bytes) in arrays.iter().zip(&bytes) {
        for part in parts {
            let bytes = &bytes[4 * part.range.start..4 * part.range.end];
            tensors.push((format!("{prefix}{}", part.name), view(Dtype::F32, part.shape.clone(), bytes)));
        }
    }
    tensors.extend(steps.as_ref().map(|bytes| ("steps".to_owned(), view(Dtype::U64, vec![1], bytes))));
    // Other readers of Hugging Face's files ask for this entry.
    let format = [("format".to_owned(), "pt".to_owned())].into_iter().collect();
    safetensors::serialize(tensors, Some(format)).expect("the layout is valid")
}

/// What [`to_safetensors`] wrote.
pub(super) fn from_safetensors<const N: usize>(
    parts: &[Part],
    prefixes: [&str; N],
    with_steps: bool,
    bytes: &[u8],
) -> Result<([Vec<f32>; N], u64), String> {
    let file = SafeTensors::deserialize(bytes).map_err(|e| format!("not a whole safetensors file: {e}"))?;
    let mut expected: Vec<String> = with_steps.then(|| "steps".to_owned()).into_iter().collect();
    let mut arrays: [Vec<f32>; N] = std::array::from_fn(|_| Vec::new());
    for (array, prefix) in arrays.iter_mut().zip(prefixes) {
        for part in parts {
            let name = format!("{prefix}{}", part.name);
            let tensor = file.tensor(&name).map_err(|_| format!("tensor `{name}` is missing"))?;
            if tensor.shape() != part.shape {
                return Err(format!("tensor `{name}` has shape {:?}, not {:?}", tensor.shape(), part.shape));
            }
            match tensor.dtype() {
                Dtype::F32 => array.extend(tensor.data().as_chunks().0.iter().map(|b| f32::from_le_bytes(*b))),
                Dtype::BF16 => {
                    array.extend(tensor.data().as_chunks().0.iter().map(|&[a, b]| f32::from_le_bytes([0, 0, a, b])))
                }
                other => return Err(format!("tensor `{name}` has type {other:?}, not F32 or BF16")),
            }
            expected.push(name);
        }
    }
    expected.sort_unstable();
    if let Some(extra) =
        file.names().into_iter().filter(|n| expected.binary_search_by(|e| e.as_str().cmp(n)).is_err()).min()
    {
        return Err(format!("tensor `{extra}` is not one of this model's"));
    }
    let steps = if with_steps {
        let tensor = file.tensor("steps").map_err(|_| "tensor `steps` is missing".to_owned())?;
        let bytes = tensor.data().try_into().map_err(|_| "tensor `steps` is not one 64-bit integer".to_owned())?;
        u64::from_le_bytes(bytes)
    } else {
        0
    };
    Ok((arrays, steps))
}
