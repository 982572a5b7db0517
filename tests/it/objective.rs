//! Objectives, distances to the reference and the value loss: worked cases, derivatives, goldens.
//!
//! Case numbers with T are RAGEN's, with TC and B verl-agent's.

#![expect(clippy::unwrap_used, reason = "writing to a string cannot fail")]

use std::fmt::Write as _;

use proptest::prelude::*;
use starpo::objective::value::square;
use starpo::objective::{
    Bounds, Cispo, Clip, Gspo, KlConfig, KlEstimator, ObjectiveConfig, PolicyLoss, Ppo, Reinforce, Surrogate, Tokens,
};

use crate::golden;
use crate::learning::{PPO, close};

const CLIP: Clip = Clip { low: 0.2, high: 0.28, dual: Some(3.0) };
const RATIOS: [f64; 6] = [0.5, 0.79, 1.0, 1.25, 1.4, 4.0];
const ESTIMATORS: [KlEstimator; 4] = [KlEstimator::K1, KlEstimator::K2, KlEstimator::K3, KlEstimator::Abs];

/// One objective of every kind, each with another distance to the reference, for the contracts.
pub(crate) fn objectives() -> Vec<ObjectiveConfig> {
    let bounds = Bounds { low: 0.2, high: 0.28 };
    let policies = [
        PolicyLoss::Ppo(Ppo { clip: CLIP }),
        PolicyLoss::Ppo(Ppo { clip: Clip { dual: None, ..CLIP } }),
        PolicyLoss::Gspo(Gspo { clip: bounds.clone() }),
        PolicyLoss::Cispo(Cispo { clip: bounds }),
        PolicyLoss::Reinforce(Reinforce {}),
    ];
    assert!(PolicyLoss::NAMES.iter().all(|name| policies.iter().any(|policy| policy.name() == *name)));
    let with = |(at, policy): (usize, PolicyLoss)| ObjectiveConfig {
        policy,
        kl: KlConfig { coef: 0.3, estimator: ESTIMATORS[at % 4] },
        entropy_coef: 0.05,
        value_coef: 0.7,
        value_clip: (at != 1).then_some(0.5),
        ..PPO
    };
    policies.into_iter().enumerate().map(with).collect()
}

#[test]
fn tc16_kl() {
    let logprobs: [f64; 6] = [-1.0, -0.5, -2.0, -3.0, -20.0, -1.0];
    let reference = [-1.2, -0.5, -1.0, -2.5, -1.0, -8.0];
    let estimates = |estimator: KlEstimator| -> Vec<f64> {
        logprobs.iter().zip(reference).map(|(logprob, reference)| estimator.at(logprob - reference).0).collect()
    };
    close(&estimates(KlEstimator::K1), &[0.2, 0.0, -1.0, -0.5, -19.0, 7.0], 1e-12);
    close(&estimates(KlEstimator::Abs), &[0.2, 0.0, 1.0, 0.5, 19.0, 7.0], 1e-12);
    close(&estimates(KlEstimator::K2), &[0.02, 0.0, 0.5, 0.125, 180.5, 24.5], 1e-12);
    let k3 = [0.018_730_753, 0.0, 0.718_281_828, 0.148_721_271, 10.0, 6.000_911_882];
    close(&estimates(KlEstimator::K3), &k3, 1e-9);
    // Beyond the bounds k3 is at rest.
    assert_eq!([-19.0, -21.0, 21.0].map(|d| KlEstimator::K3.at(d)), [(10.0, 0.0); 3]);
    assert!(ESTIMATORS.iter().all(|estimator| estimator.at(f64::NAN).0.is_nan()));
    assert!(ESTIMATORS[1..].iter().all(|estimator| estimator.at(0.0) == (0.0, 0.0)));
}

fn softmax(logits: &[f64]) -> Vec<f64> {
    let sum: f64 = logits.iter().map(|logit| logit.exp()).sum();
    logits.iter().map(|logit| logit.exp() / sum).collect()
}

