//! What a task says never changes without its environment's epoch: digests of the first thousand of each split.

use std::fmt::Write as _;

use rayon::prelude::*;
use starpo::env::EnvConfig;
use starpo::trajectory::Split;

use super::{SPLITS, dynamics, examples};
use crate::golden;

/// The digest of what the first thousand tasks of a split show first, rules and actions included.
fn digest(env: &EnvConfig, split: Split) -> String {
    let first = |index| {
        let episode = env.start(split, index, dynamics(0));
        format!("{}\n{}\n", episode.observe(), episode.actions().join(" || "))
    };
    let texts: Vec<String> = (0..1000).into_par_iter().map(first).collect();
    let mut hasher = blake3::Hasher::new();
    hasher.update(env.instruction().as_bytes());
    texts.iter().for_each(|text| _ = hasher.update(text.as_bytes()));
    hasher.finalize().to_hex()[..32].to_owned()
}

/// `golden/epochs.kdl` holds these goldens to the epochs.
#[test]
fn texts_of_tasks_stay() {
    for name in EnvConfig::NAMES {
        let mut out = String::from("# BLAKE3 of the rules and the first 1000 tasks as they are shown\n\n");
        writeln!(out, "example {:32} eval", "train").unwrap();
        for (number, env) in examples().iter().filter(|env| env.name() == *name).enumerate() {
            let [train, eval] = SPLITS.map(|split| digest(env, split));
            writeln!(out, "{:7} {train} {eval}", number + 1).unwrap();
        }
        golden("env", &format!("{name}-tasks"), &out);
    }
}
