//! Expressions and what they are worth, exactly.

use std::fmt;

use crate::env::rational::Rational;

/// Bytes of an answer that are read. A longer one is no expression.
const LONGEST: usize = 256;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token {
    Number(u32),
    /// One of `+ - * / ( )`.
    Sign(char),
}

/// An expression as it is written: `sum = product { ("+" | "-") product }`,
/// `product = factor { ("*" | "/") factor }`, `factor = "-" factor | number | "(" sum ")"`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Expression(Vec<Token>);

impl Expression {
    /// Reads a whole text of at most 256 bytes. Numbers have up to nine digits; `×`, `÷` and `−` are operators too.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let text = (text.len() <= LONGEST).then_some(text)?;
        let mut tokens = Vec::new();
        let mut rest = text.trim_start();
        while let Some(first) = rest.chars().next() {
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            let token = match first {
                '0'..='9' if digits <= 9 => Token::Number(rest[..digits].parse().ok()?),
                '+' | '-' | '*' | '/' | '(' | ')' => Token::Sign(first),
                '×' => Token::Sign('*'),
                '÷' => Token::Sign('/'),
                '−' => Token::Sign('-'),
                _ => return None,
            };
            tokens.push(token);
            rest = rest[digits.max(first.len_utf8())..].trim_start();
        }
        let mut reading = Reading { tokens: &tokens, at: 0 };
        reading.sum()?;
        (reading.at == tokens.len()).then_some(Self(tokens))
    }

    /// Its numbers, in order.
    pub(super) fn numbers(&self) -> Vec<u32> {
        let number = |token: &Token| match token {
            Token::Number(number) => Some(*number),
            Token::Sign(_) => None,
        };
        self.0.iter().filter_map(number).collect()
    }

    /// None where it divides by zero or leaves 128 bits.
    pub(super) fn value(&self) -> Option<Rational> {
        Reading { tokens: &self.0, at: 0 }.sum()?
    }
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut operand_before = false;
        for token in &self.0 {
            match token {
                Token::Number(number) => write!(f, "{number}")?,
                Token::Sign(sign @ ('(' | ')')) => write!(f, "{sign}")?,
                Token::Sign(sign) if operand_before => write!(f, " {sign} ")?,
                Token::Sign(sign) => write!(f, "{sign}")?,
            }
            operand_before = matches!(token, Token::Number(_) | Token::Sign(')'));
        }
        Ok(())
    }
}

/// A walk over the grammar. The outer None is no expression, the inner one has no value. No deeper than tokens.
struct Reading<'a> {
    tokens: &'a [Token],
    at: usize,
}

type Read = Option<Option<Rational>>;

impl Reading<'_> {
    fn next_of(&mut self, signs: &[char]) -> Option<char> {
        match self.tokens.get(self.at) {
            Some(Token::Sign(sign)) if signs.contains(sign) => {
                self.at += 1;
                Some(*sign)
            }
            _ => None,
        }
    }

    fn chain(&mut self, operators: &[char], part: fn(&mut Self) -> Read) -> Read {
        let mut value = part(self)?;
        while let Some(operator) = self.next_of(operators) {
            let right = part(self)?;
            value = value.zip(right).and_then(|(left, right)| left.apply(operator, right));
        }
        Some(value)
    }

    fn sum(&mut self) -> Read {
        self.chain(&['+', '-'], Self::product)
    }

    fn product(&mut self) -> Read {
        self.chain(&['*', '/'], Self::factor)
    }

    fn factor(&mut self) -> Read {
        match self.next_of(&['-', '(']) {
            Some('-') => {
                let value = self.factor()?;
                Some(value.and_then(|value| Rational::whole(0).apply('-', value)))
            }
            Some(_) => {
                let value = self.sum()?;
                self.next_of(&[')'])?;
                Some(value)
            }
            None => match self.tokens.get(self.at) {
                Some(Token::Number(number)) => {
                    self.at += 1;
                    Some(Some(Rational::whole(*number)))
                }
                _ => None,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn worth(text: &str) -> Option<String> {
        Some(Expression::parse(text)?.value().map_or_else(|| "nothing".into(), |value| value.to_string()))
    }

    #[test]
    fn expressions_bind_as_arithmetic_does_and_are_exact() {
        let cases = [
            ("2 + 5 - 3", "4"),
            ("2-3-4", "-5"),
            ("2+3*4", "14"),
            ("(2+3)×4 ÷ 8", "5/2"),
            ("8/3/(1/3)", "8"),
            ("8 / (3 - 8 / 3)", "24"),
            ("-(-3) − 007", "-4"),
            ("1/(2-2)", "nothing"),
            ("999999999*999999999*999999999*999999999*999999999", "nothing"),
        ];
        cases.iter().for_each(|(text, value)| assert_eq!(worth(text).as_deref(), Some(*value), "{text}"));
    }

    #[test]
    fn what_is_no_expression_is_none() {
        let wrong =
            ["", "+", "2 3", "2 +", "(2", "2)", "()", "2 ** 3", "2^3", "1e9", "1.5", "2 = 2", "٣ + ٤", "2\u{0}"];
        wrong.iter().for_each(|text| assert_eq!(worth(text), None, "{text}"));
        assert_eq!(worth(&format!("{}1{}", "(".repeat(127), ")".repeat(127))).as_deref(), Some("1"));
        assert_eq!(worth(&format!("{}1{}", "(".repeat(129), ")".repeat(129))), None, "too long");
        assert_eq!(worth("1234567890"), None, "ten digits");
    }

    #[test]
    fn an_expression_has_one_way_to_be_written() {
        let written = |text: &str| Expression::parse(text).map(|expression| expression.to_string());
        assert_eq!(written(" (3+ 05)*-2").as_deref(), Some("(3 + 5) * -2"));
        assert_eq!(written("(3 + 5) * -2"), written("(3+5)×−2"));
    }
}
