//! Every way to combine the numbers.

use crate::env::rational::Rational;

/// A way to the target.
pub(super) struct Solution {
    pub(super) expression: String,
    /// `2 + 5 is 7`, in order.
    steps: Vec<String>,
}

impl Solution {
    /// The steps, as many as 120 characters hold.
    pub(super) fn thought(&self) -> String {
        let mut thought = self.steps[0].clone();
        for step in &self.steps[1..] {
            if thought.len() + step.len() + 2 <= 120 {
                thought = format!("{thought}, {step}");
            }
        }
        thought
    }
}

/// A value and how it was made.
#[derive(Clone)]
struct Part {
    value: Rational,
    text: String,
    /// The operator that made it, if one did.
    operator: Option<char>,
}

impl Part {
    /// Its text as an operand: in parentheses where the grammar would read it otherwise.
    fn operand(&self, operator: char, right: bool) -> String {
        let loose = |made: char| match operator {
            '+' => false,
            '-' => right && matches!(made, '+' | '-'),
            '*' => matches!(made, '+' | '-'),
            _ => right || matches!(made, '+' | '-'),
        };
        if self.operator.is_some_and(loose) { format!("({})", self.text) } else { self.text.clone() }
    }

    fn with(&self, operator: char, other: &Self) -> Option<Self> {
        let value = self.value.apply(operator, other.value)?;
        let text = format!("{} {operator} {}", self.operand(operator, false), other.operand(operator, true));
        Some(Self { value, text, operator: Some(operator) })
    }
}

/// The first way found to make `target` of all `numbers`: pairs in their order, then operators in theirs, each pair in
/// both orders where that differs. None where no way exists.
pub(super) fn solution(numbers: &[u32], target: u32, operators: &[char]) -> Option<Solution> {
    let values: Vec<Rational> = numbers.iter().map(|&number| Rational::whole(number)).collect();
    let mut moves = Vec::new();
    if !search(&values, Rational::whole(target), operators, &mut moves) {
        return None;
    }
    let part = |&number: &u32| Part { value: Rational::whole(number), text: number.to_string(), operator: None };
    let mut parts: Vec<Part> = numbers.iter().map(part).collect();
    let mut steps = Vec::new();
    for (left, operator, right) in moves.into_iter().rev() {
        let made = parts[left].with(operator, &parts[right])?;
        steps.push(format!("{} {operator} {} is {}", parts[left].value, parts[right].value, made.value));
        parts = without(&parts, left, right);
        parts.push(made);
    }
    Some(Solution { expression: parts[0].text.clone(), steps })
}

fn without<T: Clone>(items: &[T], left: usize, right: usize) -> Vec<T> {
    let rest = items.iter().enumerate().filter(|(at, _)| *at != left && *at != right);
    rest.map(|(_, item)| item.clone()).collect()
}

/// Pushes the moves to the target, the last first.
fn search(values: &[Rational], target: Rational, operators: &[char], moves: &mut Vec<(usize, char, usize)>) -> bool {
    if let [value] = values {
        return *value == target;
    }
    for left in 0..values.len() {
        for right in (0..values.len()).filter(|&right| right != left) {
            let mut rest = without(values, left, right);
            for &operator in operators.iter().filter(|operator| left < right || matches!(operator, '-' | '/')) {
                let Some(value) = values[left].apply(operator, values[right]) else { continue };
                rest.push(value);
                if search(&rest, target, operators, moves) {
                    moves.push((left, operator, right));
                    return true;
                }
                rest.pop();
            }
        }
    }
    false
}
