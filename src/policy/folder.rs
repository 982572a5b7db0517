//! A model as a Hugging Face folder: weights in one safetensors file or in shards, and texts that say what they mean.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::Path;

use serde_json::Value;

use super::{Precision, Shape, Tokenizer, Weights};
use crate::chat::Template;

mod config;
mod conversation;

const CONFIG: &str = "config.json";
const TOKENIZER: &str = "tokenizer.json";
const WEIGHTS: &str = "model.safetensors";
const INDEX: &str = "model.safetensors.index.json";

/// Other texts that a folder may hold: how to talk to the model, and what other programs ask for.
const OTHERS: [&str; 7] = [
    "added_tokens.json",
    "chat_template.jinja",
    "generation_config.json",
    "merges.txt",
    "special_tokens_map.json",
    "tokenizer_config.json",
    "vocab.json",
];

/// A model, and all that its folder says about it.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelFolder {
    pub weights: Weights,
    /// By file name; `config.json` and `tokenizer.json` are among them.
    texts: BTreeMap<String, String>,
}

impl ModelFolder {
    /// Of a model made here, which speaks ChatML.
    #[must_use]
    pub fn new(weights: Weights, tokenizer: String) -> Self {
        let pretty = |value: &Value| serde_json::to_string_pretty(value).expect("numbers and strings") + "\n";
        let mut texts = BTreeMap::new();
        texts.insert(CONFIG.to_owned(), pretty(&config::write(weights.shape())));
        texts.insert(TOKENIZER.to_owned(), tokenizer);
        texts.insert(conversation::TOKENIZER_CONFIG.to_owned(), pretty(&conversation::chatml()));
        Self { weights, texts }
    }

    /// Reads a folder of the families that [`super::Family`] lists, in f32, bf16 or f16.
    ///
    /// # Errors
    /// The file, and the field or tensor of it, that is missing, not whole, or not known here.
    pub fn read(path: &Path) -> Result<Self, String> {
        let at = |name: &str| path.join(name).display().to_string();
        let mut texts = BTreeMap::new();
        for name in [CONFIG, TOKENIZER].into_iter().chain(OTHERS) {
            match fs::read_to_string(path.join(name)) {
                Ok(text) => drop(texts.insert(name.to_owned(), text)),
                Err(error) if error.kind() == io::ErrorKind::NotFound && OTHERS.contains(&name) => {}
                Err(error) => return Err(format!("{}: {error}", at(name))),
            }
        }
        let shape = config::read(&texts[CONFIG]).map_err(|error| format!("{}: {error}", at(CONFIG)))?;
        let weights = weights(path, shape)?;
        let folder = Self { weights, texts };
        let ids = folder.tokenizer().map_err(|error| format!("{}: {error}", at(TOKENIZER)))?.vocab();
        let vocab = folder.weights.shape().vocab;
        if ids > vocab {
            return Err(format!("{}: it has {ids} ids, and the model a vocabulary of {vocab}", at(TOKENIZER)));
        }
        folder.ends().map_err(|error| at(&error))?;
        Ok(folder)
    }

    /// The same folder with other weights of the same shape.
    #[must_use]
    pub fn with(self, weights: Weights) -> Self {
        assert_eq!(weights.shape(), self.weights.shape(), "weights of another shape");
        Self { weights, ..self }
    }

    /// Writes a folder that [`ModelFolder::read`] and other programs read, weights in f32; it is made if need be.
    ///
    /// # Errors
    /// The file that could not be written.
    pub fn write(&self, path: &Path) -> Result<(), String> {
        self.write_as(path, Precision::F32)
    }

    /// [`ModelFolder::write`] with weights as `precision` says.
    ///
    /// # Errors
    /// The file that could not be written.
    pub fn write_as(&self, path: &Path, precision: Precision) -> Result<(), String> {
        fs::create_dir_all(path).map_err(|error| format!("{}: {error}", path.display()))?;
        let put = |name: &str, bytes: &[u8]| {
            fs::write(path.join(name), bytes).map_err(|error| format!("{}: {error}", path.join(name).display()))
        };
        for (name, text) in &self.texts {
            let text = if name == CONFIG { &config::stored_as(text, precision) } else { text };
            put(name, text.as_bytes())?;
        }
        put(WEIGHTS, &self.weights.to_safetensors(precision))
    }

    /// Its tokenizer.
    ///
    /// # Errors
    /// What is wrong with the `tokenizer.json`.
    pub fn tokenizer(&self) -> Result<Tokenizer, String> {
        Tokenizer::from_json(&self.texts[TOKENIZER])
    }

    /// Its chat template, or ChatML where it has none.
    ///
    /// # Errors
    /// What is wrong with the file that should have it.
    pub fn template(&self) -> Result<Template, String> {
        conversation::template(&self.texts)
    }

    /// The tokens that end what it says, beside that which its template puts behind a response.
    ///
    /// # Errors
    /// What is wrong with the file that should say it.
    pub fn ends(&self) -> Result<Vec<u32>, String> {
        conversation::ends(&self.texts, self.weights.shape().vocab)
    }

    /// Most tokens of a text, as its config says.
    #[must_use]
    pub fn positions(&self) -> Option<usize> {
        config::positions(&self.texts[CONFIG])
    }
}

/// One file's weights, or those of the shards that the index lists.
fn weights(path: &Path, shape: Shape) -> Result<Weights, String> {
    let at = |name: &str| path.join(name).display().to_string();
    let index = match fs::read_to_string(path.join(INDEX)) {
        Ok(_) if path.join(WEIGHTS).exists() => {
            return Err(format!("{}: beside {WEIGHTS} it is one too many", at(INDEX)));
        }
        Ok(text) => shards(&text).map_err(|error| format!("{}: {error}", at(INDEX)))?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => BTreeSet::from([WEIGHTS.to_owned()]),
        Err(error) => return Err(format!("{}: {error}", at(INDEX))),
    };
    let mut files = Vec::new();
    for name in index {
        let bytes = fs::read(path.join(&name)).map_err(|error| format!("{}: {error}", at(&name)))?;
        files.push((at(&name), bytes));
    }
    let files: Vec<(&str, &[u8])> = files.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice())).collect();
    Weights::from_files(shape, &files)
}

/// The files of an index.
fn shards(text: &str) -> Result<BTreeSet<String>, String> {
    let index: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let map = index["weight_map"].as_object().ok_or("it has no `weight_map` of tensors to files")?;
    let name = |(tensor, file): (&String, &Value)| match file.as_str() {
        Some(file) if file.ends_with(".safetensors") && !file.contains(['/', '\\']) => Ok(file.to_owned()),
        _ => Err(format!("`{tensor}` is in {file}, which is no safetensors file of this folder")),
    };
    map.iter().map(name).collect()
}
