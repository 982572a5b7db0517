//! The bandit: its arms, its golden.

use super::{act, by_expert, by_script, dynamics};
use crate::golden;
use starpo::env::bandit::Bandit;
use starpo::env::{EnvConfig, Environment, Outcome};
use starpo::trajectory::Split;
use std::collections::BTreeSet;
use std::fmt::Write as _;

const BANDIT: Bandit = Bandit { low: 0.1, high: 1.0, chance: 0.25 };

pub(super) fn examples() -> Vec<EnvConfig> {
    vec![EnvConfig::Bandit(BANDIT)]
}

#[test]
fn infeasible_arms_are_told() {
    let fair = Bandit { low: 0.25, ..BANDIT };
    assert_eq!(fair.feasible().unwrap_err(), "both arms pay 0.25 on average: change low, high or chance");
}

#[test]
fn the_bandit_shows_every_pair_in_both_orders_and_pays_as_it_says() {
    for (split, tasks) in [(Split::Train, 24), (Split::Eval, 16)] {
        let names: BTreeSet<String> = (0..tasks).map(|index| BANDIT.identity(split, index)).collect();
        assert_eq!(names.len() as u64, tasks);
        let arms = |split, index| BANDIT.start(split, index, dynamics(0)).actions().to_vec();
        let first = (0..tasks)
            .filter(|&index| arms(split, index).first() == BANDIT.shortest(split, index).first())
            .count() as u64;
        assert_eq!(first * 2, tasks);
    }
    let pay = |member: u64, arm: usize| {
        let mut episode = BANDIT.start(Split::Train, 0, dynamics(member));
        let step = act(&mut *episode, ["Gardener", "Stuntman"][arm]);
        assert_eq!(step.outcome, Some([Outcome::Failed, Outcome::Solved][arm]));
        step.reward
    };
    assert!((0..100).all(|member| pay(member, 0) == 0.1));
    let paid: Vec<f64> = (0..4000).map(|member| pay(member, 1)).collect();
    assert!(paid.iter().all(|&reward| reward == 0.0 || reward == 1.0));
    assert!((paid.iter().sum::<f64>() / 4000.0 - 0.25).abs() < 0.03);
}

#[test]
fn bandit_reads_like_this() {
    let mut out = format!("# Bandit\n\n{}\n\n", BANDIT.instruction());
    by_expert(&mut out, &BANDIT, Split::Train, 0);
    by_script(&mut out, &BANDIT, Split::Train, 0, &["Gardener"]);
    by_expert(&mut out, &BANDIT, Split::Eval, 1);
    let arms = |split, index| BANDIT.start(split, index, dynamics(0)).actions().join(", ");
    for (split, tasks) in [(Split::Train, 24), (Split::Eval, 16)] {
        writeln!(out, "## Arms of the {} tasks\n", split.name()).unwrap();
        (0..tasks).for_each(|index| writeln!(out, "{index:2} {}", arms(split, index)).unwrap());
        writeln!(out).unwrap();
    }
    golden("env", "bandit", &out);
}
