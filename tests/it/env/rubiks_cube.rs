//! The cube: group theory, scrambles, its golden.

use super::{SPLITS, act, by_expert, by_script, dynamics, expert_play};
use crate::golden;
use starpo::env::rubiks_cube::RubiksCube;
use starpo::env::{EnvConfig, Environment, Outcome};
use starpo::trajectory::Split;
use std::collections::BTreeSet;
use std::fmt::Write as _;

const FACES: [&str; 6] = ["U", "D", "L", "R", "F", "B"];

fn cube(distance: usize) -> RubiksCube {
    RubiksCube { distance, max_steps: 20 }
}

pub(super) fn examples() -> Vec<EnvConfig> {
    [3, 1, 11].map(|distance| EnvConfig::RubiksCube(cube(distance))).to_vec()
}

/// What a solved cube shows after some moves.
fn shown(moves: &str) -> String {
    cube(1).play(moves).unwrap().observe()
}

/// How often a sequence must be repeated until it has changed nothing.
fn order(moves: &str) -> usize {
    (1..200).find(|&times| shown(&format!("{moves} ").repeat(times)) == shown("")).unwrap()
}

#[test]
fn generators_have_order_4_and_commutators_order_6() {
    for (a, face) in FACES.iter().enumerate() {
        assert_eq!(order(face), 4, "{face}");
        assert_eq!(shown(&format!("{face}'")), shown(&format!("{face} {face} {face}")));
        for (b, other) in FACES.iter().enumerate().filter(|(b, _)| *b != a) {
            let opposite = a / 2 == b / 2;
            let commutator = format!("{face} {other} {face}' {other}'");
            assert_eq!(order(&commutator), if opposite { 1 } else { 6 }, "{commutator}");
            assert_eq!(order(&format!("{face} {other}")), if opposite { 4 } else { 15 }, "{face} {other}");
        }
    }
    assert!(cube(1).play("U X").is_err_and(|error| error == "X is no move"));
}

#[test]
fn a_turn_moves_stickers_as_on_the_cube_in_your_hand() {
    assert_eq!(shown(""), "U: WW WW\nL: OO OO\nF: GG GG\nR: RR RR\nB: BB BB\nD: YY YY");
    assert_eq!(shown("U"), "U: WW WW\nL: GG OO\nF: RR GG\nR: BB RR\nB: OO BB\nD: YY YY");
    assert_eq!(shown("R"), "U: WG WG\nL: OO OO\nF: GY GY\nR: RR RR\nB: WB WB\nD: YB YB");
    assert_eq!(shown("F"), "U: WW OO\nL: OY OY\nF: GG GG\nR: WR WR\nB: BB BB\nD: RR YY");
}

/// The three stickers of each corner as they stand around it, clockwise from U or D.
#[test]
fn corners_stay_whole() {
    let corners = |shown: &str| -> BTreeSet<Vec<char>> {
        let face = |name: char| -> Vec<char> {
            let line = shown.lines().find(|line| line.starts_with(name)).unwrap();
            line[3..].chars().filter(|c| *c != ' ').collect()
        };
        let [up, left, front, right, back, down] = ['U', 'L', 'F', 'R', 'B', 'D'].map(face);
        let around = [
            [up[0], left[0], back[1]],
            [up[1], back[0], right[1]],
            [up[2], front[0], left[1]],
            [up[3], right[0], front[1]],
            [down[0], left[3], front[2]],
            [down[1], front[3], right[2]],
            [down[2], back[3], left[2]],
            [down[3], right[3], back[2]],
        ];
        let first = |corner: [char; 3]| {
            let start = (0..3).min_by_key(|&at| corner[at]).unwrap();
            (0..3).map(|at| corner[(start + at) % 3]).collect()
        };
        around.map(first).into_iter().collect()
    };
    let solved = corners(&shown(""));
    assert_eq!(solved.len(), 8);
    for distance in [1, 4, 9] {
        let env = cube(distance);
        (0..50).for_each(|index| assert_eq!(corners(&env.identity(Split::Train, index)), solved));
    }
}

#[test]
fn a_scramble_is_as_far_as_it_says_and_the_expert_takes_no_more() {
    for distance in 1..=14 {
        let env = cube(distance);
        assert_eq!(env.feasible(), Ok(()), "{distance}");
        for (split, index) in SPLITS.into_iter().flat_map(|split| (0..20).map(move |index| (split, index))) {
            assert_eq!(env.shortest(split, index).len(), distance);
        }
        let most = 1 + distance % 4;
        assert_eq!(expert_play(&EnvConfig::RubiksCube(env), Split::Eval, 0, most), Some(distance));
    }
    assert!(RubiksCube { distance: 5, max_steps: 4 }.feasible().is_err());
}

#[test]
fn a_solved_cube_pays_1_and_a_spent_budget_fails() {
    let mut episode = cube(1).play("R U").unwrap();
    let rewards = ["U'", "R'"].map(|turn| act(&mut *episode, turn)).map(|step| (step.reward, step.outcome));
    assert_eq!(rewards, [(0.0, None), (1.0, Some(Outcome::Solved))]);
    let mut episode = RubiksCube { distance: 1, max_steps: 2 }.play("R U").unwrap();
    assert_eq!(["F", "F"].map(|turn| act(&mut *episode, turn).outcome), [None, Some(Outcome::Failed)]);
    // Turned as a whole it is solved, too.
    assert_eq!(act(&mut *cube(1).play("U").unwrap(), "D'").outcome, Some(Outcome::Solved));
    assert_eq!(act(&mut *cube(1).play("L").unwrap(), "R").outcome, None);
}

#[test]
fn rubiks_cube_reads_like_this() {
    let mut out = format!("# Rubik's cube, three turns away\n\n{}\n\n", cube(3).instruction());
    by_expert(&mut out, &cube(3), Split::Train, 0);
    by_script(&mut out, &RubiksCube { distance: 3, max_steps: 4 }, Split::Train, 0, &["U", "F'", "B", "D"]);
    writeln!(out, "# Fourteen turns away, the farthest\n").unwrap();
    by_expert(&mut out, &cube(14), Split::Eval, 0);
    writeln!(out, "# First solution of a train task at each distance\n").unwrap();
    for distance in 1..=14 {
        let advice = cube(distance).start(Split::Train, 0, dynamics(0)).expert(99).unwrap();
        writeln!(out, "{}", advice.thought).unwrap();
    }
    golden("env", "rubiks-cube", &out);
}
