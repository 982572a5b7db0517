//! Text and token ids, by a Hugging Face `tokenizer.json`; and the training of a small one.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use tokenizers::pre_tokenizers::split::{Split, SplitPattern};
use tokenizers::{OffsetReferential, OffsetType, PreTokenizedString, PreTokenizer, SplitDelimiterBehavior};

/// Special tokens of a trained tokenizer, with ids from 0.
const SPECIAL: [&str; 3] = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"];

/// What merges stay within: a tag, the bars between actions, a word with its space, or one character, so that board
/// symbols and digits stay tokens of their own.
const PIECES: &str = r"</?think>|</?answer>| ?\|\|| ?[A-Z]?[a-z]+|[\s\S]";

/// A tokenizer.
pub struct Tokenizer {
    inner: tokenizers::Tokenizer,
}

impl Tokenizer {
    /// # Errors
    /// What is wrong with the `tokenizer.json`.
    pub fn from_json(json: &str) -> Result<Self, String> {
        let mut inner: tokenizers::Tokenizer = json.parse().map_err(|e| format!("not a tokenizer: {e}"))?;
        inner.set_encode_special_tokens(true);
        inner.with_padding(None);
        inner.with_truncation(None).map_err(|e| format!("not a tokenizer: {e}"))?;
        let tokenizer = Self { inner };
        let (ids, tokens) = (tokenizer.vocab(), tokenizer.inner.get_vocab_size(true));
        if ids != tokens {
            return Err(format!("its {tokens} tokens do not have the ids from 0 on: the highest is {}", ids - 1));
        }
        Ok(tokenizer)
    }

    /// The ids of a text. None of them is special: the names of special tokens are text like any other, and none are
    /// added around it.
    ///
    /// # Panics
    /// If the tokenizer has no token for a part of the text, not even an unknown one.
    #[must_use]
    pub fn encode(&self, text: &str) -> Vec<u32> {
        self.inner.encode_fast(text, false).expect("the tokenizer covers all text").get_ids().to_vec()
    }

    /// Whether a text survives encoding and decoding.
    #[must_use]
    pub fn covers(&self, text: &str) -> bool {
        let ids = self.inner.encode_fast(text, false).map(|encoding| encoding.get_ids().to_vec());
        ids.is_ok_and(|ids| self.inner.decode(&ids, false).is_ok_and(|decoded| decoded == text))
    }

    /// The text of ids, special tokens by their names. Bytes that are no UTF-8 become `�`.
    ///
    /// # Panics
    /// If the tokenizer's decoder fails.
    #[must_use]
    pub fn decode(&self, ids: &[u32]) -> String {
        self.inner.decode(ids, false).expect("ids decode")
    }

    /// The id of the special token of that name.
    #[must_use]
    pub fn special(&self, name: &str) -> Option<u32> {
        let id = self.inner.token_to_id(name)?;
        self.inner.get_added_vocabulary().is_special_token(name).then_some(id)
    }

    /// Number of ids: one above the highest.
    #[must_use]
    pub fn vocab(&self) -> usize {
        self.inner.get_vocab(true).into_values().max().map_or(0, |id| id as usize + 1)
    }
}

impl crate::chat::Tokens for Tokenizer {
    fn encode(&self, text: &str) -> Vec<u32> {
        Tokenizer::encode(self, text)
    }

    fn decode(&self, ids: &[u32]) -> String {
        Tokenizer::decode(self, ids)
    }

    fn specials(&self) -> Vec<(String, u32)> {
        let added = self.inner.get_added_tokens_decoder();
        let special = added.iter().filter(|(_, token)| token.special);
        let mut specials: Vec<_> = special.map(|(&id, token)| (token.content.clone(), id)).collect();
        specials.sort_unstable_by_key(|(_, id)| *id);
        specials
    }
}

/// Trains a byte pair encoding (Gage 1994; Sennrich et al. 2016) of at most `vocab` tokens: the special tokens,
/// printable ASCII, newline and `√`, the bytes that other text falls back to, and merges, the most frequent pair first,
/// ties to the lowest ids. A `tokenizer.json`, the same for the same texts.
///
/// # Errors
/// If `vocab` has no room for the alphabet.
pub fn train(texts: &[String], vocab: usize) -> Result<String, String> {
    let mut tokens: Vec<String> = SPECIAL.map(str::to_owned).to_vec();
    tokens.extend(std::iter::once('\n').chain(' '..='~').chain(['√']).map(String::from));
    let fallback = (0x00..=0x1Fu8).filter(|b| *b != b'\n').chain([0x7F]).chain(0x80..=0xBF).chain(0xC2..=0xF4);
    tokens.extend(fallback.map(|byte| format!("<0x{byte:02X}>")));
    if vocab < tokens.len() {
        return Err(format!("a vocabulary of {vocab} tokens has no room for an alphabet of {}", tokens.len()));
    }
    let mut words = pieces(texts, &tokens)?;
    let mut merges = Vec::new();
    while tokens.len() < vocab {
        let mut pairs: BTreeMap<(u32, u32), u64> = BTreeMap::new();
        for (word, count) in &words {
            for pair in word.windows(2) {
                *pairs.entry((pair[0], pair[1])).or_default() += count;
            }
        }
        // Ascending order, and only a larger count replaces: ties go to the lowest pair.
        let best = pairs.into_iter().fold(((0, 0), 1), |best, (pair, n)| if n > best.1 { (pair, n) } else { best });
        let ((a, b), 2..) = best else { break };
        let id = tokens.len() as u32;
        let (left, right) = (tokens[a as usize].clone(), tokens[b as usize].clone());
        tokens.push(format!("{left}{right}"));
        merges.push(json!([left, right]));
        words.iter_mut().for_each(|(word, _)| merge(word, (a, b), id));
    }
    Ok(document(&tokens, merges))
}

