//! 2048: the worked case T25 (`cases/ragen.md`), win and loss, its golden.

use super::{act, by_expert, by_script, dynamics};
use crate::golden;
use proptest::prelude::*;
use starpo::env::game_2048::Game2048;
use starpo::env::{EnvConfig, Environment, Outcome};
use starpo::rng::Stream;
use starpo::trajectory::Split;
use std::fmt::Write as _;

const GAME: Game2048 = Game2048 { goal: 2048, log_reward: true, illegal: -0.1, shared_tiles: false };

pub(super) fn examples() -> Vec<EnvConfig> {
    vec![
        EnvConfig::Game2048(GAME),
        EnvConfig::Game2048(Game2048 { goal: 32, log_reward: false, illegal: 0.0, shared_tiles: true }),
    ]
}

/// A board with one filled row, the first.
fn row(tiles: [u32; 4]) -> [u32; 16] {
    std::array::from_fn(|cell| tiles.get(cell).copied().unwrap_or(0))
}

/// Worked case T25 (`cases/ragen.md`).
#[test]
fn t25_merges_and_their_log_rewards() {
    let mut episode = Game2048 { log_reward: false, ..GAME }.play(&row([2, 2, 4, 4]), dynamics(0)).unwrap();
    let step = act(&mut *episode, "Left");
    assert_eq!((step.reward, step.outcome), (12.0, None));
    assert!(episode.observe().starts_with("4 8 "), "{}", episode.observe());
    let reward = |tiles, action| act(&mut *GAME.play(&row(tiles), dynamics(0)).unwrap(), action).reward;
    let round = |reward: f64| (reward * 1e4).round() / 1e4;
    assert_eq!(round(reward([2, 2, 0, 0], "Right")), 0.2322);
    assert_eq!(round(reward([4, 4, 0, 0], "Right")), 0.3170);
    assert_eq!(round(reward([1024, 1024, 0, 0], "Right")), 1.1001);
    assert_eq!(reward([2, 4, 8, 16], "Left"), -0.1, "ours keeps the penalty that RAGEN's log loses");
    let lost = Game2048 { illegal: 0.0, ..GAME }.play(&row([2, 4, 8, 16]), dynamics(0));
    assert_eq!(act(&mut *lost.unwrap(), "Left").reward, 0.0);
}

#[test]
fn each_tile_merges_once_from_the_edge_that_it_slides_to() {
    let slid = |tiles, action: &str| {
        let mut episode = GAME.play(&row(tiles), dynamics(0)).unwrap();
        act(&mut *episode, action);
        let shown = episode.observe();
        shown.lines().nth(if action == "Down" { 3 } else { 0 }).unwrap().to_owned()
    };
    assert!(slid([2, 2, 2, 0], "Left").starts_with("4 2 "));
    assert!(slid([2, 2, 2, 0], "Right").ends_with(" 2 4"));
    assert!(slid([4, 2, 2, 0], "Left").starts_with("4 4 "));
    assert!(slid([2, 2, 2, 2], "Left").starts_with("4 4 "));
    assert_eq!(slid([2, 0, 4, 2], "Down"), "2 . 4 2", "below lies nothing, so the new tile lies above");
}

#[test]
fn an_illegal_move_changes_nothing_and_brings_no_tile() {
    let mut episode = GAME.play(&row([2, 4, 8, 16]), dynamics(0)).unwrap();
    let before = episode.observe();
    assert!(before.ends_with("Legal: Down\nScore: 0"), "{before}");
    let step = act(&mut *episode, "Up");
    assert_eq!((step.effective, step.outcome, episode.observe()), (false, None, before));
}

#[test]
fn a_goal_wins_and_a_stuck_board_loses() {
    let step = act(&mut *GAME.play(&row([1024, 1024, 2, 4]), dynamics(0)).unwrap(), "Left");
    assert_eq!(step.outcome, Some(Outcome::Solved));
    // One move is left, after which nothing is equal to a neighbour whatever appears in the last cell.
    let full = [8, 8, 32, 64, 16, 32, 64, 128, 8, 16, 32, 64, 16, 32, 64, 128];
    let mut episode = GAME.play(&full, dynamics(0)).unwrap();
    assert_eq!(act(&mut *episode, "Left").outcome, None, "16 lies upon 16");
    let full = [8, 8, 32, 64, 64, 128, 256, 512, 8, 16, 32, 64, 16, 32, 64, 128];
    let mut episode = GAME.play(&full, dynamics(0)).unwrap();
    assert_eq!(act(&mut *episode, "Left").outcome, Some(Outcome::Failed));
    assert!(episode.expert(1).is_none());
    assert_eq!(GAME.play(&row([2, 3, 0, 0]), dynamics(0)).err().as_deref(), Some("3 is no tile"));
    assert!(Game2048 { goal: 100, ..GAME }.feasible().is_err());
}

