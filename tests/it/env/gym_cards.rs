//! GymCards' environments: their rules by hand, and the golden transcripts.

use std::fmt::Write;

use starpo::env::blackjack::Blackjack;
use starpo::env::ez_points::EzPoints;
use starpo::env::number_line::NumberLine;
use starpo::env::points24::Points24;
use starpo::env::{EnvConfig, Environment, Episode, Outcome, Step};
use starpo::trajectory::Split;

use super::{by_expert, by_script, dynamics};
use crate::golden;

const POINTS24: Points24 = Points24 { target: 24, solvable: true };
const BLACKJACK: Blackjack = Blackjack { shared_deck: false };

pub(super) fn examples() -> Vec<EnvConfig> {
    vec![
        EnvConfig::NumberLine(NumberLine { size: 5 }),
        EnvConfig::EzPoints(EzPoints { target: 12 }),
        EnvConfig::Points24(POINTS24),
        EnvConfig::Blackjack(BLACKJACK),
    ]
}

fn step(reward: f64, effective: bool, outcome: Option<Outcome>) -> Step {
    Step { reward, effective, outcome }
}

/// The first training task that shows `text`.
fn task(env: &dyn Environment, text: &str) -> Box<dyn Episode> {
    let mut tasks = (0..1000).map(|index| env.start(Split::Train, index, dynamics(0)));
    tasks.find(|episode| episode.observe().contains(text)).unwrap()
}

#[test]
fn a_step_that_comes_no_closer_costs_a_point() {
    let mut walk = task(&NumberLine { size: 5 }, "Target: 3\nPosition: 1");
    assert_eq!(walk.act("+"), step(0.0, true, None), "closer");
    assert_eq!(walk.act("-"), step(-1.0, true, None), "away");
    walk.act("-");
    assert_eq!(walk.act("-"), step(-1.0, false, None), "the edge");
    walk.act("+");
    walk.act("+");
    assert_eq!(walk.act("+"), step(1.0, true, Some(Outcome::Solved)), "there");
}

#[test]
fn formulas_are_written_by_tokens_and_judged_at_the_end() {
    let write = |tokens: &str| {
        let mut episode = task(&EzPoints { target: 12 }, "2, 10");
        tokens.split(' ').map(|token| episode.act(&episode.understand(token).unwrap())).last().unwrap()
    };
    assert_eq!(write("2 + 10 ="), step(10.0, true, Some(Outcome::Solved)));
    assert_eq!(write("2 * 10 ="), step(0.0, true, Some(Outcome::Failed)), "another value");
    assert_eq!(write("2 ="), step(0.0, true, Some(Outcome::Failed)), "a card is left");
    assert_eq!(write("2 + 2"), step(0.0, false, None), "a card that is used");
    assert_eq!(write("+"), step(0.0, false, None), "an operator without a number");
    assert_eq!(write("2 + + 10 + ="), step(10.0, true, Some(Outcome::Solved)), "what cannot stand is not written");
    let episode = task(&EzPoints { target: 12 }, "2, 10");
    assert_eq!(episode.actions(), ["2", "10"]);
    for none in ["3", "-", "(", "", "2 + 10", "12", "２"] {
        assert_eq!(episode.understand(none), None, "{none}");
    }
}

#[test]
fn only_some_hands_make_24_unless_all_are_dealt() {
    let any = Points24 { solvable: false, ..POINTS24 };
    let unsolved =
        |env: &dyn Environment| (0..200).filter(|&index| env.shortest(Split::Train, index).is_empty()).count();
    assert_eq!(unsolved(&POINTS24), 0);
    assert!((20..80).contains(&unsolved(&any)), "{}", unsolved(&any));
}

#[test]
fn the_dealer_keeps_a_small_edge_over_basic_strategy() {
    let play = |member: u64| {
        let mut episode = BLACKJACK.start(Split::Train, member, dynamics(member));
        loop {
            let action = episode.expert(9).unwrap().actions.remove(0);
            let step = episode.act(&action);
            assert_eq!(step.outcome == Some(Outcome::Solved), step.reward == 1.0);
            assert!(step.outcome.is_some() || step.reward == 0.0);
            if step.outcome.is_some() {
                return step.reward;
            }
        }
    };
    let rewards: Vec<f64> = (0..20_000).map(play).collect();
    let mean = rewards.iter().sum::<f64>() / 20_000.0;
    // Over all deals −0.047; the training ones are seven in eight of them.
    assert!((-0.08..-0.01).contains(&mean), "{mean}");
    assert!(rewards.contains(&-1.0) && rewards.contains(&0.0), "not floored");
    assert!(!BLACKJACK.shared_dynamics() && Blackjack { shared_deck: true }.shared_dynamics());
}

#[test]
fn number_line_reads_like_this() {
    let env = NumberLine { size: 5 };
    let mut out = format!("# Number line\n\n{}\n\n", env.instruction());
    by_expert(&mut out, &env, Split::Train, 1);
    by_script(&mut out, &env, Split::Train, 1, &["+", "-", "-", "-", "+", "+", "+"]);
    by_expert(&mut out, &env, Split::Eval, 0);
    golden("env", "number-line", &out);
}

#[test]
fn ez_points_reads_like_this() {
    let env = EzPoints { target: 12 };
    let mut out = format!("# EZPoints\n\n{}\n\n", env.instruction());
    by_expert(&mut out, &env, Split::Train, 0);
    by_script(&mut out, &env, Split::Train, 0, &["+", "="]);
    by_expert(&mut out, &env, Split::Eval, 0);
    golden("env", "ez-points", &out);
}

#[test]
fn points24_reads_like_this() {
    let mut out = format!("# Points24\n\n{}\n\n", POINTS24.instruction());
    by_expert(&mut out, &POINTS24, Split::Train, 0);
    by_script(&mut out, &POINTS24, Split::Train, 0, &["(", "*", "="]);
    by_expert(&mut out, &POINTS24, Split::Eval, 1);
    writeln!(out, "## Shortest solutions of training tasks\n").unwrap();
    for index in 0..20 {
        writeln!(out, "{}", POINTS24.shortest(Split::Train, index).join(" ")).unwrap();
    }
    golden("env", "points24", &out);
}

#[test]
fn blackjack_reads_like_this() {
    let mut out = format!("# Blackjack\n\n{}\n\n", BLACKJACK.instruction());
    for index in 0..4 {
        by_expert(&mut out, &BLACKJACK, Split::Train, index);
    }
    by_script(&mut out, &BLACKJACK, Split::Train, 0, &["hit"]);
    by_expert(&mut out, &BLACKJACK, Split::Eval, 0);
    golden("env", "blackjack", &out);
}
