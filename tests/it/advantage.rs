//! Estimators: the worked cases on plain numbers and on recorded episodes, and what holds for every one.
//!
//! Case numbers with T are RAGEN's, with TC and B verl-agent's. Ours differ on purpose where a test says so.

mod goldens;

use std::sync::LazyLock;

use proptest::prelude::*;
use starpo::advantage::gae::gae;
use starpo::advantage::gigpo::likeness;
use starpo::advantage::{AdvantageConfig, Credit, Estimator, Grpo, Rloo, Unit, steps};
use starpo::stats;
use starpo::trajectory::{End, Group, Malformed, Reply, Sequence, Split, Task, Trajectory, Turn};

use crate::learning::{GRPO, REWARD, close};
use crate::reward::{episodes, replayed, rules, sampled};

/// The advantages of each row's tokens.
fn advantages(file: &str, overrides: &str) -> Vec<Vec<f64>> {
    sampled(&replayed(&episodes(file), overrides).unwrap(), |row| &row.advantages)
}

fn returns(file: &str, overrides: &str) -> Vec<Vec<f64>> {
    sampled(&replayed(&episodes(file), overrides).unwrap(), |row| &row.returns)
}

/// Holds the advantages of all tokens of a file.
#[track_caller]
fn holds(file: &str, overrides: &str, expected: &[f64], tolerance: f64) {
    close(&advantages(file, overrides).concat(), expected, tolerance);
}

fn estimator(overrides: &str) -> Estimator {
    rules(overrides).advantage.estimator
}

fn rloo(overrides: &str) -> Rloo {
    let Estimator::Rloo(rloo) = estimator(&format!("advantage=rloo {overrides}")) else { panic!("not rloo") };
    rloo
}

#[test]
fn b1_one_name_many_formulas() {
    let (up, down) = ([1.0, 0.0, 0.0, 1.0, 0.0], [1.0, 0.0, 0.0, 0.0, 0.0]);
    let two = |grpo: &Grpo, scores: &[f64]| grpo.advantages(scores)[..2].to_vec();
    close(&two(&GRPO, &up), &[1.095_443_115, -0.730_295_410], 1e-9);
    close(&two(&Grpo { epsilon: 1e-4, ..GRPO }, &up), &[1.095_245_152, -0.730_163_434], 1e-9);
    close(&two(&Grpo { epsilon: 1e-9, ..GRPO }, &up), &[1.095_445_113, -0.730_296_742], 1e-9);
    close(&two(&Grpo { ddof: 0, ..GRPO }, &up), &[1.224_742_371, -0.816_494_914], 1e-9);
    close(&two(&Grpo { std: false, ..GRPO }, &up), &[0.6, -0.4], 1e-12);
    close(&two(&GRPO, &down), &[1.788_850_382, -0.447_212_596], 1e-9);
    close(&two(&Grpo { ddof: 0, ..GRPO }, &down), &[1.999_995, -0.499_998_75], 1e-9);
}

#[test]
fn b6_a_constant_group_is_exactly_zero() {
    for n in 2..200 {
        for scores in [vec![10.9; n], vec![0.1 + 0.2; n], vec![-1e9 / 3.0; n]] {
            assert_eq!(Grpo { epsilon: 0.0, ..GRPO }.advantages(&scores), vec![0.0; n]);
            assert_eq!(rloo("").advantages(&scores), vec![0.0; n]);
        }
    }
}

#[test]
fn tc03_rloo_and_lone_groups() {
    assert_eq!((rloo("").advantages(&[2.5]), rloo("lone=raw").advantages(&[2.5])), (vec![0.0], vec![2.5]));
    assert_eq!(rloo("lone=raw").advantages(&[1.0; 3]), [0.0; 3]);
}

