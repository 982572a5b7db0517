//! The policy that learns: a decoder. With a value head it is a critic too, or a critic alone.
//!
//! On the CPU these hold to the bit. A token's log-prob and entropy depend on the tokens of its own row before it, and
//! on nothing else: not on the cache, the batch, the shard or the number of threads, so what sampling records is what
//! scoring computes. A gradient is the sum over shards in their order of what each gives alone: it depends on the
//! shards, but not on the number of threads, nor on how shards are spread over calls.
//!
//! Rows stand packed one behind the other, without padding, and what the rows of one pass begin with stands there once:
//! of a group, the prompt.

use std::ops::Range;
use std::sync::{Arc, Mutex};

use burn::tensor::{Device, Tensor};
use starpo_kernels::attention::{Heads, Rotary};

use super::adamw::{AdamW, norm};
use super::cross::column;
use super::decoder::{Decoder, read, rows as select, sizes};
use super::gradient::Sum;
use super::lora::{ADAPTER, Lora};
use super::ops::{Packed, attention};
use super::sampler::inverse;
use super::session::Contexts;
use super::tensors::{Precision, Tensors, to_safetensors};
use super::weights::{Part, Shape, Weights};
use super::workers::Workers;
use super::{Cotangent, Learner, Norms, Optimizer, Policy, Row, Sampling, Scores, Session};
use crate::experiment::LoraConfig;

/// Rows that [`Learner::score`] passes forward at once.
const SCORED_TOGETHER: usize = 8;

/// Rows that begin alike as one pass reads them.
pub(super) struct Pass {
    /// What the rows share, then what each goes on with.
    pub(super) tokens: Vec<u32>,
    pub(super) packed: Packed,
    /// Of each response token, the place of the token before it.
    pub(super) at: Vec<u32>,
    /// The response tokens.
    pub(super) targets: Vec<u32>,
}

/// Files of a checkpoint: the decoder as other tools read it, the optimizer's state, and the value head apart.
const MODEL: &str = "model.safetensors";
const OPTIMIZER: &str = "optimizer.safetensors";
const VALUE_HEAD: &str = "value-head.safetensors";

/// Bounds on what is kept only to save time: no number depends on them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// Bytes of logits and of layers' tapes, over all threads. What has no room is computed again in the backward pass.
    pub activations: usize,
    /// Bytes of the keys and values of a session's contexts. Those that have no room are read again; one always has.
    pub cache: usize,
}

impl Memory {
    /// No bounds.
    pub const AMPLE: Self = Self { activations: usize::MAX, cache: usize::MAX };
}

/// A decoder, its optimizer's state, and the threads it runs on.
pub struct Transformer {
    weights: Weights,
    /// Whether it scores tokens: a critic alone has no use for logits.
    pub(super) speaks: bool,
    lora: Option<Lora>,
    optimizer: AdamW,
    pub(super) pending: Option<Vec<f32>>,
    pub(super) memory: Memory,
    pub(super) device: Device,
    pub(super) decoder: Decoder,
    pub(super) workers: Workers,
    rotary: Mutex<Arc<Rotary>>,
}

impl Transformer {
    /// A policy with these weights, on `device` (from [`super::device`]), with so many threads.
    #[must_use]
    pub fn new(weights: Weights, device: Device, threads: usize) -> Self {
        let (shape, workers) = (weights.shape(), Workers::new(threads));
        Self {
            optimizer: AdamW::new(weights.values().len()),
            lora: None,
            pending: None,
            memory: Memory::AMPLE,
            decoder: Decoder::new(&weights, &device, &workers),
            workers,
            rotary: Mutex::new(Arc::new(Rotary::new(shape.head_dim, shape.rope_theta, 1024))),
            speaks: true,
            weights,
            device,
        }
    }

    /// A critic alone: this decoder with a value head. It can be scored and taught, but not sampled from.
    #[must_use]
    pub fn critic(weights: Weights, device: Device, threads: usize) -> Self {
        Self { speaks: false, ..Self::new(weights.with_value_head(), device, threads) }
    }

    /// The same policy within so much memory.
    #[must_use]
    pub fn within(self, memory: Memory) -> Self {
        Self { memory, ..self }
    }

    /// The same policy, of which only low-rank changes learn. `seed` moves their first values.
    #[must_use]
    pub fn with_lora(mut self, config: &LoraConfig, seed: u64) -> Self {
        let lora = Lora::new(config, &self.weights, seed);
        self.optimizer = AdamW::new(lora.values.len());
        Self { lora: Some(lora), ..self }
    }

    /// What learns.
    fn learnt(&self) -> Vec<Part> {
        self.lora.as_ref().map_or_else(|| self.weights.parts(), |lora| lora.parts.clone())
    }

    /// The parameters.
    #[must_use]
    pub fn weights(&self) -> &Weights {
        &self.weights
    }

