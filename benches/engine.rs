//! The engine against PyTorch and transformers: the same weights, prompts and numbers of tokens, f32, two threads, in
//! turns within one run. Prints medians, ratios, and the share of what the machine can do: the multiply-adds a second
//! of as many threads that do nothing else, measured in the same turns.
//!
//! ```text
//! cargo bench --bench engine                                   # ours alone
//! PEER_PYTHON=venv/bin/python cargo bench --bench engine       # beside a Python with torch and transformers
//! cargo bench --bench engine -- small decode                   # works whose name has all of these words
//! cargo bench --bench engine -- memory                         # what 200 training steps of SmolLM2's size hold
//! ```
//! Operations are counted as 2 a weight of a product and token, 4·context·width a layer and token for attention, and
//! three times that in training.
#![expect(clippy::disallowed_methods, clippy::print_stdout, reason = "a benchmark reads the clock and prints")]

use std::hint::black_box;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use pulp::{NullaryFnOnce, Simd};
use starpo::policy::{
    self, Cotangent, Family, Learner, ModelFolder, Optimizer, Policy, Request, Row, Sampling, Session, Shape,
    Transformer, Weights,
};
use starpo::rng::Stream;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const THREADS: usize = 2;
const MEASURED: usize = 5;

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Decode,
    Prefill,
    Train,
}

struct Work {
    name: &'static str,
    shape: Shape,
    kind: Kind,
    rows: usize,
    length: usize,
    /// Tokens a row that are decoded.
    steps: usize,
    /// Times the peer that this project sets out to reach.
    goal: f64,
}

fn works() -> Vec<Work> {
    let smol = Shape {
        family: Family::Llama,
        vocab: 49152,
        width: 576,
        layers: 30,
        heads: 9,
        kv_heads: 3,
        head_dim: 64,
        ffn: 1536,
        rope_theta: 1e5,
        norm_eps: 1e-5,
        tied: true,
    };
    let (vocab, width, heads, kv_heads) = (2048, 256, 4, 2);
    let small = Shape { vocab, width, layers: 4, heads, kv_heads, ffn: 768, rope_theta: 1e4, ..smol.clone() };
    let work = |name, shape: &Shape, kind, [rows, length, steps]: [usize; 3], goal| Work {
        name,
        shape: shape.clone(),
        kind,
        rows,
        length,
        steps,
        goal,
    };
    let qwen = Shape {
        family: Family::Qwen2,
        vocab: 151_936,
        width: 896,
        layers: 24,
        heads: 14,
        kv_heads: 2,
        ffn: 4864,
        rope_theta: 1e6,
        ..smol.clone()
    };
    vec![
        work("small-256 decode, 64 rows, 256 cached", &small, Kind::Decode, [64, 256, 32], 6.0),
        work("small-256 training step, 16 × 256", &small, Kind::Train, [16, 256, 0], 1.2),
        work("SmolLM2-135M decode, 16 rows, 512 cached", &smol, Kind::Decode, [16, 512, 8], 4.5),
        work("SmolLM2-135M prefill, 4 × 512, last logits", &smol, Kind::Prefill, [4, 512, 0], 1.2),
        work("SmolLM2-135M training step, 4 × 512", &smol, Kind::Train, [4, 512, 0], 1.45),
        work("Qwen2.5-0.5B shape decode, 16 rows, 256 cached", &qwen, Kind::Decode, [16, 256, 8], 5.0),
    ]
}

impl Work {
    fn prompt(&self, row: usize) -> Vec<u32> {
        (0..self.length).map(|i| ((7 * i + 13 * row) % self.shape.vocab) as u32).collect()
    }

    /// Tokens of one measurement.
    fn tokens(&self) -> usize {
        self.rows * if self.kind == Kind::Decode { self.steps } else { self.length }
    }

    fn operations(&self) -> f64 {
        let Shape { vocab, width, layers, ffn, .. } = self.shape;
        let kv = self.shape.kv_heads * self.shape.head_dim;
        let layer = width * (2 * width + 2 * kv) + 3 * width * ffn;
        let tokens = self.tokens() as f64;
        let (context, heads, times) = match self.kind {
            Kind::Decode => (self.length as f64 + (self.steps - 1) as f64 / 2.0, tokens, 1.0),
            Kind::Prefill => ((self.length + 1) as f64 / 2.0, self.rows as f64, 1.0),
            Kind::Train => ((self.length + 1) as f64 / 2.0, tokens, 3.0),
        };
        let products = 2.0 * ((layers * layer) as f64 * tokens + (vocab * width) as f64 * heads);
        times * (products + 4.0 * context * width as f64 * layers as f64 * tokens)
    }
}

