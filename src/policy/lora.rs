//! Low-rank adapters (Hu et al. 2021, arXiv:2106.09685): W = W₀ + (α/r)·B·A for some projections; only A and B learn.
//!
//! ```text
//! A: [r, in], uniform in ±1/√in     B: [out, r], 0 at first     dA = (α/r)·Bᵀ·dW     dB = (α/r)·dW·Aᵀ
//! ```
//! An adapter is another way to write weights down: the forward pass runs on the merged matrices, so sampling, scoring
//! and training know nothing of it, and it saves the optimizer's state, but not a step's time. A value head learns
//! whole. Names, initial values and scaling are those of PEFT.

use std::collections::BTreeSet;
use std::fs;
use std::ops::Range;
use std::path::Path;

use serde_json::json;
use starpo_kernels::linear::{Panels, product, weight_gradient};

use super::tensors::{Precision, Tensors, to_safetensors};
use super::weights::{Part, Weights};
use crate::experiment::LoraConfig;
use crate::rng::Stream;

/// PEFT's names of an adapter's files.
pub const ADAPTER: &str = "adapter_model.safetensors";
const ADAPTER_CONFIG: &str = "adapter_config.json";

/// The adapters of a decoder.
pub(super) struct Lora {
    rank: usize,
    scale: f32,
    targets: Vec<Target>,
    /// A and B of each target, then a value head.
    pub(super) parts: Vec<Part>,
    pub(super) values: Vec<f32>,
    /// Where the value head stands among the weights.
    head: Option<Range<usize>>,
}

/// One adapted matrix `[output, input]`.
struct Target {
    /// Where it stands among the weights.
    range: Range<usize>,
    output: usize,
    input: usize,
    /// W₀.
    start: Vec<f32>,
}

impl Lora {
    /// Adapters that change nothing yet.
    pub(super) fn new(config: &LoraConfig, weights: &Weights, seed: u64) -> Self {
        let rank = config.rank;
        let (mut targets, mut parts, mut values) = (Vec::new(), Vec::new(), Vec::new());
        for part in weights.shape().parts() {
            let adapted = |name: &str| part.name.ends_with(&format!(".{name}.weight"));
            let [output, input] = *part.shape.as_slice() else { continue };
            if !config.targets.iter().any(|target| adapted(target.name())) {
                continue;
            }
            let module = format!("base_model.model.{}", part.name.trim_end_matches(".weight"));
            let draws = Stream::new("lora", seed, &[targets.len() as u64]);
            let bound = 1.0 / (input as f64).sqrt();
            let from = values.len();
            values.extend((0..(rank * input) as u64).map(|i| (bound * (2.0 * draws.uniform_at(i) - 1.0)) as f32));
            let middle = values.len();
            values.resize(middle + output * rank, 0.0);
            let (a, b) = (format!("{module}.lora_A.weight"), format!("{module}.lora_B.weight"));
            parts.push(Part { name: a, shape: vec![rank, input], range: from..middle });
            parts.push(Part { name: b, shape: vec![output, rank], range: middle..values.len() });
            let start = weights.values()[part.range.clone()].to_vec();
            targets.push(Target { range: part.range, output, input, start });
        }
        let head = weights.head().map(|mut part| {
            let range = part.range.clone();
            part.range = values.len()..values.len() + range.len();
            values.extend_from_slice(&weights.values()[range.clone()]);
            parts.push(part);
            range
        });
        Self { rank, scale: (config.alpha / rank as f64) as f32, targets, parts, values, head }
    }

    fn pairs(&self) -> impl Iterator<Item = (&Target, &[f32], &[f32])> {
        let values = |part: &Part| &self.values[part.range.clone()];
        self.targets
            .iter()
            .zip(self.parts.as_chunks::<2>().0)
            .map(move |(target, [a, b])| (target, values(a), values(b)))
    }

    /// Writes W of all targets, and the value head, into the weights.
    pub(super) fn merge(&self, weights: &mut [f32]) {
        for (target, a, b) in self.pairs() {
            let change = product(b, &Panels::of(a, self.rank, target.input));
            let start = target.start.iter().zip(change);
            weights[target.range.clone()]
                .iter_mut()
                .zip(start)
                .for_each(|(w, (&w0, ba))| *w = self.scale.mul_add(ba, w0));
        }
        if let (Some(range), Some(part)) = (&self.head, self.parts.last()) {
            weights[range.clone()].copy_from_slice(&self.values[part.range.clone()]);
        }
    }

    /// The gradient in `values`, from that in the weights.
    pub(super) fn gradient(&self, weights: &[f32]) -> Vec<f32> {
        let mut gradient = Vec::with_capacity(self.values.len());
        for (Target { range, output, input, .. }, a, b) in self.pairs() {
            let dw = &weights[range.clone()];
            gradient.extend(weight_gradient(dw, *input, b, self.rank));
            gradient.extend(product(dw, &Panels::of_transpose(a, *input, self.rank)));
            debug_assert_eq!(dw.len(), output * input);
        }
        gradient.iter_mut().for_each(|g| *g *= self.scale);
        gradient.extend(self.head.iter().flat_map(|range| &weights[range.clone()]));
        gradient
    }

