//! Filters: RAGEN's worked cases T1 to T3 on plain scores, the contracts of every filter, and goldens from recorded
//! episodes. T4 stands with the replay of recorded episodes.

#![expect(clippy::unwrap_used, reason = "a test fails where it unwraps")]

use std::collections::BTreeMap;
use std::fmt::Write as _;

use proptest::prelude::*;
use starpo::filter::{
    EmptyConfig, EqualRewards, FilterConfig, Keep, Mass, MinP, NoFilter, Outcome, Score, Skip, TopK, TopKAbs, TopP,
    Walk,
};
use starpo::trajectory::Group;

use crate::golden;
use crate::learning::{GRPO, PPO, REWARD, TOP_P, close, group};
use crate::replay::{episodes, refusal, run};

const TOP_K: TopK = TopK {
    value: 0.5,
    score: Score::RewardStd,
    keep: Keep::Largest,
    include_zero: true,
    empty: EmptyConfig::Skip(Skip {}),
    empty_stop: 5,
};
const TOP_K_ABS: TopKAbs = TopKAbs {
    value: 4,
    score: Score::RewardStd,
    keep: Keep::Largest,
    include_zero: true,
    empty: EmptyConfig::Skip(Skip {}),
    empty_stop: 5,
};
const MIN_P: MinP = MinP {
    value: 0.5,
    score: Score::RewardStd,
    keep: Keep::Largest,
    include_zero: true,
    empty: EmptyConfig::Skip(Skip {}),
    empty_stop: 5,
};
const EQUAL: EqualRewards = EqualRewards { empty: EmptyConfig::Skip(Skip {}), empty_stop: 5 };

fn linear(value: f64) -> TopP {
    TopP { value, ..TOP_P }
}

#[test]
fn t1_linear_top_p() {
    let kept = |top_p: &TopP, scores: &[f64]| top_p.select(scores).kept;
    assert_eq!(kept(&linear(0.6), &[4.0, 3.0, 2.0, 1.0]), [0, 1]);
    assert_eq!(kept(&linear(0.9), &[4.0, 3.0, 2.0, 1.0]), [0, 1, 2]);
    assert_eq!(kept(&linear(0.9), &[1.0, 2.0, 3.0, 4.0]), [1, 2, 3]);
    assert!(kept(&linear(0.9), &[0.0; 3]).is_empty());
    assert_eq!(kept(&linear(1.0), &[0.0; 3]), [0, 1, 2]);
    assert_eq!(kept(&linear(0.5), &[1.0; 4]), [0, 1]);
    assert_eq!(kept(&linear(0.9), &[1.0; 4]), [0, 1, 2, 3]);
    assert_eq!(kept(&linear(0.9), &[0.02; 3]), [0, 1, 2]);
    let smallest = TopP { keep: Keep::Smallest, ..linear(0.9) };
    assert_eq!(kept(&smallest, &[4.0, 3.0, 2.0, 1.0]), [0, 1, 2, 3]);
    assert_eq!(Walk::new(&[4.0, 3.0, 2.0, 1.0], smallest.keep, true).order, [3, 2, 1, 0]);
    let without = |value| TopP { include_zero: false, ..linear(value) };
    assert!(kept(&without(1.0), &[0.0; 3]).is_empty());
    assert_eq!(kept(&without(1.0), &[2.0, 0.0, 1.0]), [0, 2]);
    assert!(kept(&without(0.9), &[0.005, 0.004, 0.001]).is_empty());
    assert_eq!(kept(&without(0.9), &[0.02, 0.0, 0.0]), [0]);
    // [F] Refused with the config; the function itself keeps nothing, as RAGEN's.
    assert!(kept(&linear(0.9), &[-3.0, -1.0, 2.0]).is_empty());
    assert!(FilterConfig::TopP(TopP { score: Score::RewardMean, ..TOP_P }).objection(8).is_some());
    // [F] One member: refused, and never NaN.
    assert_eq!(of(Score::RewardStd, &group(0, &[3.0], &[1])), 0.0);
    assert!(FilterConfig::TopP(TOP_P).objection(1).is_some() && FilterConfig::TopP(TOP_P).objection(2).is_none());
}