#[test]
fn tc05_and_t6_rloo() {
    close(&rloo("").advantages(&[1.0, 0.0, 0.0, 1.0, 0.0]), &[0.75, -0.5, -0.5, 0.75, -0.5], 1e-12);
    let expected = [8.366_666_667, -6.833_333_333, -8.166_666_667, 6.633_333_333];
    close(&rloo("").advantages(&[10.9, -0.5, -1.5, 9.6]), &expected, 1e-9);
    close(&rloo("").advantages(&[1.0, 0.0, 0.0, 1.0]), &[2.0 / 3.0, -2.0 / 3.0, -2.0 / 3.0, 2.0 / 3.0], 1e-12);
}

#[test]
fn tc06_rloo_by_row_and_trajectory() {
    let rows = |overrides: &str| {
        let replayed = replayed(&episodes("grpo"), &format!("advantage=rloo {overrides}")).unwrap();
        let all = sampled(&replayed, |row| &row.advantages);
        replayed.rows.iter().zip(all).filter(|(row, _)| row.group == 4).flat_map(|(_, row)| row).collect::<Vec<_>>()
    };
    let expected = |a: f64, b: f64| [vec![a; 4], vec![b; 8]].concat();
    close(&rows("unit=row"), &expected(7.272_727_273, -3.636_363_636), 1e-9);
    close(&rows(""), &expected(10.0, -5.0), 1e-9);
}

#[test]
fn tc07_reinforce_pp() {
    let (a, b) = (0.645_497_221, -1.290_994_438);
    holds("reinforce-tc07", "advantage=reinforce-pp", &[a, a, a, a, b, b], 1e-8);
    assert_eq!(returns("reinforce-tc07", "advantage=reinforce-pp"), [vec![1.0; 4], vec![-0.5; 2]]);
    let discounted = "advantage=reinforce-pp gamma=0.9";
    close(&returns("reinforce-tc07", discounted).concat(), &[0.729, 0.81, 0.9, 1.0, -0.45, -0.5], 1e-12);
    let expected = [0.451_814_319, 0.568_303_315, 0.697_735_534, 0.841_549_110, -1.243_747_742, -1.315_654_530];
    holds("reinforce-tc07", discounted, &expected, 1e-8);
}

#[test]
fn tc08_reinforce_pp_baseline() {
    let (a, b) = (0.645_497_220, -1.290_994_439);
    holds("reinforce-tc07", "advantage=reinforce-pp-baseline", &[a, a, a, a, b, b], 1e-8);
    let raw = "advantage=reinforce-pp-baseline whiten=false";
    holds("reinforce-tc07", raw, &[0.75, 0.75, 0.75, 0.75, -0.75, -0.75], 1e-12);
}

#[test]
fn remax_takes_the_greedy_score_off() {
    holds("remax", "advantage=remax turn-scores=true", &[0.75, 0.75, 0.5, -0.5, -0.5, -0.5], 1e-12);
    holds("remax", "advantage=remax", &[0.75, 0.75, 0.75, -0.5, -0.5, -0.5], 1e-12);
    assert_eq!(returns("remax", "advantage=remax turn-scores=true")[0], [1.25, 1.25, 1.0]);
}

#[test]
fn tc09_gae() {
    let discounted = "advantage=gae gamma=0.95 lambda=0.9";
    let expected = [0.596_172_825, 0.592_015, 0.593, 0.6];
    holds("gae-tc09", &format!("{discounted} whiten=false"), &expected, 1e-7);
    close(&returns("gae-tc09", discounted).concat(), &[0.696_172_825, 0.792_015, 0.893, 1.0], 1e-7);
    holds("gae-tc09", discounted, &[0.243_037_976, -0.910_682_436, -0.637_362_947, 1.305_009_058], 1e-4);
    holds("gae-tc09", "advantage=gae whiten=false", &[0.9, 0.8, 0.7, 0.6], 1e-7);
    close(&returns("gae-tc09", "advantage=gae").concat(), &[1.0; 4], 1e-7);
    holds("gae-tc09", "advantage=gae", &[1.161_894_671, 0.387_298_233, -0.387_298_204, -1.161_894_642], 1e-6);
}

