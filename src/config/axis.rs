//! Values of an axis: `1,2,3`, `1..=5`, `1e-7..1e-5:log5`.
//!
//! The field says how a text is read. One that takes a number, a switch, a choice or a variant: a comma stands between
//! values, and each of them may be a range where the field takes numbers. One that takes text or a list: commas, dots
//! and all belong to the one value, so that several are given only in a sweep file, an argument each.
//!
//! `a..b` and `a..=b` are integers, without and with `b`. `a..b:linN` and `a..b:logN` are N numbers from `a` to `b`,
//! both included, at equal distances or ratios, rounded to 12 digits so that 1e-6 between 1e-7 and 1e-5 is 1e-6.

use super::error::{self, Diagnostic};
use super::{Kind, Place};

/// Values of one axis.
const MOST: u64 = 100_000;

/// A value as an override's text, and where it is.
pub(super) type Texts = Vec<(String, Place)>;

/// Whether fields of this kind take one word, so that a comma ends a value.
pub(super) fn splits(kind: &'static Kind) -> bool {
    matches!(kind.present(), Kind::Bool | Kind::Int { .. } | Kind::Float | Kind::Choice(_) | Kind::Variant { .. })
}

/// The values that `text` gives a field of this kind.
pub(super) fn values(kind: &'static Kind, text: &str, place: &Place) -> Result<Texts, Diagnostic> {
    if !splits(kind) {
        return Ok(vec![(text.to_owned(), place.clone())]);
    }
    let (mut values, mut start) = (Texts::new(), 0);
    for item in text.split(',') {
        let here = place.part(start, item.len());
        match kind.present() {
            Kind::Int { .. } | Kind::Float if item.contains("..") => {
                let range = range(kind.present(), item, &here)?;
                values.extend(range.into_iter().map(|text| (text, here.clone())));
            }
            _ => values.push((item.to_owned(), here)),
        }
        start += item.len() + 1;
    }
    Ok(values)
}

fn range(kind: &Kind, text: &str, place: &Place) -> Result<Vec<String>, Diagnostic> {
    let bad =
        |why: &str| error::bad_range(place, text, why).help("such as 1..=5, 1..6, 0.1..0.9:lin5, 1e-7..1e-5:log5");
    let (ends, spacing) = text.split_once(':').map_or((text, None), |(ends, spacing)| (ends, Some(spacing)));
    let (low, high) = ends.split_once("..").unwrap_or_default();
    let (high, closed) = high.strip_prefix('=').map_or((high, false), |high| (high, true));
    let number = |text: &str| text.replace('_', "").parse::<f64>().ok().filter(|number| number.is_finite());
    let (Some(from), Some(to)) = (number(low), number(high)) else { return Err(bad("an end is no number")) };
    let whole = matches!(kind, Kind::Int { .. });
    let Some(spacing) = spacing else {
        return if whole { integers(low, high, closed, &bad) } else { Err(bad("how many numbers is not said")) };
    };
    let count = |digits: &str| digits.parse::<u64>().ok();
    let (log, count) = match (spacing.strip_prefix("lin"), spacing.strip_prefix("log")) {
        (Some(digits), _) => (false, count(digits)),
        (_, Some(digits)) => (true, count(digits)),
        _ => return Err(bad("after the colon stand lin or log and a count")),
    };
    match count {
        None => return Err(bad("after the colon stand lin or log and a count")),
        Some(0) => return Err(bad("it is empty")),
        Some(1) => return Err(bad("two ends are at least 2 numbers")),
        Some(count) if count > MOST => return Err(bad("it has more than 100,000 numbers")),
        Some(_) if log && (from <= 0.0 || to <= 0.0) => return Err(bad("equal ratios need ends above 0")),
        Some(_) => {}
    }
    let numbers = spaced(from, to, count.unwrap_or(2), log);
    if !whole {
        return Ok(numbers.iter().map(|number| format!("{number:?}")).collect());
    }
    if numbers.iter().any(|number| number.fract() != 0.0) {
        return Err(bad("the field takes integers, and these are not"));
    }
    Ok(numbers.iter().map(|number| format!("{number:.0}")).collect())
}

