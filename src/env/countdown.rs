//! Countdown: combine all the numbers, each once, so that they make the target.
//!
//! Rules and rewards are RAGEN's (env/countdown, after TinyZero), tasks are distributed like Countdown-Tasks-3to4. How
//! we differ: an answer is read by a small grammar and computed exactly, where theirs is evaluated by Python, without
//! bounds; tasks are made here unless a file is given, and the operators are a setting where theirs keeps the sums
//! only; splits are disjoint by content, whatever the order of the numbers.

mod expression;
mod solve;

use super::rational::Rational;
use super::{Advice, Environment, Episode, Outcome, Step};
use crate::config::{Decode, Kind, Value, choice, section};
use crate::rng::Stream;
use crate::trajectory::Split;
use expression::Expression;
use std::fmt;
use std::sync::Arc;

section! {
    /// Countdown: an expression of all the numbers, each used once, that makes the target. Pays 1 for it, 0.1 for
    /// another value of the same numbers, 0 for other numbers.
    pub struct Countdown epoch 1 {
        /// How many numbers a task has: one of these counts, each as likely.
        pub numbers: Vec<usize> where 2..=5,
        /// The largest number; the smallest is 1.
        pub high: usize where 1..=1000,
        /// The smallest and the largest target.
        pub targets: Vec<usize> where 0..=1000000,
        /// What a task can be solved with. An answer may use all four.
        pub operators: Operators,
        /// Tasks as JSON lines with `nums` and `target`, as the data set Countdown-Tasks-3to4 has them: then `numbers`,
        /// `high` and `targets` say which of them are played. A `.parquet` needs a build with `--features parquet`.
        pub file: Option<Puzzles>,
    }
}

choice! {
    /// Operators of a solution.
    pub enum Operators {
        "+-" => Sums,
        "+-*/" => All,
    }
}

impl Operators {
    fn list(self) -> &'static [char] {
        match self {
            Self::Sums => &['+', '-'],
            Self::All => &['+', '-', '*', '/'],
        }
    }
}

/// Numbers and the target that they are to make.
#[derive(Clone, Debug, PartialEq, Eq, serde::Deserialize)]
struct Puzzle {
    nums: Vec<u32>,
    target: u32,
}

impl Puzzle {
    /// The puzzle whatever the order of its numbers.
    fn text(&self) -> String {
        let mut sorted = self.nums.clone();
        sorted.sort_unstable();
        format!("{} from {}", self.target, listed(&sorted))
    }
}

fn listed(numbers: &[u32]) -> String {
    numbers.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")
}

/// The puzzles of a file, those of either split in the file's order, or what is wrong with it.
#[derive(Clone, PartialEq)]
pub struct Puzzles(Result<Arc<[Vec<Puzzle>; 2]>, String>);

impl Puzzles {
    fn read(text: &str) -> Result<[Vec<Puzzle>; 2], String> {
        let mut splits = [Vec::new(), Vec::new()];
        for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            let puzzle: Puzzle = serde_json::from_str(line)
                .map_err(|error| format!("file, line {}: {}", number + 1, super::in_line(&error)))?;
            splits[usize::from(super::held_out(&puzzle.text()))].push(puzzle);
        }
        Ok(splits)
    }

    fn of(&self, split: Split) -> &[Puzzle] {
        match (&self.0, split) {
            (Ok(splits), Split::Train) => &splits[0],
            (Ok(splits), Split::Eval) => &splits[1],
            (Err(_), _) => &[],
        }
    }
}

impl fmt::Debug for Puzzles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} and {} puzzles", self.of(Split::Train).len(), self.of(Split::Eval).len())
    }
}

impl Decode for Puzzles {
    const KIND: Kind = Kind::Input;

    fn decode(value: &Value) -> Self {
        let Value::Input { text, .. } = value else { unreachable!("resolution left {value:?} for a file") };
        Self(Self::read(text).map(Arc::new))
    }
}

impl Countdown {
    fn find(&self, split: Split, index: u64) -> Option<Puzzle> {
        match &self.file {
            Some(puzzles) => {
                let puzzles = puzzles.of(split);
                let from = (index % puzzles.len().max(1) as u64) as usize;
                puzzles[from..].iter().chain(&puzzles[..from]).find(|puzzle| self.plays(puzzle)).cloned()
            }
            None => super::draw("task/countdown", split, index, |stream| self.made(stream), Puzzle::text),
        }
    }

    fn puzzle(&self, split: Split, index: u64) -> Puzzle {
        self.find(split, index)
            .unwrap_or_else(|| panic!("no puzzle {index} of {}: {:?}", split.name(), self.feasible()))
    }

    fn allows(&self, target: i128) -> bool {
        (self.targets[0] as i128..=self.targets[1] as i128).contains(&target)
    }

    /// Whether a puzzle of a file fits the fields and has a solution.
    fn plays(&self, puzzle: &Puzzle) -> bool {
        let small = puzzle.nums.iter().all(|&number| (1..=self.high).contains(&(number as usize)));
        small
            && self.numbers.contains(&puzzle.nums.len())
            && self.allows(i128::from(puzzle.target))
            && solve::solution(&puzzle.nums, puzzle.target, self.operators.list()).is_some()
    }