/// The expected gradient in the policy's logits of an estimator as a loss, over tokens of the policy itself:
/// E[f′(d)·(e_a − π)], exactly.
fn expected_gradient(estimator: KlEstimator, policy: &[f64], reference: &[f64]) -> Vec<f64> {
    let slopes: Vec<f64> = policy.iter().zip(reference).map(|(p, q)| estimator.at((p / q).ln()).1).collect();
    let mean: f64 = policy.iter().zip(&slopes).map(|(p, slope)| p * slope).sum();
    policy.iter().zip(&slopes).map(|(p, slope)| p * (slope - mean)).collect()
}

/// ∇KL(π ‖ π_ref) in the policy's logits.
fn kl_gradient(policy: &[f64], reference: &[f64]) -> Vec<f64> {
    let d: Vec<f64> = policy.iter().zip(reference).map(|(p, q)| (p / q).ln()).collect();
    let kl: f64 = policy.iter().zip(&d).map(|(p, d)| p * d).sum();
    policy.iter().zip(&d).map(|(p, d)| p * (d - kl)).collect()
}

#[test]
fn t11_the_expected_gradient_of_a_kl_loss() {
    let (policy, reference) = (softmax(&[0.2, -0.3, 0.0]), softmax(&[0.0, 0.0, 1.0]));
    let of = |estimator| expected_gradient(estimator, &policy, &reference);
    close(&kl_gradient(&policy, &reference), &[0.218_593, 0.007_539, -0.226_132], 1e-6);
    close(&of(KlEstimator::K1), &[0.0; 3], 1e-12);
    close(&of(KlEstimator::K2), &kl_gradient(&policy, &reference), 1e-12);
    close(&of(KlEstimator::K3), &[0.200_385, 0.038_147, -0.238_532], 1e-6);
}

#[test]
fn tc18_clip() {
    let losses = |high: f64, advantage: f64| -> Vec<f64> {
        let clip = Clip { high, ..CLIP };
        RATIOS.iter().map(|ratio| clip.surrogate(ratio.ln(), advantage).loss).collect()
    };
    close(&losses(0.2, 1.0), &[-0.5, -0.79, -1.0, -1.2, -1.2, -1.2], 1e-12);
    close(&losses(0.28, 1.0), &[-0.5, -0.79, -1.0, -1.25, -1.28, -1.28], 1e-12);
    for high in [0.2, 0.28] {
        close(&losses(high, -1.0), &[0.8, 0.8, 1.0, 1.25, 1.4, 3.0], 1e-12);
    }
    close(&losses(0.28, -2.0), &[1.6, 1.6, 2.0, 2.5, 2.8, 6.0], 1e-12);
    let mixed = PPO.loss(&Tokens {
        logprobs: &[-0.9, -1.3, -0.2],
        entropies: &[0.0; 3],
        old: &[-1.0; 3],
        advantages: &[0.5, -0.7, -1.2],
        weights: &[1.0 / 3.0; 3],
        ..Tokens::default()
    });
    close(&[mixed.terms.policy, mixed.terms.share(mixed.terms.clipped)], &[0.892_687_885, 1.0 / 3.0], 1e-9);
    let unbounded = Clip { dual: None, ..CLIP }.surrogate(4.0f64.ln(), -1.0);
    close(&[unbounded.loss, unbounded.derivative], &[4.0, 4.0], 1e-12);
}

/// TC18's mixed row: its log-ratios 0.1, −0.3 and 0.8 have the mean 0.2.
fn mixed(advantages: &[f64; 3], gspo: &Gspo) -> Vec<Surrogate> {
    let row = Tokens { logprobs: &[-0.9, -1.3, -0.2], old: &[-1.0; 3], advantages, ..Tokens::default() };
    gspo.surrogates(&row)
}