    /// Logits after every token of a text, `[tokens, vocab]`.
    #[must_use]
    pub fn logits(&self, tokens: &[u32]) -> Vec<f32> {
        let spans: Arc<[Range<usize>]> = std::iter::once(0..tokens.len()).collect();
        let packed = Packed { heads: self.heads(), rotary: self.rotary(tokens.len()), trunk: 0, spans };
        read(self.decoder.logits(self.decoder.hidden(tokens, |_, qkv| attention(qkv, packed.clone()))))
    }

    pub(super) fn heads(&self) -> Heads {
        let Shape { heads, kv_heads, head_dim, .. } = *self.weights.shape();
        Heads { query: heads, kv: kv_heads, dim: head_dim }
    }

    /// Tables for so many positions at least.
    pub(super) fn rotary(&self, positions: usize) -> Arc<Rotary> {
        let mut rotary = self.rotary.lock().expect("no thread panicked");
        if rotary.positions() < positions {
            let shape = self.weights.shape();
            *rotary = Arc::new(Rotary::new(shape.head_dim, shape.rope_theta, positions.next_power_of_two()));
        }
        rotary.clone()
    }

    /// Rows as one pass reads them; None if they have no response tokens.
    pub(super) fn pack(&self, rows: &[Row<'_>]) -> Option<Pass> {
        let trunk = shared(rows);
        let mut tokens = rows.first().map_or_else(Vec::new, |row| row.tokens[..trunk].to_vec());
        let (mut spans, mut at, mut targets) = (vec![], vec![], vec![]);
        for row in rows {
            let start = tokens.len();
            for t in row.responses.iter().cloned().flatten() {
                at.push(if t <= trunk { t - 1 } else { start + t - 1 - trunk } as u32);
                targets.push(row.tokens[t]);
            }
            tokens.extend_from_slice(&row.tokens[trunk..]);
            spans.push(start..tokens.len());
        }
        let longest = rows.iter().map(|row| row.tokens.len()).max().unwrap_or(0);
        let packed = Packed { heads: self.heads(), rotary: self.rotary(longest), trunk, spans: spans.into() };
        (!targets.is_empty()).then_some(Pass { tokens, packed, at, targets })
    }

    /// A line of numbers for every response token of a pass, from the last hidden states of all its tokens: (logp,
    /// entropy, lse) where this speaks, then the value where there is a value head. `keep` says whether a tape keeps
    /// the logits.
    pub(super) fn lines(
        &self,
        decoder: &Decoder,
        hidden: Tensor<2>,
        pass: &Pass,
        temperature: f64,
        keep: bool,
    ) -> Tensor<2> {
        let states = select(hidden, &pass.at);
        let values = decoder.values(states.clone());
        let scores = self.speaks.then(|| decoder.scores(states, &pass.targets, inverse(temperature), keep));
        Tensor::cat(scores.into_iter().chain(values).collect(), 1)
    }

    /// What [`Transformer::lines`] gave as the scores of the rows that they belong to.
    pub(super) fn split(&self, out: Tensor<2>, rows: &[Row<'_>]) -> Vec<Scores> {
        let columns = out.dims()[1];
        let out = read(out);
        let mut lines = out.chunks_exact(columns);
        let row = |row: &Row<'_>| {
            let mut scores = Scores::default();
            for line in lines.by_ref().take(row.responses.iter().map(Range::len).sum()) {
                if self.speaks {
                    scores.logprobs.push(line[0]);
                    scores.entropies.push(line[1]);
                }
                scores.values.extend(self.weights.value_head.then(|| line[columns - 1]));
            }
            scores
        };
        rows.iter().map(row).collect()
    }
}

/// How many tokens all rows begin with alike.
fn shared(rows: &[Row<'_>]) -> usize {
    let Some((first, rest)) = rows.split_first() else { return 0 };
    rest.iter().fold(first.tokens.len(), |shared, row| {
        row.tokens.iter().zip(&first.tokens[..shared]).take_while(|(a, b)| a == b).count()
    })
}

impl Policy for Transformer {
    fn open<'a>(&'a self, sampling: &Sampling, episodes: usize) -> Box<dyn Session + 'a> {
        Box::new(Contexts::new(self, sampling.clone(), episodes))
    }
}

