//! FrozenLake: its ice, its generator, its golden.

use super::{SPLITS, act, by_expert, by_script, dynamics, expert_play, first_sight, lengths};
use crate::golden;
use proptest::prelude::*;
use starpo::env::frozen_lake::FrozenLake;
use starpo::env::grid::Render;
use starpo::env::{EnvConfig, Environment};
use starpo::trajectory::Split;
use std::fmt::Write as _;

pub(super) fn lake(size: usize, holes: f64, slip: f64, render: Render) -> FrozenLake {
    FrozenLake { size, holes, slip, render, shared_ice: false }
}

pub(super) fn examples() -> Vec<EnvConfig> {
    vec![
        EnvConfig::FrozenLake(lake(4, 0.1, 0.0, Render::GridCoord)),
        EnvConfig::FrozenLake(lake(6, 0.3, 0.2, Render::Grid)),
        EnvConfig::FrozenLake(lake(8, 0.8, 0.0, Render::Coord)),
    ]
}

#[test]
fn experts_mostly_succeed_on_slipping_ice() {
    let env = EnvConfig::FrozenLake(lake(6, 0.1, 0.2, Render::Coord));
    let solved = (0..200).filter(|&index| expert_play(&env, Split::Train, index, 1).is_some()).count();
    assert!((120..200).contains(&solved), "{solved}");
}

#[test]
fn ice_slips_to_both_sides_as_often_as_it_says_and_alike_for_equal_dynamics() {
    let env = lake(9, 0.0, 0.3, Render::Coord);
    let mut moves = std::collections::BTreeMap::<String, u32>::new();
    for index in 0..4000 {
        let mut episode = env.start(Split::Train, index % 40, dynamics(index));
        let mut twin = env.start(Split::Train, index % 40, dynamics(index));
        let before = episode.observe();
        let (step, same) = (act(&mut *episode, "Down"), act(&mut *twin, "Down"));
        assert!(step == same && episode.observe() == twin.observe());
        let player = |text: &str| -> Vec<i64> {
            let line = text.lines().find(|line| line.starts_with("Player")).unwrap();
            line.split(|c: char| !c.is_ascii_digit()).filter_map(|number| number.parse().ok()).collect()
        };
        let (from, to) = (player(&before), player(&episode.observe()));
        if (1..8).contains(&from[0]) && (1..8).contains(&from[1]) {
            *moves.entry(format!("{} {}", to[0] - from[0], to[1] - from[1])).or_default() += 1;
        }
    }
    let total = f64::from(moves.values().sum::<u32>());
    let share = |key: &str| f64::from(moves[key]) / total;
    assert_eq!(moves.len(), 3, "{moves:?}");
    assert!((share("1 0") - 0.7).abs() < 0.03 && (share("0 -1") - 0.15).abs() < 0.03, "{moves:?}");
    assert!(!env.shared_dynamics() && FrozenLake { shared_ice: true, ..env }.shared_dynamics());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn frozen_lake_is_total(size in 3usize..24, holes in 0.0f64..0.9, index: u64, eval: bool) {
        let env = lake(size, holes, 0.0, Render::Grid);
        prop_assert_eq!(env.feasible(), Ok(()));
        let split = SPLITS[usize::from(eval)];
        prop_assert!(expert_play(&EnvConfig::FrozenLake(env), split, index, 4).is_some());
    }
}

#[test]
fn frozen_lake_reads_like_this() {
    let env = lake(4, 0.1, 0.0, Render::GridCoord);
    let mut out = format!("# FrozenLake, 4x4, firm ice\n\n{}\n\n", env.instruction());
    by_expert(&mut out, &env, Split::Train, 31);
    by_script(&mut out, &env, Split::Train, 31, &["Up", "Right", "Left", "Down"]);
    first_sight(&mut out, "Render grid", &lake(4, 0.1, 0.0, Render::Grid), 31);
    first_sight(&mut out, "Render coord", &lake(4, 0.1, 0.0, Render::Coord), 31);
    writeln!(out, "# FrozenLake, 6x6, slip 0.4\n\n{}\n", lake(6, 0.2, 0.4, Render::Coord).instruction()).unwrap();
    by_expert(&mut out, &lake(6, 0.2, 0.4, Render::GridCoord), Split::Eval, 1);
    writeln!(out, "# Maps of 4x4, holes 0.1\n").unwrap();
    lengths(&mut out, &env);
    golden("env", "frozen-lake", &out);
}
