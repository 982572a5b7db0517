//! Every formula of a hand that makes the target: two of the numbers become one, until one is left.

use std::collections::BTreeSet;

use super::Rules;
use super::formula::{Operator, Token};
use crate::env::rational::Rational;

/// How a number was made. A node's operands stand before it.
#[derive(Clone, Copy)]
enum Node {
    Card(u64),
    Pair(Operator, usize, usize),
}

/// Nodes, and which of them with which values are still to be joined.
struct Search<'a> {
    rules: &'a Rules,
    nodes: Vec<Node>,
    /// Asked at each solution's node, the last; the search ends where it says so.
    found: &'a mut dyn FnMut(&[Node]) -> bool,
}

impl Search<'_> {
    /// Whether the search is over.
    fn run(&mut self, items: &[(Rational, usize)]) -> bool {
        if let &[(value, _)] = items {
            return value == Rational::whole(self.rules.target as u64) && (self.found)(&self.nodes);
        }
        for (left, right) in (0..items.len()).flat_map(|l| (0..items.len()).map(move |r| (l, r))) {
            for &operator in self.rules.operators.iter().filter(|_| left != right) {
                // Of a sum or a product one order is enough.
                if left > right && matches!(operator, Operator::Add | Operator::Multiply) {
                    continue;
                }
                let Some(value) = operator.apply(items[left].0, items[right].0) else { continue };
                let rest = items.iter().enumerate().filter(|(at, _)| *at != left && *at != right);
                let mut rest: Vec<(Rational, usize)> = rest.map(|(_, &item)| item).collect();
                rest.push((value, self.nodes.len()));
                self.nodes.push(Node::Pair(operator, items[left].1, items[right].1));
                if self.run(&rest) {
                    return true;
                }
                self.nodes.pop();
            }
        }
        false
    }
}

fn search(rules: &Rules, hand: &[u64], found: &mut dyn FnMut(&[Node]) -> bool) -> bool {
    let items: Vec<(Rational, usize)> =
        hand.iter().enumerate().map(|(at, &card)| (Rational::whole(card), at)).collect();
    Search { rules, nodes: hand.iter().map(|&card| Node::Card(card)).collect(), found }.run(&items)
}

/// Writes node `at`, in brackets where `within` would take it apart.
fn write(nodes: &[Node], at: usize, within: Option<(Operator, bool)>, out: &mut Vec<Token>) {
    let (operator, left, right) = match nodes[at] {
        Node::Card(card) => return out.push(Token::Number(card)),
        Node::Pair(operator, left, right) => (operator, left, right),
    };
    let bracketed = within.is_some_and(|(outer, is_right)| match (outer.binds(), operator.binds()) {
        (true, false) => true,
        (false, true) => false,
        _ => is_right && matches!(outer, Operator::Subtract | Operator::Divide),
    });
    out.extend(bracketed.then_some(Token::Open));
    write(nodes, left, Some((operator, false)), out);
    out.push(Token::Operator(operator));
    write(nodes, right, Some((operator, true)), out);
    out.extend(bracketed.then_some(Token::Close));
}

/// Whether the hand has a solution.
pub(super) fn any(rules: &Rules, hand: &[u64]) -> bool {
    search(rules, hand, &mut |_| true)
}

/// Every solution without needless brackets, the shortest first.
pub(super) fn all(rules: &Rules, hand: &[u64]) -> Vec<Vec<Token>> {
    let mut found = BTreeSet::new();
    search(rules, hand, &mut |nodes| {
        let mut formula = Vec::new();
        write(nodes, nodes.len() - 1, None, &mut formula);
        found.insert((formula.len(), formula));
        false
    });
    found.into_iter().map(|(_, formula)| formula).collect()
}

#[cfg(test)]
mod tests {
    use super::super::formula::{text, value};
    use super::*;

    const RULES: Rules =
        Rules { domain: "test", cards: 4, target: 24, operators: &Operator::ALL, brackets: true, solvable: true };

    /// Of the 715 hands of four numbers from 1 to 10, 566 make 24.
    #[test]
    fn hands_that_make_24() {
        let numbers = 1..=10;
        let hands = numbers.clone().flat_map(|a| (a..=10).flat_map(move |b| (b..=10).map(move |c| [a, b, c])));
        let hands: Vec<[u64; 4]> = hands.flat_map(|[a, b, c]| (c..=10).map(move |d| [a, b, c, d])).collect();
        let solvable = hands.iter().filter(|hand| any(&RULES, *hand)).count();
        assert_eq!((hands.len(), solvable), (715, 566));
        for hand in hands.iter().step_by(9) {
            let solutions = all(&RULES, hand);
            assert_eq!(solutions.is_empty(), !any(&RULES, hand));
            assert!(solutions.iter().all(|formula| value(formula) == Some(Rational::whole(24))), "{hand:?}");
        }
    }

    #[test]
    fn the_shortest_comes_first_without_needless_brackets() {
        let first = |hand: &[u64]| text(&all(&RULES, hand)[0]);
        assert_eq!(first(&[1, 5, 5, 5]), "5 * ( 5 - 1 / 5 )");
        assert_eq!(first(&[3, 3, 8, 8]), "8 / ( 3 - 8 / 3 )");
        assert_eq!(first(&[6, 6, 6, 6]), "6 + 6 + 6 + 6");
    }
}