/// Seconds of each measurement of ours; the first call warms up.
struct Ours {
    policy: Transformer,
}

impl Ours {
    fn prefill(&self, work: &Work) -> f64 {
        let sampling = Sampling { temperature: 1.0, top_k: None, top_p: 1.0, stop: vec![] };
        let mut session = self.policy.open(&sampling, work.rows);
        decode(session.as_mut(), work, 1)
    }

    fn train(&mut self, work: &Work) -> f64 {
        let tokens: Vec<Vec<u32>> = (0..work.rows).map(|row| work.prompt(row)).collect();
        let response = 1..work.length;
        let rows: Vec<_> =
            tokens.iter().map(|tokens| Row { tokens, responses: std::slice::from_ref(&response) }).collect();
        let size = work.rows / 4;
        let shards: Vec<_> = (0..4).map(|i| size * i..size * (i + 1)).collect();
        let scale = -1.0 / (work.rows * (work.length - 1)) as f32;
        let start = Instant::now();
        self.policy.gradient(&rows, &shards, 1.0, &|_, scores| Cotangent {
            logprobs: vec![scale; scores.logprobs.len()],
            entropies: vec![0.0; scores.logprobs.len()],
            values: Vec::new(),
        });
        let adam = Optimizer {
            learning_rate: 1e-6,
            beta1: 0.9,
            beta2: 0.95,
            epsilon: 1e-8,
            weight_decay: 0.01,
            clip_norm: 1.0,
        };
        self.policy.step(&adam).expect("a finite gradient");
        start.elapsed().as_secs_f64()
    }
}

/// Samples `limit` tokens a row after the prompts, of which only what the session does not know is read.
fn decode(session: &mut dyn Session, work: &Work, limit: usize) -> f64 {
    let prompts: Vec<Vec<u32>> = (0..work.rows).map(|row| work.prompt(row)).collect();
    let draws = |row: usize| Stream::new("bench", 1, &[row as u64]);
    let request =
        |(episode, prompt)| Request { episode, prompt, draws: draws(episode), limit, legal: &[], advice: None };
    let requests: Vec<_> = prompts.iter().map(Vec::as_slice).enumerate().map(request).collect();
    let start = Instant::now();
    let completions = session.generate(&requests);
    let seconds = start.elapsed().as_secs_f64();
    assert!(completions.iter().all(|completion| completion.tokens.len() == limit), "no token ends a response");
    seconds
}