#[test]
fn tc10_gae_passes_over_what_is_not_sampled() {
    let skip = "advantage=gae gamma=0.95 lambda=0.9 turn-scores=true";
    holds("gae-tc10", &format!("{skip} whiten=false"), &[0.465_441_775, 0.462_505, 0.231, 0.2], 1e-7);
    holds("gae-tc10", skip, &[0.872_840_655, 0.852_448_984, -0.755_019_643, -0.970_269_972], 1e-6);
    // Ours is mask-skipping; nothing after the last token leaks.
    for (gamma, lambda, expected) in [(1.0, 1.0, [0.5, 0.4]), (1.0, 0.95, [0.48, 0.4]), (0.99, 0.9, [0.4504, 0.4])] {
        let rules = format!("advantage=gae gamma={gamma} lambda={lambda} whiten=false");
        holds("gae-tc10-leak", &rules, &expected, 1e-7);
    }
    // In two rows whose turns bear their own scores, the second is still what follows the first.
    let windowed = episodes("gae-tc10").replace("\"end\"", "\"window\":\"limited\",\"end\"");
    let rows = sampled(&replayed(&windowed, &format!("{skip} whiten=false")).unwrap(), |row| &row.advantages);
    assert_eq!(rows.len(), 2);
    close(&rows.concat(), &[0.465_441_775, 0.462_505, 0.231, 0.2], 1e-7);
}

#[test]
fn t7_gae() {
    holds("gae-t7", "advantage=gae whiten=false", &[2.5, 2.6, 2.7, 2.8], 1e-7);
    close(&returns("gae-t7", "advantage=gae").concat(), &[3.0; 4], 1e-7);
    holds("gae-t7", "advantage=gae", &[-1.161_895, -0.387_298, 0.387_298, 1.161_895], 1e-6);
    let discounted = "advantage=gae gamma=0.9 lambda=0.8";
    holds("gae-t7", &format!("{discounted} whiten=false"), &[0.749_286, 1.23512, 1.896, 2.8], 1e-6);
    close(&returns("gae-t7", discounted).concat(), &[1.249_286, 1.63512, 2.196, 3.0], 1e-6);
}

#[test]
fn t8_bi_level_gae() {
    let turns = "advantage=bi-level-gae turn-scores=true";
    holds("gae-t8", &format!("{turns} whiten=false"), &[2.4, 2.5, 1.7, 1.8], 1e-7);
    close(&returns("gae-t8", turns).concat(), &[2.9, 2.9, 2.0, 2.0], 1e-7);
    holds("gae-t8", turns, &[0.734_847, 0.979_796, -0.979_796, -0.734_847], 1e-6);
    let discounted = format!("{turns} gamma=0.9 lambda=0.8 turn-gamma=0.5");
    holds("gae-t8", &format!("{discounted} whiten=false"), &[0.8824, 1.42, 1.176, 1.8], 1e-6);
    close(&returns("gae-t8", &discounted).concat(), &[1.3824, 1.82, 1.476, 2.0], 1e-6);
    close(&returns("gae-t8-long", turns).concat(), &[[1.95; 5], [1.0; 5]].concat(), 1e-6);
    let half = [1.187_998, 1.059_566, 0.931_134, 0.802_702, 0.674_269];
    let other = [-0.674_269, -0.802_702, -0.931_134, -1.059_566, -1.187_998];
    holds("gae-t8-long", turns, &[half, other].concat(), 1e-6);
    // [F] Nothing but zeros: the last token is the only end, so that it is GAE; RAGEN's is an IndexError.
    let zero = advantages("gae-t8-zero", &format!("{turns} whiten=false")).concat();
    close(&zero, &gae(&[0.0; 4], &[0.5, 0.4, 0.3, 0.2], 1.0, 1.0), 1e-7);
    // One score alone, at the end: GAE.
    holds("gae-t7", "advantage=bi-level-gae whiten=false", &[2.5, 2.6, 2.7, 2.8], 1e-7);
}