#[test]
fn gspo_has_one_ratio_a_row() {
    let (ratio, wide) = (0.2f64.exp(), Gspo { clip: Bounds { low: 0.2, high: 0.28 } });
    let tokens = mixed(&[0.5, -0.7, -1.2], &wide);
    close(&tokens.iter().map(|token| token.ratio).collect::<Vec<_>>(), &[ratio; 3], 1e-12);
    close(&tokens.iter().map(|token| token.loss).collect::<Vec<_>>(), &[0.5, -0.7, -1.2].map(|a| -a * ratio), 1e-12);
    let tight = Gspo { clip: Bounds { low: 3e-4, high: 4e-4 } };
    let tokens = mixed(&[0.5, -0.7, -1.2], &tight);
    close(&[tokens[0].loss, tokens[0].derivative, tokens[1].loss], &[-0.5 * 1.0004, 0.0, 0.7 * ratio], 1e-12);
    assert_eq!(tokens.iter().map(|token| token.clipped).collect::<Vec<_>>(), [true, false, false]);
    // The exponent ends at 10; a row without tokens has none.
    let far = Tokens { logprobs: &[0.0, 0.0], old: &[-30.0, -1.0], advantages: &[-1.0; 2], ..Tokens::default() };
    let far = &wide.surrogates(&far)[0];
    close(&[far.loss, far.derivative], &[10.0f64.exp(), 0.0], 1e-12);
    assert!(wide.surrogates(&Tokens::default()).is_empty());
}

#[test]
fn b5_value_clip() {
    let tokens = [(0.9, 0.3, 1.0), (0.2, 0.3, 0.0), (1.5, 0.9, 1.0)].map(|(v, old, r)| square(Some(0.5), v, old, r));
    // verl-agent's verl has no ½.
    close(&tokens.map(|token| 2.0 * token.loss), &[0.04, 0.04, 0.25], 1e-12);
    close(&[tokens.iter().map(|token| token.loss).sum::<f64>() / 3.0], &[0.055], 1e-12);
    assert_eq!(tokens.map(|token| token.clipped), [true, false, false]);
    close(&tokens.map(|token| token.derivative), &[0.0, 0.2, 0.5], 1e-12);
    close(&[square(None, 0.9, 0.3, 1.0).loss], &[0.005], 1e-12);
    assert!(square(Some(0.5), f64::NAN, 0.0, 1.0).derivative.is_nan());
}

/// The rollout correction of B5 is not built: old log-probs are the sampler's own, to the bit.
#[test]
fn b5_softmax() {
    let token = |temperature: f32| {
        let logits = [2.0, 1.0, 0.0, -1.0].map(|logit: f32| logit / temperature);
        let scores = starpo_kernels::selective_log_softmax::forward(&logits, 4, &[0]);
        [f64::from(scores[0]), f64::from(scores[1])]
    };
    close(&token(1.0), &[-0.440_189_699, 0.947_536_964], 1e-6);
    close(&token(0.4), &[-0.085_605_083, 0.308_714_787], 1e-6);
}

#[test]
fn a_row_has_the_parts_for_which_it_has_numbers() {
    let whole = ObjectiveConfig { kl: KlConfig { coef: 0.5, estimator: KlEstimator::K2 }, ..PPO };
    let policy = Tokens {
        logprobs: &[-1.0, -2.0],
        entropies: &[0.5, f64::NAN],
        old: &[-1.0, -2.0],
        advantages: &[1.0, 3.0],
        weights: &[0.5; 2],
        ..Tokens::default()
    };
    let loss = whole.loss(&policy);
    assert_eq!((loss.terms.policy, loss.terms.kl, loss.terms.value), (-2.0, 0.0, 0.0));
    assert_eq!(ObjectiveConfig { entropy_coef: 0.0, ..whole.clone() }.total(&loss.terms), -2.0);
    let critic = Tokens { values: &[1.0, 2.0], old_values: &[1.0, 2.0], returns: &[0.0, 2.0], ..Tokens::default() };
    let critic = Tokens { weights: &[0.5; 2], ..critic };
    let loss = whole.loss(&critic);
    assert_eq!((loss.terms.tokens, loss.terms.policy, loss.terms.value), (2, 0.0, 0.25));
    let derivatives = ObjectiveConfig { value_coef: 4.0, ..whole.clone() }.derivatives(&loss);
    assert_eq!((derivatives.logprobs.len(), derivatives.values), (0, vec![2.0, 0.0]));
    let near = Tokens { reference: &[-1.5, -2.0], ..policy };
    assert_eq!((whole.loss(&near).terms.kl, whole.loss(&near).kl), (0.0625, vec![0.25, 0.0]));
    assert_eq!(whole.derivatives(&whole.loss(&near)).logprobs, [-0.5 + 0.125, -1.5]);
}

/// The numbers of one token: log-ratio, distance to the reference, advantage, entropy, value, its move, its target.
type Token = (f64, f64, f64, f64, f64, f64, f64);

