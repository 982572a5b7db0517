//! Episode records and replay: the worked cases of recorded episodes, and the goldens made from them.
//!
//! Case numbers with T are RAGEN's, with TC verl-agent's. Ours differ on purpose where a test says so.

#![expect(clippy::unwrap_used, reason = "a test fails where it unwraps")]

use std::fmt::Write as _;
use std::fs;

use proptest::prelude::*;
use starpo::advantage::{Grpo, Lone, Unit};
use starpo::filter::{FilterConfig, Keep, Mass, NoFilter, Score, TopP, Walk};
use starpo::objective::aggregate::{SeqMeanTokenMean, SeqMeanTokenSum, SeqMeanTokenSumNorm, TokenMean};
use starpo::objective::{AggregateConfig, Clip, KlConfig, KlEstimator, ObjectiveConfig, PolicyLoss, Ppo};
use starpo::record::episode::{self, Window};
use starpo::replay::{Replay, Rules, replay};
use starpo::trajectory::{End, Malformed, Reply, Sequence, Split, Task, Trajectory, Turn};

use crate::golden;
use crate::learning::{GRPO, PPO, REWARD, TOP_P, by_grpo, close};

const NONE: FilterConfig = FilterConfig::None(NoFilter {});

pub(crate) fn episodes(name: &str) -> String {
    fs::read_to_string(format!("{}/golden/episodes/{name}.jsonl", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

pub(crate) fn run(name: &str, filter: &FilterConfig, grpo: &Grpo, objective: &ObjectiveConfig) -> Replay {
    let advantage = by_grpo(grpo);
    replay(&episodes(name), &Rules { filter, reward: &REWARD, advantage: &advantage, objective }).unwrap()
}

/// What a file is refused with, under a filter.
pub(crate) fn refusal(text: &str, filter: &FilterConfig) -> String {
    refused(text, filter, &PPO)
}

fn refused(text: &str, filter: &FilterConfig, objective: &ObjectiveConfig) -> String {
    let advantage = by_grpo(&GRPO);
    replay(text, &Rules { filter, reward: &REWARD, advantage: &advantage, objective }).unwrap_err().to_string()
}

/// Each member's advantage, from its first unmasked token.
fn advantages(replay: &Replay, group: usize) -> Vec<f64> {
    let mut members: Vec<(usize, f64)> = Vec::new();
    for row in replay.rows.iter().filter(|row| row.group == group) {
        if members.last().is_none_or(|(member, _)| *member != row.member) {
            members.push((row.member, row.advantages[row.mask.iter().position(|m| *m == 1).unwrap()]));
        }
    }
    members.into_iter().map(|(_, advantage)| advantage).collect()
}

fn filter(top_p: TopP) -> FilterConfig {
    FilterConfig::TopP(top_p)
}

#[test]
fn t4_a_whole_filter() {
    let replayed = run("filter-t4", &filter(TopP { include_zero: false, ..TOP_P }), &GRPO, &PPO);
    assert_eq!((&replayed.filter.kept, &replayed.filter.dropped), (&vec![0, 2], &vec![1, 3]));
    let std: Vec<f64> = replayed.groups.iter().map(|group| group.std).collect();
    close(&std, &[0.5, 0.0, 0.577_350_269_190, 0.0], 1e-9);
    close(&[std.iter().sum::<f64>() / 4.0, (std[0] + std[2]) / 2.0], &[0.269_338, 0.538_675], 1e-5);
    assert_eq!(replayed.groups.iter().filter(|group| group.reason == Some("zero-score")).count(), 2);
    let means: Vec<f64> = replayed.groups.iter().map(|group| group.mean).collect();
    assert_eq!(means.iter().sum::<f64>() / 4.0, 0.4375);
    assert_eq!(f64::midpoint(means[0], means[2]), 0.375);
    assert_eq!(replayed.rows.len(), 8);
    let rows: Vec<(usize, usize)> = replayed.rows.iter().map(|row| (row.group, row.member)).collect();
    assert_eq!(rows, [(0, 0), (0, 1), (0, 2), (0, 3), (2, 0), (2, 1), (2, 2), (2, 3)]);
}

#[test]
fn t2_softmax_on_recorded_episodes() {
    let softmax = TopP { mass: Mass::Softmax, ..TOP_P };
    assert_eq!(run("filter-t2-std", &filter(softmax.clone()), &GRPO, &PPO).filter.kept, [0, 1, 2, 3, 4, 5, 6]);
    let mean = TopP { score: Score::RewardMean, ..softmax };
    assert_eq!(run("filter-t2-mean", &filter(mean.clone()), &GRPO, &PPO).filter.kept, [0, 1, 2]);
    let smallest = TopP { keep: Keep::Smallest, ..mean };
    assert_eq!(run("filter-t2-mean", &filter(smallest), &GRPO, &PPO).filter.kept, [4, 5, 6, 7]);
}

#[test]
fn t1_a_step_of_zeros_keeps_nothing_and_is_no_error() {
    let replayed = run("filter-t1-zeros", &filter(TOP_P), &GRPO, &PPO);
    assert!(replayed.filter.empty && replayed.filter.dropped == [0, 1, 2] && replayed.rows.is_empty());
    assert!(replayed.json().ends_with(r#""loss":null}"#), "{}", replayed.json());
    let all = run("filter-t1-zeros", &filter(TopP { value: 1.0, ..TOP_P }), &GRPO, &PPO);
    assert_eq!(all.filter.kept, [0, 1, 2]);
    let none = run("filter-t1-zeros", &filter(TopP { value: 1.0, include_zero: false, ..TOP_P }), &GRPO, &PPO);
    assert_eq!(none.groups[0].reason, Some("zero-score"));
}

#[test]
fn grpo_tc01_to_tc04_and_t6() {
    let grpo = run("grpo", &NONE, &GRPO, &PPO);
    let dr = run("grpo", &NONE, &Grpo { std: false, ..GRPO }, &PPO);
    let raw = run("grpo", &NONE, &Grpo { lone: Lone::Raw, ..GRPO }, &PPO);
    let dr_raw = run("grpo", &NONE, &Grpo { lone: Lone::Raw, std: false, ..GRPO }, &PPO);
    let rows = run("grpo", &NONE, &Grpo { unit: Unit::Row, ..GRPO }, &PPO);
    let dr_rows = run("grpo", &NONE, &Grpo { unit: Unit::Row, std: false, ..GRPO }, &PPO);
    let hold = |replay: &Replay, group: usize, expected: &[f64]| close(&advantages(replay, group), expected, 1e-6);
    // TC01
    let (up, down) = (1.095_443_115, -0.730_295_410);
    hold(&grpo, 0, &[up, down, down, up, down]);
    hold(&grpo, 1, &[0.961_006_413, -0.784_885_716, -0.938_034_148, 0.761_913_451]);
    // TC02
    hold(&dr, 0, &[0.6, -0.4, -0.4, 0.6, -0.4]);
    hold(&dr, 1, &[6.275, -5.125, -6.125, 4.975]);
    // TC03, both rules; T6's singleton [F]: ours is 0 by default.
    assert_eq!(advantages(&grpo, 2), [0.0]);
    assert_eq!(advantages(&grpo, 3), [0.0; 3]);
    hold(&raw, 2, &[2.499_997_5]);
    assert_eq!(advantages(&dr_raw, 2), [2.5]);
    assert_eq!(advantages(&raw, 3), [0.0; 3]);
    // TC04, both units
    hold(&grpo, 4, &[1.154_700_338, -0.577_350_169, -0.577_350_169]);
    hold(&rows, 4, &[1.354_006_126, -0.677_003_063, -0.677_003_063]);
    hold(&dr_rows, 4, &[6.666_666_667, -3.333_333_333, -3.333_333_333]);
    assert_eq!(grpo.rows.iter().filter(|row| row.group == 4).count(), 12);
    let advantage = by_grpo(&GRPO);
    let limited = episodes("grpo").replace("single-turn", "limited");
    let rules = Rules { filter: &NONE, reward: &REWARD, advantage: &advantage, objective: &PPO };
    assert_eq!(replay(&limited, &rules).unwrap(), grpo, "a row a turn is a row a turn");
    // T6: without duplicates, and its count by episode (trajectory) and by row
    hold(&grpo, 5, &[0.866_024, -0.866_024, -0.866_024, 0.866_024]);
    hold(&grpo, 6, &[0.707_106_1, -0.707_106_1]);
    hold(&rows, 6, &[0.730_295, -1.095_443]);
    hold(&dr, 6, &[0.5, -0.5]);
    assert_eq!(advantages(&grpo, 7), [0.0; 2]);
    assert!(grpo.rows.iter().all(|row| row.returns == row.advantages));
}

#[test]
fn tc18_clip_on_recorded_log_probs() {
    // Advantages of 1 and −1, six tokens each: the mean over twelve is the mean of TC18's two means.
    let dr = Grpo { std: false, ..GRPO };
    let loss = |high: f64| {
        let ppo =
            ObjectiveConfig { policy: PolicyLoss::Ppo(Ppo { clip: Clip { low: 0.2, high, dual: Some(3.0) } }), ..PPO };
        run("clip-tc18", &NONE, &dr, &ppo).loss.unwrap()
    };
    let (low, high) = (loss(0.2), loss(0.28));
    close(&[low.policy], &[(-0.981_666_667 + 1.375) / 2.0], 1e-6);
    close(&[high.policy], &[(-1.016_666_667 + 1.375) / 2.0], 1e-6);
    close(&[low.clip_fraction, high.clip_fraction], &[(0.5 + 1.0 / 3.0) / 2.0, 1.0 / 3.0], 1e-9);
    close(&[low.clip_fraction_lower], &[1.0 / 12.0], 1e-9);
    close(&[high.entropy, high.total], &[0.5, high.policy - 0.001 * 0.5], 1e-9);
}

/// Both members have TC16's tokens, so their mean is TC16's; values of 0.3 and −0.9 move by 0.6, of which 0.5 counts.
const DISTANT: &str = "kl-tc16";

#[test]
fn tc16_and_b5_on_recorded_reference_and_values() {
    let dr = Grpo { std: false, ..GRPO };
    let loss = |estimator, value_clip| {
        let objective = ObjectiveConfig { kl: KlConfig { coef: 0.1, estimator }, value_coef: 0.5, value_clip, ..PPO };
        run(DISTANT, &NONE, &dr, &objective).loss.unwrap()
    };
    let k2 = (0.02 + 0.5 + 0.125 + 180.5 + 24.5) / 6.0;
    let k3 = (0.018_730_753 + 0.718_281_828 + 0.148_721_271 + 10.0 + 6.000_911_882) / 6.0;
    let estimates = [KlEstimator::K1, KlEstimator::Abs, KlEstimator::K2, KlEstimator::K3]
        .map(|estimator| loss(estimator, Some(0.5)).kl);
    close(&estimates, &[-13.3 / 6.0, 27.7 / 6.0, k2, k3], 1e-6);
    // Returns 1 and −1: (0.8 − 1)² is the larger square of the one, (−1.5 + 1)² of the other.
    let clipped = loss(KlEstimator::K2, Some(0.5));
    close(&[clipped.value.unwrap()], &[0.5 * f64::midpoint(0.04, 0.25)], 1e-6);
    close(&[loss(KlEstimator::K2, None).value.unwrap()], &[0.5 * f64::midpoint(0.01, 0.25)], 1e-6);
    close(&[clipped.total], &[clipped.policy + 0.1 * k2 - 0.001 * 0.5 + 0.5 * clipped.value.unwrap()], 1e-6);
    let unmoved = run("clip-tc18", &NONE, &dr, &PPO).loss.unwrap();
    assert_eq!((unmoved.kl, unmoved.value), (0.0, None));
}

#[test]
fn tc17_and_t9_aggregation_by_weights() {
    let by = [
        AggregateConfig::TokenMean(TokenMean {}),
        AggregateConfig::SeqMeanTokenSum(SeqMeanTokenSum {}),
        AggregateConfig::SeqMeanTokenMean(SeqMeanTokenMean {}),
        AggregateConfig::SeqMeanTokenSumNorm(SeqMeanTokenSumNorm { width: 4 }),
    ];
    let cases: [(&str, &[f64], [f64; 4]); 2] = [
        ("aggregate-t9", &[1.0, 2.0, 3.0, 4.0, 10.0, 20.0], [6.666_667, 20.0, 8.75, 10.0]),
        (
            "aggregate-tc17",
            &[1.0, 2.0, 3.0, 4.0, 0.5, -1.0, 2.0],
            // Ours has no 1e-8 in a denominator, and its norm does not divide by rows.
            [1.642_857_141, 3.833_333_333, 1.416_666_667, 2.875],
        ),
    ];
    for (file, losses, expected) in cases {
        for (aggregate, expected) in by.iter().zip(expected) {
            let replayed = run(file, &NONE, &GRPO, &ObjectiveConfig { aggregate: aggregate.clone(), ..PPO });
            assert_eq!(replayed.rows.len(), 3);
            let weights: Vec<f64> = replayed.rows.iter().flat_map(|row| row.weights.clone()).collect();
            let sum = weights.iter().zip(losses).map(|(weight, loss)| weight * loss).sum::<f64>();
            close(&[sum], &[expected], 1e-6);
        }
    }
}

#[test]
fn the_order_of_lines_does_not_matter() {
    let text = episodes("mask-t13") + &episodes("filter-t4").replace("\"group\":0", "\"group\":9");
    let backwards: Vec<&str> = text.lines().rev().collect();
    let rules = Rules { filter: &NONE, reward: &REWARD, advantage: &by_grpo(&GRPO), objective: &PPO };
    let replayed = replay(&text, &rules).unwrap();
    assert_eq!(replay(&backwards.join("\n"), &rules).unwrap(), replayed);
    assert_eq!(replayed.filter.kept, [0, 1, 2, 3, 9]);
}

#[test]
fn lengths_default_to_one_token_a_turn() {
    let row = &run("grpo", &NONE, &GRPO, &PPO).rows[6];
    assert_eq!((&row.turns[..], &row.mask[..]), (&[1, 2, 3, 4, 5][..], &[1; 5][..]));
}

#[test]
fn json_is_of_the_promised_shape() {
    let json = run("mask-t13", &filter(TOP_P), &GRPO, &PPO).json();
    let start = r#"{"groups":[{"group":0,"env":"sokoban","scores":[10.8,-0.2],"mean":5.3"#;
    assert!(json.starts_with(start), "{json}");
    let verdict = r#""kept":true,"reason":null}],"filter":{"strategy":"top-p","kept":[0],"dropped":[],"threshold":"#;
    assert!(json.contains(verdict), "{json}");
    assert!(json.contains(r#""rows":[{"group":0,"member":0,"turns":[1,2],"mask":[0,0,0,0,0,0,0,0,0,0,0,0,1,1,1,0,"#));
    let entropy_unknown = episodes("clip-tc18").replace(r#""entropies":[0.5,0.5,0.5,0.5,0.5,0.5],"#, "");
    let rules = Rules { filter: &NONE, reward: &REWARD, advantage: &by_grpo(&GRPO), objective: &PPO };
    let json = replay(&entropy_unknown, &rules).unwrap().json();
    assert!(json.contains(r#""entropy":null,"value":null,"total":null"#), "{json}");
    assert!(json.contains(r#""score":null"#), "{json}");
}

#[test]
fn what_the_rules_cannot_use_is_refused() {
    let lone = refusal(&episodes("filter-t2-mean"), &filter(TOP_P));
    assert_eq!(lone, "filter.score \"reward-std\" is a spread: a group of one member has none");
    let negative = refusal(&episodes("filter-t4"), &filter(TopP { score: Score::RewardMean, ..TOP_P }));
    assert!(negative.starts_with("filter.mass \"linear\""), "{negative}");
    let no_old = episodes("clip-tc18").replace(r#""logprobs":[-2.0,-2.0,-2.0,-2.0,-2.0,-2.0],"#, "");
    assert_eq!(refusal(&no_old, &NONE), "the loss needs `logprobs` beside `new_logprobs`");
    let near = ObjectiveConfig { kl: KlConfig { coef: 0.1, estimator: KlEstimator::K3 }, ..PPO };
    let no_reference = "the loss needs `ref_logprobs`, since objective.kl.coef is not 0";
    assert_eq!(refused(&episodes("clip-tc18"), &NONE, &near), no_reference);
    let no_values = episodes(DISTANT).replace("\"values\"", "\"new_entropies\"");
    let no_values = refused(&no_values, &NONE, &PPO);
    assert_eq!(no_values, "the loss needs `values` beside `new_values`, since objective.value-clip is set");
    let new = episodes("clip-tc18");
    let (first, second) = new.split_once('\n').unwrap();
    let some = format!("{first}\n{}", second.replace("new_logprobs", "ref_logprobs"));
    assert_eq!(refusal(&some, &NONE), "`new_logprobs` is in some kept episodes but not in others");
}

#[test]
fn what_is_no_episode_is_refused_with_line_and_field() {
    let good = episodes("mask-t13");
    let bad = |from: &str, to: &str| {
        assert!(good.contains(from), "{from}");
        let (first, second) = good.split_once('\n').unwrap();
        refusal(&format!("{first}\n{}", second.replacen(from, to, 1)), &NONE)
    };
    let cases = [
        bad("starpo.episode/1", "starpo.episode/2"),
        bad(r#""reward":0.0"#, r#""reward":"none""#),
        bad(r#""reward":0.0,"#, ""),
        bad("-0.0625]", "true]"),
        bad("-0.0625]", "-0.0625,-1.0]"),
        bad(r#""entropies":[0.5,0.125],"#, ""),
        bad(r#""turn":2"#, r#""turn":3"#),
        bad(r#""reasoning":[0,1]"#, r#""reasoning":[2,4]"#),
        bad(r#""valid":"#, r#""vaild":"#),
        bad("turn-limit", "turn_limit"),
        bad(r#""split":"train""#, r#""split":"test""#),
        bad(r#""step":1"#, r#""step":2"#),
        bad(r#""member":1"#, r#""member":0"#),
        bad(r#""index":0}"#, r#""index":1}"#),
        bad("}],\"end\"", "}"),
    ];
    golden("episodes", "errors", &cases.join("\n"));
}

/// The table of one replay under one setting, with the mass gathered along the filter's walk.
fn filter_table(case: &str, file: &str, top_p: &TopP) -> String {
    let replayed = run(file, &filter(top_p.clone()), &GRPO, &PPO);
    let scores: Vec<f64> = replayed.groups.iter().map(|group| group.score.unwrap()).collect();
    let mut gathered = vec![None; scores.len()];
    let walk = Walk::new(&scores, top_p.keep, top_p.include_zero);
    let mut sum = 0.0;
    for (place, (group, mass)) in walk.order.iter().zip(top_p.masses(&walk)).enumerate() {
        sum += mass;
        gathered[*group] = Some((place + 1, sum));
    }
    let mut out = format!(
        "{case}\n{file}.jsonl: value {} score {} keep {} include-zero {} mass {} eps {}\n",
        top_p.value,
        top_p.score.name(),
        top_p.keep.name(),
        top_p.include_zero,
        top_p.mass.name(),
        top_p.eps
    );
    let threshold = replayed.filter.threshold.map_or("none".into(), |mass| format!("{mass:.6}"));
    writeln!(out, "threshold {threshold}, kept {:?}", replayed.filter.kept).unwrap();
    writeln!(out, "group  mean      std       score     place  gathered  verdict  reason       scores").unwrap();
    for (index, group) in replayed.groups.iter().enumerate() {
        let walk = gathered[index].map_or("    -         -".into(), |(place, sum)| format!("{place:>5}  {sum:>8.6}"));
        writeln!(
            out,
            "{:>5}  {:<8.6}  {:<8.6}  {:<8.6}  {walk}  {:<7}  {:<11}  {:?}",
            group.group,
            group.mean,
            group.std,
            group.score.unwrap(),
            if group.kept { "keep" } else { "drop" },
            group.reason.unwrap_or("-"),
            group.scores
        )
        .unwrap();
    }
    out
}

#[test]
fn golden_filters() {
    let softmax = TopP { mass: Mass::Softmax, ..TOP_P };
    let mean = TopP { score: Score::RewardMean, ..softmax.clone() };
    let tables = [
        filter_table(
            "RAGEN T4: [1,0,0,0 | 1,1,1,1 | 1,1,0,0 | 0,0,0,0] keeps {0,2}",
            "filter-t4",
            &TopP { include_zero: false, ..TOP_P },
        ),
        filter_table("RAGEN T4 with zeros as candidates: the same, for another reason", "filter-t4", &TOP_P),
        filter_table(
            "RAGEN T1's `smallest` without zeros, on T4: mass gathered from the small end keeps both",
            "filter-t4",
            &TopP { keep: Keep::Smallest, include_zero: false, ..TOP_P },
        ),
        filter_table(
            "RAGEN's walk ends at a score of 0: `smallest` with zeros keeps nothing",
            "filter-t4",
            &TopP { keep: Keep::Smallest, ..TOP_P },
        ),
        filter_table("RAGEN T2: softmax over [.5 x4, 0 x4], .9 keeps the first seven", "filter-t2-std", &softmax),
        filter_table("RAGEN T2: softmax over [5,4,3,2,1,0,0,0], .9 keeps [0,1,2]", "filter-t2-mean", &mean),
        filter_table(
            "RAGEN T2: the same, smallest, keeps [5,6,7,4]",
            "filter-t2-mean",
            &TopP { keep: Keep::Smallest, ..mean },
        ),
        filter_table("RAGEN T1: [0,0,0], .9 keeps nothing", "filter-t1-zeros", &TOP_P),
        filter_table("RAGEN T1: [0,0,0], 1.0 keeps all", "filter-t1-zeros", &TopP { value: 1.0, ..TOP_P }),
    ];
    golden("filter", "top-p", &tables.join("\n"));
    let case = "RAGEN T1 without a filter: every group is kept, whatever its scores\n\n";
    golden("filter", "none", &format!("{case}{}", run("filter-t1-zeros", &NONE, &GRPO, &PPO).table()));
}

#[test]
fn golden_advantages() {
    let groups = [
        (0, "TC01, TC02: [1,0,0,1,0]"),
        (1, "TC01, TC02: [10.9,-0.5,-1.5,9.6]"),
        (2, "TC03, T6 [F: 0 unless `lone` is raw]: [2.5]"),
        (3, "TC03: [1,1,1]"),
        (4, "TC04: 10 in 4 rows, 0 in 2 rows, 0 in 6 rows"),
        (5, "T6: [1,0,0,1]"),
        (6, "T6: a, 1 in 3 rows, 0 in 2 rows"),
        (7, "T6: b, [2,2]"),
    ];
    let settings = [
        ("grpo", GRPO),
        ("std #false", Grpo { std: false, ..GRPO }),
        ("unit row", Grpo { unit: Unit::Row, ..GRPO }),
        ("unit row, std #false", Grpo { unit: Unit::Row, std: false, ..GRPO }),
        ("lone raw", Grpo { lone: Lone::Raw, ..GRPO }),
        ("lone raw, std #false", Grpo { lone: Lone::Raw, std: false, ..GRPO }),
        ("ddof 0", Grpo { ddof: 0, ..GRPO }),
    ];
    let mut out = String::from("grpo.jsonl: advantages of each group's members\n");
    for (group, case) in groups {
        writeln!(out, "\n{case}").unwrap();
        for (name, grpo) in &settings {
            let members = advantages(&run("grpo", &NONE, grpo, &PPO), group);
            let members: Vec<String> = members.iter().map(|advantage| format!("{advantage:>9.6}")).collect();
            writeln!(out, "  {name:<20}  {}", members.join("  ")).unwrap();
        }
    }
    golden("advantage", "grpo", &out);
}

#[test]
fn golden_mask() {
    let names: [(u32, &str); 9] = [
        (1, "<|im_start|>"),
        (2, "<|im_end|>"),
        (3, "newline"),
        (10, "system"),
        (11, "s"),
        (20, "user"),
        (21, "u1"),
        (22, "u2"),
        (30, "assistant"),
    ];
    let records = episode::read(&episodes("mask-t13")).unwrap();
    let replayed = run("mask-t13", &NONE, &GRPO, &PPO);
    let mut out = String::from(
        "RAGEN T13's dialogue, its padding aside. [F] The mask is on sampled content and its end token alone: not on\n\
         the role, the newline or the next turn's start, as RAGEN's is.\n\
         mask-t13.jsonl: scores 10.8 and -0.2, so advantages +-1/sqrt 2; ten sampled tokens weigh 0.1 each.\n",
    );
    for (row, record) in replayed.rows.iter().zip(&records) {
        let tokens = &record.trajectory().sequences[0].tokens;
        writeln!(out, "\nmember {}, turns {:?}", row.member, row.turns).unwrap();
        writeln!(out, "slot    id  token         mask  advantage  weight").unwrap();
        for (slot, token) in tokens.iter().enumerate() {
            let name = names.iter().find(|(id, _)| id == token).map_or("sampled", |(_, name)| name);
            let (mask, advantage, weight) = (row.mask[slot], row.advantages[slot], row.weights[slot]);
            let numbers = if mask == 1 { format!("{advantage:>9.6}  {weight:>6.3}") } else { String::new() };
            let strip = format!("{slot:>4}  {token:>4}  {name:<12}  {mask:>4}  {numbers}");
            writeln!(out, "{}", strip.trim_end()).unwrap();
        }
    }
    golden("mask", "sampled", &out);
}

#[test]
fn golden_loss() {
    let case = "verl-agent TC18, high 0.28, advantages 1 and -1\n\
                policy (-1.016667 + 1.375) / 2, clipped (2 + 2) / 12, by the dual bound 1 / 12\n\n";
    let table = run("clip-tc18", &NONE, &Grpo { std: false, ..GRPO }, &PPO).table();
    let distant = "\nverl-agent TC16 with k3, mean 2.814441; values of 0.3 and -0.9 before, 0.9 and -1.5 now,\n\
                   returns 1 and -1: with clip 0.5, half of ((0.8 - 1)^2 + (-1.5 + 1)^2) / 2 is 0.0725 (B5)\n\n";
    let objective = ObjectiveConfig { kl: KlConfig { coef: 0.1, estimator: KlEstimator::K3 }, ..PPO };
    let other = run(DISTANT, &NONE, &Grpo { std: false, ..GRPO }, &objective).table();
    golden("objective", "recorded", &format!("{case}{table}{distant}{other}"));
}

/// A turn whose response has at least so many tokens.
fn turn(least: usize) -> impl Strategy<Value = (Turn, Vec<u32>, Vec<(u32, f32, f32)>)> {
    let number = prop::num::f64::NORMAL | prop::num::f64::ZERO | prop::num::f64::SUBNORMAL;
    let small = prop::num::f32::NORMAL | prop::num::f32::ZERO | prop::num::f32::SUBNORMAL;
    let words = (".{0,12}", ".{0,12}", ".{0,12}", prop::collection::vec(".{0,5}", 0..3));
    let sampled = prop::collection::vec((any::<u32>(), small, small), least..5);
    (words, (number, number, any::<bool>(), any::<bool>()), prop::collection::vec(any::<u32>(), 0..4), sampled)
        .prop_map(|((observation, anchor, text, actions), (reward, penalty, valid, effective), prompt, sampled)| {
            let reasoning = (!sampled.is_empty()).then_some(0..sampled.len() / 2);
            let executed = actions.clone();
            let actions = if actions.is_empty() { Err(Malformed::Tags) } else { Ok(actions) };
            let reply = Reply { text, actions, reasoning };
            (Turn { observation, anchor, reply, executed, reward, penalty, valid, effective }, prompt, sampled)
        })
}

fn trajectory() -> impl Strategy<Value = (Window, Trajectory)> {
    let window = prop::sample::select(vec![Window::Full, Window::Limited, Window::SingleTurn]);
    let played = window.prop_flat_map(|window| {
        let least = usize::from(window != Window::Full);
        (Just(window), 0..20usize, prop::collection::vec(turn(least), 1..4), 0..5usize)
    });
    played.prop_map(|(window, member, played, end)| {
        let mut sequences: Vec<Sequence> = Vec::new();
        let mut turns = Vec::new();
        for (index, (turn, prompt, sampled)) in played.into_iter().enumerate() {
            if index == 0 || window != Window::Full {
                sequences.push(Sequence::default());
            }
            let sequence = sequences.last_mut().unwrap();
            sequence.tokens.extend(prompt);
            let start = sequence.tokens.len();
            sequence.tokens.extend(sampled.iter().map(|(id, _, _)| id));
            sequence.responses.push(start..sequence.tokens.len());
            sequence.turns.push(index);
            sequence.logprobs.extend(sampled.iter().map(|(_, logprob, _)| logprob));
            sequence.entropies.extend(sampled.iter().map(|(_, _, entropy)| entropy));
            sequence.reference.extend(sampled.iter().map(|(_, logprob, _)| logprob * 0.5));
            sequence.values.extend(sampled.iter().map(|(_, _, entropy)| entropy * 0.5));
            turns.push(turn);
        }
        let baseline = (end > 1).then_some(0.5);
        (window, Trajectory { member, turns, sequences, baseline, end: End::NAMES[end].0 })
    })
}

proptest! {
    #[test]
    fn writing_and_reading_are_inverse(played in trajectory(), group in 0..99usize, index in any::<u64>()) {
        let (window, trajectory) = played;
        let task = Task { env: "sokoban".into(), epoch: 3, split: Split::Eval, index };
        let line = episode::line(12, window, &task, group, &trajectory);
        prop_assert_eq!(line.contains("\"window\":"), window != Window::Full);
        let records = episode::read(&line).unwrap();
        prop_assert_eq!(records[0].line(), line.clone());
        let read = episode::group(&records);
        prop_assert_eq!(&read.members[0], &trajectory);
        prop_assert_eq!((&read.task, read.id), (&task, group));
        prop_assert_eq!(episode::line(12, records[0].window, &read.task, read.id, &read.members[0]), line);
    }
}
