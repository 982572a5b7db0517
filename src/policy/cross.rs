//! Continuations scored after a prompt that is read once: all of them go on from its keys and values.

use std::sync::Arc;

use burn::tensor::{Tensor, TensorData};
use starpo_kernels::attention::{self, Past, Rotary};

use super::decoder::read;
use super::sampler::inverse;
use super::transformer::Transformer;

/// Continuations that pass forward at once. No number depends on it.
const TOGETHER: usize = 16;

/// A prompt that was read up to its last token.
struct Prompt<'a> {
    policy: &'a Transformer,
    rotary: Arc<Rotary>,
    /// For each layer, for each kv head.
    pasts: Vec<Vec<Past>>,
    last: u32,
}

/// Log-probs of the continuations after `prompt`, each summed over its tokens.
///
/// # Panics
/// If one of them is empty.
pub(super) fn column(policy: &Transformer, prompt: &[u32], continuations: &[&[u32]], temperature: f64) -> Vec<f64> {
    let longest = continuations.iter().map(|tokens| tokens.len()).max().unwrap_or(0);
    let prompt = Prompt::read(policy, prompt, policy.rotary(prompt.len() + longest));
    continuations.chunks(TOGETHER).flat_map(|some| prompt.score(some, temperature)).collect()
}

impl<'a> Prompt<'a> {
    fn read(policy: &'a Transformer, prompt: &[u32], rotary: Arc<Rotary>) -> Self {
        let (&last, before) = prompt.split_last().expect("a prompt has tokens");
        let heads = policy.heads();
        let mut pasts = vec![vec![Past::default(); heads.kv]; policy.weights().shape().layers];
        if !before.is_empty() {
            let span = 0..before.len();
            // What it is read for are the pasts, not the last hidden states.
            let _ = policy.decoder.hidden(before, |layer, qkv| {
                on_host(qkv, |qkv| {
                    attention::forward(qkv, heads, &rotary, std::slice::from_ref(&span), &mut [&mut pasts[layer]])
                })
            });
        }
        Self { policy, rotary, pasts, last }
    }

    /// A row reads the prompt's last token and all of its own but the last, and is asked for its own.
    fn score(&self, continuations: &[&[u32]], temperature: f64) -> Vec<f64> {
        let (mut tokens, mut spans) = (vec![], vec![]);
        for continuation in continuations {
            let (_, fed) = continuation.split_last().expect("a continuation has tokens");
            let start = tokens.len();
            tokens.push(self.last);
            tokens.extend_from_slice(fed);
            spans.push(start..tokens.len());
        }
        let policy = self.policy;
        let hidden = policy.decoder.hidden(&tokens, |layer, qkv| {
            on_host(qkv, |qkv| attention::branches(qkv, policy.heads(), &self.rotary, &spans, &self.pasts[layer]))
        });
        let targets = continuations.concat();
        let scores = read(policy.decoder.scores(hidden, &targets, inverse(temperature), false));
        let scores = scores.as_chunks::<3>().0;
        spans.into_iter().map(|span| scores[span].iter().map(|score| f64::from(score[0])).sum()).collect()
    }
}

/// What `attend` makes of the values of `qkv`, as a tensor again.
fn on_host(qkv: Tensor<2>, attend: impl FnOnce(&[f32]) -> Vec<f32>) -> Tensor<2> {
    let (device, tokens) = (qkv.device(), qkv.dims()[0]);
    let y = attend(&read(qkv));
    let width = y.len() / tokens;
    Tensor::from_data(TensorData::new(y, [tokens, width]), &device)
}
