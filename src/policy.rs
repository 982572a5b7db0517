//! Policies: token sequences in, sampled responses out; and the learner, which can also be improved.
//!
//! A policy knows no environment: what it may be told beside the tokens is text.

use std::ops::Range;

use crate::rng::Stream;

mod adamw;
mod allocator;
mod cross;
mod decoder;
mod expert;
mod folder;
mod gradient;
mod lora;
mod ops;
mod sampler;
mod scripted;
mod session;
mod tensors;
mod tokenizer;
mod transformer;
mod uniform;
mod voice;
mod weights;
mod workers;

pub use allocator::keep_freed_memory;
pub use burn::tensor::Device;
use burn::tensor::DeviceType;
pub use expert::Expert;
pub use folder::ModelFolder;
pub use lora::{ADAPTER, write_adapter};
pub use scripted::Scripted;
pub use tensors::Precision;
pub use tokenizer::{Tokenizer, train as train_tokenizer};
pub use transformer::{Memory, Transformer};
pub use uniform::Uniform;
pub use voice::Voice;
pub use weights::{Family, Part, Shape, Weights};

/// Samples responses.
pub trait Policy {
    /// Opens contexts for episodes `0..episodes`. A context remembers what it has read, so that of a prompt that begins
    /// alike only the rest is read.
    fn open<'a>(&'a self, sampling: &Sampling, episodes: usize) -> Box<dyn Session + 'a>;

    /// Whether requests should carry the expert's reply.
    fn wants_advice(&self) -> bool {
        false
    }
}

/// Contexts of some episodes.
pub trait Session {
    /// One response for each request; at most one request an episode. A completion depends on its own episode's
    /// tokens and draws alone.
    fn generate(&mut self, requests: &[Request<'_>]) -> Vec<Completion>;
}

/// How responses are drawn.
#[derive(Clone, Debug, PartialEq)]
pub struct Sampling {
    /// Divides the logits; 0 takes the most probable token.
    pub temperature: f64,
    /// Only so many of the most probable tokens.
    pub top_k: Option<usize>,
    /// Only the most probable tokens that reach this mass.
    pub top_p: f64,
    /// A response ends with the first of these, which it includes.
    pub stop: Vec<u32>,
}

/// One response to sample.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    pub episode: usize,
    /// All tokens before the response; one at least.
    pub prompt: &'a [u32],
    /// Draw i decides token i of the response.
    pub draws: Stream,
    /// Most tokens of the response.
    pub limit: usize,
    /// The actions that may be taken, in words.
    pub legal: &'a [String],
    /// The expert's whole reply, where the policy wants it and there is one.
    pub advice: Option<&'a str>,
}

/// A sampled response.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Completion {
    /// Ends with a stop token, unless the limit came first.
    pub tokens: Vec<u32>,
    /// Of each token, under the temperature but before top-k and top-p (at temperature 0: of the plain model).
    pub logprobs: Vec<f32>,
    /// Of the distributions that `logprobs` are from, in nats.
    pub entropies: Vec<f32>,
}

/// A row to score or to learn from.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    pub tokens: &'a [u32],
    /// Spans of `tokens` whose log-probs count; none starts at 0.
    pub responses: &'a [Range<usize>],
}

/// What a learner makes of a row, flat over its response tokens.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scores {
    /// Empty where the learner is only a critic.
    pub logprobs: Vec<f32>,
    pub entropies: Vec<f32>,
    /// What it expects to be returned, seen before the token is; empty without a value head.
    pub values: Vec<f32>,
}

/// Derivatives of the loss in a row's [`Scores`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cotangent {
    pub logprobs: Vec<f32>,
    pub entropies: Vec<f32>,
    pub values: Vec<f32>,
}