fn token() -> impl Strategy<Value = Token> {
    (-1.5..1.5f64, -4.0..4.0f64, -3.0..3.0f64, 0.0..3.0f64, -2.0..2.0f64, -1.0..1.0f64, -2.0..2.0f64)
}

/// Whether a token is at least 1e-3 from every kink.
fn smooth(objective: &ObjectiveConfig, &(log_ratio, d, _, _, value, moved, target): &Token) -> bool {
    let far = |a: f64, b: f64| (a - b).abs() > 1e-3;
    let ratio = [0.8, 1.28, 3.0].iter().all(|kink| far(log_ratio.exp(), *kink));
    let kl = match objective.kl.estimator {
        KlEstimator::Abs => far(d, 0.0),
        KlEstimator::K3 => far(d, -2.6107),
        KlEstimator::K1 | KlEstimator::K2 => true,
    };
    let near = moved.clamp(-0.5, 0.5) + value - moved;
    let squares = moved.abs() < 0.5 || far((near - target).abs(), (value - target).abs());
    ratio && kl && far(moved.abs(), 0.5) && squares
}

/// The whole loss at these log-probs, entropies and values, with what an objective holds still kept as at `held`.
fn total(objective: &ObjectiveConfig, row: &Tokens<'_>, held: &[f64]) -> f64 {
    let mut terms = objective.loss(row).terms;
    if let PolicyLoss::Cispo(Cispo { clip: Bounds { low, high } }) = &objective.policy {
        let weight = |token: usize| (held[token] - row.old[token]).exp().clamp(1.0 - low, 1.0 + high);
        let loss = |token: usize| -row.weights[token] * row.advantages[token] * weight(token) * row.logprobs[token];
        terms.policy = (0..row.weights.len()).map(loss).sum();
    }
    objective.total(&terms)
}

proptest! {
    #[test]
    fn derivatives_are_central_differences(
        tokens in prop::collection::vec(token(), 1..5), weight in 0.001..1.0f64,
        objective in prop::sample::select(objectives()),
    ) {
        prop_assume!(tokens.iter().all(|token| smooth(&objective, token)));
        let one_ratio = matches!(objective.policy, PolicyLoss::Gspo(_));
        let mean = tokens.iter().map(|token| token.0).sum::<f64>() / tokens.len() as f64;
        prop_assume!(!one_ratio || smooth(&objective, &(mean, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0)));
        let column = |of: &dyn Fn(&Token) -> f64| -> Vec<f64> { tokens.iter().map(of).collect() };
        let (old, weights) = (vec![-1.0; tokens.len()], vec![weight; tokens.len()]);
        let mut logprobs = column(&|token| token.0 - 1.0);
        let reference = column(&|token| token.0 - 1.0 - token.1);
        // A row's ratio is the paper's where its advantage is one number.
        let advantages = column(&|token| if one_ratio { tokens[0].2 } else { token.2 });
        let (mut entropies, mut values) = (column(&|token| token.3), column(&|token| token.4));
        let (old_values, returns) = (column(&|token| token.4 - token.5), column(&|token| token.6));
        let held = logprobs.clone();
        let row = |logprobs: &[f64], entropies: &[f64], values: &[f64]| {
            let row = Tokens {
                logprobs, entropies, old: &old, reference: &reference, advantages: &advantages, values,
                old_values: &old_values, returns: &returns, weights: &weights,
            };
            (total(&objective, &row, &held), objective.derivatives(&objective.loss(&row)))
        };
        let (_, by_hand) = row(&logprobs, &entropies, &values);
        let h = 1e-5;
        let near = |a: f64, b: f64| (a - b).abs() <= 1e-9f64.max(1e-6 * b.abs());
        for token in 0..tokens.len() {
            let at = logprobs[token];
            let mut slope = |offset: f64| { logprobs[token] = at + offset; row(&logprobs, &entropies, &values).0 };
            let slope = (slope(h) - slope(-h)) / (2.0 * h);
            logprobs[token] = at;
            prop_assert!(near(by_hand.logprobs[token], slope), "log-prob {} {}", by_hand.logprobs[token], slope);
            let at = entropies[token];
            let mut slope = |offset: f64| { entropies[token] = at + offset; row(&logprobs, &entropies, &values).0 };
            let slope = (slope(h) - slope(-h)) / (2.0 * h);
            entropies[token] = at;
            prop_assert!(near(by_hand.entropies[token], slope), "entropy {} {}", by_hand.entropies[token], slope);
            let at = values[token];
            let mut slope = |offset: f64| { values[token] = at + offset; row(&logprobs, &entropies, &values).0 };
            let slope = (slope(h) - slope(-h)) / (2.0 * h);
            values[token] = at;
            prop_assert!(near(by_hand.values[token], slope), "value {} {}", by_hand.values[token], slope);
        }
    }

    #[test]
    fn on_policy_k1_pulls_nowhere_and_k2_as_the_kl_does(
        logits in prop::collection::vec((-2.0..2.0f64, -2.0..2.0f64), 2..7),
    ) {
        let (policy, reference): (Vec<f64>, Vec<f64>) = logits.into_iter().unzip();
        let (policy, reference) = (softmax(&policy), softmax(&reference));
        let largest = |gradient: Vec<f64>, other: Vec<f64>| {
            gradient.iter().zip(other).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
        };
        let none = vec![0.0; policy.len()];
        prop_assert!(largest(expected_gradient(KlEstimator::K1, &policy, &reference), none) < 1e-12);
        let kl = kl_gradient(&policy, &reference);
        prop_assert!(largest(expected_gradient(KlEstimator::K2, &policy, &reference), kl) < 1e-12);
    }

    #[test]
    fn on_policy_every_objective_pushes_by_the_advantage(advantages in prop::collection::vec(-3.0..3.0f64, 1..6)) {
        let logprobs: Vec<f64> = (0..advantages.len()).map(|token| -0.5 - token as f64).collect();
        let row = Tokens { logprobs: &logprobs, old: &logprobs, advantages: &advantages, ..Tokens::default() };
        for objective in objectives() {
            for (token, advantage) in objective.policy.surrogates(&row).iter().zip(&advantages) {
                prop_assert_eq!((token.ratio, token.derivative, token.clipped), (1.0, -advantage, false));
            }
        }
    }
}