#[test]
fn equal_moves_meet_equal_tiles_where_they_are_shared() {
    let shown = |member| {
        let mut episode = GAME.start(Split::Train, 3, dynamics(member));
        let _ = ["Down", "Left", "Down", "Left"].map(|action| act(&mut *episode, action).reward);
        episode.observe()
    };
    assert_eq!(shown(1), shown(1));
    assert!((2..9).any(|member| shown(member) != shown(1)));
    assert!(Game2048 { shared_tiles: true, ..GAME }.shared_dynamics() && !GAME.shared_dynamics());
}

/// Whether a game is won and how many moves it took.
fn game(goal: usize, index: u64, mut choose: impl FnMut(&dyn starpo::env::Episode) -> String) -> (bool, u32) {
    let mut episode = Game2048 { goal, ..GAME }.start(Split::Train, index, dynamics(index));
    for moves in 1.. {
        let action = choose(&*episode);
        if let Some(outcome) = act(&mut *episode, &action).outcome {
            return (outcome == Outcome::Solved, moves);
        }
    }
    unreachable!("every game ends")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    /// Nothing is lost: tiles add up to what they were and what appeared, and what merged is what was paid.
    #[test]
    fn a_move_conserves_the_sum(index: u64, choices in proptest::collection::vec(0usize..4, 1..120)) {
        let mut episode = Game2048 { log_reward: false, ..GAME }.start(Split::Eval, index, dynamics(index));
        let sum = |shown: &str| shown.lines().take(4).flat_map(str::split_whitespace)
            .filter_map(|tile| tile.parse::<u32>().ok()).sum::<u32>();
        let mut score = 0.0;
        for choice in choices {
            let before = sum(&episode.observe());
            let action = episode.actions()[choice].clone();
            let legal = episode.observe().lines().nth(4).unwrap().contains(&action);
            let step = episode.act(&action);
            let gained = sum(&episode.observe()) - before;
            prop_assert_eq!(legal, step.effective);
            prop_assert_eq!(step.effective, [2, 4].contains(&gained), "gained {}", gained);
            prop_assert!(step.effective || gained == 0);
            score += step.reward.max(0.0);
            let told = format!("Score: {score}");
            prop_assert!(episode.observe().ends_with(&told));
            if step.outcome.is_some() {
                break;
            }
        }
    }
}

#[test]
fn game_2048_reads_like_this() {
    let env = Game2048 { goal: 16, ..GAME };
    let mut out = format!("# 2048, to 16\n\n{}\n\n", env.instruction());
    by_expert(&mut out, &env, Split::Train, 0);
    by_script(&mut out, &Game2048 { goal: 8, ..GAME }, Split::Eval, 1, &["Up", "Up", "Left", "Down"]);
    writeln!(out, "# Games won of 20, and mean moves\n\ngoal expert      uniform").unwrap();
    for goal in [32, 128, 512, 2048] {
        let (mut line, mut choices) = (format!("{goal:4}"), Stream::new("choices", 3, &[goal as u64]));
        let expert: Vec<_> = (0..20).map(|i| game(goal, i, |e| e.expert(1).unwrap().actions[0].clone())).collect();
        let uniform: Vec<_> = (0..20).map(|i| game(goal, i, |e| choices.pick(e.actions()).clone())).collect();
        for games in [expert, uniform] {
            let moves = f64::from(games.iter().map(|game| game.1).sum::<u32>()) / 20.0;
            write!(line, "   {:2} {moves:6.1}", games.iter().filter(|game| game.0).count()).unwrap();
        }
        writeln!(out, "{line}").unwrap();
    }
    golden("env", "2048", &out);
}
