//! Sudoku: the worked case T26 (`cases/ragen.md`), unique solutions, pay, its golden.

use super::{SPLITS, act, by_expert, by_script, dynamics, expert_play};
use crate::golden;
use starpo::env::sudoku::{Feedback, Sudoku, Technique};
use starpo::env::{EnvConfig, Environment, Outcome};
use starpo::trajectory::Split;
use std::fmt::Write as _;

fn sudoku(size: usize, blanks: usize, technique: Technique) -> Sudoku {
    Sudoku { size, blanks, technique, unique: true, feedback: Feedback::Result, max_steps: 2 * blanks }
}

pub(super) fn examples() -> Vec<EnvConfig> {
    vec![
        EnvConfig::Sudoku(sudoku(4, 8, Technique::Hidden)),
        EnvConfig::Sudoku(Sudoku { feedback: Feedback::Candidates, ..sudoku(4, 10, Technique::Any) }),
        EnvConfig::Sudoku(Sudoku { unique: false, feedback: Feedback::None, ..sudoku(9, 32, Technique::Any) }),
    ]
}

const PUZZLE: &str = "1 2 3 4  3 4 1 _  2 _ _ _  4 3 2 1";

/// Worked case T26 (`cases/ragen.md`).
#[test]
fn t26_the_grammar_of_placements() {
    let episode = sudoku(9, 30, Technique::Any).start(Split::Train, 0, dynamics(0));
    let meant = |words: &str| episode.understand(words);
    for words in ["place 5 at row 2 col 3", "2,3,5", "(2,3,5)", "5 at 2,3", "place 5 at (2, 3)", "Place 5 at 2,3"] {
        assert_eq!(meant(words).as_deref(), Some("place 5 at row 2 col 3"), "{words}");
    }
    assert_eq!(meant("2, 3, 5 at").as_deref(), Some("place 2 at row 3 col 5"));
    for words in ["", "5", "5 at 2", "5 at 2,3,4", "put 5 at 2,3", "0,1,1", "1,1,10", "-1,1,1", "1.0,1,1", "1;1;1"] {
        assert_eq!(meant(words), None, "{words}");
    }
}

#[test]
fn a_cell_pays_once() {
    let mut episode = sudoku(4, 8, Technique::Any).play(PUZZLE).unwrap();
    let mut pay = |words: &str| {
        let step = act(&mut *episode, words);
        (step.reward, step.effective, step.outcome)
    };
    assert_eq!(pay("3,3,4"), (1.0, true, None));
    assert_eq!(pay("3,3,4"), (0.0, false, None), "again");
    assert_eq!(pay("1,1,2"), (-0.1, false, None), "given");
    assert_eq!(pay("3,2,4"), (-0.1, false, None), "the row has it");
    assert_eq!(pay("3,2,1"), (1.0, true, None));
    assert_eq!(pay("2,4,2"), (1.0, true, None));
    assert_eq!(pay("3,4,3"), (11.0, true, Some(Outcome::Solved)));
}

#[test]
fn changes_of_mind_earn_nothing() {
    let empty = ["_"; 16].join(" ");
    let mut episode = Sudoku { max_steps: 9, ..sudoku(4, 8, Technique::Any) }.play(&empty).unwrap();
    let rewards: Vec<f64> =
        [1, 2, 1, 2, 3, 4].map(|number| act(&mut *episode, &format!("1,1,{number}")).reward).to_vec();
    assert!([0.5, 1.0].contains(&rewards[0]) && rewards[1..].iter().all(|&reward| reward == 0.0), "{rewards:?}");
    let ends = [1, 2, 1].map(|number| act(&mut *episode, &format!("1,1,{number}")).outcome);
    assert_eq!(ends, [None, None, Some(Outcome::Failed)], "the budget ends it");
}

#[test]
fn refusals_say_why() {
    let mut episode = sudoku(4, 8, Technique::Any).play(PUZZLE).unwrap();
    let mut last = |words: &str| {
        act(&mut *episode, words);
        episode.observe().lines().last().unwrap().to_owned()
    };
    assert_eq!(last("1,1,2"), "Last: place 2 at row 1 col 1: refused, that cell is given");
    assert_eq!(last("3,3,2"), "Last: place 2 at row 3 col 3: refused, its row has a 2");
    assert_eq!(last("3,4,4"), "Last: place 4 at row 3 col 4: refused, its column has a 4");
    assert_eq!(last("3,2,1"), "Last: place 1 at row 3 col 2: done");
    let error = |cells: &str| sudoku(4, 8, Technique::Any).play(cells).err().unwrap();
    assert_eq!(error("1 2"), "2 cells, not 16");
    assert_eq!(error("1 1 _ _ _ _ _ _ _ _ _ _ _ _ _ _"), "cell 1: 1 does not fit");
    assert_eq!(error("1 2 3 _ _ _ _ 4 _ _ _ _ _ _ _ _"), "no solution was found");
}

