//! Speed of the small model: one rollout's generation, and one gradient with its step.
#![expect(clippy::disallowed_methods, clippy::print_stdout, reason = "a benchmark reads the clock and prints")]

use std::time::Instant;

use starpo::policy::{
    self, Cotangent, Learner, Optimizer, Policy, Request, Row, Sampling, Shape, Transformer, Weights,
};
use starpo::rng::Stream;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const EPISODES: usize = 64;

fn generate(policy: &Transformer) -> usize {
    let sampling = Sampling { temperature: 1.0, top_k: None, top_p: 1.0, stop: vec![] };
    let mut session = policy.open(&sampling, EPISODES);
    let mut sampled = 0;
    let mut rows = vec![Vec::new(); EPISODES];
    for turn in 0..3u64 {
        rows.iter_mut().for_each(|row| row.extend((0..if turn == 0 { 150 } else { 60 }).map(|i| i * 7 % 500)));
        let request = |episode: usize| Request {
            episode,
            prompt: &rows[episode],
            draws: Stream::new("bench", 1, &[episode as u64, turn]),
            limit: 40,
            legal: &[],
            advice: None,
        };
        let requests: Vec<_> = (0..EPISODES).map(request).collect();
        let completions = session.generate(&requests);
        for (row, completion) in rows.iter_mut().zip(completions) {
            sampled += completion.tokens.len();
            row.extend(completion.tokens);
        }
    }
    sampled
}

fn learn(policy: &mut Transformer) {
    let tokens: Vec<u32> = (0..400).map(|i| i * 7 % 500).collect();
    let rows = vec![Row { tokens: &tokens, responses: &[150..190, 250..290, 350..390] }; EPISODES];
    let shards: Vec<_> = (0..EPISODES / 8).map(|i| 8 * i..8 * (i + 1)).collect();
    policy.gradient(&rows, &shards, 1.0, &|_, scores| Cotangent {
        logprobs: vec![-1.0 / 7680.0; scores.logprobs.len()],
        entropies: vec![0.0; scores.logprobs.len()],
        values: Vec::new(),
    });
}

fn main() {
    let shape =
        Shape { vocab: 512, width: 128, layers: 4, heads: 4, kv_heads: 2, ffn: 384, rope_theta: 1e4, norm_eps: 1e-5 };
    let adam =
        Optimizer { learning_rate: 1e-4, beta1: 0.9, beta2: 0.95, epsilon: 1e-8, weight_decay: 0.01, clip_norm: 1.0 };
    for threads in [1, 2] {
        let weights = Weights::random(shape.clone(), 0.05, 1).expect("the sizes fit");
        let mut policy = Transformer::new(weights, policy::device("cpu").expect("a CPU"), threads);
        for _ in 0..3 {
            let start = Instant::now();
            let sampled = generate(&policy);
            let generated = start.elapsed().as_secs_f64();
            let start = Instant::now();
            learn(&mut policy);
            let learnt = start.elapsed().as_secs_f64();
            let start = Instant::now();
            policy.step(&adam).expect("a finite gradient");
            let step = start.elapsed().as_secs_f64();
            println!(
                "{threads} threads: {sampled} tokens in {generated:.2} s, gradient {learnt:.2} s, step {:.0} ms",
                1e3 * step
            );
        }
    }
}
