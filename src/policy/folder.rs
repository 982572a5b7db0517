//! A model as a Hugging Face folder: `config.json`, `model.safetensors`, `tokenizer.json`.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::{Shape, Weights};

/// Reads a folder: the weights, and the text of its `tokenizer.json`. Llama's architecture with a tied head, in f32 or
/// bf16.
///
/// # Errors
/// The file, and the field or tensor of it, that is missing or that this program does not know.
pub fn read_folder(path: &Path) -> Result<(Weights, String), String> {
    let at = |name: &str| path.join(name);
    let text = |name: &str| fs::read_to_string(at(name)).map_err(|e| format!("{}: {e}", at(name).display()));
    let shape = shape(&text("config.json")?).map_err(|e| format!("{}: {e}", at("config.json").display()))?;
    let file = at("model.safetensors");
    let bytes = fs::read(&file).map_err(|e| format!("{}: {e} (sharded weights are not read)", file.display()))?;
    let weights = Weights::from_safetensors(shape, &bytes).map_err(|e| format!("{}: {e}", file.display()))?;
    Ok((weights, text("tokenizer.json")?))
}

/// Writes what [`read_folder`] reads; the folder is made if need be.
///
/// # Errors
/// The file that could not be written.
pub fn write_folder(path: &Path, weights: &Weights, tokenizer: &str) -> Result<(), String> {
    fs::create_dir_all(path).map_err(|e| format!("{}: {e}", path.display()))?;
    let config = serde_json::to_string_pretty(&config(weights.shape())).expect("numbers and strings");
    let files = [
        ("config.json", (config + "\n").into_bytes()),
        ("model.safetensors", weights.to_safetensors()),
        ("tokenizer.json", tokenizer.as_bytes().to_vec()),
    ];
    for (name, bytes) in files {
        fs::write(path.join(name), bytes).map_err(|e| format!("{}: {e}", path.join(name).display()))?;
    }
    Ok(())
}

fn config(shape: &Shape) -> Value {
    json!({
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": shape.vocab,
        "hidden_size": shape.width,
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.kv_heads,
        "head_dim": shape.head(),
        "intermediate_size": shape.ffn,
        "rope_theta": shape.rope_theta,
        "rope_parameters": { "rope_type": "default", "rope_theta": shape.rope_theta },
        "rms_norm_eps": shape.norm_eps,
        "hidden_act": "silu",
        "attention_bias": false,
        "mlp_bias": false,
        "tie_word_embeddings": true,
        "max_position_embeddings": 4096,
        "torch_dtype": "float32",
    })
}

/// The sizes in a `config.json`.
fn shape(text: &str) -> Result<Shape, String> {
    let config: Value = serde_json::from_str(text).map_err(|e| e.to_string())?;
    let demand = |name: &str, default: Value, wanted: Value| {
        let found = config.get(name).filter(|v| !v.is_null()).cloned().unwrap_or(default);
        if found == wanted { Ok(()) } else { Err(format!("`{name}` is {found}; only {wanted} is known")) }
    };
    demand("model_type", Value::Null, json!("llama"))?;
    demand("tie_word_embeddings", json!(false), json!(true))?;
    demand("hidden_act", json!("silu"), json!("silu"))?;
    demand("attention_bias", json!(false), json!(false))?;
    demand("mlp_bias", json!(false), json!(false))?;
    demand("rope_scaling", Value::Null, Value::Null)?;
    let size = |name: &str| {
        let number = config.get(name).and_then(Value::as_u64);
        number.map(|n| n as usize).ok_or_else(|| format!("`{name}` is not a number of things"))
    };
    let real = |of: &Value, name: &str| {
        of.get(name).and_then(Value::as_f64).ok_or_else(|| format!("`{name}` is not a number"))
    };
    let rope = config.get("rope_parameters").filter(|v| !v.is_null());
    if let Some(kind) = rope.and_then(|r| r.get("rope_type")).filter(|kind| *kind != "default") {
        return Err(format!("`rope_parameters.rope_type` is {kind}; only \"default\" is known"));
    }
    let heads = size("num_attention_heads")?;
    let shape = Shape {
        vocab: size("vocab_size")?,
        width: size("hidden_size")?,
        layers: size("num_hidden_layers")?,
        heads,
        kv_heads: if config.get("num_key_value_heads").is_some() { size("num_key_value_heads")? } else { heads },
        ffn: size("intermediate_size")?,
        rope_theta: match rope.filter(|r| r.get("rope_theta").is_some()) {
            Some(rope) => real(rope, "rope_theta")?,
            None => real(&config, "rope_theta")?,
        },
        norm_eps: real(&config, "rms_norm_eps")?,
    };
    shape.check()?;
    demand("head_dim", json!(shape.head()), json!(shape.head()))?;
    Ok(shape)
}
