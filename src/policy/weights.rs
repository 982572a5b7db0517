//! The parameters of a decoder, on the host: one flat array and the names of its parts.

use std::ops::Range;

use super::tensors::{Precision, Tensors, to_safetensors};
use crate::rng::Stream;

/// What tells the known decoders apart. All normalise by root mean square, turn by position, and gate by SwiGLU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Touvron et al. 2023; SmolLM2.
    Llama,
    /// Biases of queries, keys and values (Yang et al. 2024); Qwen2.5.
    Qwen2,
    /// Queries and keys normalised head by head (Yang et al. 2025).
    Qwen3,
}

/// The sizes of a decoder.
#[derive(Clone, Debug, PartialEq)]
pub struct Shape {
    pub family: Family,
    pub vocab: usize,
    /// Size of the residual stream.
    pub width: usize,
    pub layers: usize,
    /// Query heads.
    pub heads: usize,
    /// Key and value heads; divides `heads`.
    pub kv_heads: usize,
    /// Size of one head; even.
    pub head_dim: usize,
    /// Hidden size of the feed-forward block.
    pub ffn: usize,
    /// Base of the rotary positions.
    pub rope_theta: f64,
    /// Added to the mean square before its root.
    pub norm_eps: f64,
    /// Whether the embedding is the head too.
    pub tied: bool,
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
    /// Columns of queries, keys and values side by side.
    #[must_use]
    pub fn qkv(&self) -> usize {
        (self.heads + 2 * self.kv_heads) * self.head_dim
    }

    /// # Errors
    /// Sizes that do not fit each other.
    pub fn check(&self) -> Result<(), String> {
        let Self { heads, kv_heads, head_dim, .. } = *self;
        if [self.vocab, self.width, self.layers, heads, kv_heads, head_dim, self.ffn].contains(&0) {
            return Err("a size of the model is 0".into());
        }
        if !head_dim.is_multiple_of(2) {
            return Err(format!("heads of size {head_dim} cannot be turned in pairs"));
        }
        if !heads.is_multiple_of(kv_heads) {
            return Err(format!("{kv_heads} key and value heads do not divide {heads} heads"));
        }
        Ok(())
    }

    /// Numbers of all tensors.
    #[must_use]
    pub fn parameters(&self) -> usize {
        self.parts().last().map_or(0, |part| part.range.end)
    }

    /// All tensors, in the order of the flat array: that in which the forward pass asks for them, with what one product
    /// multiplies (q, k, v; gate, up) standing together.
    #[must_use]
    pub fn parts(&self) -> Vec<Part> {
        let (width, q, kv) = (self.width, self.heads * self.head_dim, self.kv_heads * self.head_dim);
        let mut parts = Vec::new();
        let mut add = |name: String, shape: &[usize]| {
            let start = parts.last().map_or(0, |p: &Part| p.range.end);
            let range = start..start + shape.iter().product::<usize>();
            parts.push(Part { name, shape: shape.to_vec(), range });
        };
        add("model.embed_tokens.weight".into(), &[self.vocab, width]);
        for layer in 0..self.layers {
            let mut add = |name: &str, shape: &[usize]| add(format!("model.layers.{layer}.{name}"), shape);
            add("input_layernorm.weight", &[width]);
            add("self_attn.q_proj.weight", &[q, width]);
            add("self_attn.k_proj.weight", &[kv, width]);
            add("self_attn.v_proj.weight", &[kv, width]);
            if self.family == Family::Qwen2 {
                add("self_attn.q_proj.bias", &[q]);
                add("self_attn.k_proj.bias", &[kv]);
                add("self_attn.v_proj.bias", &[kv]);
            }
            if self.family == Family::Qwen3 {
                add("self_attn.q_norm.weight", &[self.head_dim]);
                add("self_attn.k_norm.weight", &[self.head_dim]);
            }
            add("self_attn.o_proj.weight", &[width, q]);
            add("post_attention_layernorm.weight", &[width]);
            add("mlp.gate_proj.weight", &[self.ffn, width]);
            add("mlp.up_proj.weight", &[self.ffn, width]);
            add("mlp.down_proj.weight", &[width, self.ffn]);
        }
        add("model.norm.weight".into(), &[width]);
        if !self.tied {
            add("lm_head.weight".into(), &[self.vocab, width]);
        }
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
    /// Normal weights of deviation `std`, residual projections divided by √(2·layers) (GPT-2), norms 1, biases 0.
    ///
    /// # Errors
    /// Sizes that do not fit each other.
    pub fn random(shape: Shape, std: f64, seed: u64) -> Result<Self, String> {
        shape.check()?;
        let parts = shape.parts();
        let mut values = Vec::with_capacity(shape.parameters());
        for (index, part) in parts.iter().enumerate() {
            let residual = part.name.contains("o_proj") || part.name.contains("down_proj");
            let scale = if residual { std / ((2 * shape.layers) as f64).sqrt() } else { std };
            let stream = Stream::new("weights", seed, &[index as u64]);
            if part.shape.len() == 1 {
                values.resize(part.range.end, if part.name.ends_with("bias") { 0.0 } else { 1.0 });
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

    /// The bytes of a `model.safetensors`; a value head is not in it.
    #[must_use]
    pub fn to_safetensors(&self, precision: Precision) -> Vec<u8> {
        to_safetensors(&self.shape.parts(), &[("", &self.values)], precision, None)
    }

    /// Reads the bytes of a `model.safetensors` with exactly the tensors of `shape`.
    ///
    /// # Errors
    /// What is missing, extra, truncated, misshapen or of another type, by name.
    pub fn from_safetensors(shape: Shape, bytes: &[u8]) -> Result<Self, String> {
        Self::from_files(shape, &[("model.safetensors", bytes)])
    }

    /// Reads safetensors files, each with its name, that together hold exactly the tensors of `shape`.
    pub(super) fn from_files(shape: Shape, files: &[(&str, &[u8])]) -> Result<Self, String> {
        shape.check()?;
        let tensors = Tensors::parse(files)?;
        let parts = shape.parts();
        let values = tensors.array(&parts, "")?;
        tensors.nothing_but(&parts, &[""])?;
        Ok(Self { shape, values, value_head: false })
    }
}

/// Normal number `i` of a stream (Box and Muller 1958): numbers 2j and 2j + 1 share two uniforms.
fn normal(stream: &Stream, i: u64) -> f64 {
    let (u, v) = (1.0 - stream.uniform_at(i & !1), stream.uniform_at(i | 1));
    let (radius, angle) = ((-2.0 * libm::log(u)).sqrt(), std::f64::consts::TAU * v);
    radius * if i.is_multiple_of(2) { libm::cos(angle) } else { libm::sin(angle) }
}
