//! Logits of a model folder against those that `benches/peer/logits.py` wrote:
//! `cargo bench --bench logits -- FOLDER OUT [MOST]`, where a difference above MOST is an error.
#![expect(clippy::print_stdout, reason = "it prints what it measures")]

use std::path::Path;

use safetensors::SafeTensors;
use starpo::policy::{self, ModelFolder, Transformer};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    let paths: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    // `cargo bench` alone has nothing to compare.
    let [folder, expected, most @ ..] = paths.as_slice() else { return };
    let most: f32 = most.first().map_or(f32::INFINITY, |most| most.parse().expect("a number"));
    let model = ModelFolder::read(Path::new(folder)).expect("a model folder");
    let policy = Transformer::new(model.weights, policy::device("cpu").expect("a CPU"), 1);
    let bytes = std::fs::read(expected).expect("a file");
    let file = SafeTensors::deserialize(&bytes).expect("safetensors");
    for i in 0.. {
        let Ok(ids) = file.tensor(&format!("ids.{i}")) else { break };
        let ids: Vec<u32> = ids.data().as_chunks().0.iter().map(|id| i64::from_le_bytes(*id) as u32).collect();
        let wanted = file.tensor(&format!("logits.{i}")).expect("logits of these ids");
        let wanted: Vec<f32> = wanted.data().as_chunks().0.iter().map(|x| f32::from_le_bytes(*x)).collect();
        let logits = policy.logits(&ids);
        let ours = &logits[logits.len() - wanted.len()..];
        let difference = ours.iter().zip(&wanted).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        let largest = wanted.iter().fold(0.0f32, |most, x| most.max(x.abs()));
        println!("prompt {i}: {} tokens, logits up to {largest:.1}, max |difference| {difference:.1e}", ids.len());
        assert!(difference <= most, "more than {most}");
    }
}
