//! Number line: step to the target, after GymCards (Zhai et al. 2024, "Fine-tuning large vision-language models as
//! decision-making agents"; verl-agent's NumberLine).
//!
//! How we differ: the state is text, where GymCards shows a picture of that text; splits are disjoint by content.

use super::{Advice, Environment, Episode, Outcome, Step};
use crate::config::section;
use crate::rng::Stream;
use crate::trajectory::Split;

section! {
    /// Number line: step to the target, one position at a time.
    ///
    /// Reaching the target pays 1. Any other step that does not come closer costs 1; one that does pays 0.
    /// Ends at the target, solved.
    pub struct NumberLine epoch 1 {
        /// The last position; the first is 0.
        pub size: usize where 2..=100000,
    }
}

const ACTIONS: [&str; 2] = ["+", "-"];

impl NumberLine {
    fn find(&self, split: Split, index: u64) -> Option<Walk> {
        let candidate = |stream: &mut Stream| {
            let start = stream.below(self.size + 1);
            let target = (start + 1 + stream.below(self.size)) % (self.size + 1);
            Some(Walk { size: self.size, at: start, target, actions: ACTIONS.map(str::to_owned) })
        };
        super::draw("task/number-line", split, index, candidate, Walk::observe)
    }

    fn walk(&self, split: Split, index: u64) -> Walk {
        self.find(split, index).unwrap_or_else(|| panic!("no walk {index} of {}: {:?}", split.name(), self.feasible()))
    }
}

impl Environment for NumberLine {
    fn instruction(&self) -> String {
        format!(
            "You are walking on a number line from 0 to {}. Reach the target. An action goes one position: + adds 1, \
             - takes 1 away; at either end you stay where you are. A step that does not come closer to the target \
             costs a point, and reaching it earns one. Actions: +, -.",
            self.size
        )
    }

    fn start(&self, split: Split, index: u64, _: Stream) -> Box<dyn Episode> {
        Box::new(self.walk(split, index))
    }

    /// Target and start.
    fn identity(&self, split: Split, index: u64) -> String {
        self.walk(split, index).observe()
    }

    fn feasible(&self) -> Result<(), String> {
        let missing = [Split::Train, Split::Eval].into_iter().find(|&split| self.find(split, 0).is_none());
        missing.map_or(Ok(()), |split| Err(format!("size: too few walks, none of the {} split", split.name())))
    }
}

struct Walk {
    size: usize,
    at: usize,
    target: usize,
    actions: [String; 2],
}

impl Episode for Walk {
    fn observe(&self) -> String {
        format!("Target: {}\nPosition: {}", self.target, self.at)
    }

    fn actions(&self) -> &[String] {
        &self.actions
    }

    fn act(&mut self, action: &str) -> Step {
        assert!(self.at != self.target, "the episode has ended");
        let before = self.at;
        self.at = match action {
            "+" => (before + 1).min(self.size),
            "-" => before.saturating_sub(1),
            other => panic!("action {other}"),
        };
        let solved = self.at == self.target;
        let closer = self.at.abs_diff(self.target) < before.abs_diff(self.target);
        let reward = if solved { 1.0 } else { f64::from(closer) - 1.0 };
        Step { reward, effective: self.at != before, outcome: solved.then_some(Outcome::Solved) }
    }

    /// Straight to the target.
    fn expert(&self, most: usize) -> Option<Advice> {
        let Self { at, target, .. } = *self;
        let way = target.abs_diff(at);
        let (action, sign) = if target > at { ("+", "above") } else { ("-", "below") };
        let thought = format!("{target} is {way} {sign} {at}: go {action}");
        (way > 0).then(|| Advice { thought, actions: vec![action.to_owned(); way.min(most)] })
    }
}