#[test]
fn t2_softmax_top_p() {
    let kept = |top_p: &TopP, scores: &[f64]| top_p.select(scores).kept;
    let softmax = |value| TopP { mass: Mass::Softmax, value, ..TOP_P };
    let steps = [5.0, 4.0, 3.0, 2.0, 1.0, 0.0, 0.0, 0.0];
    assert_eq!(kept(&softmax(0.6), &[1.0; 3]), [0, 1]);
    assert_eq!(kept(&softmax(0.9), &[0.0; 8]), [0, 1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(kept(&softmax(0.9), &[0.5, 0.5, 0.5, 0.5, 0.0, 0.0, 0.0, 0.0]), [0, 1, 2, 3, 4, 5, 6]);
    assert_eq!(kept(&softmax(0.9), &[0.5, 0.4, 0.3, 0.2, 0.1, 0.0, 0.0, 0.0]), [0, 1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(kept(&softmax(0.9), &steps), [0, 1, 2]);
    assert_eq!(kept(&linear(0.9), &steps), [0, 1, 2, 3]);
    // Ties to the lowest index: the same set as RAGEN's here, in the order 5, 6, 7, 4.
    let smallest = TopP { keep: Keep::Smallest, ..softmax(0.9) };
    assert_eq!(kept(&smallest, &steps), [4, 5, 6, 7]);
    assert_eq!(Walk::new(&steps, smallest.keep, true).order[..4], [5, 6, 7, 4]);
    assert_eq!(kept(&TopP { include_zero: false, ..softmax(0.9) }, &[10.0, 1.0, 0.0, 0.0]), [0]);
}

#[test]
fn t3_top_k() {
    let scores = [0.1, 0.9, 0.5, 0.7];
    let kept = |top_k: &TopK, scores: &[f64]| top_k.select(scores).kept;
    assert_eq!(kept(&TopK { value: 0.5, ..TOP_K }, &scores), [1, 3]);
    assert_eq!(kept(&TopK { value: 0.5, keep: Keep::Smallest, ..TOP_K }, &scores), [0, 2]);
    assert_eq!(kept(&TopK { value: 0.1, ..TOP_K }, &scores), [1]);
    assert_eq!(kept(&TopK { value: 0.75, include_zero: false, ..TOP_K }, &[0.0, 0.9, 0.0, 0.7]), [1, 3]);
    // [F] Eight equal scores: RAGEN keeps groups 6 and 5.
    assert_eq!(kept(&TopK { value: 0.25, ..TOP_K }, &[1.0; 8]), [0, 1]);
    let kept = |value: usize| TopKAbs { value, ..TOP_K_ABS }.select(&scores).kept;
    assert_eq!((kept(3), kept(10), kept(0)), (vec![1, 2, 3], vec![0, 1, 2, 3], vec![1]));
}

#[test]
fn t3_min_p() {
    let select = |min_p: &MinP, scores: &[f64]| {
        let outcome = min_p.select(scores);
        (outcome.kept, outcome.threshold)
    };
    assert_eq!(select(&MinP { value: 0.8, ..MIN_P }, &[1.0, 0.8, 0.79, 0.1]), (vec![0, 1], Some(0.8)));
    let smallest = MinP { keep: Keep::Smallest, ..MIN_P };
    assert_eq!(select(&smallest, &[0.1, 0.2, 0.21, 0.9]), (vec![0, 1], Some(0.2)));
    assert_eq!(select(&smallest, &[0.0, 0.2, 0.9]), (vec![0], Some(0.0)));
    assert_eq!(select(&MinP { include_zero: false, ..smallest }, &[0.0, 0.2, 0.9]), (vec![1], Some(0.4)));
    // A best score below 0 is below its own cut.
    assert_eq!(select(&MIN_P, &[-2.0, -4.0]), (vec![], Some(-1.0)));
    assert_eq!(select(&MinP { value: 1.0, ..MIN_P }, &[-2.0, -4.0]), (vec![0], Some(-2.0)));
    assert_eq!(select(&MinP { value: 0.0, ..MIN_P }, &[0.0, 3.0, 1.0]), (vec![0, 1, 2], Some(0.0)));
    assert_eq!(select(&MinP { include_zero: false, ..MIN_P }, &[0.0; 2]), (vec![], None));
}

fn of(score: Score, group: &Group) -> f64 {
    score.of(group, &group.scores())
}

#[test]
fn scores_of_groups() {
    let arms = group(0, &[1.0, 0.0, 0.0, 1.0], &[1, 2, 3, 4]);
    let arms = |score: Score| of(score, &arms);
    close(&[arms(Score::RewardStd), arms(Score::RewardVariance)], &[(1.0f64 / 3.0).sqrt(), 1.0 / 3.0], 1e-15);
    assert_eq!((arms(Score::RewardMean), arms(Score::RewardSum)), (0.5, 2.0));
    // Token t has an entropy of −(0.5 + t/4) here, so the members' means are −(0.5 + (n − 1)/8) for n tokens.
    close(&[arms(Score::Entropy), arms(Score::EntropyStd)], &[-0.6875, (5.0f64 / 3.0).sqrt() / 8.0], 1e-7);
    assert_eq!(arms(Score::Length), 2.5);
    assert_eq!(of(Score::RewardVariance, &group(0, &[10.9; 7], &[1; 7])), 0.0);
    assert!(of(Score::Entropy, &group(0, &[1.0, 0.0], &[0, 1])).is_nan(), "a member that said nothing has none");
    assert_eq!(starpo::filter::zero(&groups(&[0, 1, 0])), 2);
}

/// Every filter in many settings, for the contracts.
fn filters() -> Vec<FilterConfig> {
    let mut all = vec![FilterConfig::None(NoFilter {}), FilterConfig::EqualRewards(EQUAL)];
    for (value, include_zero) in [(0.0, true), (0.5, false), (0.9, true), (0.9, false), (1.0, false)] {
        for keep in [Keep::Largest, Keep::Smallest] {
            for mass in [Mass::Linear, Mass::Softmax] {
                all.push(FilterConfig::TopP(TopP { value, include_zero, keep, mass, ..TOP_P }));
            }
            for score in [Score::RewardStd, Score::Entropy, Score::EntropyStd, Score::Length] {
                all.push(FilterConfig::TopK(TopK { value, score, include_zero, keep, ..TOP_K }));
                all.push(FilterConfig::MinP(MinP { value, score, include_zero, keep, ..MIN_P }));
            }
            let value = (4.0 * value) as usize;
            all.push(FilterConfig::TopKAbs(TopKAbs { value, include_zero, keep, ..TOP_K_ABS }));
        }
    }
    assert!(FilterConfig::NAMES.iter().all(|name| all.iter().any(|filter| filter.name() == *name)));
    all
}

/// Groups of two that differ the more, in score, entropy and length, the larger the number.
fn groups(spreads: &[u32]) -> Vec<Group> {
    let spread = |(id, spread): (usize, &u32)| group(id, &[0.0, f64::from(*spread) / 8.0], &[1, 1 + *spread as usize]);
    spreads.iter().enumerate().map(spread).collect()
}

fn all_of(outcome: &Outcome) -> Vec<usize> {
    let mut all: Vec<usize> = outcome.kept.iter().copied().chain(outcome.dropped.iter().map(|d| d.0)).collect();
    assert!(outcome.kept.is_sorted() && outcome.dropped.is_sorted_by_key(|d| d.0));
    all.sort_unstable();
    all
}

proptest! {
    #[test]
    fn filters_partition_and_break_ties_by_index(spreads in prop::collection::vec(0..6u32, 0..10)) {
        let played = groups(&spreads);
        for filter in filters() {
            let outcome = filter.apply(&played, &REWARD.scores(&played));
            prop_assert_eq!(all_of(&outcome), (0..played.len()).collect::<Vec<_>>());
            for (late, spread) in spreads.iter().enumerate().filter(|(late, _)| outcome.kept.contains(late)) {
                let equal = (0..late).filter(|early| spreads[*early] == *spread);
                prop_assert!(equal.clone().all(|early| outcome.kept.contains(&early)), "{:?} {:?}", filter, outcome);
            }
        }
    }

    #[test]
    fn verdicts_follow_their_groups(
        order in prop::collection::btree_set(0..60u32, 1..10).prop_map(Vec::from_iter).prop_shuffle(),
    ) {
        let sorted = { let mut sorted = order.clone(); sorted.sort_unstable(); sorted };
        for filter in filters() {
            let verdicts = |spreads: &[u32]| -> BTreeMap<u32, Option<&'static str>> {
                let groups = groups(spreads);
                let outcome = filter.apply(&groups, &REWARD.scores(&groups));
                let reason = |index: usize| outcome.reason(index).map(|reason| reason.name());
                spreads.iter().enumerate().map(|(index, spread)| (*spread, reason(index))).collect()
            };
            prop_assert_eq!(verdicts(&order), verdicts(&sorted));
        }
    }

    #[test]
    fn a_score_that_is_no_number_is_never_kept(
        scores in prop::collection::vec(prop::option::of(0..9u32), 0..9), include_zero in any::<bool>(),
    ) {
        let scores: Vec<f64> = scores.into_iter().map(|score| score.map_or(f64::NAN, f64::from)).collect();
        for keep in [Keep::Largest, Keep::Smallest] {
            let outcomes = [
                TopP { include_zero, keep, ..TOP_P }.select(&scores),
                TopP { include_zero, keep, mass: Mass::Softmax, ..TOP_P }.select(&scores),
                TopK { include_zero, keep, value: 1.0, ..TOP_K }.select(&scores),
                TopKAbs { include_zero, keep, ..TOP_K_ABS }.select(&scores),
                MinP { include_zero, keep, ..MIN_P }.select(&scores),
                EQUAL.select(&scores),
            ];
            for outcome in outcomes {
                for (index, score) in scores.iter().enumerate() {
                    let no_score = outcome.reason(index).is_some_and(|reason| reason.name() == "no-score");
                    prop_assert_eq!(no_score, score.is_nan());
                }
            }
        }
    }
}

/// The verdicts of one replay under one setting.
fn table(case: &str, file: &str, filter: FilterConfig, setting: &str) -> String {
    let replayed = run(file, &filter, &GRPO, &PPO);
    let threshold = replayed.filter.threshold.map_or("none".into(), |cut| format!("{cut:.6}"));
    let mut out = format!("{case}\n{file}.jsonl: {setting}\nthreshold {threshold}, kept {:?}\n", replayed.filter.kept);
    writeln!(out, "group  score     verdict  reason         scores").unwrap();
    for group in &replayed.groups {
        let verdict = if group.kept { "keep" } else { "drop" };
        let (score, reason) = (group.score.unwrap(), group.reason.unwrap_or("-"));
        writeln!(out, "{:>5}  {score:<8.6}  {verdict:<7}  {reason:<13}  {:?}", group.group, group.scores).unwrap();
    }
    out
}

#[test]
fn golden_top_k() {
    let mean = TopK { score: Score::RewardMean, ..TOP_K };
    let top_k = |case, file, top_k: TopK| {
        let TopK { value, score, keep, include_zero, .. } = &top_k;
        let (score, keep) = (score.name(), keep.name());
        let setting = format!("value {value} score {score} keep {keep} include-zero {include_zero}");
        table(case, file, FilterConfig::TopK(top_k), &setting)
    };
    let tables = [
        top_k("RAGEN T3: [.1,.9,.5,.7], .5 keeps {1,3}", "filter-t3-top-k", mean.clone()),
        top_k(
            "RAGEN T3: the same, smallest, keeps {0,2}",
            "filter-t3-top-k",
            TopK { keep: Keep::Smallest, ..mean.clone() },
        ),
        top_k("RAGEN T3: the same, .1 keeps {1}", "filter-t3-top-k", TopK { value: 0.1, ..mean.clone() }),
        top_k(
            "RAGEN T3: [0,.9,0,.7], .75 of all four, without zeros keeps {1,3}",
            "filter-t3-zeros",
            TopK { value: 0.75, include_zero: false, ..mean },
        ),
        top_k("RAGEN T4: the half of largest spread is {0,2}", "filter-t4", TOP_K),
    ];
    golden("filter", "top-k", &tables.join("\n"));
    let scored = |case, score| top_k(case, "filter-scores", TopK { score, value: 0.34, ..TOP_K });
    let tables = [
        "By hand: members' token entropies [1|0], [.25] · [.5,.5,.5,.5], [.5] · [2], [1,0,.5]\n".to_owned(),
        scored("means .5 .25, .5 .5, 2 .5; their means .375, .5, 1.25", Score::Entropy),
        scored("their deviations .25, 0 and 1.5 over sqrt 2", Score::EntropyStd),
        scored("tokens 2 1, 4 1, 1 3; their means 1.5, 2.5, 2", Score::Length),
    ];
    golden("filter", "top-k-scores", &tables.join("\n"));
}

#[test]
fn golden_top_k_abs() {
    let top_k = |case, value| {
        let filter = TopKAbs { value, score: Score::RewardMean, ..TOP_K_ABS };
        let setting = format!("value {value} score reward-mean keep largest include-zero true");
        table(case, "filter-t3-top-k", FilterConfig::TopKAbs(filter), &setting)
    };
    let tables = [
        top_k("RAGEN T3: [.1,.9,.5,.7], 3 keeps {1,3,2}", 3),
        top_k("RAGEN T3: the same, 10 keeps all", 10),
        top_k("RAGEN T3: the same, 0 keeps {1}", 0),
    ];
    golden("filter", "top-k-abs", &tables.join("\n"));
}

#[test]
fn golden_min_p() {
    let min_p = |case, file, min_p: MinP| {
        let min_p = MinP { score: Score::RewardMean, ..min_p };
        let MinP { value, keep, include_zero, .. } = &min_p;
        let setting = format!("value {value} score reward-mean keep {} include-zero {include_zero}", keep.name());
        table(case, file, FilterConfig::MinP(min_p), &setting)
    };
    let smallest = MinP { keep: Keep::Smallest, ..MIN_P };
    let tables = [
        min_p("RAGEN T3: [1,.8,.79,.1], .8 keeps {0,1}", "filter-t3-min-p", MinP { value: 0.8, ..MIN_P }),
        min_p("RAGEN T3: smallest [.1,.2,.21,.9], .5 keeps {0,1}", "filter-t3-min-p-smallest", smallest.clone()),
        min_p("RAGEN T3: smallest [0,.2,.9], .5 keeps {0}", "filter-t3-min-p-zero", smallest.clone()),
        min_p(
            "RAGEN T3: the same without zeros keeps {1}",
            "filter-t3-min-p-zero",
            MinP { include_zero: false, ..smallest },
        ),
        min_p("RAGEN T1's [-3,-1,2], largest: the cut is half of 2", "filter-t1-negative", MIN_P),
    ];
    golden("filter", "min-p", &tables.join("\n"));
}

#[test]
fn golden_equal_rewards() {
    let case = "RAGEN T4: [1,0,0,0 | 1,1,1,1 | 1,1,0,0 | 0,0,0,0]; DAPO learns from {0,2}, where 0 < correct < 4";
    let equal = || FilterConfig::EqualRewards(EQUAL);
    let tables = [
        table(case, "filter-t4", equal(), "scored by the deviation"),
        table("RAGEN T1: [0,0,0] keeps nothing", "filter-t1-zeros", equal(), "scored by the deviation"),
    ];
    golden("filter", "equal-rewards", &tables.join("\n"));
}

#[test]
fn what_a_filter_cannot_judge_is_refused() {
    let entropy = |score| FilterConfig::TopK(TopK { score, ..TOP_K });
    for score in [Score::Entropy, Score::EntropyStd] {
        let refused = refusal(&episodes("filter-t4"), &entropy(score));
        let name = score.name();
        let why = format!("filter.score \"{name}\" needs entropies: member 0 of group 0 has none recorded");
        assert_eq!(refused, why);
    }
    let lone = refusal(&episodes("filter-t3-top-k"), &entropy(Score::EntropyStd));
    assert_eq!(lone, "filter.score \"entropy-std\" is a spread: a group of one member has none");
    let alone = refusal(&episodes("filter-t3-top-k"), &FilterConfig::EqualRewards(EQUAL));
    assert_eq!(alone, "filter \"equal-rewards\" compares members: a group of one has no other");
    // RAGEN T1 [F]: a linear mass over scores that can be negative is no mass.
    let negative = FilterConfig::TopP(TopP { score: Score::RewardSum, ..TOP_P });
    assert!(refusal(&episodes("filter-t1-negative"), &negative).starts_with("filter.mass \"linear\""));
}
