//! Generation with a cache of keys and values that lives as long as the episodes, as far as it has room.

use std::ops::Range;
use std::sync::Mutex;

use burn::tensor::{Tensor, TensorData};
use rayon::iter::{IndexedParallelIterator, IntoParallelRefMutIterator, ParallelIterator};
use rayon::slice::ParallelSlice;
use starpo_kernels::attention::{self, Past};
use starpo_kernels::selective_log_softmax;

use super::decoder::{read, rows as select};
use super::sampler::{inverse, sample};
use super::transformer::Transformer;
use super::weights::Shape;
use super::{Completion, Request, Sampling, Session};

/// Most rows a thread that are decoded at once, which bounds their logits. No number depends on it.
const SHARD: usize = 32;
/// Parameters that no thread's cache holds: rows are decoded by all threads together, each a part of every product, so
/// that these are read once a token. With fewer, each thread has rows of its own. No number depends on it.
const LARGE: usize = 1 << 22;

/// What one episode has read.
#[derive(Clone)]
struct Context {
    /// For each layer, for each kv head.
    pasts: Vec<Vec<Past>>,
    tokens: Vec<u32>,
}

impl Context {
    /// One that has read nothing.
    fn new(policy: &Transformer) -> Self {
        let (layers, kv) = (policy.weights().shape().layers, policy.heads().kv);
        Self { pasts: vec![vec![Past::default(); kv]; layers], tokens: Vec::new() }
    }
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
        Self { policy, sampling, episodes: vec![Context::new(policy); episodes] }
    }

    /// Tokens that the cache has room for.
    fn room(&self) -> usize {
        let Shape { layers, kv_heads, head_dim, .. } = *self.policy.weights().shape();
        self.policy.memory.cache / (4 * 2 * layers * kv_heads * head_dim)
    }

    /// The requests from `start` on that have room together: one at least.
    fn wave(&self, requests: &[Request<'_>], start: usize) -> Range<usize> {
        let room = self.room();
        let mut needed = 0;
        let fits = requests[start..].iter().take_while(|request| {
            needed += most(request);
            needed <= room
        });
        start..start + fits.count().max(1)
    }

    /// Forgets contexts until those of `wave` have room. First go episodes that were not asked now: they seem to be
    /// over; then those that will be asked last: answered ones in the next turn, and the others after the wave.
    fn make_room(&mut self, requests: &[Request<'_>], wave: Range<usize>) {
        let room = self.room();
        let needed: usize = requests[wave.clone()].iter().map(most).sum();
        let mut asked = vec![false; self.episodes.len()];
        requests.iter().for_each(|request| asked[request.episode] = true);
        let over = (0..asked.len()).filter(|episode| !asked[*episode]);
        let (answered, ahead) = (&requests[..wave.start], &requests[wave.end..]);
        let waiting = answered.iter().rev().chain(ahead.iter().rev()).map(|request| request.episode);
        let others: Vec<usize> = over.chain(waiting).collect();
        let mut kept: usize = others.iter().map(|episode| self.episodes[*episode].tokens.len()).sum();
        for episode in others {
            if needed.saturating_add(kept) <= room {
                break;
            }
            kept -= self.episodes[episode].tokens.len();
            self.episodes[episode] = Context::new(self.policy);
        }
    }

    /// Completions of requests whose contexts have room.
    fn answer(&mut self, requests: &[Request<'_>]) -> Vec<Completion> {
        let mut contexts: Vec<Option<&mut Context>> = self.episodes.iter_mut().map(Some).collect();
        let row = |request| row(request, contexts[request.episode].take().expect("one request an episode"));
        let mut rows: Vec<Row<'_>> = requests.iter().map(row).collect();
        let (policy, sampling) = (self.policy, &self.sampling);
        let alike = |a: &Row<'_>, b: &Row<'_>| a.is_fresh() && b.is_fresh() && a.feed == b.feed;
        let mut groups: Vec<_> = rows.chunk_by_mut(alike).filter(|rows| rows.len() > 1 && rows[0].is_fresh()).collect();
        sharded(policy, &mut groups, |groups| read_once(policy, sampling, groups));
        if is_large(policy) {
            sharded(policy, &mut rows, |rows| next(policy, sampling, &mut rows.iter_mut().collect::<Vec<_>>()));
            for rows in rows.chunks_mut(SHARD * policy.workers.count()) {
                policy.workers.together(|| decode(policy, sampling, rows));
            }
        } else {
            sharded(policy, &mut rows, |rows| decode(policy, sampling, rows));
        }
        rows.into_iter().map(|row| row.completion).collect()
    }
}

impl Session for Contexts<'_> {
    /// # Panics
    /// If two requests name one episode, or a prompt is empty.
    fn generate(&mut self, requests: &[Request<'_>]) -> Vec<Completion> {
        let mut completions = Vec::with_capacity(requests.len());
        while completions.len() < requests.len() {
            let wave = self.wave(requests, completions.len());
            self.make_room(requests, wave.clone());
            completions.extend(self.answer(&requests[wave]));
        }
        completions
    }
}

/// Most tokens that a request's context comes to hold.
fn most(request: &Request<'_>) -> usize {
    request.prompt.len() + request.limit
}

/// Takes the context back to where the prompt goes another way, its last token at the latest: that one's logits are
/// what the response begins with.
fn row<'a>(request: &'a Request<'a>, context: &'a mut Context) -> Row<'a> {
    let (_, before) = request.prompt.split_last().expect("a prompt of one token at least");
    let known = before.iter().zip(&context.tokens).take_while(|(a, b)| a == b).count();
    context.tokens.truncate(known);
    context.pasts.iter_mut().flatten().for_each(|past| past.truncate(known));
    Row { request, context, feed: request.prompt[known..].to_vec(), completion: Completion::default() }
}