#[test]
fn tc12_gigpo() {
    let by_row = [
        7.294_444_444,
        10.777_777_778,
        4.444_444_444,
        -11.730_555_556,
        -8.722_222_222,
        -8.722_222_222,
        -5.555_555_556,
        7.769_444_444,
        4.444_444_444,
    ];
    let by_trajectory = [
        6.183_333_333,
        9.666_666_667,
        3.333_333_333,
        -12.841_666_667,
        -9.833_333_333,
        -9.833_333_333,
        -6.666_666_667,
        6.658_333_333,
        3.333_333_333,
    ];
    holds("gigpo-tc12", "advantage=gigpo unit=row", &by_row, 1e-9);
    holds("gigpo-tc12", "advantage=gigpo", &by_trajectory, 1e-9);
    // One row of all turns: the step part on the tokens of its turn.
    let full = episodes("gigpo-tc12").replace(",\"window\":\"single-turn\"", "");
    let full = sampled(&replayed(&full, "advantage=gigpo").unwrap(), |row| &row.advantages);
    assert_eq!(full.len(), 3);
    close(&full.concat(), &by_trajectory, 1e-9);
    let (win, lose) = (4.444_444_444, -5.555_555_556);
    let episode = [win, win, win, lose, lose, lose, lose, win, win];
    holds("gigpo-tc12", "advantage=gigpo unit=row step-weight=0", &episode, 1e-9);
}

#[test]
fn similar_anchors_are_one_state() {
    close(&[likeness("box at 1,1", "box at 1,2"), likeness("", ""), likeness("ab", "cd")], &[0.9, 1.0, 0.0], 1e-12);
    assert_eq!(likeness("kitten", "sitting"), likeness("sitting", "kitten"));
    let turns = |texts: &[&str]| group(0, &[texts.iter().map(|text| (*text, 0.0, 1)).collect()], true);
    let states = |similarity: &str, texts: &[&str]| {
        let Estimator::Gigpo(gigpo) = estimator(&format!("advantage=gigpo similarity={similarity}")) else { panic!() };
        gigpo.states(&turns(texts))
    };
    let texts = ["box at 1,1", "box at 1,2", "box at 2,2", "box at 1,1"];
    assert_eq!(states("null", &texts), [0, 1, 2, 0]);
    assert_eq!(states("0.85", &texts), [0, 0, 2, 0]);
    assert_eq!(states("0.8", &texts), [0, 0, 0, 0]);
}

#[test]
fn hgpo_averages_over_histories() {
    // On TC12's episodes, k = 0, 1, 2 with weights 1, 2, 3. The class of s2 is constant and says nothing.
    let expected = [
        (3.333_333_333 + 2.0 * 2.85) / 3.0,
        (3.333_333_333 + 2.0 * 6.333_333_333 + 3.0 * 4.75) / 6.0,
        3.333_333_333,
        (-6.666_666_667 - 2.0 * 6.175) / 3.0,
        (-6.666_666_667 - 2.0 * 3.166_666_667 - 3.0 * 4.75) / 6.0,
        (-6.666_666_667 - 2.0 * 3.166_666_667) / 3.0,
        -6.666_666_667,
        (3.333_333_333 + 2.0 * 3.325) / 3.0,
        3.333_333_333,
    ];
    holds("gigpo-tc12", "advantage=hgpo history=1", &expected, 2e-6);
    // Without the episode's item and with a history of none: GiGPO's step part.
    let step = [2.85, 6.333_333_333, 0.0, -6.175, -3.166_666_667, -3.166_666_667, 0.0, 3.325, 0.0];
    holds("gigpo-tc12", "advantage=hgpo history=0 episode=false", &step, 2e-6);
}