/// A Python process that measures when it is asked to.
struct Peer {
    process: Child,
    answers: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Peer {
    fn start(python: &str, folder: &Path, work: &Work) -> Self {
        let kind = match work.kind {
            Kind::Decode => "decode",
            Kind::Prefill => "prefill",
            Kind::Train => "train",
        };
        let sizes = [work.rows, work.length, work.steps].map(|n| n.to_string());
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/peer/engine.py");
        let mut command = Command::new(python);
        command.arg(script).arg(folder).arg(kind).args(sizes).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().expect("PEER_PYTHON is a Python");
        let mut answers = BufReader::new(process.stdout.take().expect("piped")).lines();
        answers.next().expect("the peer says that it is ready").expect("text");
        Self { process, answers }
    }

    fn measure(&mut self) -> f64 {
        let stdin = self.process.stdin.as_mut().expect("piped");
        writeln!(stdin).and_then(|()| stdin.flush()).expect("the peer listens");
        let answer = self.answers.next().expect("the peer answers").expect("text");
        answer.parse().expect("seconds")
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // Its work is done; what it answers no longer matters.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Chains of multiply-adds, as many as hide the latency of one, in registers alone.
struct Chains<S> {
    simd: S,
    rounds: usize,
}

impl<S: Simd> NullaryFnOnce for Chains<S> {
    /// Operations done.
    type Output = usize;

    #[inline(always)]
    fn call(self) -> usize {
        const CHAINS: usize = 12;
        let simd = self.simd;
        let [start, factor, term] = [0.0, 0.5, 1.0].map(|x| simd.splat_f32s(black_box(x)));
        let mut sums = [start; CHAINS];
        for _ in 0..self.rounds {
            for sum in &mut sums {
                *sum = simd.mul_add_f32s(*sum, factor, term);
            }
        }
        black_box(sums);
        2 * S::F32_LANES * CHAINS * self.rounds
    }
}

/// Operations a second of all threads at once.
fn peak() -> f64 {
    let start = Instant::now();
    let simd = pulp::x86::V3::try_new().expect("a machine of x86-64-v3, as the kernels want one");
    let chains = || simd.vectorize(Chains { simd, rounds: 20_000_000 });
    let operations: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(chains)).collect();
        threads.into_iter().map(|thread| thread.join().expect("arithmetic")).sum()
    });
    operations as f64 / start.elapsed().as_secs_f64()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn measure(work: &Work, python: Option<&str>) {
    let folder = std::env::temp_dir().join(format!("starpo-bench-{}", std::process::id()));
    let weights = Weights::random(work.shape.clone(), 0.02, 1).expect("the sizes fit");
    let mut peer = python.map(|python| {
        ModelFolder::new(weights.clone(), "{}".to_owned()).write(&folder).expect("a temporary folder");
        let peer = Peer::start(python, &folder, work);
        std::fs::remove_dir_all(&folder).expect("it is there");
        peer
    });
    let mut ours = Ours { policy: Transformer::new(weights, policy::device("cpu").expect("a CPU"), THREADS) };
    let (mut mine, mut theirs, mut peaks) = (Vec::new(), Vec::new(), Vec::new());
    let mut alternate = |once: &mut dyn FnMut() -> f64| {
        for round in 0..=MEASURED {
            let (a, b, most) = (once(), peer.as_mut().map(Peer::measure), peak());
            if round > 0 {
                mine.push(a);
                theirs.extend(b);
                peaks.push(most);
            }
        }
    };
    match work.kind {
        Kind::Decode => {
            let sampling = Sampling { temperature: 1.0, top_k: None, top_p: 1.0, stop: vec![] };
            let mut session = ours.policy.open(&sampling, work.rows);
            alternate(&mut || decode(session.as_mut(), work, work.steps));
        }
        Kind::Prefill => alternate(&mut || ours.prefill(work)),
        Kind::Train => alternate(&mut || ours.train(work)),
    }
    let mine = median(mine);
    let rate = work.tokens() as f64 / mine;
    let (operations, peak) = (work.operations() / mine, median(peaks));
    let (peer, ratio) = match theirs.is_empty() {
        true => ("–".to_owned(), "–".to_owned()),
        false => {
            let theirs = median(theirs);
            (format!("{:.0}", work.tokens() as f64 / theirs), format!("{:.2}×", theirs / mine))
        }
    };
    println!(
        "| {} | {rate:.0} | {peer} | {ratio} (goal {}×) | {:.0} of {:.0} GFLOP/s, {:.0} % |",
        work.name,
        work.goal,
        operations / 1e9,
        peak / 1e9,
        100.0 * operations / peak
    );
}

/// MiB of this process as the kernel counts them: `VmRSS` now, `VmHWM` at most.
fn resident(name: &str) -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("the kernel counts it");
    let kibibytes = line.trim_matches(|c: char| !c.is_ascii_digit());
    kibibytes.parse::<f64>().expect("a number") / 1024.0
}

/// Whether training steps leave something behind.
fn memory(work: &Work) {
    let weights = Weights::random(work.shape.clone(), 0.02, 1).expect("the sizes fit");
    let mut ours = Ours { policy: Transformer::new(weights, policy::device("cpu").expect("a CPU"), THREADS) };
    println!("{}: MiB resident after a step, and at most so far", work.name);
    for step in 1..=200 {
        ours.train(work);
        if [1, 2, 5, 10, 20, 50, 100, 150, 200].contains(&step) {
            println!("{step:4} {:8.1} {:8.1}", resident("VmRSS:"), resident("VmHWM:"));
        }
    }
}

fn main() {
    policy::keep_freed_memory();
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    if words == ["memory"] {
        return works().iter().filter(|work| work.name.contains("SmolLM2-135M training")).for_each(memory);
    }
    let python = std::env::var("PEER_PYTHON").ok();
    println!("| work, f32, {THREADS} threads | ours, tokens/s | PyTorch, tokens/s | ratio | ours, of the peak |");
    println!("| --- | --- | --- | --- | --- |");
    for work in works().iter().filter(|work| words.iter().all(|word| work.name.contains(word.as_str()))) {
        measure(work, python.as_deref());
    }
}
