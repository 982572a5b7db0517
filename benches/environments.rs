//! Steps of environments, each with the text of the state after it, and new tasks, on one thread: medians, in turns
//! with gym-sokoban and gymnasium within one run.
//!
//! ```text
//! cargo bench --bench environments                                # ours alone
//! PEER_PYTHON=venv/bin/python cargo bench --bench environments    # beside a Python with gym-sokoban and gymnasium
//! ```
#![expect(clippy::disallowed_methods, clippy::print_stdout, reason = "a benchmark reads the clock and prints")]

use std::hint::black_box;
use std::process::Command;
use std::time::{Duration, Instant};

use starpo::env::EnvConfig;
use starpo::env::frozen_lake::FrozenLake;
use starpo::env::game_2048::Game2048;
use starpo::env::grid::Render;
use starpo::env::sokoban::Sokoban;
use starpo::rng::Stream;
use starpo::trajectory::Split;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Measurements of each kind, of which the median counts.
const ROUNDS: usize = 7;
const STEPS: usize = 200_000;
/// Actions after which an episode is left.
const LONGEST: usize = 100;
/// Tasks that steps are taken in.
const EPISODES: u64 = 256;
const TASKS: u64 = 1_000;

fn sokoban(render: Render) -> EnvConfig {
    let symbols = ["#", "_", "O", "√", "X", "P", "S"].map(String::from).to_vec();
    EnvConfig::Sokoban(Sokoban { size: vec![6, 6], boxes: 1, max_steps: LONGEST, search_depth: 300, render, symbols })
}

fn lake(render: Render) -> EnvConfig {
    EnvConfig::FrozenLake(FrozenLake { size: 4, holes: 0.1, slip: 0.0, render, shared_ice: false })
}

/// Steps a second of random play. New tasks are not counted.
fn steps(env: &EnvConfig) -> f64 {
    let (mut taken, mut spent) = (0, Duration::ZERO);
    let mut draws = Stream::new("bench", 1, &[]);
    for index in (0..EPISODES).cycle() {
        let mut episode = env.start(Split::Train, index, Stream::new("dynamics", 1, &[taken as u64]));
        let actions: Vec<String> = (0..LONGEST).map(|_| draws.pick(episode.actions()).clone()).collect();
        let start = Instant::now();
        for action in &actions {
            let step = episode.act(action);
            black_box(episode.observe());
            taken += 1;
            if step.outcome.is_some() {
                break;
            }
        }
        spent += start.elapsed();
        if taken >= STEPS {
            break;
        }
    }
    taken as f64 / spent.as_secs_f64()
}

/// New tasks a second.
fn tasks(env: &EnvConfig) -> f64 {
    let start = Instant::now();
    for index in 0..TASKS {
        black_box(env.start(Split::Train, index, Stream::new("dynamics", 1, &[index])).observe());
    }
    TASKS as f64 / start.elapsed().as_secs_f64()
}

/// What `benches/peer/environments.py` measures under that name.
fn peer(python: &str, name: &str) -> f64 {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/peer/environments.py");
    let output = Command::new(python).args([script, name]).output().expect("PEER_PYTHON is a Python");
    let text = String::from_utf8_lossy(&output.stdout);
    // gym-sokoban prints what goes wrong on the way.
    let last = text.lines().last().unwrap_or_default();
    last.parse().unwrap_or_else(|_| panic!("{text}{}", String::from_utf8_lossy(&output.stderr)))
}

fn median(mut rates: Vec<f64>) -> f64 {
    rates.sort_by(f64::total_cmp);
    rates[rates.len() / 2]
}

fn main() {
    let python = std::env::var("PEER_PYTHON").ok();
    let game = EnvConfig::Game2048(Game2048 { goal: 2048, log_reward: true, illegal: -0.1, shared_tiles: false });
    type Measure = fn(&EnvConfig) -> f64;
    let rows: [(&str, EnvConfig, Measure, f64, Option<&str>); 6] = [
        ("sokoban 6×6, grid: steps", sokoban(Render::Grid), steps, 5e5, Some("sokoban-steps")),
        ("sokoban 6×6, grid-coord: steps", sokoban(Render::GridCoord), steps, 5e5, None),
        ("frozen-lake 4×4, grid: steps", lake(Render::Grid), steps, 1e6, Some("frozen-lake-steps")),
        ("frozen-lake 4×4, grid-coord: steps", lake(Render::GridCoord), steps, 1e6, None),
        ("2048: steps", game, steps, 5e5, None),
        ("sokoban 6×6: tasks", sokoban(Render::Grid), tasks, 2e3, Some("sokoban-tasks")),
    ];
    println!("| one thread | ours, a second | goal | peer, a second | ours / peer |\n| --- | --- | --- | --- | --- |");
    for (name, env, measure, goal, peers) in rows {
        let peers = peers.and_then(|peers| Some((python.as_deref()?, peers)));
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            ours.push(measure(&env));
            theirs.extend(peers.map(|(python, name)| peer(python, name)));
        }
        let ours = median(ours);
        let beside = match theirs.is_empty() {
            true => "– | –".to_owned(),
            false => Some(median(theirs)).map_or_else(String::new, |peer| format!("{peer:.0} | {:.0}", ours / peer)),
        };
        println!("| {name} | {ours:.0} | {goal:.0} | {beside} |");
    }
}