#[test]
fn pass_k_credits_the_best_alone() {
    let Estimator::PassK(pass_k) = estimator("advantage=pass-k") else { panic!() };
    let lead = (10.9 - 9.6) / (6.529_612_035 + 1e-6);
    close(&pass_k.advantages(&[10.9, -0.5, -1.5, 9.6]), &[lead, 0.0, 0.0, 0.0], 1e-9);
    assert_eq!(pass_k.advantages(&[1.0, 0.0, 1.0]), [0.0; 3]);
}

#[test]
fn common_weights_in_ragens_order() {
    let file = "filter-t4";
    let plain = advantages(file, "std=false filter=top-p include-zero=false").concat();
    let with =
        |overrides: &str| advantages(file, &format!("std=false filter=top-p include-zero=false {overrides}")).concat();
    let scaled = |weight: f64| plain.iter().map(|advantage| weight * advantage).collect::<Vec<_>>();
    close(&with("loss-scaling=linear"), &scaled(0.5), 1e-12);
    close(&with("loss-scaling=sqrt"), &scaled(0.5f64.sqrt()), 1e-12);
    assert_eq!(with("zero-task=true"), [0.0; 8]);
    let largest = (1.0f64 / 3.0).sqrt();
    let weights = [[0.5 / (largest + 1e-6); 4], [largest / (largest + 1e-6); 4]].concat();
    let weighed: Vec<f64> = plain.iter().zip(weights).map(|(advantage, weight)| weight * advantage).collect();
    close(&with("reweight=group-deviation"), &weighed, 1e-12);
    // Rows of 4 and 2 tokens, mean 3.
    let by_length = "std=false length-weight=true";
    let (long, short) = (0.75 * 3.0 / (4.0 + 1e-6), -0.75 * 3.0 / (2.0 + 1e-6));
    holds("reinforce-tc07", by_length, &[long, long, long, long, short, short], 1e-12);
}

/// A group of members whose turns have these anchors, rewards and numbers of tokens; in one row each or a row a turn.
fn group(id: usize, members: &[Vec<(&str, f64, usize)>], full: bool) -> Group {
    let task = Task { env: "bandit".into(), epoch: 1, split: Split::Train, index: id as u64 };
    let turn = |(anchor, reward, _): &(&str, f64, usize)| {
        let reply = Reply { text: String::new(), actions: Err(Malformed::Tags), reasoning: None };
        let (observation, executed) = (String::new(), Vec::new());
        let anchor = (*anchor).to_owned();
        Turn { observation, anchor, reply, executed, reward: *reward, penalty: 0.0, valid: true, effective: true }
    };
    let row = |turns: &[usize], lengths: &[usize]| {
        let mut row = Sequence { turns: turns.to_vec(), ..Sequence::default() };
        for length in lengths {
            let start = row.tokens.len();
            row.tokens.resize(start + length, 0);
            row.responses.push(start..start + length);
        }
        row.values = (0..row.tokens.len()).map(|token| 0.25 * token as f32).collect();
        row
    };
    let member = |(member, turns): (usize, &Vec<(&str, f64, usize)>)| {
        let lengths: Vec<usize> = turns.iter().map(|turn| turn.2).collect();
        let numbers: Vec<usize> = (0..turns.len()).collect();
        let sequences = if full {
            vec![row(&numbers, &lengths)]
        } else {
            numbers.iter().map(|turn| row(&[*turn], &lengths[*turn..=*turn])).collect()
        };
        Trajectory { member, turns: turns.iter().map(turn).collect(), sequences, baseline: Some(0.5), end: End::Solved }
    };
    Group { id, task, members: members.iter().enumerate().map(member).collect() }
}

fn estimate(config: &AdvantageConfig, groups: &[Group]) -> Vec<Credit> {
    let (kept, scores) = (groups.iter().collect::<Vec<_>>(), REWARD.scores(groups));
    let rewards = REWARD.rewards(&kept, &scores.iter().map(Vec::as_slice).collect::<Vec<_>>(), 0.0);
    config.estimate(&rewards, groups.len())
}