/// A policy that learns.
pub trait Learner: Policy {
    /// Scores of whole rows by one uncached forward pass, under `temperature` (0 reads as 1).
    fn score(&self, rows: &[Row<'_>], temperature: f64) -> Vec<Scores>;

    /// Log-probs of every continuation after every prompt, under `temperature`: `[continuation][prompt]`, each summed
    /// over its tokens in f64. None is empty. Equals, to the bit, scoring the rows prompt ++ continuation, which is
    /// what a learner does that has no better way.
    fn cross(&self, prompts: &[&[u32]], continuations: &[&[u32]], temperature: f64) -> Vec<Vec<f64>> {
        let column = |prompt: &&[u32]| -> Vec<f64> {
            let tokens: Vec<Vec<u32>> = continuations.iter().map(|tail| [*prompt, *tail].concat()).collect();
            let responses: Vec<Range<usize>> = tokens.iter().map(|row| prompt.len()..row.len()).collect();
            let rows = tokens.iter().zip(&responses);
            let rows = rows.map(|(tokens, response)| Row { tokens, responses: std::slice::from_ref(response) });
            let scores = self.score(&rows.collect::<Vec<_>>(), temperature);
            scores.iter().map(|scores| scores.logprobs.iter().map(|&l| f64::from(l)).sum()).collect()
        };
        let columns: Vec<Vec<f64>> = prompts.iter().map(column).collect();
        (0..continuations.len()).map(|i| columns.iter().map(|column| column[i]).collect()).collect()
    }

    /// Scores as [`Learner::score`] gives them, and adds the gradient of the loss whose derivatives `cotangent` gives
    /// (from a row's number and its scores) to the pending gradient. `shards` partition the rows: a shard is one
    /// forward and backward pass, and pending gradients are summed over shards in their order, on any number of
    /// threads.
    fn gradient(
        &mut self,
        rows: &[Row<'_>],
        shards: &[Range<usize>],
        temperature: f64,
        cotangent: &(dyn Fn(usize, &Scores) -> Cotangent + Sync),
    ) -> Vec<Scores>;

    /// One optimizer step with the pending gradient, clipped by its global norm; clears it.
    ///
    /// # Errors
    /// The gradient's norm: not finite, and the parameters are left as they were; or finite, where a parameter left the
    /// range of f32, and the learner is of no further use.
    fn step(&mut self, optimizer: &Optimizer) -> Result<Norms, f64>;

    /// Drops the pending gradient; its global norm.
    fn discard(&mut self) -> f64;

    /// Everything that later steps depend on, as named files.
    fn save(&self) -> Vec<(String, Vec<u8>)>;

    /// Takes back what [`Learner::save`] gave.
    ///
    /// # Errors
    /// What is missing, extra, truncated or misshapen.
    fn restore(&mut self, files: &[(String, Vec<u8>)]) -> Result<(), String>;
}

/// AdamW's numbers of one step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Optimizer {
    pub learning_rate: f64,
    pub beta1: f64,
    pub beta2: f64,
    pub epsilon: f64,
    pub weight_decay: f64,
    /// Bound on the gradient's global norm.
    pub clip_norm: f64,
}

/// What an optimizer step measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Norms {
    /// The gradient's global norm before clipping.
    pub gradient: f64,
}

/// The device of that name: `cpu`, `wgpu` or `cuda:0`, `cuda:1`, …
///
/// # Errors
/// Why there is no such device, and what to do.
pub fn device(name: &str) -> Result<Device, String> {
    let built: &[(&str, DeviceType)] = &[
        #[cfg(feature = "wgpu")]
        ("wgpu", DeviceType::Wgpu),
        #[cfg(feature = "cuda")]
        ("cuda", DeviceType::Cuda),
    ];
    if name == "cpu" {
        return Ok(Device::flex());
    }
    let (kind, index) = name.split_once(':').unwrap_or((name, "0"));
    let (true, Ok(index)) = (["wgpu", "cuda"].contains(&kind), index.parse::<usize>()) else {
        return Err(format!("device `{name}` is none of `cpu`, `wgpu`, `cuda:0`, `cuda:1`, …"));
    };
    let Some((_, of)) = built.iter().find(|(built, _)| *built == kind) else {
        return Err(format!(
            "device `{name}`: this binary was built without `{kind}`; build it with `--features {kind}`, or use `cpu`"
        ));
    };
    // Looked up first: opening one that is not there would panic on another thread.
    let devices = Device::enumerate(of.clone()).into_vec();
    let count = devices.len();
    devices.into_iter().nth(index).ok_or_else(|| {
        format!("device `{name}`: the driver reports {count} such devices; check the driver, or use `cpu`")
    })
}
