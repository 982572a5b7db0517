//! Card arithmetic: a hand of numbers, and a formula of them written token by token that must make a target.
//!
//! How we differ from GymCards: the state is text, with every card as the number that it counts (10 for a face), where
//! GymCards shows a picture; `actions` holds the tokens that go on with the formula, and another token of the language
//! changes nothing; `=` pays by exact fractions; splits are disjoint by the cards, whatever their order.

mod formula;
mod solve;

use std::sync::OnceLock;

use super::rational::Rational;
use super::{Advice, Episode, Outcome, Step};
use crate::rng::Stream;
use crate::trajectory::Split;
pub(super) use formula::Operator;
use formula::{Token, text, value};

/// What is dealt and what may be written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    /// Names the stream that deals.
    pub(super) domain: &'static str,
    pub(super) cards: usize,
    pub(super) target: usize,
    pub(super) operators: &'static [Operator],
    pub(super) brackets: bool,
    /// Whether only hands are dealt that have a solution.
    pub(super) solvable: bool,
}

impl Rules {
    pub(super) fn instruction(&self) -> String {
        let operators = text(&self.operators.iter().map(|&operator| Token::Operator(operator)).collect::<Vec<_>>());
        let brackets = if self.brackets { " ( )" } else { "" };
        format!(
            "You are writing a formula whose value is {}. Use each card's number exactly once, and nothing else but \
             {operators}{brackets}. Each action writes one token at the end of the formula; what is written stays. \
             The token = ends it, and then it is judged: all cards used, and the value exact. Actions: a number of \
             your cards, {operators}{brackets} =.",
            self.target
        )
    }

    pub(super) fn start(self, split: Split, index: u64) -> Box<dyn Episode> {
        Box::new(Writing::new(self, self.hand(split, index)))
    }

    /// The cards in ascending order.
    pub(super) fn identity(&self, split: Split, index: u64) -> String {
        sorted(&self.hand(split, index))
    }

    pub(super) fn feasible(&self) -> Result<(), String> {
        let missing = [Split::Train, Split::Eval].into_iter().find(|&split| self.find(split, 0).is_none());
        missing.map_or(Ok(()), |split| {
            Err(format!("target: too few hands make {}, none of the {} split", self.target, split.name()))
        })
    }

    fn find(&self, split: Split, index: u64) -> Option<Vec<u64>> {
        let candidate = |stream: &mut Stream| {
            let hand: Vec<u64> = (0..self.cards).map(|_| (1 + stream.below(13)).min(10) as u64).collect();
            (!self.solvable || solve::any(self, &hand)).then_some(hand)
        };
        super::draw(self.domain, split, index, candidate, |hand| sorted(hand))
    }

    fn hand(&self, split: Split, index: u64) -> Vec<u64> {
        self.find(split, index).unwrap_or_else(|| panic!("no hand {index} of {}: {:?}", split.name(), self.feasible()))
    }
}

fn sorted(hand: &[u64]) -> String {
    let mut hand = hand.to_vec();
    hand.sort_unstable();
    list(&hand, ", ")
}

fn list(numbers: &[u64], between: &str) -> String {
    numbers.iter().map(u64::to_string).collect::<Vec<_>>().join(between)
}

/// A formula under way.
struct Writing {
    rules: Rules,
    hand: Vec<u64>,
    /// The cards not written yet, in the hand's order.
    left: Vec<u64>,
    formula: Vec<Token>,
    over: bool,
    actions: Vec<String>,
    /// Every solution of the hand, the shortest first; found when an expert is asked.
    solutions: OnceLock<Vec<Vec<Token>>>,
}

impl Writing {
    fn new(rules: Rules, hand: Vec<u64>) -> Self {
        let (left, formula) = (hand.clone(), Vec::new());
        let mut writing =
            Self { rules, hand, left, formula, over: false, actions: Vec::new(), solutions: OnceLock::new() };
        writing.actions = writing.next().iter().map(Token::to_string).collect();
        writing
    }