/// Every estimator without whitening: those with a unit, γ 1 so that a constant reaches every step alike; and the rest.
const WITH_UNIT: [&str; 6] =
    ["grpo", "rloo", "reinforce-pp-baseline whiten=false", "gigpo gamma=1", "hgpo gamma=1", "pass-k"];
const WITHOUT_UNIT: [&str; 4] =
    ["reinforce-pp whiten=false", "remax", "gae whiten=false gamma=0.9", "bi-level-gae whiten=false"];

fn advantage(overrides: &str) -> AdvantageConfig {
    rules(&format!("advantage={overrides}")).advantage
}

fn by_unit(overrides: &str) -> Vec<AdvantageConfig> {
    let units = ["row", "trajectory"];
    let each = |name: &&str| units.map(|unit| advantage(&format!("{name} unit={unit} {overrides}")));
    WITH_UNIT.iter().flat_map(each).collect()
}

static ZERO: LazyLock<Vec<AdvantageConfig>> = LazyLock::new(|| by_unit(""));
static RAW: LazyLock<Vec<AdvantageConfig>> = LazyLock::new(|| by_unit("lone=raw"));
static ALL: LazyLock<Vec<AdvantageConfig>> = LazyLock::new(|| {
    let weights = "reweight=group-deviation loss-scaling=sqrt";
    let rest = WITHOUT_UNIT.iter().map(|name| advantage(&format!("{name} {weights}")));
    let all: Vec<AdvantageConfig> = by_unit(weights).into_iter().chain(rest).collect();
    assert!(Estimator::NAMES.iter().all(|name| all.iter().any(|config| config.estimator.name() == *name)));
    all
});
static WHITENED: LazyLock<AdvantageConfig> = LazyLock::new(|| advantage("reinforce-pp"));

/// Members of one to three turns in few states.
fn members(count: std::ops::Range<usize>) -> impl Strategy<Value = Vec<Vec<(&'static str, f64, usize)>>> {
    let turn = (0..3usize, -40..40i32, 1..4usize).prop_map(|(a, r, n)| (["a", "b", "c"][a], f64::from(r) / 8.0, n));
    prop::collection::vec(prop::collection::vec(turn, 1..4), count)
}

