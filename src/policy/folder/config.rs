//! `config.json`: the sizes of a decoder. Every field is read, held to the one value that is known here, or listed as
//! one that changes no number; another one is an error, since it may change what the model computes.

use serde_json::{Map, Value, json};

use crate::policy::{Family, Precision, Shape};

const FAMILIES: [(&str, Family, &str); 3] = [
    ("llama", Family::Llama, "LlamaForCausalLM"),
    ("qwen2", Family::Qwen2, "Qwen2ForCausalLM"),
    ("qwen3", Family::Qwen3, "Qwen3ForCausalLM"),
];

/// Tokens, training and housekeeping. `sliding_window` counts where `use_sliding_window` says so, and that is refused.
const NO_NUMBERS: [&str; 18] = [
    "_name_or_path",
    "architectures",
    "attention_dropout",
    "bos_token_id",
    "dtype",
    "eos_token_id",
    "initializer_range",
    "is_llama_config",
    "max_position_embeddings",
    "max_window_layers",
    "pad_token_id",
    "pretraining_tp",
    "sliding_window",
    "torch_dtype",
    "transformers.js_config",
    "transformers_version",
    "unsloth_version",
    "use_cache",
];

/// The largest size that is read: above every model that is known, and so small that all numbers can be counted.
fn largest(name: &str) -> usize {
    match name {
        "num_hidden_layers" => 1 << 10,
        "num_attention_heads" | "num_key_value_heads" | "head_dim" => 1 << 12,
        "vocab_size" => 1 << 24,
        _ => 1 << 20,
    }
}

/// The fields that are left to read; null is as good as nothing.
struct Fields(Map<String, Value>);

impl Fields {
    fn of(value: Value) -> Result<Self, String> {
        match value {
            Value::Object(fields) => Ok(Self(fields.into_iter().filter(|(_, value)| !value.is_null()).collect())),
            other => Err(format!("{other} is no object")),
        }
    }

    fn size(&mut self, name: &str) -> Result<Option<usize>, String> {
        let Some(value) = self.0.remove(name) else { return Ok(None) };
        let size = value.as_u64().ok_or_else(|| format!("`{name}` is {value}, no number of things"))?;
        let most = largest(name);
        let size = usize::try_from(size).ok().filter(|size| *size <= most);
        size.map(Some).ok_or_else(|| format!("`{name}` is {value}; the largest size that is read is {most}"))
    }

    fn needed(&mut self, name: &str) -> Result<usize, String> {
        self.size(name)?.ok_or_else(|| format!("`{name}` is missing"))
    }

    fn real(&mut self, name: &str) -> Result<Option<f64>, String> {
        let Some(value) = self.0.remove(name) else { return Ok(None) };
        let real = value.as_f64().filter(|x| *x > 0.0);
        real.map(Some).ok_or_else(|| format!("`{name}` is {value}, no number above 0"))
    }

    /// That a field, if it is there, has the one value that is known.
    fn only(&mut self, name: &str, known: &Value) -> Result<(), String> {
        match self.0.remove(name) {
            Some(found) if found != *known => Err(format!("`{name}` is {found}; only {known} is known")),
            _ => Ok(()),
        }
    }

    fn nothing_else(mut self) -> Result<(), String> {
        NO_NUMBERS.iter().for_each(|name| drop(self.0.remove(*name)));
        match self.0.into_iter().next() {
            Some((name, value)) => {
                Err(format!("`{name}` ({value}) is not known: it may change what the model computes"))
            }
            None => Ok(()),
        }
    }
}

