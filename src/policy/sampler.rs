//! One token from one row of logits.

use starpo_kernels::exp::shifted;

use super::Sampling;

/// What logits are multiplied by under a temperature; 0 reads as 1.
pub(super) fn inverse(temperature: f64) -> f32 {
    if temperature == 0.0 { 1.0 } else { (1.0 / temperature) as f32 }
}

/// The token that `uniform` decides, from logits already divided by the temperature: the first by id whose cumulated
/// probability exceeds it, among those that top-k, then top-p leave. At temperature 0 the most probable one, ties to
/// the lowest id.
pub(super) fn sample(logits: &[f32], sampling: &Sampling, uniform: f64) -> u32 {
    let mut best = 0;
    for (id, &x) in logits.iter().enumerate() {
        if x > logits[best] {
            best = id;
        }
    }
    if sampling.temperature == 0.0 {
        return best as u32;
    }
    let mut weights: Vec<f64> = shifted(logits, logits[best]).into_iter().map(f64::from).collect();
    if sampling.top_k.is_some_and(|k| k < weights.len()) || sampling.top_p < 1.0 {
        restrict(logits, &mut weights, sampling);
    }
    let bound = uniform * weights.iter().sum::<f64>();
    let mut cumulated = 0.0;
    let mut last = best;
    for (id, &weight) in weights.iter().enumerate().filter(|(_, weight)| **weight > 0.0) {
        cumulated += weight;
        last = id;
        if cumulated > bound {
            break;
        }
    }
    last as u32
}

/// Sets to 0 what is not among the `top_k` most probable, or not needed to reach `top_p` of their mass.
fn restrict(logits: &[f32], weights: &mut [f64], sampling: &Sampling) {
    let mut order: Vec<usize> = (0..weights.len()).collect();
    order.sort_by(|&a, &b| logits[b].total_cmp(&logits[a]).then(a.cmp(&b)));
    let mut kept = sampling.top_k.unwrap_or(order.len()).clamp(1, order.len());
    if sampling.top_p < 1.0 {
        let bound = sampling.top_p * order[..kept].iter().map(|&id| weights[id]).sum::<f64>();
        let mut mass = 0.0;
        let reaches = |&id: &usize| {
            mass += weights[id];
            mass >= bound
        };
        kept = order[..kept].iter().position(reaches).map_or(kept, |at| at + 1);
    }
    order[kept..].iter().for_each(|&id| weights[id] = 0.0);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Stream;

    const LOGITS: [f32; 5] = [1.0, 3.0, 0.5, 3.0, f32::NEG_INFINITY];

    fn shares(top_k: Option<usize>, top_p: f64) -> Vec<f64> {
        let sampling = Sampling { temperature: 1.0, top_k, top_p, stop: vec![] };
        let draws = Stream::new("test", 1, &[]);
        let mut counts = [0.0; 5];
        (0..40_000).for_each(|i| counts[sample(&LOGITS, &sampling, draws.uniform_at(i)) as usize] += 1.0 / 40_000.0);
        counts.to_vec()
    }

    #[test]
    fn tokens_come_as_often_as_their_probability() {
        let near = |shares: Vec<f64>, weights: [f64; 5]| {
            let total: f64 = weights.iter().sum();
            shares.iter().zip(weights).all(|(s, w)| if w == 0.0 { *s == 0.0 } else { (s - w / total).abs() < 0.01 })
        };
        let e = LOGITS.map(|x| f64::from(x).exp());
        assert!(near(shares(None, 1.0), e));
        assert!(near(shares(Some(3), 1.0), [e[0], e[1], 0.0, e[3], 0.0]));
        assert!(near(shares(Some(1), 1.0), [0.0, 1.0, 0.0, 0.0, 0.0]));
        assert!(near(shares(None, 0.95), [e[0], e[1], 0.0, e[3], 0.0]));
        assert!(near(shares(None, 0.5), [0.0, e[1], 0.0, e[3], 0.0]));
        assert!(near(shares(None, 0.0), [0.0, 1.0, 0.0, 0.0, 0.0]));
        assert!(near(shares(Some(2), 0.4), [0.0, 1.0, 0.0, 0.0, 0.0]));
    }

    #[test]
    fn greedy_takes_the_first_of_the_most_probable() {
        let sampling = Sampling { temperature: 0.0, top_k: None, top_p: 1.0, stop: vec![] };
        assert_eq!(sample(&LOGITS, &sampling, 0.99), 1);
    }

    #[test]
    fn the_ends_of_the_unit_interval_draw_the_first_and_the_last_possible_token() {
        let sampling = Sampling { temperature: 1.0, top_k: None, top_p: 1.0, stop: vec![] };
        assert_eq!(sample(&LOGITS, &sampling, 0.0), 0);
        assert_eq!(sample(&LOGITS, &sampling, 1.0 - f64::EPSILON / 2.0), 3);
    }
}