fn bound(token: &Surrogate) -> &'static str {
    match (token.clipped, token.clipped_lower) {
        (_, true) => "dual",
        (true, _) => "yes",
        _ => "no",
    }
}

#[test]
fn golden_ppo() {
    let mut out = String::from("verl-agent TC18: low 0.2, dual 3; the derivative is in the new log-prob\n");
    for (high, advantage) in [(0.2, 1.0), (0.28, 1.0), (0.2, -1.0), (0.28, -1.0), (0.28, -2.0)] {
        writeln!(out, "\nhigh {high}, advantage {advantage}\nratio     loss  derivative  clipped").unwrap();
        let (mut sum, mut clipped, mut lower) = (0.0, 0, 0);
        for ratio in RATIOS {
            let token = Clip { high, ..CLIP }.surrogate(libm::log(ratio), advantage);
            writeln!(out, "{ratio:<5}  {:>7.4}  {:>10.4}  {}", token.loss, token.derivative, bound(&token)).unwrap();
            sum += token.loss;
            clipped += usize::from(token.clipped);
            lower += usize::from(token.clipped_lower);
        }
        writeln!(out, "mean   {:>7.4}  clipped {clipped}/6, by the dual bound {lower}/6", sum / 6.0).unwrap();
    }
    golden("objective", "ppo", &out);
}

#[test]
fn golden_gspo() {
    let mut out = String::from(
        "The row of verl-agent TC18's mixed case: log-ratios 0.1, -0.3, 0.8, so s = exp 0.2 = 1.2214 for each token.\n\
         The derivative is in the token's new log-prob, s held still: -A s, or 0 where a bound holds.\n",
    );
    for (low, high) in [(0.2, 0.28), (0.2, 0.2), (3e-4, 4e-4)] {
        for advantages in [[1.0; 3], [-1.0; 3], [0.5, -0.7, -1.2]] {
            writeln!(out, "\nlow {low}, high {high}\nadvantage  ratio      loss  derivative  clipped").unwrap();
            for (token, advantage) in mixed(&advantages, &Gspo { clip: Bounds { low, high } }).iter().zip(advantages) {
                let Surrogate { ratio, loss, derivative, .. } = token;
                writeln!(out, "{advantage:>9}  {ratio:.4}  {loss:>7.4}  {derivative:>10.4}  {}", bound(token)).unwrap();
            }
        }
    }
    golden("objective", "gspo", &out);
}

