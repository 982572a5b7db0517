//! Questions from a JSONL file, split by content.
//!
//! A question is held out by the digest of its `original_question`, where it has one, so that MetaMathQA's rewordings
//! of one question stay together; a held-out question that also stands among those for training is left out.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use serde_json::Value as Json;

use super::Problem;
use super::answer::normal;
use crate::config::{Decode, Input, Kind, Value};
use crate::trajectory::Split;

/// The file's problems, read once when the config is; or what is wrong with it.
#[derive(Clone, PartialEq)]
pub struct Problems(Arc<Result<Splits, String>>);

#[derive(PartialEq)]
struct Splits {
    train: Vec<Problem>,
    eval: Vec<Problem>,
}

impl fmt::Debug for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_ref() {
            Ok(Splits { train, eval }) => write!(f, "Problems({} train, {} eval)", train.len(), eval.len()),
            Err(reason) => write!(f, "Problems({reason})"),
        }
    }
}

impl Decode for Problems {
    const KIND: Kind = Input::KIND;

    fn decode(value: &Value) -> Self {
        Self::read(&Input::decode(value).0)
    }
}

impl Problems {
    /// Reads the lines of a JSONL text; blank ones are passed over.
    #[must_use]
    pub fn read(text: &str) -> Self {
        Self(Arc::new(splits(text)))
    }

    /// # Errors
    /// A line that is no problem, or a split without one.
    pub(super) fn feasible(&self) -> Result<(), String> {
        let Splits { train, eval } = self.0.as_ref().as_ref().map_err(String::clone)?;
        match [("train", train), ("eval", eval)].into_iter().find(|(_, problems)| problems.is_empty()) {
            Some((split, _)) => Err(format!("questions.path: no question of the file falls into the {split} split")),
            None => Ok(()),
        }
    }

    /// The problems of a split in the file's order, again and again.
    pub(super) fn get(&self, split: Split, index: u64) -> Option<&Problem> {
        let splits = self.0.as_ref().as_ref().ok()?;
        let problems = match split {
            Split::Train => &splits.train,
            Split::Eval => &splits.eval,
        };
        problems.get((index % (problems.len() as u64).max(1)) as usize)
    }
}

fn splits(text: &str) -> Result<Splits, String> {
    let (mut train, mut eval) = (Vec::new(), Vec::new());
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let (original, problem) =
            problem(line).map_err(|reason| format!("questions.path: line {}: {reason}", number + 1))?;
        if super::super::held_out(&original) { &mut eval } else { &mut train }.push(problem);
    }
    let trained: BTreeSet<&str> = train.iter().map(|problem: &Problem| problem.identity.as_str()).collect();
    eval.retain(|problem| !trained.contains(problem.identity.as_str()));
    Ok(Splits { train, eval })
}

/// A line's problem, and the text that says which split it is in.
fn problem(line: &str) -> Result<(String, Problem), String> {
    let row: Json = serde_json::from_str(line).map_err(|error| super::super::in_line(&error))?;
    let column = |name: &str| row.get(name).and_then(Json::as_str);
    let (question, solution, answer) = if let (Some(query), Some(response)) = (column("query"), column("response")) {
        (query, response, response.split_once("The answer is:"))
    } else if let (Some(question), Some(answer)) = (column("question"), column("answer")) {
        (question, answer, answer.rsplit_once("####"))
    } else {
        return Err("it has neither `query` and `response` nor `question` and `answer`".into());
    };
    let (steps, answer) = answer.ok_or("its solution has no `The answer is:` (MetaMathQA) or `####` (GSM8K)")?;
    let answer = normal(answer).ok_or_else(|| format!("its answer is empty or too long: {solution:?}"))?;
    let identity = plain(question);
    let original = column("original_question").map_or_else(|| identity.clone(), plain);
    Ok((original, Problem { question: question.trim().to_owned(), answer, thought: thought(steps), identity }))
}

/// Lower-case words with one blank between them.
fn plain(text: &str) -> String {
    text.to_lowercase().split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The last words of a solution, at most 120 characters of them on one line. GSM8K's `<<1+1=2>>` and headings go.
fn thought(steps: &str) -> String {
    let mut steps = steps.to_owned();
    while let Some((open, close)) = steps.find("<<").and_then(|open| Some((open, open + steps[open..].find(">>")?))) {
        steps.replace_range(open..close + 2, "");
    }
    let words: Vec<&str> = steps.split("####").next().unwrap_or_default().split_whitespace().collect();
    let mut room = 120;
    let fits = |word: &&&str| {
        let length = word.chars().count() + 1;
        let fits = length <= room + 1;
        room = if fits { room.saturating_sub(length) } else { 0 };
        fits
    };
    let last: Vec<&str> = words.iter().rev().take_while(fits).copied().collect();
    last.into_iter().rev().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_columns_are_read() {
        let gsm = r#"{"question": "Ann has 3 pens and buys 4. How many?", "answer": "3 + 4 = <<3+4=7>>7\n#### 7"}"#;
        let (original, read) = problem(gsm).unwrap();
        assert_eq!((read.answer.as_str(), read.thought.as_str()), ("7", "3 + 4 = 7"));
        assert_eq!((&original, original.as_str()), (&read.identity, "ann has 3 pens and buys 4. how many?"));
        let meta = r#"{"query": "What is half of 3?", "original_question": "Halve 3.", "type": "x",
            "response": "Half of 3 is 1.5.\n#### 3/2\nThe answer is: $\\frac{3}{2}$"}"#;
        let (original, read) = problem(&meta.replace('\n', "")).unwrap();
        assert_eq!((read.answer.as_str(), read.thought.as_str()), ("3/2", "Half of 3 is 1.5."));
        assert_eq!(original, "halve 3.");
    }

    #[test]
    fn lines_that_are_no_problem_are_told() {
        let told = |text: &str| Problems::read(text).feasible().unwrap_err();
        assert!(told("\n{").starts_with("questions.path: line 2: EOF"));
        assert!(told("{}").contains("line 1: it has neither"));
        assert!(told(r#"{"question": "a", "answer": "b"}"#).contains("no `The answer is:`"));
        assert!(told(r#"{"question": "a", "answer": "b ####"}"#).contains("empty or too long"));
        assert!(told("").contains("no question of the file falls into the train split"));
    }

    #[test]
    fn thoughts_are_the_last_words() {
        let words = "word ".repeat(60);
        assert_eq!(thought(&words).chars().count(), 119);
        assert_eq!(thought("a <<b"), "a <<b");
        assert_eq!(thought(&"x".repeat(200)), "");
    }
}