    /// The tokens that go on with the formula so that it can be brought to an end: a bracket opens before two cards at
    /// least, brackets are fewer than cards, and `=` waits for the last card.
    fn next(&self) -> Vec<Token> {
        let count = |token| self.formula.iter().filter(|&&written| written == token).count();
        let (opened, closed) = (count(Token::Open), count(Token::Close));
        let mut tokens: Vec<Token> = Vec::new();
        match self.formula.last() {
            Some(Token::Equals) => {}
            None | Some(Token::Operator(_) | Token::Open) => {
                let fresh = |&(at, card): &(usize, &u64)| !self.left[..at].contains(card);
                tokens.extend(self.left.iter().enumerate().filter(fresh).map(|(_, &card)| Token::Number(card)));
                if self.rules.brackets && self.left.len() > 1 && opened + 1 < self.hand.len() {
                    tokens.push(Token::Open);
                }
            }
            Some(Token::Number(_) | Token::Close) => {
                if !self.left.is_empty() {
                    tokens.extend(self.rules.operators.iter().map(|&operator| Token::Operator(operator)));
                }
                if opened > closed {
                    tokens.push(Token::Close);
                } else if self.left.is_empty() {
                    tokens.push(Token::Equals);
                }
            }
        }
        tokens
    }

    /// Whether the formula, now ended, makes the target out of all cards.
    fn solved(&self) -> bool {
        let written = self.formula.strip_suffix(&[Token::Equals]).unwrap_or(&self.formula);
        self.left.is_empty() && value(written).is_some_and(|value| value == Rational::whole(self.rules.target as u64))
    }

    fn token(&self, words: &str) -> Option<Token> {
        let token = Token::read(words)?;
        let known = match token {
            Token::Number(card) => self.hand.contains(&card),
            Token::Operator(operator) => self.rules.operators.contains(&operator),
            Token::Open | Token::Close => self.rules.brackets,
            Token::Equals => true,
        };
        known.then_some(token)
    }
}

impl Episode for Writing {
    fn observe(&self) -> String {
        let formula = if self.formula.is_empty() { "(nothing yet)".to_owned() } else { text(&self.formula) };
        format!("Cards: {}\nFormula: {formula}", list(&self.hand, ", "))
    }

    fn actions(&self) -> &[String] {
        &self.actions
    }

    /// A token of the language, whether it may stand next or not.
    fn understand(&self, words: &str) -> Option<String> {
        self.token(words).map(|token| token.to_string())
    }

    /// A token that cannot stand next is not written, but for `=`, which always ends the formula.
    fn act(&mut self, action: &str) -> Step {
        assert!(!self.over, "the episode has ended");
        let token = self.token(action).unwrap_or_else(|| panic!("action {action}"));
        let ends = token == Token::Equals;
        if !ends && !self.next().contains(&token) {
            return Step { reward: 0.0, effective: false, outcome: None };
        }
        self.formula.push(token);
        if let Some(at) = self.left.iter().position(|&card| token == Token::Number(card)) {
            self.left.remove(at);
        }
        self.over = ends;
        self.actions = self.next().iter().map(Token::to_string).collect();
        let outcome = ends.then(|| if self.solved() { Outcome::Solved } else { Outcome::Failed });
        Step { reward: if outcome == Some(Outcome::Solved) { 10.0 } else { 0.0 }, effective: true, outcome }
    }

    /// The rest of the shortest solution that begins as the formula does.
    fn expert(&self, most: usize) -> Option<Advice> {
        let solutions = self.solutions.get_or_init(|| solve::all(&self.rules, &self.hand));
        let solution = solutions.iter().find(|solution| solution.starts_with(&self.formula))?;
        let rest: Vec<Token> = solution[self.formula.len()..].iter().copied().chain([Token::Equals]).collect();
        let next = &rest[..rest.len().min(most)];
        let left = if self.left.is_empty() { "none".to_owned() } else { list(&self.left, " ") };
        let thought = format!("{} = {}; left {left}; write {}", text(solution), self.rules.target, text(next));
        (!self.over).then(|| Advice { thought, actions: next.iter().map(Token::to_string).collect() })
    }
}
