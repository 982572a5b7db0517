//! Exact fractions: what the formulas of arithmetic games are worth.

use std::fmt;

/// A fraction in lowest terms, its denominator positive. What would pass 128 bits has no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rational {
    above: i128,
    below: i128,
}

impl Rational {
    pub(super) fn whole(number: impl Into<i128>) -> Self {
        Self { above: number.into(), below: 1 }
    }

    fn new(above: i128, below: i128) -> Option<Self> {
        let (mut a, mut b) = (above.checked_abs()?, below.checked_abs()?);
        while b != 0 {
            (a, b) = (b, a % b);
        }
        (below != 0).then(|| Self { above: below.signum() * above / a, below: (below / a).abs() })
    }

    /// The value of `self operator other`; None for a division by zero.
    pub(super) fn apply(self, operator: char, other: Self) -> Option<Self> {
        let cross = self.above.checked_mul(other.below).zip(other.above.checked_mul(self.below));
        match operator {
            '+' => Self::new(cross?.0.checked_add(cross?.1)?, self.below.checked_mul(other.below)?),
            '-' => Self::new(cross?.0.checked_sub(cross?.1)?, self.below.checked_mul(other.below)?),
            '*' => Self::new(self.above.checked_mul(other.above)?, self.below.checked_mul(other.below)?),
            _ => Self::new(cross?.0, cross?.1),
        }
    }

    pub(super) fn integer(self) -> Option<i128> {
        (self.below == 1).then_some(self.above)
    }
}

impl fmt::Display for Rational {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.integer() {
            Some(integer) => write!(f, "{integer}"),
            None => write!(f, "{}/{}", self.above, self.below),
        }
    }
}