proptest! {
    #[test]
    fn estimators_ignore_a_constant(
        members in members(2..6), shift in -80..80i32, full in any::<bool>(),
    ) {
        let here = [group(0, &members, full)];
        let mut there = here.clone();
        for member in &mut there[0].members {
            member.turns.last_mut().unwrap().reward += f64::from(shift) / 8.0;
        }
        for config in ZERO.iter() {
            let (a, b) = (estimate(config, &here), estimate(config, &there));
            for (a, b) in a[0].advantages.iter().zip(&b[0].advantages) {
                prop_assert!((a - b).abs() <= 1e-9, "{:?} {} {}", config, a, b);
            }
        }
    }

    #[test]
    fn advantages_are_centred(scores in prop::collection::vec(-800..800i32, 2..9)) {
        let scores: Vec<f64> = scores.into_iter().map(|score| f64::from(score) / 8.0).collect();
        let members: Vec<_> = scores.iter().map(|score| vec![("a", *score, 1)]).collect();
        // All share a state, so that GiGPO's step part is centred too; HGPO's weights are then the same for all.
        let centred = ZERO.iter().filter(|config| !matches!(config.estimator, Estimator::PassK(_)));
        for config in centred {
            let sum: f64 = estimate(config, &[group(0, &members, true)])[0].advantages.iter().sum();
            prop_assert!(sum.abs() <= 1e-9, "{:?} {}", config, sum);
        }
    }

    #[test]
    fn units_are_centred_whatever_they_weigh(members in members(2..6)) {
        let group = [group(0, &members, false)];
        for config in ZERO.iter() {
            let (Estimator::Grpo(Grpo { unit, .. }) | Estimator::Rloo(Rloo { unit, .. })) = &config.estimator else {
                continue;
            };
            let credit = &estimate(config, &group)[0];
            let (mut at, mut sum) = (0, 0.0);
            for member in &group[0].members {
                for (index, row) in member.sequences.iter().enumerate() {
                    sum += if *unit == Unit::Row || index == 0 { credit.advantages[at] } else { 0.0 };
                    at += row.response_tokens();
                }
            }
            prop_assert!(sum.abs() <= 1e-9, "{:?} {}", config, sum);
        }
    }

    #[test]
    fn steps_are_centred_in_their_class(turns in prop::collection::vec((0..4usize, -40..40i32), 1..12)) {
        let (classes, returns): (Vec<usize>, Vec<f64>) =
            turns.into_iter().map(|(class, score)| (class, f64::from(score) / 8.0)).unzip();
        let within = steps::within(classes.iter().copied().map(Some), &returns, None);
        for class in 0..4 {
            let of = |turn: &usize| classes[*turn] == class;
            let own: Vec<f64> = (0..classes.len()).filter(of).map(|turn| returns[turn]).collect();
            let found: Vec<f64> = (0..classes.len()).filter(of).filter_map(|turn| within[turn]).collect();
            prop_assert!(found.iter().sum::<f64>().abs() <= 1e-9);
            prop_assert_eq!(found.len(), if stats::constant(&own) { 0 } else { own.len() });
        }
    }

    #[test]
    fn constant_groups_have_no_advantage(
        reward in -1e6..1e6f64, count in 2..9usize, full in any::<bool>(), raw in any::<bool>(),
    ) {
        let members = vec![vec![("a", reward, 2)]; count];
        for config in if raw { RAW.iter() } else { ZERO.iter() } {
            prop_assert_eq!(&estimate(config, &[group(0, &members, full)])[0].advantages, &vec![0.0; 2 * count]);
        }
        prop_assert_eq!(&estimate(&WHITENED, &[group(0, &members, full)])[0].advantages, &vec![0.0; 2 * count]);
    }

    #[test]
    fn one_member_is_what_lone_says(reward in -1e3..1e3f64) {
        let alone = [group(0, &[vec![("a", reward, 1)]], true)];
        for (zero, raw) in ZERO.iter().zip(RAW.iter()) {
            prop_assert_eq!(estimate(zero, &alone)[0].advantages[0], 0.0);
            let advantage = estimate(raw, &alone)[0].advantages[0];
            prop_assert!((advantage - reward).abs() <= 2e-6 * reward.abs(), "{:?} {} {}", raw, advantage, reward);
        }
    }

    #[test]
    fn the_order_of_groups_does_not_matter(
        all_members in prop::collection::vec(members(1..4), 1..5), full in any::<bool>(),
    ) {
        let groups: Vec<Group> = all_members.iter().enumerate().map(|(id, members)| group(id, members, full)).collect();
        let backwards: Vec<Group> = groups.iter().rev().cloned().collect();
        let reversed = |config: &AdvantageConfig| {
            let mut credits = estimate(config, &backwards);
            credits.reverse();
            credits
        };
        for config in ALL.iter() {
            prop_assert_eq!(&estimate(config, &groups), &reversed(config));
        }
        // Sums over the batch run in its order.
        for (a, b) in estimate(&WHITENED, &groups).iter().zip(&reversed(&WHITENED)) {
            close(&a.advantages, &b.advantages, 1e-9);
        }
    }

    #[test]
    fn whitened_values_have_mean_0_and_deviation_1(values in prop::collection::vec(-100..100i32, 2..30)) {
        let values: Vec<f64> = values.into_iter().map(f64::from).collect();
        let whitened = stats::whitened(&values);
        if stats::constant(&values) {
            prop_assert_eq!(whitened, vec![0.0; values.len()]);
        } else {
            prop_assert!(stats::mean(&whitened).abs() <= 1e-6);
            prop_assert!((stats::std(&whitened, 1) - 1.0).abs() <= 1e-6);
        }
    }
}
