//! Environments: contracts that walk the registry, and what the files below share.
#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests")]

use crate::golden;
use starpo::env::{EnvConfig, Environment, Episode, Outcome, Step};
use starpo::rng::Stream;
use starpo::trajectory::Split;
use std::collections::BTreeSet;
use std::fmt::Write as _;

mod bandit;
mod countdown;
mod frozen_lake;
mod game_2048;
mod gym_cards;
mod hostile;
mod math;
mod parts;
mod rubiks_cube;
mod sokoban;
mod sudoku;
mod tasks;

const SPLITS: [Split; 2] = [Split::Train, Split::Eval];

/// Configurations of every environment, the defaults of `configs/base.kdl` first.
fn examples() -> Vec<EnvConfig> {
    [
        sokoban::examples(),
        frozen_lake::examples(),
        bandit::examples(),
        countdown::examples(),
        game_2048::examples(),
        sudoku::examples(),
        rubiks_cube::examples(),
        gym_cards::examples(),
        math::examples(),
    ]
    .concat()
}

/// Whether what happens in an episode is decided by its actions and its task.
fn certain(env: &EnvConfig) -> bool {
    let seen = |index: u64, member: u64| {
        let mut episode = env.start(Split::Train, index, dynamics(member));
        let mut choices = Stream::new("choices", 3, &[index]);
        let mut seen = vec![(episode.observe(), None)];
        while seen.len() < 30 && seen.last().is_some_and(|(_, outcome)| outcome.is_none()) {
            let action = choices.pick(episode.actions()).clone();
            let outcome = episode.act(&action).outcome;
            seen.push((episode.observe(), outcome));
        }
        seen
    };
    (0..20).all(|index| seen(index, 0) == seen(index, 1))
}

pub(crate) fn dynamics(member: u64) -> Stream {
    Stream::new("dynamics", 1, &[member])
}

/// Up to 30 random actions of an episode.
fn random_play(env: &EnvConfig, index: u64, member: u64) -> String {
    let mut episode = env.start(Split::Train, index, dynamics(member));
    let mut choices = Stream::new("choices", 1, &[index, member]);
    let mut text = episode.observe();
    for _ in 0..30 {
        let action = choices.pick(episode.actions()).clone();
        let step = episode.act(&action);
        write!(text, "\n{action} {step:?}\n{}", episode.observe()).unwrap();
        if step.outcome.is_some() {
            break;
        }
    }
    text
}

#[test]
fn every_name_has_an_example_and_every_example_is_feasible() {
    let named: BTreeSet<&str> = examples().iter().map(EnvConfig::name).collect();
    assert_eq!(named, EnvConfig::NAMES.iter().copied().collect());
    examples().iter().for_each(|env| assert_eq!(env.feasible(), Ok(()), "{env:?}"));
}

#[test]
fn equal_seeds_give_equal_episodes_in_any_order() {
    for env in examples() {
        let forwards: Vec<String> = (0..12).map(|i| random_play(&env, i / 3, i % 3)).collect();
        let backwards: Vec<String> = (0..12).rev().map(|i| random_play(&env, i / 3, i % 3)).collect();
        assert!(forwards.iter().eq(backwards.iter().rev()), "{env:?}");
        let first = |i: usize| env.start(Split::Train, i as u64 / 3, dynamics(i as u64 % 3)).observe();
        assert!((0..12).all(|i| first(i) == first(i - i % 3)), "members see one prompt: {env:?}");
    }
}

#[test]
fn random_play_ends_or_is_cut_and_pays_finite_rewards() {
    for env in examples() {
        let (mut played, mut index, mut choices) = (0, 0, Stream::new("choices", 2, &[]));
        while played < 10_000 {
            let mut episode = env.start(SPLITS[index as usize % 2], index, dynamics(index));
            for step in 1..=200 {
                let action = choices.pick(episode.actions()).clone();
                let did = episode.act(&action);
                played += 1;
                assert!(did.reward.is_finite());
                let advice = (played % 64 == 0).then(|| episode.expert(3)).flatten();
                assert!(advice.is_none_or(|advice| did.outcome.is_none() && (1..=3).contains(&advice.actions.len())));
                if did.outcome.is_some() {
                    break;
                }
                assert!(step < 100 || !matches!(env, EnvConfig::Sokoban(_)), "past its own budget");
            }
            index += 1;
        }
    }
}

/// Follows the expert, `most` actions at a time: how many it took, if it succeeded.
fn expert_play(env: &EnvConfig, split: Split, index: u64, most: usize) -> Option<usize> {
    let mut episode = env.start(split, index, dynamics(0));
    let mut taken = 0;
    loop {
        let advice = episode.expert(most)?;
        assert!(advice.thought.chars().count() <= 120 && !advice.thought.contains('\n'), "{}", advice.thought);
        assert!(!advice.actions.is_empty() && advice.actions.len() <= most);
        for action in advice.actions {
            taken += 1;
            match episode.act(&action).outcome {
                Some(outcome) => return (outcome == Outcome::Solved).then_some(taken),
                None => assert!(taken < 1000),
            }
        }
    }
}

