//! Formulas: tokens, and what they are worth as exact fractions.

use std::fmt;

use crate::env::rational::Rational;

/// An operation on two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::env) enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
}

impl Operator {
    pub(in crate::env) const ALL: [Self; 4] = [Self::Add, Self::Subtract, Self::Multiply, Self::Divide];

    fn sign(self) -> char {
        match self {
            Self::Add => '+',
            Self::Subtract => '-',
            Self::Multiply => '*',
            Self::Divide => '/',
        }
    }

    /// None for a division by 0.
    pub(super) fn apply(self, left: Rational, right: Rational) -> Option<Rational> {
        left.apply(self.sign(), right)
    }

    /// Whether it binds before addition and subtraction.
    pub(super) fn binds(self) -> bool {
        matches!(self, Self::Multiply | Self::Divide)
    }
}

/// A piece of a formula.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Token {
    Number(u64),
    Operator(Operator),
    Open,
    Close,
    Equals,
}

impl Token {
    /// What [`fmt::Display`] writes.
    pub(super) fn read(text: &str) -> Option<Self> {
        match text {
            "+" => Some(Self::Operator(Operator::Add)),
            "-" => Some(Self::Operator(Operator::Subtract)),
            "*" => Some(Self::Operator(Operator::Multiply)),
            "/" => Some(Self::Operator(Operator::Divide)),
            "(" => Some(Self::Open),
            ")" => Some(Self::Close),
            "=" => Some(Self::Equals),
            "10" => Some(Self::Number(10)),
            digit => match digit.as_bytes() {
                &[digit @ b'1'..=b'9'] => Some(Self::Number(u64::from(digit - b'0'))),
                _ => None,
            },
        }
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Operator(operator) => write!(f, "{}", operator.sign()),
            Self::Open => f.write_str("("),
            Self::Close => f.write_str(")"),
            Self::Equals => f.write_str("="),
        }
    }
}

/// Tokens with blanks between them.
pub(super) fn text(tokens: &[Token]) -> String {
    tokens.iter().map(Token::to_string).collect::<Vec<_>>().join(" ")
}

/// The value of a whole formula; None if it is none, or divides by 0.
pub(super) fn value(tokens: &[Token]) -> Option<Rational> {
    let mut rest = tokens;
    let value = sum(&mut rest)?;
    rest.is_empty().then_some(value)
}

fn sum(rest: &mut &[Token]) -> Option<Rational> {
    chain(rest, |operator| !operator.binds(), product)
}

fn product(rest: &mut &[Token]) -> Option<Rational> {
    chain(rest, Operator::binds, atom)
}

/// Parts joined by operators of one kind, from left to right.
fn chain(
    rest: &mut &[Token],
    joins: impl Fn(Operator) -> bool,
    part: impl Fn(&mut &[Token]) -> Option<Rational>,
) -> Option<Rational> {
    let mut value = part(rest)?;
    while let Some((&Token::Operator(operator), after)) = rest.split_first().filter(|(first, _)| is(first, &joins)) {
        *rest = after;
        value = operator.apply(value, part(rest)?)?;
    }
    Some(value)
}

fn is(token: &Token, joins: impl Fn(Operator) -> bool) -> bool {
    matches!(token, Token::Operator(operator) if joins(*operator))
}

fn atom(rest: &mut &[Token]) -> Option<Rational> {
    let (first, after) = rest.split_first()?;
    *rest = after;
    match first {
        Token::Number(number) => Some(Rational::whole(*number)),
        Token::Open => {
            let value = sum(rest)?;
            *rest = rest.strip_prefix(&[Token::Close])?;
            Some(value)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn worth(formula: &str) -> Option<Rational> {
        value(&formula.split(' ').filter_map(Token::read).collect::<Vec<_>>())
    }

    #[test]
    fn formulas_by_hand() {
        assert_eq!(worth("5 * ( 5 - 1 / 5 )"), Some(Rational::whole(24)));
        assert_eq!(worth("8 / ( 3 - 8 / 3 )"), Some(Rational::whole(24)));
        assert_eq!(worth("10 - 4 - 3"), Some(Rational::whole(3)));
        assert_eq!(worth("8 / 4 / 2 + 1 * 10"), Some(Rational::whole(11)));
        assert_eq!(worth("3 - 10"), Some(Rational::whole(-7)));
        assert_eq!(worth("1 / ( 2 - 4 )"), Rational::whole(-1).apply('/', Rational::whole(2)));
        for none in ["1 / ( 2 - 2 )", "", "1 +", "( 1", "1 2", "1 )", "( )", "- 1", "1 + 2 ="] {
            assert_eq!(worth(none), None, "{none}");
        }
    }
}
