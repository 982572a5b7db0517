//! Countdown: the worked case T23 (`cases/ragen.md`), tasks from a file, its golden.

use super::{SPLITS, act, by_expert, by_script, dynamics};
use crate::golden;
use starpo::env::countdown::{Countdown, Operators};
use starpo::env::{EnvConfig, Environment, Outcome};
use starpo::experiment;
use starpo::trajectory::Split;
use std::collections::BTreeSet;
use std::fmt::Write as _;

fn countdown(numbers: &[usize], high: usize, targets: [usize; 2], operators: Operators) -> Countdown {
    Countdown { numbers: numbers.to_vec(), high, targets: targets.to_vec(), operators, file: None }
}

fn usual() -> Countdown {
    countdown(&[3, 4], 99, [10, 100], Operators::All)
}

pub(super) fn examples() -> Vec<EnvConfig> {
    vec![
        EnvConfig::Countdown(usual()),
        EnvConfig::Countdown(countdown(&[3], 9, [1, 20], Operators::Sums)),
        EnvConfig::Countdown(countdown(&[2, 5], 30, [0, 500], Operators::All)),
    ]
}

/// Worked case T23 (`cases/ragen.md`).
#[test]
fn t23_expressions_pay_1_a_tenth_or_nothing() {
    let pay = |target: u32, expression: &str| {
        let step = act(&mut *usual().play(&[3, 5, 2], target), expression);
        (step.reward, step.outcome)
    };
    let (solved, failed) = (Some(Outcome::Solved), Some(Outcome::Failed));
    assert_eq!(pay(4, "2 + 5 - 3"), (1.0, solved));
    assert_eq!(pay(5, "2 + 5 - 3"), (0.1, failed));
    assert_eq!(pay(7, "2 + 5"), (0.0, failed), "a number is missing");
    assert_eq!(pay(7, "2 + 5 + 3 - 3"), (0.0, failed), "a number is used twice");
    assert_eq!(pay(4, "(2 + 5 - 3) / 1"), (0.0, failed), "a number is not given");
    assert_eq!(pay(4, "5 / (2 - 3 + 1)"), (0.0, failed));
    assert_eq!(pay(4, "2/(3-5)"), (0.1, failed));
    let solution = |target, operators| countdown(&[3], 9, [0, 99], operators).solution(&[3, 5, 2], target);
    assert!(solution(4, Operators::Sums).is_some());
    assert_eq!(solution(30, Operators::Sums), None);
    assert_eq!(solution(30, Operators::All).as_deref(), Some("2 * 3 * 5"));
}

#[test]
fn values_are_exact() {
    let reward = |nums: &[u32], target, expression: &str| act(&mut *usual().play(nums, target), expression).reward;
    assert_eq!(reward(&[8, 3, 8, 3], 24, "8 / (3 - 8 / 3)"), 1.0);
    assert_eq!(reward(&[1, 3, 3], 1, "1 / 3 * 3"), 1.0);
    assert_eq!(reward(&[5, 5, 7], 7, "7 / (5 - 5)"), 0.1, "no value is a miss");
    let solution = usual().solution(&[8, 3, 8, 3], 24).unwrap();
    assert_eq!(reward(&[8, 3, 8, 3], 24, &solution), 1.0);
}

/// A run's task in a project that has this file.
fn task(lines: &str) -> Result<EnvConfig, String> {
    let project = tempfile::tempdir().unwrap();
    std::fs::create_dir(project.path().join("experiments")).unwrap();
    std::fs::write(project.path().join("tasks.jsonl"), lines).unwrap();
    let body = "experiment \"x\" { extends \"base\"; task \"countdown\" { file (file)\"tasks.jsonl\" } }";
    std::fs::write(project.path().join("experiments/x.kdl"), body).unwrap();
    let run = experiment::resolve("x", &[], project.path()).map_err(|error| error.to_string())?;
    let again = experiment::from_lock(&run.lock()).unwrap();
    assert_eq!(again.config.task, run.config.task, "the lock holds the tasks");
    Ok(run.config.task[0].env.clone())
}

#[test]
fn tasks_of_a_file_are_played_in_its_order_and_their_splits_are_disjoint() {
    let mut lines = String::from("{\"target\": 98, \"nums\": [44, 19, 35], \"extra\": 1}\n\n");
    (11..90).for_each(|n| writeln!(lines, "{{\"nums\": [{n}, 3, 2], \"target\": {}}}", n + 1).unwrap());
    (11..90).for_each(|n| writeln!(lines, "{{\"nums\": [2, {n}, 3], \"target\": {}}}", n + 1).unwrap());
    writeln!(lines, "{{\"nums\": [1, 1, 1], \"target\": 90}}").unwrap();
    let env = task(&lines).unwrap();
    let names = |split| (0..400).map(|index| env.identity(split, index)).collect::<BTreeSet<_>>();
    let (train, eval) = (names(Split::Train), names(Split::Eval));
    assert!(train.is_disjoint(&eval) && eval.len() > 3, "whatever the order of a task's numbers");
    assert_eq!(train.len() + eval.len(), 80, "what has no solution is not played");
    assert!(SPLITS.iter().any(|&split| env.identity(split, 0) == "98 from 19, 35, 44"));
    assert_eq!(env.start(Split::Train, 1, dynamics(0)).expert(1).unwrap().actions.len(), 1);
}

#[test]
fn files_that_cannot_be_played_are_told() {
    let error = |lines: &str| task(lines).unwrap_err();
    assert!(error("{\"nums\": [1, 2]}").contains("file, line 1: missing field `target`"));
    assert!(error("").contains("no puzzle of these falls into the train split"));
    assert_eq!(countdown(&[3], 9, [5, 4], Operators::All).feasible().unwrap_err().split(' ').next(), Some("targets"));
    assert!(countdown(&[2], 3, [1000, 2000], Operators::All).feasible().is_err());
}

#[test]
fn countdown_reads_like_this() {
    let env = usual();
    let mut out = format!("# Countdown, three or four numbers up to 99\n\n{}\n\n", env.instruction());
    by_expert(&mut out, &env, Split::Train, 0);
    by_expert(&mut out, &env, Split::Eval, 1);
    let all_up = env.start(Split::Train, 0, dynamics(0)).actions()[0].clone();
    by_script(&mut out, &env, Split::Train, 0, &[&all_up]);
    writeln!(out, "## Tasks of the train split, solved\n").unwrap();
    for index in 0..20 {
        let advice = env.start(Split::Train, index, dynamics(0)).expert(1).unwrap();
        writeln!(out, "{:24} {}", env.identity(Split::Train, index), advice.actions[0]).unwrap();
    }
    let small = countdown(&[3], 9, [1, 20], Operators::Sums);
    writeln!(out, "\n# Three numbers up to 9, sums only\n").unwrap();
    by_expert(&mut out, &small, Split::Train, 0);
    writeln!(out, "# Training tasks of 300 that adding all up solves\n").unwrap();
    for env in [&env, &small] {
        let rewards = (0..300).map(|index| {
            let mut episode = env.start(Split::Train, index, dynamics(0));
            let guess = episode.actions()[0].clone();
            act(&mut *episode, &guess).reward
        });
        let solved = rewards.filter(|&reward| reward == 1.0).count();
        writeln!(out, "{solved:3} with numbers up to {}", env.high).unwrap();
    }
    golden("env", "countdown", &out);
}
