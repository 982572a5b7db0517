//! The grammar of replies: `<think>…</think><answer>…</answer>`, or the answer alone.
//!
//! RAGEN's rules with its sampled text left as it was sampled: the first `<think>`, the first `</think>` after it that
//! only blanks part from an `<answer>`, and the first `</answer>` after that. Tags inside the contents are removed.

use std::ops::Range;

use crate::trajectory::Malformed;

const TAGS: [&str; 6] = ["<think>", "</think>", "<answer>", "</answer>", "<|im_start|>", "<|im_end|>"];

/// What a reply says.
#[derive(Clone, Debug, PartialEq)]
pub struct Parsed {
    /// At most the allowed number of actions: the first ones.
    pub actions: Result<Vec<String>, Malformed>,
    /// Bytes of the text that hold the thought.
    pub thought: Option<Range<usize>>,
}

/// Reads `text`, forced prefix included. `separator` parts actions, of which the first `most` count.
#[must_use]
pub fn parse(text: &str, think: bool, separator: &str, most: usize) -> Parsed {
    let Some((thought, answer)) = (if think { thought_and_answer(text) } else { answer_alone(text) }) else {
        return Parsed { actions: Err(Malformed::Tags), thought: None };
    };
    let answer = TAGS.iter().fold(text[answer].to_owned(), |answer, tag| answer.replace(tag, ""));
    let actions: Vec<String> = answer
        .split(separator)
        .map(str::trim)
        .filter(|action| !action.is_empty())
        .take(most)
        .map(String::from)
        .collect();
    Parsed { actions: if actions.is_empty() { Err(Malformed::Empty) } else { Ok(actions) }, thought }
}

type Found = Option<(Option<Range<usize>>, Range<usize>)>;

fn thought_and_answer(text: &str) -> Found {
    let start = text.find("<think>")? + "<think>".len();
    let mut from = start;
    loop {
        let close = from + text[from..].find("</think>")?;
        let after = close + "</think>".len();
        let blanks = text[after..].len() - text[after..].trim_start().len();
        if text[after + blanks..].starts_with("<answer>") {
            let open = after + blanks + "<answer>".len();
            return Some((Some(start..close), open..open + text[open..].find("</answer>")?));
        }
        from = after;
    }
}

fn answer_alone(text: &str) -> Found {
    let open = text.find("<answer>")? + "<answer>".len();
    Some((None, open..open + text[open..].find("</answer>")?))
}
