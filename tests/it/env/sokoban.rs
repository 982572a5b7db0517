//! Sokoban: the worked case T22 (`cases/ragen.md`), its legend, its generator, its golden.

use super::{SPLITS, act, by_expert, by_script, dynamics, first_sight, lengths};
use crate::golden;
use proptest::prelude::*;
use starpo::env::grid::Render;
use starpo::env::sokoban::Sokoban;
use starpo::env::{EnvConfig, Environment, Episode, Outcome};
use starpo::trajectory::Split;
use std::collections::BTreeSet;
use std::fmt::Write as _;

pub(super) fn sokoban(size: [usize; 2], boxes: usize, render: Render, symbols: &str) -> Sokoban {
    let symbols = symbols.chars().map(String::from).collect();
    Sokoban { size: size.to_vec(), boxes, max_steps: 100, search_depth: 300, render, symbols }
}

pub(super) fn one_box(render: Render) -> Sokoban {
    sokoban([6, 6], 1, render, "#_O√XPS")
}

pub(super) fn examples() -> Vec<EnvConfig> {
    vec![
        EnvConfig::Sokoban(one_box(Render::GridCoord)),
        EnvConfig::Sokoban(sokoban([8, 8], 2, Render::Grid, "W.GCBA@")),
        EnvConfig::Sokoban(sokoban([5, 7], 2, Render::Coord, "#_O√XPS")),
    ]
}

#[test]
fn the_legend_is_the_boards() {
    let env = sokoban([6, 6], 1, Render::Grid, "W.GCBA@");
    let instruction = env.instruction();
    let legend = "Symbols: W wall, . floor, G target, C box on target, B box, A player, @ player on target.";
    assert!(instruction.contains(legend), "{instruction}");
    let boards: String = (0..100).map(|index| env.start(Split::Train, index, dynamics(0)).observe()).collect();
    let shown: BTreeSet<char> = boards.chars().filter(|c| *c != '\n').collect();
    assert!(shown.is_subset(&"W.GCBA@".chars().collect()) && shown.len() >= 5, "{shown:?}");
    let plain = one_box(Render::Grid);
    assert_eq!(env.identity(Split::Train, 3), plain.identity(Split::Train, 3), "the vocabulary moves no task");
}

#[test]
fn infeasible_rooms_are_told() {
    let with = |change: fn(&mut Sokoban)| {
        let mut env = one_box(Render::Grid);
        change(&mut env);
        env.feasible().unwrap_err()
    };
    assert_eq!(with(|env| env.size = vec![6]), "size has 1 numbers, not rows and columns");
    assert_eq!(with(|env| env.boxes = 4), "boxes must be 1 to 3 for this size");
    assert!(with(|env| env.symbols[6] = "#".into()).starts_with("symbols must be seven different characters: wall,"));
    assert!(with(|env| env.symbols[1] = " ".into()).starts_with("symbols must be seven different characters"));
}

/// Worked case T22 (`cases/ragen.md`).
mod t22 {
    use super::*;

    const LEVEL: &str = "######\n#____#\n#_P__#\n#_X__#\n#_O__#\n######";

    fn play(level: &str, max_steps: usize) -> Box<dyn Episode> {
        Sokoban { max_steps, ..one_box(Render::Coord) }.play(level).unwrap()
    }

    #[test]
    fn pushing_the_box_onto_its_target_pays_10_9_and_solves() {
        let step = act(&mut *play(LEVEL, 100), "Down");
        assert_eq!((step.reward, step.effective, step.outcome), (10.9, true, Some(Outcome::Solved)));
    }

    #[test]
    fn a_walk_costs_a_tenth() {
        let step = act(&mut *play(LEVEL, 100), "Up");
        assert_eq!((step.reward, step.effective, step.outcome), (-0.1, true, None));
    }

    #[test]
    fn pushing_a_box_into_a_wall_has_no_effect() {
        let mut episode = play("######\n#__O_#\n#____#\n#_P__#\n#_X__#\n######", 100);
        let before = episode.observe();
        let step = act(&mut *episode, "Down");
        assert_eq!((step.reward, step.effective, step.outcome), (-0.1, false, None));
        assert_eq!(episode.observe(), before);
        assert_eq!(episode.expert(1), None, "no expert frees a box in a dead row");
    }

