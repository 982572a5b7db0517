//! Environments: contracts that walk the registry, the worked case T22, and the golden transcripts.
#![expect(clippy::unwrap_used, reason = "the helpers of tests are tests")]

use crate::golden;
use proptest::prelude::*;
use starpo::env::bandit::Bandit;
use starpo::env::frozen_lake::FrozenLake;
use starpo::env::grid::Render;
use starpo::env::sokoban::Sokoban;
use starpo::env::{EnvConfig, Environment, Episode, Outcome};
use starpo::rng::Stream;
use starpo::trajectory::Split;
use std::collections::BTreeSet;
use std::fmt::Write as _;

const SPLITS: [Split; 2] = [Split::Train, Split::Eval];

fn sokoban(size: [usize; 2], boxes: usize, render: Render, symbols: &str) -> Sokoban {
    let symbols = symbols.chars().map(String::from).collect();
    Sokoban { size: size.to_vec(), boxes, max_steps: 100, search_depth: 300, render, symbols }
}

fn one_box(render: Render) -> Sokoban {
    sokoban([6, 6], 1, render, "#_O√XPS")
}

fn lake(size: usize, holes: f64, slip: f64, render: Render) -> FrozenLake {
    FrozenLake { size, holes, slip, render, shared_ice: false }
}

const BANDIT: Bandit = Bandit { low: 0.1, high: 1.0, chance: 0.25 };

/// Configurations of every environment, the defaults of `configs/base.kdl` first.
fn examples() -> Vec<EnvConfig> {
    vec![
        EnvConfig::Sokoban(one_box(Render::GridCoord)),
        EnvConfig::Sokoban(sokoban([8, 8], 2, Render::Grid, "W.GCBA@")),
        EnvConfig::Sokoban(sokoban([5, 7], 2, Render::Coord, "#_O√XPS")),
        EnvConfig::FrozenLake(lake(4, 0.1, 0.0, Render::GridCoord)),
        EnvConfig::FrozenLake(lake(6, 0.3, 0.2, Render::Grid)),
        EnvConfig::FrozenLake(lake(8, 0.8, 0.0, Render::Coord)),
        EnvConfig::Bandit(BANDIT),
    ]
}

/// Whether what happens in an episode is decided by its actions and its task.
fn certain(env: &EnvConfig) -> bool {
    !matches!(env, EnvConfig::FrozenLake(lake) if lake.slip > 0.0)
}

fn dynamics(member: u64) -> Stream {
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
fn experts_mostly_succeed_on_slipping_ice() {
    let env = EnvConfig::FrozenLake(lake(6, 0.1, 0.2, Render::Coord));
    let solved = (0..200).filter(|&index| expert_play(&env, Split::Train, index, 1).is_some()).count();
    assert!((120..200).contains(&solved), "{solved}");
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

#[test]
fn prompts_name_every_action() {
    for env in examples() {
        let instruction = env.instruction();
        let words = instruction.split_whitespace().count();
        assert!((40..=100).contains(&words), "{words} words: {instruction}");
        let episode = env.start(Split::Eval, 7, dynamics(0));
        let prompt = format!("{instruction}\n{}", episode.observe());
        assert!(episode.actions().iter().all(|action| prompt.contains(action.as_str())), "{prompt}");
    }
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
fn infeasible_fields_are_told() {
    let with = |change: fn(&mut Sokoban)| {
        let mut env = one_box(Render::Grid);
        change(&mut env);
        env.feasible().unwrap_err()
    };
    assert_eq!(with(|env| env.size = vec![6]), "size has 1 numbers, not rows and columns");
    assert_eq!(with(|env| env.boxes = 4), "boxes must be 1 to 3 for this size");
    assert!(with(|env| env.symbols[6] = "#".into()).starts_with("symbols must be seven different characters: wall,"));
    assert!(with(|env| env.symbols[1] = " ".into()).starts_with("symbols must be seven different characters"));
    let fair = Bandit { low: 0.25, ..BANDIT };
    assert_eq!(fair.feasible().unwrap_err(), "both arms pay 0.25 on average: change low, high or chance");
}

fn act(episode: &mut dyn Episode, name: &str) -> starpo::env::Step {
    let action = episode.understand(name).unwrap();
    episode.act(&action)
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

    #[test]
    fn frozen_lake_is_total(size in 3usize..24, holes in 0.0f64..0.9, index: u64, eval: bool) {
        let env = lake(size, holes, 0.0, Render::Grid);
        prop_assert_eq!(env.feasible(), Ok(()));
        let split = SPLITS[usize::from(eval)];
        prop_assert!(expert_play(&EnvConfig::FrozenLake(env), split, index, 4).is_some());
    }
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
            let step = episode.act(&action);
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
