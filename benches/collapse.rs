//! What it costs to score reasonings after prompts that are read once, against scoring every pair as a whole row.
#![expect(clippy::disallowed_methods, clippy::print_stdout, reason = "a benchmark reads the clock and prints")]

use std::time::Instant;

use starpo::policy::{self, Family, Learner, Row, Shape, Transformer, Weights};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const PROMPTS: usize = 8;
const REASONINGS: usize = 64;

/// The most that reading prompts once may cost, as a share of whole rows.
const BOUND: f64 = 0.35;

fn text(name: usize, length: usize) -> Vec<u32> {
    (0..length).map(|i| ((i * 7 + name * 31) % 500) as u32).collect()
}

fn seconds<T>(act: impl Fn() -> T) -> (T, f64) {
    let start = Instant::now();
    let result = act();
    (result, start.elapsed().as_secs_f64())
}

fn main() {
    let shape = Shape {
        family: Family::Llama,
        vocab: 512,
        width: 128,
        layers: 4,
        heads: 4,
        kv_heads: 2,
        head_dim: 32,
        ffn: 384,
        rope_theta: 1e4,
        norm_eps: 1e-5,
        tied: true,
    };
    let prompts: Vec<Vec<u32>> = (0..PROMPTS).map(|j| text(j, 200 + j)).collect();
    let reasonings: Vec<Vec<u32>> = (0..REASONINGS).map(|i| text(100 + i, 25 + i % 16)).collect();
    let pairs: Vec<(usize, usize)> = (0..REASONINGS).flat_map(|i| (0..PROMPTS).map(move |j| (i, j))).collect();
    let rows: Vec<Vec<u32>> = pairs.iter().map(|&(i, j)| [&prompts[j][..], &reasonings[i]].concat()).collect();
    let responses: Vec<_> = pairs.iter().zip(&rows).map(|(&(_, j), row)| prompts[j].len()..row.len()).collect();
    let rows = rows.iter().zip(&responses);
    let rows: Vec<Row<'_>> =
        rows.map(|(tokens, response)| Row { tokens, responses: std::slice::from_ref(response) }).collect();
    let prompts: Vec<&[u32]> = prompts.iter().map(Vec::as_slice).collect();
    let reasonings: Vec<&[u32]> = reasonings.iter().map(Vec::as_slice).collect();
    for threads in [1, 2] {
        let weights = Weights::random(shape.clone(), 0.05, 1).expect("the sizes fit");
        let policy = Transformer::new(weights, policy::device("cpu").expect("a CPU"), threads);
        for _ in 0..3 {
            let (crossed, once) = seconds(|| policy.cross(&prompts, &reasonings, 1.0));
            let (whole, each) = seconds(|| policy.score(&rows, 1.0));
            for (&(i, j), scores) in pairs.iter().zip(&whole) {
                assert_eq!(crossed[i][j], scores.logprobs.iter().map(|&l| f64::from(l)).sum::<f64>());
            }
            println!(
                "{threads} threads: {REASONINGS} × {PROMPTS}: prompts read once {once:.2} s, whole rows {each:.2} s: \
                 {:.0} % (at most {:.0} %)",
                100.0 * once / each,
                100.0 * BOUND
            );
            assert!(once <= BOUND * each, "too slow");
        }
    }
}
