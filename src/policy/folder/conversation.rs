//! What a folder says of conversations: the chat template, the special tokens it names, and what ends a response.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::chat::Template;

pub(super) const TOKENIZER_CONFIG: &str = "tokenizer_config.json";
const TEMPLATE: &str = "chat_template.jinja";
const GENERATION: &str = "generation_config.json";

type Texts = BTreeMap<String, String>;

/// The template of `chat_template.jinja`, or else of `tokenizer_config.json` (a text, or the one called `default` of
/// several), or else ChatML.
pub(super) fn template(texts: &Texts) -> Result<Template, String> {
    let config = json(texts, TOKENIZER_CONFIG)?;
    let (file, text) = match (texts.get(TEMPLATE), &config["chat_template"]) {
        (Some(text), _) => (TEMPLATE, text.as_str()),
        (None, Value::String(text)) => (TOKENIZER_CONFIG, text.as_str()),
        (None, Value::Null) => (TOKENIZER_CONFIG, Template::CHATML),
        (None, several) => {
            let default = |named: &&Value| named["name"] == "default";
            let found = several.as_array().and_then(|all| all.iter().find(default)?["template"].as_str());
            let none = "`chat_template` is neither a text nor a list with one called \"default\"";
            (TOKENIZER_CONFIG, found.ok_or_else(|| format!("{TOKENIZER_CONFIG}: {none}"))?)
        }
    };
    Template::new(text, special_tokens(&config)).map_err(|error| format!("{file}: {error}"))
}

/// The special tokens that templates name, such as `bos_token`: each a text, or an object with a `content`.
fn special_tokens(config: &Value) -> Vec<(String, String)> {
    let named = |name: &str| {
        let token = &config[name];
        let text = token.as_str().or_else(|| token["content"].as_str())?;
        Some((name.to_owned(), text.to_owned()))
    };
    ["bos_token", "eos_token", "unk_token", "pad_token", "sep_token", "cls_token", "mask_token"]
        .into_iter()
        .filter_map(named)
        .collect()
}

/// `eos_token_id` of `generation_config.json`, or else of `config.json`: an id below `vocab`, or a list of them.
pub(super) fn ends(texts: &Texts, vocab: usize) -> Result<Vec<u32>, String> {
    for file in [GENERATION, super::CONFIG] {
        let ids = match json(texts, file)?["eos_token_id"].take() {
            Value::Null => continue,
            Value::Array(ids) => ids,
            id => vec![id],
        };
        let id = |id: &Value| {
            let number = id.as_u64().and_then(|id| u32::try_from(id).ok()).filter(|id| (*id as usize) < vocab);
            number.ok_or_else(|| format!("{file}: `eos_token_id` has {id}, no token of a vocabulary of {vocab}"))
        };
        return ids.iter().map(id).collect();
    }
    Ok(Vec::new())
}

/// A file's content; null if there is none.
fn json(texts: &Texts, file: &str) -> Result<Value, String> {
    let Some(text) = texts.get(file) else { return Ok(Value::Null) };
    serde_json::from_str(text).map_err(|error| format!("{file}: {error}"))
}

/// The `tokenizer_config.json` of a model made here.
pub(super) fn chatml() -> Value {
    json!({
        "tokenizer_class": "PreTrainedTokenizerFast",
        "bos_token": null,
        "eos_token": "<|im_end|>",
        "pad_token": "<|endoftext|>",
        "clean_up_tokenization_spaces": false,
        "chat_template": Template::CHATML,
    })
}
