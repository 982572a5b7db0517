//! What each estimator makes of recorded episodes, to be checked by hand. `grpo` has its own in `replay.rs`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use starpo::advantage::Estimator;
use starpo::replay::{Replay, RowReplay};

use crate::golden;
use crate::reward::{episodes, replayed, sampled};

/// A worked case, the file of its episodes, and the settings to show.
type Case = (&'static str, &'static str, &'static [&'static str]);

/// The cases of each estimator.
const CASES: [(&str, &[Case]); 9] = [
    (
        "rloo",
        &[(
            "TC05 (groups 0, 1), TC03 (2, 3; [F] 0 unless `lone` is raw), TC06 (4), T6 (5)",
            "grpo",
            &["advantage=rloo", "advantage=rloo unit=row", "advantage=rloo lone=raw"],
        )],
    ),
    (
        "reinforce-pp",
        &[(
            "TC07: r [0,0,0,1] and [0,-0.5]; its returns, and 0.645497 and -1.290994 with gamma 1",
            "reinforce-tc07",
            &["advantage=reinforce-pp", "advantage=reinforce-pp gamma=0.9", "advantage=reinforce-pp whiten=false"],
        )],
    ),
    (
        "reinforce-pp-baseline",
        &[(
            "TC08: scores 1 and -0.5 of 4 and 2 tokens: 0.645497 and -1.290994, centred 0.75 and -0.75",
            "reinforce-tc07",
            &["advantage=reinforce-pp-baseline", "advantage=reinforce-pp-baseline whiten=false"],
        )],
    ),
    (
        "remax",
        &[(
            "Turn scores 0.25 and 1, 0 and 0; the greedy episode scored 0.5",
            "remax",
            &["advantage=remax", "advantage=remax turn-scores=true"],
        )],
    ),
    (
        "gae",
        &[
            (
                "TC09: r [0,0,0,1], V [.1,.2,.3,.4]",
                "gae-tc09",
                &["advantage=gae", "advantage=gae whiten=false", "advantage=gae gamma=0.95 lambda=0.9 whiten=false"],
            ),
            (
                "TC10, mask-skipping: r .2 and 1 at the ends of two turns, V [.5,.6] and [.7,.8]",
                "gae-tc10",
                &["advantage=gae gamma=0.95 lambda=0.9 whiten=false turn-scores=true"],
            ),
            (
                "T7: r 3 at the end, V [.5,.4] and [.3,.2]",
                "gae-t7",
                &["advantage=gae", "advantage=gae whiten=false", "advantage=gae gamma=0.9 lambda=0.8 whiten=false"],
            ),
        ],
    ),
    (
        "bi-level-gae",
        &[
            (
                "T8: r 1 and 2 at the ends of two turns, V [.5,.4] and [.3,.2]",
                "gae-t8",
                &[
                    "advantage=bi-level-gae turn-scores=true",
                    "advantage=bi-level-gae turn-scores=true whiten=false",
                    "advantage=bi-level-gae turn-scores=true whiten=false gamma=0.9 lambda=0.8 turn-gamma=0.5",
                ],
            ),
            (
                "T8 [F]: nothing but zeros is GAE",
                "gae-t8-zero",
                &[
                    "advantage=bi-level-gae turn-scores=true whiten=false",
                    "advantage=gae turn-scores=true whiten=false",
                ],
            ),
        ],
    ),
    (
        "gigpo",
        &[(
            "TC12: rows (anchor, reward) a (s0,0)(s1,0)(s2,10), b (s0,0)(s1,0)(s1,0)(s3,0), c (s0,0)(s2,10)",
            "gigpo-tc12",
            &[
                "advantage=gigpo unit=row",
                "advantage=gigpo",
                "advantage=gigpo step-weight=0",
                "advantage=gigpo mode=mean-std",
            ],
        )],
    ),
    (
        "hgpo",
        &[(
            "On TC12's episodes: the average of histories of 0, 1 and 2 anchors, weights 1, 2, 3",
            "gigpo-tc12",
            &["advantage=hgpo history=1", "advantage=hgpo history=0 episode=false"],
        )],
    ),
    (
        "pass-k",
        &[(
            "The best of a group alone: scores of TC01 (groups 0, 1), TC03 (2, 3), TC04 (4), T6 (5, 6, 7)",
            "grpo",
            &["advantage=pass-k", "advantage=pass-k std=false"],
        )],
    ),
];

/// Numbers with runs of equal ones written once.
fn runs(numbers: &[f64]) -> String {
    let runs = numbers.chunk_by(|a, b| a == b).map(|run| match run.len() {
        1 => format!("{:.6}", run[0]),
        n => format!("{:.6} x{n}", run[0]),
    });
    runs.collect::<Vec<_>>().join("  ")
}

/// The tokens of each group: members between bars, whatever their rows.
fn by_group(replay: &Replay, array: fn(&RowReplay) -> &Vec<f64>) -> BTreeMap<usize, String> {
    let mut groups: BTreeMap<usize, BTreeMap<usize, Vec<f64>>> = BTreeMap::new();
    for (row, numbers) in replay.rows.iter().zip(sampled(replay, array)) {
        groups.entry(row.group).or_default().entry(row.member).or_default().extend(numbers);
    }
    let line = |members: BTreeMap<usize, Vec<f64>>| members.values().map(|m| runs(m)).collect::<Vec<_>>().join(" | ");
    groups.into_iter().map(|(group, members)| (group, line(members))).collect()
}

/// The credit of a file's episodes under some settings: a line a group, over its sampled tokens.
fn table(case: &str, file: &str, settings: &[&str]) -> String {
    let mut out = format!("{case}\n{file}.jsonl: tokens of each member\n");
    for overrides in settings {
        let replayed = replayed(&episodes(file), overrides).unwrap();
        let returns = by_group(&replayed, |row| &row.returns);
        writeln!(out, "  {overrides}").unwrap();
        for (group, advantages) in by_group(&replayed, |row| &row.advantages) {
            writeln!(out, "    group {group}    {advantages}").unwrap();
            if returns[&group] != advantages {
                writeln!(out, "    returns    {}", returns[&group]).unwrap();
            }
        }
    }
    out
}

#[test]
fn goldens() {
    assert!(Estimator::NAMES[1..].iter().eq(CASES.iter().map(|(name, _)| name)));
    for (name, cases) in CASES {
        let cases: Vec<String> = cases.iter().map(|(case, file, settings)| table(case, file, settings)).collect();
        golden("advantage", name, &cases.join("\n"));
    }
}