/// The sizes that a `config.json` says.
pub(super) fn read(text: &str) -> Result<Shape, String> {
    let mut fields = Fields::of(serde_json::from_str(text).map_err(|error| error.to_string())?)?;
    let kind = fields.0.remove("model_type").unwrap_or_default();
    let known = || FAMILIES.map(|(name, ..)| format!("\"{name}\"")).join(", ");
    let family = FAMILIES.iter().find(|(name, ..)| kind == *name).map(|(_, family, _)| *family);
    let family = family.ok_or_else(|| format!("`model_type` is {kind}; known are {}", known()))?;
    let layers = fields.needed("num_hidden_layers")?;
    for (name, value) in [
        ("hidden_act", json!("silu")),
        ("attention_bias", json!(false)),
        ("mlp_bias", json!(false)),
        ("use_sliding_window", json!(false)),
        ("rope_interleaved", json!(false)),
        ("layer_types", json!(vec!["full_attention"; layers])),
    ] {
        fields.only(name, &value)?;
    }
    let (width, heads) = (fields.needed("hidden_size")?, fields.needed("num_attention_heads")?);
    let shape = Shape {
        family,
        vocab: fields.needed("vocab_size")?,
        width,
        layers,
        heads,
        kv_heads: fields.size("num_key_value_heads")?.unwrap_or(heads),
        head_dim: match fields.size("head_dim")? {
            Some(size) => size,
            None if heads > 0 && width.is_multiple_of(heads) => width / heads,
            None => return Err(format!("{heads} heads do not divide a width of {width}, and there is no `head_dim`")),
        },
        ffn: fields.needed("intermediate_size")?,
        rope_theta: rope_theta(&mut fields)?,
        norm_eps: fields.real("rms_norm_eps")?.ok_or("`rms_norm_eps` is missing")?,
        tied: match fields.0.remove("tie_word_embeddings") {
            None => false,
            Some(Value::Bool(tied)) => tied,
            Some(other) => return Err(format!("`tie_word_embeddings` is {other}, neither true nor false")),
        },
    };
    shape.check()?;
    fields.nothing_else()?;
    Ok(shape)
}

/// The base of the rotary positions, at the top level or in `rope_parameters` (transformers 5), which like
/// `rope_scaling` may say that positions are scaled.
fn rope_theta(fields: &mut Fields) -> Result<f64, String> {
    let mut theta = fields.real("rope_theta")?;
    for name in ["rope_scaling", "rope_parameters"] {
        let Some(value) = fields.0.remove(name) else { continue };
        let mut inner = Fields::of(value).map_err(|error| format!("`{name}`: {error}"))?;
        let at = |error: String| format!("`{name}`: {error}");
        for kind in ["rope_type", "type"] {
            inner.only(kind, &json!("default")).map_err(at)?;
        }
        let other = inner.real("rope_theta").map_err(at)?;
        if let (Some(theta), Some(other)) = (theta, other)
            && theta != other
        {
            return Err(format!("`rope_theta` is {theta}, and {other} in `{name}`"));
        }
        theta = theta.or(other);
        inner.nothing_else().map_err(at)?;
    }
    theta.ok_or_else(|| "`rope_theta` is missing".to_owned())
}

/// The `config.json` of a model made here.
pub(super) fn write(shape: &Shape) -> Value {
    let (kind, _, class) = FAMILIES.iter().find(|(_, family, _)| *family == shape.family).expect("all are listed");
    json!({
        "architectures": [class],
        "model_type": kind,
        "vocab_size": shape.vocab,
        "hidden_size": shape.width,
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.kv_heads,
        "head_dim": shape.head_dim,
        "intermediate_size": shape.ffn,
        "rope_theta": shape.rope_theta,
        "rope_parameters": { "rope_type": "default", "rope_theta": shape.rope_theta },
        "rms_norm_eps": shape.norm_eps,
        "hidden_act": "silu",
        "tie_word_embeddings": shape.tied,
        "bos_token_id": null,
        "eos_token_id": null,
        "torch_dtype": "float32",
    })
}

/// The same config for weights that are stored so.
pub(super) fn stored_as(text: &str, precision: Precision) -> String {
    let name = match precision {
        Precision::F32 => "float32",
        Precision::Bf16 => "bfloat16",
    };
    let mut config: Value = serde_json::from_str(text).expect("it was read");
    for field in ["torch_dtype", "dtype"] {
        if let Some(kind) = config.get_mut(field) {
            *kind = json!(name);
        }
    }
    serde_json::to_string_pretty(&config).expect("it was read") + "\n"
}

/// Most tokens that the model was made for.
pub(super) fn positions(text: &str) -> Option<usize> {
    let config: Value = serde_json::from_str(text).ok()?;
    config["max_position_embeddings"].as_u64()?.try_into().ok()
}
