//! Math: questions with a checked final answer, after RAGEN (env/metamathqa).
//!
//! How we differ: answers are compared as numbers and fractions too (see `math/answer.rs`), where RAGEN compares
//! lower-cased text without blanks; wrong answers end the episode after some attempts, where RAGEN's never do; training
//! and evaluation share no question, where RAGEN takes both from one set; questions can be generated, so that nothing
//! has to be downloaded.

mod answer;
mod file;
mod generate;

use super::{Advice, Environment, Episode, Outcome, Step};
use crate::config::{section, variants};
use crate::rng::Stream;
use crate::trajectory::Split;
use answer::normal;
pub use file::Problems;

section! {
    /// Math: answer a question whose final answer is known.
    ///
    /// The right answer pays 1 at the first attempt, a half at the second, and so on; a wrong one pays 0. Ends with
    /// the right answer, solved, or with the last wrong attempt, failed.
    pub struct Math epoch 1 {
        /// Where the questions come from.
        pub questions: QuestionsConfig,
        /// Answers after which the episode has failed.
        pub attempts: usize where 1..=1000,
    }
}

variants! {
    /// Where questions come from.
    pub enum QuestionsConfig: "questions" {
        "generated" => Generated(Generated),
        "file" => File(File),
    }
}

section! {
    /// Word problems of arithmetic on whole numbers. No calculation is in both splits.
    pub struct Generated epoch 1 {
        /// Calculations of a problem.
        pub operations: usize where 1..=5,
    }
}

section! {
    /// A file of JSON lines, or a Parquet file, with the columns of MetaMathQA (`query`, `response` with `The answer
    /// is:`) or of GSM8K (`question`, `answer` with `####`). One in eight questions is held out; the rewordings of one
    /// `original_question` stay together.
    pub struct File epoch 1 {
        /// The file, as `(file)"path.jsonl"`. A `.parquet` is read by a build with `--features parquet`.
        pub path: Problems,
    }
}

/// A question, its answer, and how to get there.
#[derive(Clone, Debug, PartialEq)]
struct Problem {
    question: String,
    /// In its [`normal`] form.
    answer: String,
    /// The expert's thought.
    thought: String,
    /// What makes it another problem: no value is in both splits.
    identity: String,
}

impl Math {
    fn find(&self, split: Split, index: u64) -> Option<Problem> {
        match &self.questions {
            QuestionsConfig::Generated(generated) => {
                let candidate = |stream: &mut Stream| Some(generate::problem(generated.operations, stream));
                super::draw("task/math", split, index, candidate, |problem| problem.identity.clone())
            }
            QuestionsConfig::File(file) => file.path.get(split, index).cloned(),
        }
    }

    fn problem(&self, split: Split, index: u64) -> Problem {
        let missing = || panic!("no question {index} of {}: {:?}", split.name(), self.feasible());
        self.find(split, index).unwrap_or_else(missing)
    }
}

impl Environment for Math {
    fn instruction(&self) -> String {
        "You are solving a mathematics problem. Think step by step, then give the final answer alone: a number, a \
         fraction such as 3/4, or a short expression, without a unit or a sentence around it. A wrong answer may be \
         tried again for half of the reward. Actions: the final answer to the question."
            .to_owned()
    }

    fn start(&self, split: Split, index: u64, _: Stream) -> Box<dyn Episode> {
        let problem = self.problem(split, index);
        Box::new(Asked { actions: numbers(&problem.question), problem, wrong: 0, attempts: self.attempts, over: false })
    }

    /// Of a generated question its calculation; of one from a file its text.
    fn identity(&self, split: Split, index: u64) -> String {
        self.problem(split, index).identity
    }

    fn feasible(&self) -> Result<(), String> {
        match &self.questions {
            QuestionsConfig::File(file) => file.path.feasible(),
            QuestionsConfig::Generated(_) => Ok(()),
        }
    }
}

/// The numbers that a text names, each once; 0 where it names none.
fn numbers(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let digits = text.split(|c: char| !c.is_ascii_digit()).filter(|digits| !digits.is_empty());
    for number in digits.filter(|digits| normal(digits).as_deref() == Some(digits)) {
        if !found.iter().any(|known| known == number) {
            found.push(number.to_owned());
        }
    }
    if found.is_empty() { vec!["0".to_owned()] } else { found }
}

/// A question that waits for its answer.
struct Asked {
    problem: Problem,
    /// Guesses: the numbers of the question.
    actions: Vec<String>,
    wrong: usize,
    attempts: usize,
    over: bool,
}

impl Episode for Asked {
    fn observe(&self) -> String {
        let tried = match (self.over, self.wrong) {
            (false, 0) => "",
            (true, wrong) if wrong < self.attempts => "\nThat is right.",
            _ => "\nThat is wrong.",
        };
        format!("{}{tried}", self.problem.question)
    }

    fn actions(&self) -> &[String] {
        &self.actions
    }

    /// Any answer of some length, in its normal form.
    fn understand(&self, words: &str) -> Option<String> {
        normal(words)
    }

    fn act(&mut self, action: &str) -> Step {
        assert!(!self.over, "the episode has ended");
        let right = action == self.problem.answer;
        let reward = if right { libm::scalbn(1.0, -(self.wrong as i32)) } else { 0.0 };
        self.wrong += usize::from(!right);
        self.over = right || self.wrong == self.attempts;
        let outcome = self.over.then_some(if right { Outcome::Solved } else { Outcome::Failed });
        Step { reward, effective: true, outcome }
    }

    fn expert(&self, _: usize) -> Option<Advice> {
        let Problem { answer, thought, .. } = &self.problem;
        (!self.over).then(|| Advice { thought: thought.clone(), actions: vec![answer.clone()] })
    }
}
