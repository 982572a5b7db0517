//! Generation with a cache of keys and values that lives as long as the episodes.

use burn::tensor::{Tensor, TensorData};
use starpo_kernels::attention::{self, Past};
use starpo_kernels::selective_log_softmax;

use super::decoder::read;
use super::sampler::{inverse, sample};
use super::transformer::Transformer;
use super::{Completion, Request, Sampling, Session};

/// Episodes of one shard: they are decoded together, in one thread. Part of what the numbers depend on.
const SHARD: usize = 16;

/// What one episode has been fed.
struct Context {
    /// For each layer, for each kv head.
    pasts: Vec<Vec<Past>>,
    len: usize,
    /// The last sampled token, which no pass has read yet.
    unread: Option<u32>,
}

/// The contexts of all episodes.
pub(super) struct Contexts<'a> {
    policy: &'a Transformer,
    sampling: Sampling,
    episodes: Vec<Context>,
}

/// A request under way.
struct Row<'a> {
    request: &'a Request<'a>,
    context: &'a mut Context,
    feed: Vec<u32>,
    completion: Completion,
}

impl<'a> Contexts<'a> {
    pub(super) fn new(policy: &'a Transformer, sampling: Sampling, episodes: usize) -> Self {
        let (layers, kv) = (policy.weights().shape().layers, policy.heads().kv);
        let context = |_| Context { pasts: vec![vec![Past::default(); kv]; layers], len: 0, unread: None };
        Self { policy, sampling, episodes: (0..episodes).map(context).collect() }
    }
}

impl Session for Contexts<'_> {
    /// # Panics
    /// If two requests name one episode, or an episode has nothing to read.
    fn generate(&mut self, requests: &[Request<'_>]) -> Vec<Completion> {
        let mut order: Vec<usize> = (0..requests.len()).collect();
        order.sort_by_key(|&r| requests[r].episode);
        let mut free: Vec<Option<&mut Context>> = self.episodes.iter_mut().map(Some).collect();
        let mut shards: Vec<Vec<Row<'_>>> = Vec::new();
        let mut last = None;
        for &r in &order {
            let request = &requests[r];
            let context = free[request.episode].take().expect("one request an episode");
            let feed: Vec<u32> = context.unread.take().into_iter().chain(request.append.iter().copied()).collect();
            assert!(!feed.is_empty(), "episode {} has nothing to read", request.episode);
            if last.replace(request.episode / SHARD) != Some(request.episode / SHARD) {
                shards.push(Vec::new());
            }
            let shard = shards.last_mut().expect("one was just pushed");
            shard.push(Row { request, context, feed, completion: Completion::default() });
        }
        let shards: Vec<_> = shards.into_iter().map(|shard| std::sync::Mutex::new(Some(shard))).collect();
        let done = self.policy.workers.map(shards.len(), |i| {
            let shard = shards[i].lock().expect("no thread panicked").take().expect("a shard runs once");
            decode(self.policy, &self.sampling, shard)
        });
        let mut completions = vec![Completion::default(); requests.len()];
        for (&r, completion) in order.iter().zip(done.into_iter().flatten()) {
            completions[r] = completion;
        }
        completions
    }
}

/// Samples until every row has its stop token or its limit; rows that are done leave the batch.
fn decode(policy: &Transformer, sampling: &Sampling, mut rows: Vec<Row<'_>>) -> Vec<Completion> {
    let vocab = policy.weights().shape().vocab;
    loop {
        let mut active: Vec<&mut Row<'_>> = rows.iter_mut().filter(|row| !row.feed.is_empty()).collect();
        if active.is_empty() {
            break;
        }
        let logits = last_logits(policy, sampling, &mut active);
        for (row, logits) in active.iter_mut().zip(logits.chunks_exact(vocab)) {
            row.feed.clear();
            let at = row.completion.tokens.len();
            if at < row.request.limit {
                let token = sample(logits, sampling, row.request.draws.uniform_at(at as u64));
                let scores = selective_log_softmax::forward(logits, vocab, &[token]);
                row.completion.tokens.push(token);
                row.completion.logprobs.push(scores[0]);
                row.completion.entropies.push(scores[1]);
                if sampling.stop.contains(&token) || at + 1 == row.request.limit {
                    row.context.unread = Some(token);
                } else {
                    row.feed.push(token);
                }
            }
        }
    }
    rows.into_iter().map(|row| row.completion).collect()
}

/// Reads what the rows have to read; logits under the temperature at the last token of each, `[rows, vocab]`.
fn last_logits(policy: &Transformer, sampling: &Sampling, rows: &mut [&mut Row<'_>]) -> Vec<f32> {
    let (mut tokens, mut spans, mut at) = (vec![], vec![], vec![]);
    for row in &*rows {
        spans.push(tokens.len()..tokens.len() + row.feed.len());
        tokens.extend_from_slice(&row.feed);
        at.push(tokens.len() as u32 - 1);
    }
    let heads = policy.heads();
    let longest = rows.iter().map(|row| row.context.len + row.feed.len()).max().unwrap_or(0);
    let rotary = policy.rotary(longest);
    let hidden = policy.decoder.hidden(&tokens, |layer, qkv| {
        let (device, tokens) = (qkv.device(), qkv.dims()[0]);
        let mut pasts: Vec<&mut [Past]> = rows.iter_mut().map(|row| row.context.pasts[layer].as_mut_slice()).collect();
        let y = attention::forward(&read(qkv), heads, &rotary, &spans, &mut pasts);
        Tensor::from_data(TensorData::new(y, [tokens, heads.query * heads.dim]), &device)
    });
    rows.iter_mut().for_each(|row| row.context.len += row.feed.len());
    let mut logits = read(policy.decoder.logits(hidden, &at));
    let scale = inverse(sampling.temperature);
    if scale != 1.0 {
        logits.iter_mut().for_each(|x| *x *= scale);
    }
    logits
}