    /// The adapters as PEFT's file, which has no value head.
    pub(super) fn to_safetensors(&self) -> Vec<u8> {
        to_safetensors(&self.parts[..2 * self.targets.len()], &[("", &self.values)], Precision::F32, None)
    }

    /// The values that [`Lora::to_safetensors`] wrote, and a value head's.
    pub(super) fn read(&self, file: (&str, &[u8]), head: &[f32]) -> Result<Vec<f32>, String> {
        let adapters = &self.parts[..2 * self.targets.len()];
        let file = Tensors::parse(&[file])?;
        file.nothing_but(adapters, &[""])?;
        let mut values = file.array(adapters, "")?;
        values.extend(head);
        Ok(values)
    }
}

/// Writes a folder that PEFT loads over `base`: the bytes of [`ADAPTER`] that a checkpoint has, and its config.
///
/// # Errors
/// The file that could not be written.
pub fn write_adapter(path: &Path, config: &LoraConfig, adapter: &[u8], base: &Path) -> Result<(), String> {
    let targets: BTreeSet<&str> = config.targets.iter().map(|target| target.name()).collect();
    let value = json!({
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        "base_model_name_or_path": base.display().to_string(),
        "r": config.rank,
        "lora_alpha": config.alpha,
        "lora_dropout": 0.0,
        "target_modules": targets,
        "bias": "none",
        "fan_in_fan_out": false,
        "inference_mode": true,
    });
    let text = serde_json::to_string_pretty(&value).expect("numbers and strings") + "\n";
    fs::create_dir_all(path).map_err(|error| format!("{}: {error}", path.display()))?;
    for (name, bytes) in [(ADAPTER_CONFIG, text.as_bytes()), (ADAPTER, adapter)] {
        fs::write(path.join(name), bytes).map_err(|error| format!("{}: {error}", path.join(name).display()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Projection;
    use crate::policy::{Family, Shape};

    fn weights() -> Weights {
        let (rope_theta, norm_eps) = (1e4, 1e-6);
        let shape = Shape {
            family: Family::Qwen2,
            vocab: 12,
            width: 8,
            layers: 2,
            heads: 2,
            kv_heads: 1,
            head_dim: 4,
            ffn: 16,
            rope_theta,
            norm_eps,
            tied: true,
        };
        Weights::random(shape, 0.3, 5).expect("the sizes fit").with_value_head()
    }

    fn lora() -> Lora {
        let config = LoraConfig { rank: 3, alpha: 6.0, targets: vec![Projection::Query, Projection::Down] };
        Lora::new(&config, &weights(), 1)
    }

    #[test]
    fn what_has_not_learnt_changes_nothing() {
        let (mut merged, start, lora) = (weights(), weights(), lora());
        lora.merge(merged.values_mut());
        assert_eq!(merged, start);
        let names: Vec<&str> = lora.parts.iter().map(|part| part.name.as_str()).collect();
        assert_eq!(names.len(), 9, "two layers of two projections, each A and B, and the value head");
        assert_eq!(names[0], "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight");
        assert_eq!(lora.parts[3].shape, [8, 3]);
        assert!(lora.values[lora.parts[2].range.clone()].iter().all(|a| a.abs() <= 0.25 && *a != 0.0));
    }

    /// Σ over all weights of c·W(A, B), whose derivatives are known by differences.
    #[test]
    fn the_gradient_is_that_of_the_merged_weights() {
        let mut lora = lora();
        lora.values.iter_mut().enumerate().for_each(|(i, x)| *x += 0.01 * ((i * 7 % 11) as f32 - 5.0));
        let count = weights().values().len();
        let c: Vec<f32> = (0..count).map(|i| ((i * 13 % 17) as f32 - 8.0) / 8.0).collect();
        let total = |lora: &Lora| -> f64 {
            let mut merged = weights();
            lora.merge(merged.values_mut());
            merged.values().iter().zip(&c).map(|(&w, &c)| f64::from(w) * f64::from(c)).sum()
        };
        let gradient = lora.gradient(&c);
        assert_eq!(gradient.len(), lora.values.len());
        for i in (0..gradient.len()).step_by(5) {
            let value = lora.values[i];
            let mut at = |delta: f32| {
                lora.values[i] = value + delta;
                let total = total(&lora);
                lora.values[i] = value;
                total
            };
            let numeric = (at(0.125) - at(-0.125)) / 0.25;
            assert!((numeric - f64::from(gradient[i])).abs() < 1e-4, "{i}: {numeric} and {}", gradient[i]);
        }
    }

    #[test]
    fn adapters_come_back_as_written() {
        let mut lora = lora();
        lora.values.iter_mut().for_each(|x| *x += 0.5);
        let bytes = lora.to_safetensors();
        let head = &lora.values[lora.parts[8].range.clone()];
        assert_eq!(lora.read((ADAPTER, &bytes), head), Ok(lora.values.clone()));
        let error = lora.read((ADAPTER, &bytes[..9]), head).expect_err("cut off");
        assert!(error.starts_with("adapter_model.safetensors: "));
    }
}