impl Row<'_> {
    /// Whether its context knows nothing yet, and there is more to read than the last token.
    fn is_fresh(&self) -> bool {
        self.context.tokens.is_empty() && self.feed.len() > 1
    }
}

fn is_large(policy: &Transformer) -> bool {
    policy.weights().values().len() >= LARGE
}

/// `work` on parts of `rows`, each in a thread. Where there are fewer rows than threads and the model is large, on all
/// of them by all threads together.
fn sharded<T: Send>(policy: &Transformer, rows: &mut [T], work: impl Fn(&mut [T]) + Sync) {
    let threads = policy.workers.count();
    if !rows.is_empty() && rows.len() < threads && is_large(policy) {
        return policy.workers.together(|| work(rows));
    }
    let size = rows.len().div_ceil(threads).clamp(1, SHARD);
    let shards: Vec<_> = rows.chunks_mut(size).map(Mutex::new).collect();
    policy.workers.map(shards.len(), |i| work(&mut shards[i].lock().expect("no thread panicked")));
}

/// Of fresh rows that stand side by side with one prompt (the members of a group), the first reads it up to its last
/// token, and the others take over what it knows.
fn read_once(policy: &Transformer, sampling: &Sampling, groups: &mut [&mut [Row<'_>]]) {
    let lasts: Vec<_> = groups.iter_mut().map(|rows| rows[0].feed.pop()).collect();
    last_logits(policy, sampling, &mut groups.iter_mut().map(|rows| &mut rows[0]).collect::<Vec<_>>());
    for (rows, last) in groups.iter_mut().zip(lasts) {
        let (first, others) = rows.split_first_mut().expect("a group has rows");
        first.feed = last.into_iter().collect();
        for row in others {
            row.context.clone_from(first.context);
            row.feed.clone_from(&first.feed);
        }
    }
}

/// Samples until every row has its stop token or its limit; rows that are done leave the batch.
fn decode(policy: &Transformer, sampling: &Sampling, rows: &mut [Row<'_>]) {
    loop {
        let mut active: Vec<&mut Row<'_>> = rows.iter_mut().filter(|row| !row.feed.is_empty()).collect();
        if active.is_empty() {
            break;
        }
        next(policy, sampling, &mut active);
    }
}

/// Reads what the rows have to read, and samples a token for each.
fn next(policy: &Transformer, sampling: &Sampling, rows: &mut [&mut Row<'_>]) {
    let vocab = policy.weights().shape().vocab;
    let logits = last_logits(policy, sampling, rows);
    rows.par_iter_mut().zip(logits.par_chunks_exact(vocab)).for_each(|(row, logits)| {
        row.feed.clear();
        let at = row.completion.tokens.len();
        if at < row.request.limit {
            let token = sample(logits, sampling, row.request.draws.uniform_at(at as u64));
            let scores = selective_log_softmax::forward(logits, vocab, &[token]);
            row.completion.tokens.push(token);
            row.completion.logprobs.push(scores[0]);
            row.completion.entropies.push(scores[1]);
            if !sampling.stop.contains(&token) && at + 1 < row.request.limit {
                row.feed.push(token);
            }
        }
    });
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
    let longest = rows.iter().map(|row| row.context.tokens.len() + row.feed.len()).max().unwrap_or(0);
    let rotary = policy.rotary(longest);
    let hidden = policy.decoder.hidden(&tokens, |layer, qkv| {
        let (device, tokens) = (qkv.device(), qkv.dims()[0]);
        let (values, columns) = (read(qkv), heads.columns());
        let attend = |(row, span): (&mut &mut Row<'_>, &Range<usize>)| {
            let qkv = &values[span.start * columns..span.end * columns];
            let all = 0..span.len();
            attention::forward(qkv, heads, &rotary, std::slice::from_ref(&all), &mut [&mut row.context.pasts[layer]])
        };
        let y: Vec<Vec<f32>> = rows.par_iter_mut().zip(&spans).map(attend).collect();
        Tensor::from_data(TensorData::new(y.concat(), [tokens, heads.query * heads.dim]), &device)
    });
    rows.iter_mut().for_each(|row| row.context.tokens.extend(&row.feed));
    let mut logits = read(policy.decoder.logits(select(hidden, &at)));
    let scale = inverse(sampling.temperature);
    if scale != 1.0 {
        logits.iter_mut().for_each(|x| *x *= scale);
    }
    logits
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{Family, Learner, Row, Weights, device};
    use crate::rng::Stream;

    fn request(prompt: &[u32]) -> Request<'_> {
        Request { episode: 0, prompt, draws: Stream::new("test", 1, &[0]), limit: 5, legal: &[], advice: None }
    }

    /// What the spot check of a run rests on: a wrong value in the cache shows in the recorded log-probs.
    #[test]
    fn a_flipped_value_in_the_cache_shows() {
        let shape = Shape {
            family: Family::Llama,
            vocab: 12,
            width: 8,
            layers: 2,
            heads: 2,
            kv_heads: 1,
            head_dim: 4,
            ffn: 16,
            rope_theta: 1e4,
            norm_eps: 1e-6,
            tied: true,
        };
        let weights = Weights::random(shape, 0.3, 5).expect("the sizes fit");
        let policy = Transformer::new(weights, device("cpu").expect("a CPU"), 1);
        let sampling = Sampling { temperature: 1.0, top_k: None, top_p: 1.0, stop: vec![] };
        let mismatch = |flip: bool| {
            let mut contexts = Contexts::new(&policy, sampling.clone(), 1);
            let mut tokens = vec![2, 3, 4];
            let first = contexts.generate(&[request(&tokens)]).remove(0);
            tokens.extend(first.tokens);
            if flip {
                contexts.episodes[0].pasts[0][0].values_mut()[0] += 1.0;
            }
            tokens.push(5);
            let completion = &contexts.generate(&[request(&tokens)])[0];
            let start = tokens.len();
            tokens.extend(&completion.tokens);
            let response = start..tokens.len();
            let scores = policy.score(&[Row { tokens: &tokens, responses: std::slice::from_ref(&response) }], 1.0);
            let differences = completion.logprobs.iter().zip(&scores[0].logprobs).map(|(a, b)| (a - b).abs());
            differences.fold(0.0, f32::max)
        };
        assert_eq!(mismatch(false), 0.0);
        assert!(mismatch(true) > 1e-4);
    }
}