#[test]
fn infeasible_puzzles_are_told() {
    let easy = sudoku(4, 8, Technique::Hidden);
    assert!(Sudoku { size: 5, ..easy.clone() }.feasible().unwrap_err().starts_with("size 5 is none"));
    assert_eq!(Sudoku { blanks: 11, ..easy.clone() }.feasible().unwrap_err(), "blanks must be 1 to 10 for this size");
    assert!(Sudoku { max_steps: 7, ..easy.clone() }.feasible().unwrap_err().starts_with("max-steps 7"));
    assert!(Sudoku { unique: false, ..easy }.feasible().unwrap_err().starts_with("unique #false"));
}

/// Solutions of a board shown as text, by trying everything, at most two.
fn solutions(shown: &str, size: usize) -> usize {
    fn count(cells: &mut Vec<usize>, size: usize, found: &mut usize) {
        let side = size.isqrt();
        let clash = |cells: &[usize], at: usize, number: usize| {
            (0..size * size).any(|other| {
                let ((r, c), (s, d)) = ((at / size, at % size), (other / size, other % size));
                cells[other] == number && (r == s || c == d || (r / side == s / side && c / side == d / side))
            })
        };
        let fitting = |at: usize| (1..=size).filter(|&number| !clash(cells, at, number)).collect::<Vec<_>>();
        let open = (0..size * size).filter(|&at| cells[at] == 0).map(|at| (at, fitting(at)));
        let Some((at, numbers)) = open.min_by_key(|(_, numbers)| numbers.len()) else {
            *found += 1;
            return;
        };
        for number in numbers {
            if *found < 2 {
                cells[at] = number;
                count(cells, size, found);
            }
        }
        cells[at] = 0;
    }
    let words = shown.split_whitespace().filter(|word| !word.contains(['|', '-']));
    let mut cells: Vec<usize> = words.map(|word| word.parse().unwrap_or(0)).collect();
    let mut found = 0;
    count(&mut cells, size, &mut found);
    found
}

#[test]
fn puzzles_have_one_solution_unless_told_otherwise() {
    for (env, tasks) in [
        (sudoku(4, 8, Technique::Naked), 40),
        (sudoku(4, 10, Technique::Any), 40),
        (sudoku(9, 40, Technique::Hidden), 8),
        (sudoku(9, 50, Technique::Any), 8),
    ] {
        for (split, index) in SPLITS.into_iter().flat_map(|split| (0..tasks).map(move |index| (split, index))) {
            let shown = env.identity(split, index);
            assert_eq!(shown.matches('_').count(), env.blanks);
            assert_eq!(solutions(&shown, env.size), 1, "{shown}");
        }
    }
    let loose = Sudoku { unique: false, ..sudoku(9, 48, Technique::Any) };
    let many = (0..8).filter(|&index| solutions(&loose.identity(Split::Train, index), 9) == 2).count();
    assert!(many > 4, "{many} of 8");
}

#[test]
fn experts_need_as_many_actions_as_there_are_blanks() {
    for (env, tasks) in [
        (sudoku(9, 36, Technique::Naked), 10),
        (sudoku(9, 50, Technique::Any), 10),
        (sudoku(16, 100, Technique::Hidden), 2),
        (sudoku(16, 130, Technique::Any), 1),
    ] {
        let blanks = env.blanks;
        let env = EnvConfig::Sudoku(env);
        for (split, index) in SPLITS.into_iter().flat_map(|split| (0..tasks).map(move |index| (split, index))) {
            assert_eq!(expert_play(&env, split, index, 1 + index as usize % 3), Some(blanks), "{env:?}");
        }
    }
}

#[test]
fn the_expert_replaces_what_is_wrong() {
    let empty = ["_"; 16].join(" ");
    let mut episode = Sudoku { max_steps: 99, ..sudoku(4, 8, Technique::Any) }.play(&empty).unwrap();
    let right = episode.expert(1).unwrap().actions[0].clone();
    let wrong = episode.actions().iter().find(|a| a[7..] == right[7..] && **a != right).unwrap().clone();
    act(&mut *episode, &wrong);
    let advice = episode.expert(1).unwrap();
    assert!(advice.actions == [right] && advice.thought.ends_with("is wrong there"), "{advice:?}");
    while let Some(advice) = episode.expert(2) {
        advice.actions.iter().for_each(|action| _ = act(&mut *episode, action));
    }
    assert!(!episode.observe().contains('_'));
}

#[test]
fn sudoku_reads_like_this() {
    let env = Sudoku { blanks: 6, feedback: Feedback::Candidates, ..sudoku(4, 8, Technique::Hidden) };
    let mut out = format!("# Sudoku, 4x4\n\n{}\n\n", env.instruction());
    by_expert(&mut out, &env, Split::Train, 0);
    let script = ["place 1 at row 1 col 1", "2,1,4", "(2,2,1)", "4 at 3,3"];
    by_script(&mut out, &Sudoku { max_steps: 6, ..env.clone() }, Split::Eval, 1, &script);
    for (size, blanks) in [(9, 40), (16, 96)] {
        writeln!(out, "# Sudoku, {size}x{size}\n\n## train task 0 and where its expert begins\n").unwrap();
        let episode = sudoku(size, blanks, Technique::Hidden).start(Split::Train, 0, dynamics(0));
        let advice = episode.expert(1).unwrap();
        writeln!(out, "{}\n\n> {}\n> {}\n", episode.observe(), advice.thought, advice.actions[0]).unwrap();
    }
    golden("env", "sudoku", &out);
}