    #[test]
    fn max_steps_2_is_done_at_the_second() {
        let mut episode = play(LEVEL, 2);
        let done = ["Up", "Up"].map(|name| act(&mut *episode, name).outcome);
        assert_eq!(done, [None, Some(Outcome::Failed)]);
    }

    #[test]
    fn rewards_of_two_actions_add_up_and_leaving_a_target_costs_1() {
        let mut episode = play("######\n#_O__#\n#____#\n#_√P_#\n#_X__#\n######", 100);
        let rewards = ["Left", "Right"].map(|name| act(&mut *episode, name).reward);
        assert_eq!(rewards, [-1.1, -0.1]);
        let mut episode = play("######\n#_XO_#\n#_P__#\n######", 100);
        let sum: f64 = ["Left", "Up", "Right"].map(|name| act(&mut *episode, name).reward).iter().sum();
        assert!((sum - 10.7).abs() < 1e-12, "{sum}");
    }

    #[test]
    fn coordinates_are_row_and_column_from_zero() {
        let level = "######\n#____#\n#_S__#\n#_XO_#\n#_√_X#\n######";
        let lines = "Targets: (3, 3)\nBoxes: (3, 2), (4, 4)\nBoxes on target: (4, 2)\nPlayer on target: (2, 2)";
        assert_eq!(play(level, 100).observe(), lines);
    }

    #[test]
    fn levels_that_are_none_are_told() {
        let error = |level: &str| one_box(Render::Grid).play(level).err().unwrap();
        assert_eq!(error("###\n#P_\n###"), "the outermost cells must be walls");
        assert_eq!(error("###\n#?#\n###"), "row 1: `?` is none of # _ O √ X P S");
        assert_eq!(error("###\n##"), "row 1 has 2 cells, row 0 has 3");
        assert!(error("####\n#PX#\n####").ends_with("this has 1 players, 1 boxes, 0 targets"));
        assert!(error("").ends_with("this has 0 players, 0 boxes, 0 targets"));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn sokoban_is_total(rows in 5usize..12, columns in 5usize..12, boxes in 1usize..9, index: u64, eval: bool) {
        let boxes = 1 + (boxes - 1) % ((rows - 3) * ((columns - 2) / 3));
        let env = sokoban([rows, columns], boxes, Render::Grid, "#_O√XPS");
        prop_assert_eq!(env.feasible(), Ok(()));
        let split = SPLITS[usize::from(eval)];
        prop_assert!(env.play(&env.identity(split, index)).is_ok());
        let mut episode = env.start(split, index, dynamics(0));
        let mut outcome = None;
        for step in 0..env.max_steps {
            let Some(advice) = episode.expert(1) else { break };
            prop_assert!(step + 1 < env.max_steps || advice.actions.len() == 1);
            outcome = episode.act(&advice.actions[0]).outcome;
            if outcome.is_some() {
                break;
            }
        }
        prop_assert!(outcome.is_some(), "the expert follows a solution to its end or to the budget");
    }
}

#[test]
fn sokoban_reads_like_this() {
    let env = Sokoban { max_steps: 6, ..one_box(Render::GridCoord) };
    let mut out = format!("# Sokoban, 6x6, one box\n\n{}\n\n", env.instruction());
    by_expert(&mut out, &one_box(Render::GridCoord), Split::Train, 44);
    by_script(&mut out, &env, Split::Train, 44, &["Up", "Left", "Down", "Right"]);
    first_sight(&mut out, "Render grid", &one_box(Render::Grid), 44);
    first_sight(&mut out, "Render coord", &one_box(Render::Coord), 44);
    first_sight(&mut out, "Another vocabulary", &sokoban([6, 6], 1, Render::Grid, "W.GCBA@"), 44);
    writeln!(out, "# Sokoban, 8x8, two boxes\n").unwrap();
    by_expert(&mut out, &sokoban([8, 8], 2, Render::GridCoord, "#_O√XPS"), Split::Eval, 0);
    writeln!(out, "# Levels of 6x6 with one box\n").unwrap();
    lengths(&mut out, &one_box(Render::Grid));
    golden("env", "sokoban", &out);
}