impl Learner for Transformer {
    fn score(&self, rows: &[Row<'_>], temperature: f64) -> Vec<Scores> {
        let shards: Vec<&[Row<'_>]> = rows.chunks(SCORED_TOGETHER).collect();
        let scored = self.workers.map(shards.len(), |shard| {
            let rows = shards[shard];
            let Some(pass) = self.pack(rows) else { return vec![Scores::default(); rows.len()] };
            let hidden = self.decoder.hidden(&pass.tokens, |_, qkv| attention(qkv, pass.packed.clone()));
            self.split(self.lines(&self.decoder, hidden, &pass, temperature, false), rows)
        });
        scored.into_iter().flatten().collect()
    }

    fn cross(&self, prompts: &[&[u32]], continuations: &[&[u32]], temperature: f64) -> Vec<Vec<f64>> {
        let columns = self.workers.map(prompts.len(), |j| column(self, prompts[j], continuations, temperature));
        (0..continuations.len()).map(|i| columns.iter().map(|column| column[i]).collect()).collect()
    }

    fn gradient(
        &mut self,
        rows: &[Row<'_>],
        shards: &[Range<usize>],
        temperature: f64,
        cotangent: &(dyn Fn(usize, &Scores) -> Cotangent + Sync),
    ) -> Vec<Scores> {
        let begun = self.pending.is_some();
        let mut pending = self.pending.take().unwrap_or_else(|| vec![0.0; self.weights.values.len()]);
        let sum = Sum::new(&mut pending, begun, &sizes(&self.weights));
        let scored = self.workers.map(shards.len(), |number| {
            let span = shards[number].clone();
            self.shard(&rows[span.clone()], span.start, temperature, cotangent, sum.share(number))
        });
        drop(sum);
        self.pending = Some(pending);
        let mut scores = vec![Scores::default(); rows.len()];
        for (span, shard) in shards.iter().zip(scored) {
            scores[span.clone()].clone_from_slice(&shard);
        }
        scores
    }

    fn step(&mut self, optimizer: &Optimizer) -> Result<Norms, f64> {
        let gradient = self.pending.take().unwrap_or_else(|| vec![0.0; self.weights.values().len()]);
        let parts = self.learnt();
        let norms = match &mut self.lora {
            None => self.optimizer.step(optimizer, &parts, &mut self.weights.values, &gradient, &self.workers)?,
            Some(lora) => {
                let gradient = lora.gradient(&gradient);
                let norms = self.optimizer.step(optimizer, &parts, &mut lora.values, &gradient, &self.workers)?;
                lora.merge(&mut self.weights.values);
                norms
            }
        };
        self.decoder.set(&self.weights, &self.workers);
        Ok(norms)
    }

    fn discard(&mut self) -> f64 {
        self.pending.take().map_or(0.0, |gradient| match &self.lora {
            None => norm(&gradient),
            Some(lora) => norm(&lora.gradient(&gradient)),
        })
    }

    fn save(&self) -> Vec<(String, Vec<u8>)> {
        let AdamW { first, second, steps } = &self.optimizer;
        let moments = [("first.", first.as_slice()), ("second.", second.as_slice())];
        let optimizer = to_safetensors(&self.learnt(), &moments, Precision::F32, Some(*steps));
        let adapter = self.lora.as_ref().map(Lora::to_safetensors);
        let values = [("", self.weights.values())];
        let head = self.weights.head().map(|head| to_safetensors(&[head], &values, Precision::F32, None));
        let files = [(MODEL, self.weights.to_safetensors(Precision::F32)), (OPTIMIZER, optimizer)];
        let files = files.into_iter().chain(head.map(|head| (VALUE_HEAD, head)));
        let files = files.chain(adapter.map(|adapter| (ADAPTER, adapter)));
        files.map(|(name, bytes)| (name.to_owned(), bytes)).collect()
    }

    fn restore(&mut self, files: &[(String, Vec<u8>)]) -> Result<(), String> {
        let mut names = vec![MODEL, OPTIMIZER];
        names.extend(self.weights.value_head.then_some(VALUE_HEAD));
        names.extend(self.lora.as_ref().map(|_| ADAPTER));
        if let Some((extra, _)) = files.iter().find(|(n, _)| !names.contains(&n.as_str())) {
            return Err(format!("{extra} is not a file of this policy"));
        }
        let find = |name: &str| {
            let file = files.iter().find(|(n, _)| n == name).ok_or_else(|| format!("{name} is missing"))?;
            Ok::<_, String>([(file.0.as_str(), file.1.as_slice())])
        };
        let parts = self.learnt();
        let mut weights = Weights::from_files(self.weights.shape.clone(), &find(MODEL)?)?;
        if let Some(head) = self.weights.head() {
            let (file, head) = (Tensors::parse(&find(VALUE_HEAD)?)?, [head]);
            file.nothing_but(&head, &[""])?;
            weights.values.extend(file.array(&head, "")?);
            weights.value_head = true;
        }
        let file = Tensors::parse(&find(OPTIMIZER)?)?;
        file.nothing_but(&parts, &["first.", "second."])?;
        let (first, second) = (file.array(&parts, "first.")?, file.array(&parts, "second.")?);
        let steps = file.steps()?;
        if let Some(lora) = &mut self.lora {
            let [file] = find(ADAPTER)?;
            let values = lora.read(file, &weights.values[weights.shape.parameters()..])?;
            let before = std::mem::replace(&mut lora.values, values);
            let mut merged = weights.values.clone();
            lora.merge(&mut merged);
            if merged != weights.values {
                lora.values = before;
                return Err(format!("{MODEL} is not what this policy started from with {ADAPTER}"));
            }
        }
        self.optimizer = AdamW { first, second, steps };
        self.decoder.set(&weights, &self.workers);
        self.weights = weights;
        self.pending = None;
        Ok(())
    }
}
