//! Answers: two are the same if their normal forms are.
//!
//! Numbers, fractions (`3/4`, `\frac{3}{4}`, `2 1/2`) and decimals become one reduced fraction, so `0.75`, `.750` and
//! `3/4` are equal; thousands' commas, currency and percent signs and a last full stop do not count. Everything else is
//! compared as lower-case text without blanks and without LaTeX's dress (RAGEN compares all answers so, dress
//! included). Nothing is evaluated: `2^10` is a text.

/// Longest answer, in bytes; a longer one is none.
const LONGEST: usize = 400;

/// LaTeX and signs that say nothing about the value.
const DRESS: [&str; 13] =
    ["\\left", "\\right", "\\!", "\\,", "\\;", "\\$", "\\%", "\\text", "\\mbox", "\\boxed", "$", "%", "€"];

/// The normal form of an answer; None for an empty or too long one.
pub(super) fn normal(answer: &str) -> Option<String> {
    if answer.len() > LONGEST {
        return None;
    }
    let plain = answer.replace("\\dfrac", "\\frac").replace("\\tfrac", "\\frac").to_lowercase();
    let plain = DRESS.iter().fold(plain, |text, dress| text.replace(dress, " "));
    let bare = plain.trim().trim_end_matches('.').trim_end();
    let bare = bare.strip_prefix('{').and_then(|inner| inner.strip_suffix('}')).unwrap_or(bare);
    let text = || bare.chars().filter(|c| !c.is_whitespace() && !c.is_control()).collect();
    Some(fraction(bare.trim()).unwrap_or_else(text)).filter(|normal| !normal.is_empty())
}

/// `-7/2` or `12` of a text that is a number.
fn fraction(text: &str) -> Option<String> {
    let (negative, text) = match text.strip_prefix('-') {
        Some(rest) => (true, rest.trim_start()),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let (numerator, denominator) = latex(text).or_else(|| mixed(text)).or_else(|| slashed(text))?;
    let divisor = gcd(numerator, denominator);
    let (numerator, denominator) = (numerator / divisor, denominator / divisor);
    let sign = if negative && numerator > 0 { "-" } else { "" };
    Some(if denominator == 1 { format!("{sign}{numerator}") } else { format!("{sign}{numerator}/{denominator}") })
}

type Ratio = Option<(u128, u128)>;

/// `\frac{3}{4}` or `\frac34`.
fn latex(text: &str) -> Ratio {
    let rest = text.strip_prefix("\\frac")?.trim_start();
    let (above, below) = match rest.strip_prefix('{') {
        Some(braced) => braced.strip_suffix('}')?.split_once('}').map(|(a, b)| (a, b.trim_start()))?,
        None => {
            return (rest.len() == 2 && rest.is_ascii()).then(|| slashed(&format!("{}/{}", &rest[..1], &rest[1..])))?;
        }
    };
    divided(decimal(above)?, decimal(below.strip_prefix('{')?)?)
}

/// `2 1/2`.
fn mixed(text: &str) -> Ratio {
    let (whole, part) = text.split_once(' ')?;
    let ((whole, one), (above, below)) = (decimal(whole)?, slashed(part.trim_start())?);
    (one == 1 && above < below).then(|| (whole * below + above, below))
}

/// `3/4`, or a decimal alone.
fn slashed(text: &str) -> Ratio {
    match text.split_once('/') {
        Some((above, below)) => divided(decimal(above)?, decimal(below)?),
        None => decimal(text),
    }
}

fn divided((a, b): (u128, u128), (c, d): (u128, u128)) -> Ratio {
    (c > 0).then_some((a * d, b * c))
}

/// Digits with thousands' commas and a fractional part, at most 18 of them: products of two stay within 128 bits.
fn decimal(text: &str) -> Ratio {
    let text = text.trim();
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let grouped = |whole: &str| {
        let mut groups = whole.split(',');
        let first = groups.next().is_some_and(|group| (1..=3).contains(&group.len()));
        first && groups.all(|group| group.len() == 3)
    };
    if whole.contains(',') && !grouped(whole) {
        return None;
    }
    let digits: String = whole.chars().filter(|c| *c != ',').chain(part.chars()).collect();
    let sound = (1..=18).contains(&digits.len()) && digits.bytes().all(|digit| digit.is_ascii_digit());
    if !sound { None } else { Some((digits.parse().ok()?, 10u128.pow(part.len() as u32))) }
}

fn gcd(a: u128, b: u128) -> u128 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::normal;

    #[test]
    fn equal_answers_have_one_normal_form() {
        let same: [(&str, &[&str]); 10] = [
            ("3/4", &["0.75", ".750", "\\frac{3}{4}", "\\dfrac34", "$\\frac{6}{8}$", " 3 / 4 ", "+0.75.", "{3/4}"]),
            ("1234", &["1,234", "$1,234.00", "1234.", "\\boxed{1234}", "01234", "\\$1,234", "2468/2"]),
            ("5/2", &["2 1/2", "2.5", "10/4", "\\frac{5}{2}"]),
            ("-7/2", &["-3.5", "- 7/2", "-\\frac{7}{2}", "-3 1/2"]),
            ("0", &["-0", "0.000", "0/5"]),
            ("50", &["50%", "50\\%", "50 %"]),
            ("21/2", &["10.5", "21 / 2"]),
            ("x+1", &["X + 1", "x+1.", "$x + 1$"]),
            ("east", &["\\text{East}", "East."]),
            ("2^10", &["2 ^ 10"]),
        ];
        for (form, texts) in same {
            assert_eq!(normal(form).as_deref(), Some(form));
            texts.iter().for_each(|text| assert_eq!(normal(text).as_deref(), Some(form), "{text}"));
        }
    }

    #[test]
    fn what_is_no_number_stays_a_text() {
        for text in ["1/0", "1,23", "1e3", "9^9^9^9", "1.2.3", "--1", "\\frac{1}{0}", "٣", "12345678901234567890"] {
            assert_eq!(normal(text).as_deref(), Some(text));
        }
        assert_ne!(normal("2 1/2"), normal("21/2"));
        assert_ne!(normal("12345678901234567890"), normal("12345678901234567891"));
        let none = ["", "  ", "$", "\u{0}", &"(".repeat(500)];
        none.iter().for_each(|text| assert_eq!(normal(text), None, "{text:?}"));
    }
}