    /// Numbers, and what they make when two of them at random are combined, again and again. None where that is no
    /// target.
    fn made(&self, stream: &mut Stream) -> Option<Puzzle> {
        let count = *stream.pick(&self.numbers);
        let nums: Vec<u32> = (0..count).map(|_| 1 + stream.below(self.high) as u32).collect();
        let mut values: Vec<Rational> = nums.iter().map(|&number| Rational::whole(number)).collect();
        while values.len() > 1 {
            let left = values.swap_remove(stream.below(values.len()));
            let right = values.swap_remove(stream.below(values.len()));
            values.push(left.apply(*stream.pick(self.operators.list()), right)?);
        }
        let target = values[0].integer().filter(|&target| self.allows(target))?;
        Some(Puzzle { nums, target: u32::try_from(target).ok()? })
    }

    /// Plays a puzzle given as its numbers and its target.
    #[must_use]
    pub fn play(&self, nums: &[u32], target: u32) -> Box<dyn Episode> {
        let puzzle = Puzzle { nums: nums.to_vec(), target };
        let mut guesses = vec![puzzle.nums[0].to_string()];
        for number in &puzzle.nums[1..] {
            let with = |guess: &String| {
                let more = self.operators.list().iter().map(|operator| format!("{guess} {operator} {number}"));
                more.collect::<Vec<_>>()
            };
            guesses = guesses.iter().flat_map(with).collect();
        }
        Box::new(Play { puzzle, guesses, operators: self.operators, over: false })
    }

    /// An expression that solves the puzzle, if there is one.
    #[must_use]
    pub fn solution(&self, nums: &[u32], target: u32) -> Option<String> {
        solve::solution(nums, target, self.operators.list()).map(|solution| solution.expression)
    }
}

impl Environment for Countdown {
    fn instruction(&self) -> String {
        format!(
            "You are playing Countdown. Combine all the numbers into one expression that makes the target. Use each \
             number exactly once, with the operators + - * / and parentheses. You have one try. The target pays 1, \
             another value of the same numbers 0.1, any other expression nothing. Every task can be solved with {}. \
             Action: the expression, without an equals sign.",
            self.operators.list().iter().map(char::to_string).collect::<Vec<_>>().join(" ")
        )
    }

    fn start(&self, split: Split, index: u64, _: Stream) -> Box<dyn Episode> {
        let Puzzle { nums, target } = self.puzzle(split, index);
        self.play(&nums, target)
    }

    fn identity(&self, split: Split, index: u64) -> String {
        self.puzzle(split, index).text()
    }

    fn feasible(&self) -> Result<(), String> {
        if let Some(Puzzles(Err(error))) = &self.file {
            return Err(error.clone());
        }
        if self.numbers.is_empty() {
            return Err("numbers names no count".into());
        }
        if self.targets.len() != 2 || self.targets[0] > self.targets[1] {
            return Err("targets must be two numbers, the smallest and the largest".into());
        }
        let missing = [Split::Train, Split::Eval].into_iter().find(|&split| self.find(split, 0).is_none());
        missing.map_or(Ok(()), |split| Err(format!("no puzzle of these falls into the {} split", split.name())))
    }
}

struct Play {
    puzzle: Puzzle,
    /// The numbers in their order with every choice of operators between them.
    guesses: Vec<String>,
    operators: Operators,
    over: bool,
}

impl Episode for Play {
    fn observe(&self) -> String {
        format!("Numbers: {}\nTarget: {}", listed(&self.puzzle.nums), self.puzzle.target)
    }

    fn actions(&self) -> &[String] {
        &self.guesses
    }

    /// An expression of numbers, the four operators and parentheses, as it is written with blanks around operators.
    fn understand(&self, words: &str) -> Option<String> {
        Expression::parse(words).map(|expression| expression.to_string())
    }

    fn act(&mut self, action: &str) -> Step {
        assert!(!self.over, "the episode has ended");
        self.over = true;
        let expression = Expression::parse(action).unwrap_or_else(|| panic!("no expression {action}"));
        let (mut used, mut given) = (expression.numbers(), self.puzzle.nums.clone());
        used.sort_unstable();
        given.sort_unstable();
        let hit = expression.value() == Some(Rational::whole(self.puzzle.target));
        let (reward, outcome) = match (used == given, hit) {
            (true, true) => (1.0, Outcome::Solved),
            (true, false) => (0.1, Outcome::Failed),
            (false, _) => (0.0, Outcome::Failed),
        };
        Step { reward, effective: true, outcome: Some(outcome) }
    }

    /// The first solution that trying everything finds.
    fn expert(&self, _: usize) -> Option<Advice> {
        let found = || solve::solution(&self.puzzle.nums, self.puzzle.target, self.operators.list());
        let solution = (!self.over).then(found)??;
        Some(Advice { thought: solution.thought(), actions: vec![solution.expression] })
    }
}