fn integers(low: &str, high: &str, closed: bool, bad: &dyn Fn(&str) -> Diagnostic) -> Result<Vec<String>, Diagnostic> {
    let integer = |text: &str| text.replace('_', "").parse::<i128>().ok();
    let (Some(low), Some(high)) = (integer(low), integer(high)) else { return Err(bad("an end is no integer")) };
    let end = if closed { high.saturating_add(1) } else { high };
    if low >= end {
        return Err(bad("it is empty"));
    }
    if end.saturating_sub(low) > i128::from(MOST) {
        return Err(bad("it has more than 100,000 numbers"));
    }
    Ok((low..end).map(|value| value.to_string()).collect())
}

/// `count` numbers from `from` to `to`, both of them exactly, the others rounded to 12 digits.
fn spaced(from: f64, to: f64, count: u64, log: bool) -> Vec<f64> {
    let inner = |index: u64| {
        let share = index as f64 / (count - 1) as f64;
        let value = match log {
            true => from * libm::pow(to / from, share),
            false => from + (to - from) * share,
        };
        // What was printed as a number is one.
        format!("{value:.11e}").parse().unwrap_or(value)
    };
    (0..count)
        .map(|index| match index {
            0 => from,
            _ if index == count - 1 => to,
            _ => inner(index),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Source;

    const INT: &Kind = &Kind::Int { name: "u64", min: 0, max: u64::MAX as i128 };
    const SIZES: &Kind = &Kind::List(INT);

    fn texts(kind: &'static Kind, text: &str) -> Result<Vec<String>, String> {
        let place = Place::new(&Source::document("x", text), 0, text.len());
        let found = values(kind, text, &place).map_err(|error| error.to_string())?;
        Ok(found.into_iter().map(|(text, _)| text).collect())
    }

    #[test]
    fn the_field_says_what_a_comma_is() {
        assert_eq!(texts(INT, "1,2,3").unwrap(), ["1", "2", "3"]);
        assert_eq!(texts(&Kind::Choice(&["a", "b"]), "a,b").unwrap(), ["a", "b"]);
        assert_eq!(texts(SIZES, "6,6").unwrap(), ["6,6"]);
        assert_eq!(texts(&Kind::Text, "Hello, you.. there").unwrap(), ["Hello, you.. there"]);
    }

    #[test]
    fn ranges_by_hand() {
        assert_eq!(texts(INT, "1..=3").unwrap(), ["1", "2", "3"]);
        assert_eq!(texts(INT, "1..3,7").unwrap(), ["1", "2", "7"]);
        assert_eq!(texts(INT, "18446744073709551614..=18446744073709551615").unwrap().len(), 2);
        assert_eq!(texts(INT, "1..9:lin5").unwrap(), ["1", "3", "5", "7", "9"]);
        assert_eq!(texts(&Kind::Float, "1e-7..1e-5:log3").unwrap(), ["1e-7", "1e-6", "1e-5"]);
        assert_eq!(texts(&Kind::Float, "0.1..0.5:lin5").unwrap(), ["0.1", "0.2", "0.3", "0.4", "0.5"]);
        let five = texts(&Kind::Float, "1e-7..1e-5:log5").unwrap();
        assert_eq!(five, ["1e-7", "3.16227766017e-7", "1e-6", "3.16227766017e-6", "1e-5"]);
        for (kind, text) in
            [(INT, "5..5"), (INT, "5..=4"), (INT, "1..9:lin4"), (INT, "a..b"), (INT, "1..=9999999999"), (INT, "1..2:")]
        {
            assert!(texts(kind, text).is_err(), "{text}");
        }
        for text in ["1..2", "0.0..1.0:log3", "1..2:log0", "1..2:lin1", "1..inf:lin3", "1..2:cube3"] {
            assert!(texts(&Kind::Float, text).is_err(), "{text}");
        }
    }
}