fn splitter() -> Result<Split, String> {
    Split::new(SplitPattern::Regex(PIECES.into()), SplitDelimiterBehavior::Isolated, false).map_err(|e| e.to_string())
}

/// The pieces of more than one character that the alphabet spells, with their counts.
fn pieces(texts: &[String], tokens: &[String]) -> Result<Vec<(Vec<u32>, u64)>, String> {
    let ids: BTreeMap<&str, u32> = tokens.iter().zip(0..).map(|(token, id)| (token.as_str(), id)).collect();
    let splitter = splitter()?;
    let mut counts: BTreeMap<Vec<u32>, u64> = BTreeMap::new();
    for text in texts {
        let mut split = PreTokenizedString::from(text.as_str());
        splitter.pre_tokenize(&mut split).map_err(|e| e.to_string())?;
        for (piece, _, _) in split.get_splits(OffsetReferential::Original, OffsetType::Byte) {
            let mut buffer = [0; 4];
            let spelt =
                piece.chars().map(|c| ids.get(&*c.encode_utf8(&mut buffer)).copied()).collect::<Option<Vec<_>>>();
            if let Some(word) = spelt.filter(|word| word.len() > 1) {
                *counts.entry(word).or_default() += 1;
            }
        }
    }
    Ok(counts.into_iter().collect())
}

/// Puts `id` for each `pair`, from the left.
fn merge(word: &mut Vec<u32>, pair: (u32, u32), id: u32) {
    let (mut read, mut write) = (0, 0);
    while read < word.len() {
        let found = read + 1 < word.len() && (word[read], word[read + 1]) == pair;
        word[write] = if found { id } else { word[read] };
        read += 1 + usize::from(found);
        write += 1;
    }
    word.truncate(write);
}

fn document(tokens: &[String], merges: Vec<Value>) -> String {
    let ids = || tokens.iter().zip(0u32..);
    let vocab: Map<String, Value> = ids().map(|(token, id)| (token.clone(), id.into())).collect();
    let added = |(token, id): (&String, u32)| {
        json!({ "id": id, "content": token, "single_word": false, "lstrip": false, "rstrip": false,
                "normalized": false, "special": true })
    };
    let document = json!({
        "version": "1.0",
        "truncation": null,
        "padding": null,
        "added_tokens": ids().take(SPECIAL.len()).map(added).collect::<Vec<_>>(),
        "normalizer": null,
        "pre_tokenizer": { "type": "Split", "pattern": { "Regex": PIECES }, "behavior": "Isolated", "invert": false },
        "post_processor": null,
        "decoder": { "type": "Sequence", "decoders": [{ "type": "ByteFallback" }, { "type": "Fuse" }] },
        "model": { "type": "BPE", "dropout": null, "unk_token": null, "continuing_subword_prefix": null,
                   "end_of_word_suffix": null, "fuse_unk": false, "byte_fallback": true, "ignore_merges": false,
                   "vocab": vocab, "merges": merges },
    });
    let mut text = serde_json::to_string_pretty(&document).expect("a document of strings and numbers");
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts() -> Vec<String> {
        let turn = |i: usize| {
            format!(
                "<think>Box at ({},{}), goal below. Push it Down.</think><answer>Down</answer>\n#_√O#\n",
                i % 7,
                i % 5
            )
        };
        (0..50).map(turn).collect()
    }

    fn trained() -> Tokenizer {
        Tokenizer::from_json(&train(&texts(), 400).expect("room enough")).expect("a tokenizer")
    }

    #[test]
    fn training_repeats_itself() {
        assert_eq!(train(&texts(), 400), train(&texts(), 400));
        assert!(train(&texts(), 100).is_err());
    }

    #[test]
    fn any_text_comes_back() {
        let tokenizer = trained();
        let odd = "Größe 世界 🦀\t\r\n\u{0} <0x41> <|im_end|> <|im_start|>user\n</think> Down down DOWN  √√";
        for text in texts().iter().map(String::as_str).chain([odd, "", " "]) {
            assert_eq!(tokenizer.decode(&tokenizer.encode(text)), text);
        }
    }

    #[test]
    fn tags_and_words_are_single_tokens_and_boards_are_not_merged() {
        let tokenizer = trained();
        for piece in ["<think>", "</think>", "<answer>", "</answer>", " Down", "√", "#", "\n", "7"] {
            assert_eq!(tokenizer.encode(piece).len(), 1, "{piece:?}");
        }
        assert_eq!(tokenizer.encode("#_√O#\n").len(), 6);
        assert!(tokenizer.vocab() <= 400);
    }

    #[test]
    fn the_name_of_a_special_token_is_text() {
        let tokenizer = trained();
        let end = tokenizer.special("<|im_end|>").expect("there");
        assert!(!tokenizer.encode("<|im_end|>").contains(&end));
        assert_eq!(tokenizer.decode(&[end]), "<|im_end|>");
        assert_eq!(tokenizer.special("<think>"), None);
    }
}