/// Tokens of verl-agent TC18's ratios, all of log-prob −1.
fn table(out: &mut String, advantage: f64, surrogate: &dyn Fn(f64, f64) -> Surrogate) {
    writeln!(out, "\nadvantage {advantage}\nratio     loss  derivative  clipped").unwrap();
    for ratio in RATIOS {
        let token = surrogate(-1.0 - libm::log(ratio), advantage);
        writeln!(out, "{ratio:<5}  {:>7.4}  {:>10.4}  {}", token.loss, token.derivative, bound(&token)).unwrap();
    }
}

#[test]
fn golden_cispo() {
    let mut out = String::from(
        "verl-agent TC18's ratios, each token's log-prob -1, so that its loss is weight x advantage.\n\
         The derivative is -advantage x weight: a clipped token still pushes.\n",
    );
    for (low, high) in [(1.0, 0.28), (0.2, 0.28)] {
        writeln!(out, "\nlow {low}, high {high}").unwrap();
        let cispo = Cispo { clip: Bounds { low, high } };
        [1.0, -2.0].iter().for_each(|&a| table(&mut out, a, &|old, advantage| cispo.surrogate(-1.0, old, advantage)));
    }
    golden("objective", "cispo", &out);
}

#[test]
fn golden_reinforce() {
    let mut out = String::from(
        "verl-agent TC18's ratios, each token's log-prob -1, so that its loss is its advantage: no ratio enters.\n",
    );
    for advantage in [1.0, -2.0] {
        table(&mut out, advantage, &|old, advantage| Reinforce {}.surrogate(-1.0, old, advantage));
    }
    golden("objective", "reinforce", &out);
}

#[test]
fn golden_kl() {
    let mut out = String::from(
        "verl-agent TC16: each estimator and its derivative, of d = log-prob - reference. Unclamped, k3 at -19 is\n\
         178482281. The last rows are ours: k3 is at rest beyond its bound at d = -2.61, and beyond |d| = 20.\n\n",
    );
    writeln!(out, "log-prob  reference      d          k1              abs               k2               k3").unwrap();
    let tc16 = [(-1.0, -1.2), (-0.5, -0.5), (-2.0, -1.0), (-3.0, -2.5), (-20.0, -1.0), (-1.0, -8.0)];
    for (logprob, reference) in tc16.into_iter().chain([(-3.6, -1.0), (-3.7, -1.0), (-1.0, -22.0)]) {
        let d: f64 = logprob - reference;
        write!(out, "{logprob:>8}  {reference:>9}  {d:>5.1}").unwrap();
        for estimator in [KlEstimator::K1, KlEstimator::Abs, KlEstimator::K2, KlEstimator::K3] {
            let (kl, derivative) = estimator.at(d);
            write!(out, "  {kl:>7.3} {derivative:>7.3}").unwrap();
        }
        writeln!(out).unwrap();
    }
    golden("objective", "kl", &out);
}

#[test]
fn golden_value() {
    let mut out = String::from(
        "verl-agent B5: half the larger of the two squares (verl-agent's verl: without the half), clip 0.5.\n\
         Its mean is 0.055, which is half of B5's 0.11; 1 of 3 clipped. Below it the same without a clip.\n",
    );
    for clip in [Some(0.5), None] {
        writeln!(out, "\nvalue  before  return   loss  derivative  clipped").unwrap();
        for (value, old, target) in [(0.9, 0.3, 1.0), (0.2, 0.3, 0.0), (1.5, 0.9, 1.0)] {
            let token = square(clip, value, old, target);
            let clipped = if token.clipped { "yes" } else { "no" };
            let (loss, derivative) = (token.loss, token.derivative);
            writeln!(out, "{value:>5}  {old:>6}  {target:>6}  {loss:>5.3}  {derivative:>10.1}  {clipped}").unwrap();
        }
    }
    golden("objective", "value", &out);
}