#[test]
fn experts_solve_every_task_in_the_shortest_way() {
    for env in examples().into_iter().filter(certain) {
        for (split, index) in SPLITS.into_iter().flat_map(|split| (0..300).map(move |index| (split, index))) {
            let shortest = env.shortest(split, index).len();
            assert!(shortest > 0);
            let most = 1 + index as usize % 3;
            assert_eq!(expert_play(&env, split, index, most), Some(shortest), "{} {index} of {env:?}", split.name());
        }
    }
}

#[test]
fn splits_are_disjoint() {
    let mut out =
        String::from("# Distinct tasks among the first 300 of each split; no task is in both\n\ntrain eval\n");
    for env in examples() {
        let set = |split| (0..300).map(|index| env.identity(split, index)).collect::<BTreeSet<_>>();
        let (train, eval) = (set(Split::Train), set(Split::Eval));
        assert!(train.is_disjoint(&eval), "{env:?}");
        writeln!(out, "{:5} {:4} {env:?}", train.len(), eval.len()).unwrap();
    }
    golden("env", "splits", &out);
}

/// Every word of every action stands in the prompt.
#[test]
fn prompts_name_every_action() {
    for env in examples() {
        let instruction = env.instruction();
        let words = instruction.split_whitespace().count();
        assert!((40..=100).contains(&words), "{words} words: {instruction}");
        let episode = env.start(Split::Eval, 7, dynamics(0));
        let prompt = format!("{instruction}\n{}", episode.observe());
        let mut named = episode.actions().iter().flat_map(|action| action.split_whitespace());
        assert!(named.all(|word| prompt.contains(word)), "{prompt}");
    }
}

fn act(episode: &mut dyn Episode, name: &str) -> Step {
    let action = episode.understand(name).unwrap();
    episode.act(&action)
}

/// An episode as a document: what is seen, thought and done.
fn transcript(
    out: &mut String,
    episode: &mut dyn Episode,
    mut choose: impl FnMut(&dyn Episode) -> (String, Vec<String>),
) {
    writeln!(out, "{}", episode.observe()).unwrap();
    loop {
        let (thought, actions) = choose(episode);
        writeln!(out, "\n> {thought}").unwrap();
        for action in actions {
            let step = act(episode, &action);
            let effect = if step.effective { "" } else { ", no effect" };
            writeln!(out, "> {action}: reward {:.1}{effect}", step.reward).unwrap();
            if let Some(outcome) = step.outcome {
                writeln!(out, "{}\nend: {outcome:?}\n", episode.observe()).unwrap();
                return;
            }
        }
        writeln!(out, "{}", episode.observe()).unwrap();
    }
}

fn by_expert(out: &mut String, env: &dyn Environment, split: Split, index: u64) {
    writeln!(out, "## {} task {index}, by the expert\n", split.name()).unwrap();
    transcript(out, &mut *env.start(split, index, dynamics(0)), |episode| {
        let advice = episode.expert(2).unwrap();
        (advice.thought, advice.actions)
    });
}

fn by_script(out: &mut String, env: &dyn Environment, split: Split, index: u64, script: &[&str]) {
    writeln!(out, "## {} task {index}, by fixed actions\n", split.name()).unwrap();
    let mut script = script.iter().cycle();
    transcript(out, &mut *env.start(split, index, dynamics(0)), |_| {
        ("(fixed)".into(), script.by_ref().take(2).map(|&name| name.to_owned()).collect())
    });
}

fn first_sight(out: &mut String, title: &str, env: &dyn Environment, index: u64) {
    let seen = env.start(Split::Train, index, dynamics(0)).observe();
    writeln!(out, "## {title}\n\n{}\n\n{seen}\n", env.instruction()).unwrap();
}

/// How many of 300 training tasks have each shortest length.
fn lengths(out: &mut String, env: &dyn Environment) {
    let lengths: Vec<usize> = (0..300).map(|index| env.shortest(Split::Train, index).len()).collect();
    let distinct: BTreeSet<String> = (0..300).map(|index| env.identity(Split::Train, index)).collect();
    writeln!(out, "## Shortest solutions of 300 training tasks ({} distinct)\n\nmoves tasks", distinct.len()).unwrap();
    for length in 1..=*lengths.iter().max().unwrap() {
        writeln!(out, "{length:5} {:5}", lengths.iter().filter(|l| **l == length).count()).unwrap();
    }
    writeln!(out, "mean  {:5.2}", lengths.iter().sum::<usize>() as f64 / 300.0).unwrap();
}
