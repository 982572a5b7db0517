//! AdamW (Loshchilov and Hutter 2019) over one flat array, after clipping by the global norm.
//!
//! ```text
//! g ← g·min(1, clip/‖g‖)   m ← β₁m + (1−β₁)g   v ← β₂v + (1−β₂)g²
//! θ ← θ − η·(m/(1−β₁ᵗ) / (√(v/(1−β₂ᵗ)) + ε) + λθ)
//! ```
//! Weights of norms (tensors of one dimension) do not decay. State is f32, arithmetic f64.

use std::sync::Mutex;

use super::weights::Part;
use super::workers::Workers;
use super::{Norms, Optimizer};

/// Parameters that one thread takes at a time. No number depends on it.
const CHUNK: usize = 1 << 16;

/// Moments and the number of steps taken.
pub(super) struct AdamW {
    pub(super) first: Vec<f32>,
    pub(super) second: Vec<f32>,
    pub(super) steps: u64,
}

impl AdamW {
    pub(super) fn new(parameters: usize) -> Self {
        Self { first: vec![0.0; parameters], second: vec![0.0; parameters], steps: 0 }
    }

    /// One step in place.
    ///
    /// # Errors
    /// The gradient's norm: not finite, and nothing changes; or finite, where a parameter left the range of f32, and
    /// what is here is of no further use.
    pub(super) fn step(
        &mut self,
        optimizer: &Optimizer,
        parts: &[Part],
        parameters: &mut [f32],
        gradient: &[f32],
        workers: &Workers,
    ) -> Result<Norms, f64> {
        let Optimizer { learning_rate, beta1, beta2, epsilon, weight_decay, clip_norm } = *optimizer;
        let norm = norm(gradient);
        if !norm.is_finite() {
            return Err(norm);
        }
        self.steps += 1;
        let scale = if norm > clip_norm { clip_norm / norm } else { 1.0 };
        let correct1 = 1.0 / (1.0 - libm::pow(beta1, self.steps as f64));
        let correct2 = 1.0 / (1.0 - libm::pow(beta2, self.steps as f64));
        let state = parameters.chunks_mut(CHUNK).zip(self.first.chunks_mut(CHUNK)).zip(self.second.chunks_mut(CHUNK));
        let chunks: Vec<_> = state.map(Mutex::new).collect();
        let finite = workers.map(chunks.len(), |chunk| {
            let ((parameters, first), second) = &mut *chunks[chunk].lock().expect("no thread panicked");
            let start = chunk * CHUNK;
            let mut finite = true;
            for part in parts.iter().filter(|part| part.range.start < start + CHUNK && start < part.range.end) {
                let decay = if part.shape.len() == 1 { 0.0 } else { weight_decay };
                let range = part.range.start.max(start)..part.range.end.min(start + CHUNK);
                for (i, &g) in (range.start - start..).zip(&gradient[range]) {
                    let g = f64::from(g) * scale;
                    let m = beta1 * f64::from(first[i]) + (1.0 - beta1) * g;
                    let v = beta2 * f64::from(second[i]) + (1.0 - beta2) * g * g;
                    let parameter = f64::from(parameters[i]);
                    let step = m * correct1 / ((v * correct2).sqrt() + epsilon) + decay * parameter;
                    parameters[i] = (parameter - learning_rate * step) as f32;
                    finite &= parameters[i].is_finite();
                    (first[i], second[i]) = (m as f32, v as f32);
                }
            }
            finite
        });
        if finite.into_iter().all(|finite| finite) { Ok(Norms { gradient: norm }) } else { Err(norm) }
    }
}

/// The global norm of a gradient, summed in its order.
pub(super) fn norm(gradient: &[f32]) -> f64 {
    gradient.iter().map(|&g| f64::from(g) * f64::from(g)).sum::<f64>().sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_stay_numbers_or_the_step_is_an_error() {
        let parts = [Part { name: "one".into(), shape: vec![1], range: 0..1 }];
        let step = |learning_rate: f64, gradient: f32| {
            let optimizer =
                Optimizer { learning_rate, beta1: 0.9, beta2: 0.999, epsilon: 1e-8, weight_decay: 0.0, clip_norm: 1.0 };
            AdamW::new(1)
                .step(&optimizer, &parts, &mut [0.5], &[gradient], &Workers::new(1))
                .map(|norms| norms.gradient)
        };
        assert_eq!(step(0.1, 2.0), Ok(2.0));
        assert_eq!(step(1e300, 2.0), Err(2.0));
        assert_eq!(step(0.1, f32::INFINITY), Err(f64::INFINITY));
    }
}
