//! Rewards: the worked cases of normalisation, step returns and KL in the reward, on plain numbers and on recorded
//! episodes.

use std::sync::LazyLock;

use proptest::prelude::*;
use starpo::experiment::{Outside, ResolvedConfig, resolve_rules};
use starpo::objective::KlEstimator;
use starpo::replay::{Replay, RowReplay, Rules, replay};
use starpo::reward::kl::AdaptiveKl;
use starpo::reward::{KlConfig, NormaliseConfig, discounted, step_returns};
use starpo::trajectory::{Malformed, Reply, Turn};

use crate::learning::close;

/// What `starpo replay FILE` goes by, with these overrides of `configs/base.kdl`.
pub(crate) fn rules(overrides: &str) -> ResolvedConfig {
    let overrides: Vec<String> = overrides.split_whitespace().map(str::to_owned).collect();
    resolve_rules(None, &overrides, &Outside::new(env!("CARGO_MANIFEST_DIR").as_ref())).unwrap().config
}

pub(crate) fn episodes(name: &str) -> String {
    std::fs::read_to_string(format!("{}/golden/episodes/{name}.jsonl", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

pub(crate) fn replayed(text: &str, overrides: &str) -> Result<Replay, String> {
    let config = rules(overrides);
    let rules = Rules {
        filter: &config.filter,
        reward: &config.reward,
        advantage: &config.advantage,
        objective: &config.objective,
    };
    replay(text, &rules).map_err(|error| error.to_string())
}

/// What each row's unmasked tokens have.
pub(crate) fn sampled(replay: &Replay, array: fn(&RowReplay) -> &Vec<f64>) -> Vec<Vec<f64>> {
    let of = |row: &RowReplay| -> Vec<f64> {
        array(row).iter().zip(&row.mask).filter(|(_, mask)| **mask == 1).map(|(value, _)| *value).collect()
    };
    replay.rows.iter().map(of).collect()
}

/// The rewards of all unmasked tokens.
fn rewards(file: &str, overrides: &str) -> Vec<f64> {
    sampled(&replayed(&episodes(file), overrides).unwrap(), |row| &row.rewards).concat()
}

#[test]
fn t15_normalisation() {
    let t15 = |overrides: &str| rewards("normalise-t15", overrides);
    close(&t15(""), &[1.0, 0.0, -0.1, 1.0, 2.0, 2.0, 2.0, 2.0], 1e-12);
    close(&t15("normalise=mean"), &[0.525, -0.475, -0.575, 0.525, 0.0, 0.0, 0.0, 0.0], 1e-12);
    let by_group = [0.86407, -0.78177, -0.94636, 0.86407, 0.0, 0.0, 0.0, 0.0];
    close(&t15("normalise=mean-std"), &by_group, 5e-6);
    close(&t15("normalise=mean-std normalise.by=environment"), &by_group, 5e-6);
    let batch = [-0.2375, -1.2375, -1.3375, -0.2375, 0.7625, 0.7625, 0.7625, 0.7625];
    close(&t15("normalise=mean normalise.by=batch"), &batch, 1e-12);
    let batch = [-0.26185, -1.36436, -1.47461, -0.26185, 0.84067, 0.84067, 0.84067, 0.84067];
    close(&t15("normalise=mean-std normalise.by=batch"), &batch, 5e-6);
    close(&t15("normalise=asym-clip normalise.by=batch"), &batch.map(|score| score.clamp(-1.0, 3.0)), 5e-6);
    let spike = |overrides: &str| rewards("normalise-t15-spike", overrides);
    close(&spike("normalise=mean-std")[14..], &[-0.25, 3.75], 5e-6);
    close(&spike("normalise=asym-clip")[14..], &[-0.25, 3.0], 5e-6);
    for normalise in ["identity", "mean", "mean-std", "asym-clip"] {
        close(&rewards("normalise-t15-lone", &format!("normalise={normalise}")), &[1.0, 4.9], 1e-12);
    }
}

#[test]
fn filters_see_normalised_scores_only_before_the_filter() {
    let scores = |overrides: &str| replayed(&episodes("normalise-t15"), overrides).unwrap().groups[0].scores.clone();
    close(&scores("normalise=mean"), &[1.0, 0.0, -0.1, 1.0], 1e-12);
    close(&scores("normalise=mean when=before-filter"), &[0.525, -0.475, -0.575, 0.525], 1e-12);
    // Of the kept group alone, or of both: the second group's spread is 0, so that it is dropped.
    let kept = |overrides: &str| {
        let all = "filter=top-p include-zero=false normalise=mean normalise.by=batch";
        rewards("normalise-t15", &format!("{all} {overrides}"))
    };
    close(&kept(""), &[0.525, -0.475, -0.575, 0.525], 1e-12);
    close(&kept("when=before-filter"), &[-0.2375, -1.2375, -1.3375, -0.2375], 1e-12);
}

#[test]
fn t13_turn_scores() {
    // Ours are on the end token; RAGEN's are on the newline after it. The penalty, there dropped, is its turn's.
    let text = episodes("gae-t8").replace("\"reward\":2.0", "\"reward\":2.0,\"penalty\":-0.5");
    let rewards = |overrides: &str| sampled(&replayed(&text, overrides).unwrap(), |row| &row.rewards).concat();
    assert_eq!(rewards("turn-scores=true"), [0.0, 1.0, 0.0, 1.5]);
    assert_eq!(rewards(""), [0.0, 0.0, 0.0, 2.5]);
}

#[test]
fn penalties_count_where_they_are_said_to() {
    let text = episodes("gigpo-tc12").replacen(
        r#"{"turn":2,"anchor":"s1","reward":0.0},{"turn":3,"anchor":"s1","reward":0.0}"#,
        r#"{"turn":2,"anchor":"s1","reward":0.0,"penalty":-0.5},{"turn":3,"anchor":"s1","reward":0.0}"#,
        1,
    );
    let of = |overrides: &str| replayed(&text, overrides).unwrap();
    let episode = of("");
    assert_eq!(episode.groups[0].scores, [10.0, -0.5, 10.0]);
    assert_eq!(sampled(&episode, |row| &row.rewards).concat(), [10.0, 10.0, 10.0, -0.5, -0.5, -0.5, -0.5, 10.0, 10.0]);
    let row = of("penalty-to=row unit=row");
    assert_eq!(row.groups[0].scores, [10.0, 0.0, 10.0]);
    assert_eq!(sampled(&row, |row| &row.rewards).concat(), [10.0, 10.0, 10.0, 0.0, -0.5, 0.0, 0.0, 10.0, 10.0]);
}

#[test]
fn tc11_step_returns() {
    close(&discounted(&[0.0, 0.0, 0.0, 10.0], 0.95), &[8.57375, 9.025, 9.5, 10.0], 1e-12);
    close(&discounted(&[-0.1, -0.1, -0.1, 10.9], 0.95), &[9.060_137_5, 9.64225, 10.255, 10.9], 1e-12);
    close(&discounted(&[0.0, 1.0, 0.0, 2.0], 1.0), &[3.0, 3.0, 2.0, 2.0], 1e-12);
    // In f64, where f32 gives 4.2910056.
    let long: Vec<f64> = [-0.1; 14].into_iter().chain([10.9]).collect();
    close(&discounted(&long, 0.95)[..1], &[4.291_007], 1e-6);
    // A penalty is its own turn's, and no earlier one's.
    let turn = |reward: f64, penalty: f64| {
        let reply = Reply { text: String::new(), actions: Err(Malformed::Tags), reasoning: None };
        let (observation, anchor, executed) = (String::new(), String::new(), Vec::new());
        Turn { observation, anchor, reply, executed, reward, penalty, valid: true, effective: true }
    };
    close(&step_returns(&[turn(1.0, 0.0), turn(2.0, -0.25), turn(4.0, 0.0)], 0.5), &[3.0, 3.75, 4.0], 1e-12);
}

#[test]
fn b4_kl_in_the_reward() {
    let kl = |overrides: &str| rewards("kl-b4", overrides);
    // Its fourth token is masked; ours has no place there.
    close(&kl("reward.kl=fixed reward.kl.coef=0.05"), &[-0.01, 0.005, 1.025], 1e-7);
    close(&kl("reward.kl=fixed reward.kl.coef=0.05 reward.kl.estimator=abs"), &[-0.01, -0.005, 0.975], 1e-7);
    close(&kl("reward.kl=adaptive reward.kl.coef=0.05"), &[-0.01, 0.005, 1.025], 1e-7);
    // The estimators see the score less the KL: 1 + 0.05 · 0.4.
    let replayed =
        replayed(&episodes("kl-b4"), "reward.kl=fixed reward.kl.coef=0.05 advantage=grpo lone=raw std=false").unwrap();
    close(&sampled(&replayed, |row| &row.advantages).concat(), &[1.02; 3], 1e-7);
    assert_eq!(replayed.groups[0].scores, [1.0]);
}

#[test]
fn b4_adaptive_coefficient() {
    let adaptive = AdaptiveKl { coef: 0.001, target: 0.1, horizon: 10_000.0, estimator: KlEstimator::K1 };
    let adaptive = KlConfig::Adaptive(adaptive);
    let next = |kl: f64| adaptive.next(adaptive.start(), kl, 128);
    close(&[next(0.05), next(0.11), next(0.3)], &[0.000_997_44, 0.001_001_28, 0.001_002_56], 1e-12);
    let config = rules("reward.kl=fixed reward.kl.coef=0.5").reward;
    assert_eq!((config.kl.start(), config.kl.next(0.5, 9.0, 128)), (0.5, 0.5));
}

#[test]
fn what_rewards_need_and_the_file_lacks_is_named() {
    let lack = |file: &str, overrides: &str| replayed(&episodes(file), overrides).unwrap_err();
    assert_eq!(
        lack("gae-t7", "reward.kl=fixed"),
        "reward.kl \"fixed\" needs `logprobs`, which member 0 of group 0 lacks"
    );
    let text = episodes("kl-b4").replace("ref_logprobs", "entropies");
    assert_eq!(
        replayed(&text, "reward.kl=adaptive").unwrap_err(),
        "reward.kl \"adaptive\" needs `ref_logprobs`, which member 0 of group 0 lacks"
    );
    assert_eq!(
        lack("filter-t4", "advantage=bi-level-gae"),
        "advantage \"bi-level-gae\" needs `values`, which member 0 of group 0 lacks"
    );
    assert_eq!(
        lack("filter-t4", "advantage=remax"),
        "advantage \"remax\" needs `baseline`, which member 0 of group 0 lacks"
    );
}

/// Every normalisation but `identity`, by group, environment and batch.
static NORMALISE: LazyLock<Vec<NormaliseConfig>> = LazyLock::new(|| {
    let by =
        |name: &'static str| ["group", "environment", "batch"].map(|by| format!("normalise={name} normalise.by={by}"));
    let all = ["mean", "mean-std", "asym-clip"].into_iter().flat_map(by);
    all.map(|overrides| rules(&overrides).reward.normalise).collect()
});

proptest! {
    #[test]
    fn normalised_scores_are_centred_and_ignore_a_constant(
        scores in prop::collection::vec(prop::collection::vec(-50..50i32, 2..5), 1..5), shift in -100..100i32,
    ) {
        let envs: Vec<&str> = (0..scores.len()).map(|group| ["a", "b"][group % 2]).collect();
        for normalise in NORMALISE.iter() {
            let at = |shift: i32| -> Vec<f64> {
                let score = |score: &i32| f64::from(score + shift) / 8.0;
                let raw: Vec<Vec<f64>> = scores.iter().map(|members| members.iter().map(score).collect()).collect();
                normalise.apply(&envs, &raw).concat()
            };
            let (here, there) = (at(0), at(shift));
            let clipped = matches!(normalise, NormaliseConfig::AsymClip(_));
            prop_assert!(clipped || here.iter().sum::<f64>().abs() <= 1e-9);
            prop_assert!(here.iter().zip(there).all(|(a, b)| (a - b).abs() <= 1e-9));
        }
    }
}
