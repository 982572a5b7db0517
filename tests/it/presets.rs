//! The recipes of `configs/algorithm/`: each trains three steps, and survives a kill.

use starpo::experiment::EMBEDDED;

use crate::learners::survives_a_kill;
use crate::run::resolve_nodes;

const SMALL: [&str; 9] = [
    "warm-start=none",
    "steps=3",
    "groups=3",
    "group-size=4",
    "max-turns=3",
    "update.mini-batch=6",
    "eval.tasks=2",
    "checkpoint-every=1",
    "update.learning-rate=1e-2",
];

fn presets() -> Vec<&'static str> {
    let name = |(path, _): &(&'static str, &str)| path.strip_prefix("configs/algorithm/")?.strip_suffix(".kdl");
    EMBEDDED.iter().filter_map(name).collect()
}

fn run(preset: &str, overrides: &[&str]) -> Vec<serde_json::Value> {
    let tasks = "task \"bandit\" { chance 0.5; share 2 }; task \"sokoban\"";
    let nodes = format!("use \"model/tiny\"; use \"algorithm/{preset}\"; {tasks}");
    survives_a_kill(&resolve_nodes(&nodes, &[&SMALL[..], overrides].concat()))
}

#[test]
fn every_preset_trains_three_steps_and_survives() {
    assert_eq!(presets().len(), 11);
    for preset in presets() {
        let lines = run(preset, &[]);
        let learnt = lines.iter().any(|line| line["update"]["grad_norm"].as_f64().is_some_and(|norm| norm > 0.0));
        assert!(learnt, "{preset}");
        let mismatch = lines.iter().filter_map(|line| line["rollout"]["logprob_mismatch_max"].as_f64());
        assert!(mismatch.clone().count() == 3 && mismatch.clone().all(|gap| gap == 0.0), "{preset}");
    }
}

#[test]
fn a_critic_in_every_window_survives() {
    for window in ["full", "limited", "single-turn"] {
        let lines = run("ragen-ppo", &[&format!("rollout.window={window}")]);
        assert!(lines[3]["critic"]["loss"].as_f64().is_some_and(f64::is_finite), "{window}");
    }
}

#[test]
fn the_kl_in_the_reward_adapts_and_survives() {
    let adaptive = ["reward.kl=adaptive", "reward.kl.coef=0.1", "reward.kl.target=1e-4", "reward.kl.horizon=100"];
    let coefs: Vec<f64> = run("rloo", &adaptive).iter().filter_map(|line| line["reward"]["kl_coef"].as_f64()).collect();
    assert!(coefs.len() == 3 && coefs[0] != coefs[2], "{coefs:?}");
}
