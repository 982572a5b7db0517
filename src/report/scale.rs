//! Axes with round ticks, and numbers as a person reads them.

/// How values are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    Plain,
    /// As per cent.
    Share,
}

/// An axis that covers some values, with ticks at 1, 2 or 5 times a power of ten.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    pub ticks: Vec<f64>,
    low: f64,
    high: f64,
    decimals: usize,
    /// Numbers too small or too large to be written out.
    powers: bool,
}

impl Axis {
    /// About `count` ticks between round ends; with 0 on it where the values are not far from 0, or hardly differ.
    #[must_use]
    pub fn round(values: impl Iterator<Item = f64>, count: usize) -> Self {
        let (mut low, mut high) = ends(values);
        if low > 0.0 && low <= high - low {
            low = 0.0;
        }
        if high - low <= 1e-3 * f64::max(low.abs(), high.abs()) {
            (low, high) = if high == 0.0 && low == 0.0 { (0.0, 1.0) } else { (low.min(0.0), high.max(0.0)) };
        }
        let step = step((high - low) / count as f64);
        let (first, last) = ((low / step + 1e-6).floor() as i64, (high / step - 1e-6).ceil() as i64);
        Self::with(step, first..=last, first as f64 * step, last as f64 * step)
    }

    /// From the least to the greatest value, with about `count` ticks at round places between.
    #[must_use]
    pub fn tight(values: impl Iterator<Item = f64>, count: usize) -> Self {
        let (low, high) = ends(values);
        let high = if high > low { high } else { low + 1.0 };
        let step = step((high - low) / count as f64).max(1.0);
        Self::with(step, (low / step).ceil() as i64..=(high / step).floor() as i64, low, high)
    }

    fn with(step: f64, ticks: std::ops::RangeInclusive<i64>, low: f64, high: f64) -> Self {
        let decimals = usize::try_from(-exponent(step)).unwrap_or(0);
        let size = f64::max(low.abs(), high.abs());
        let powers = !(1e-3..1e6).contains(&size);
        Self { ticks: ticks.map(|tick| tick as f64 * step).collect(), low, high, decimals, powers }
    }

    /// Where a value lies, from 0 to 1.
    #[must_use]
    pub fn place(&self, value: f64) -> f64 {
        (value - self.low) / (self.high - self.low)
    }

    /// A tick's text.
    #[must_use]
    pub fn label(&self, tick: f64, unit: Unit) -> String {
        match unit {
            Unit::Share => signed(format!("{:.*} %", self.decimals.saturating_sub(2), 100.0 * tick)),
            Unit::Plain if self.powers && tick == 0.0 => "0".to_owned(),
            Unit::Plain if self.powers => signed(format!("{tick:.0e}")),
            Unit::Plain => signed(format!("{:.*}", self.decimals, tick)),
        }
    }
}

/// The least and the greatest of some values; 0 and 0 of none.
fn ends(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let ends = values.fold(None, |ends: Option<(f64, f64)>, v| {
        Some(ends.map_or((v, v), |(low, high)| (f64::min(low, v), f64::max(high, v))))
    });
    ends.unwrap_or((0.0, 0.0))
}

/// The round number next to a rough one.
fn step(rough: f64) -> f64 {
    let power = 10f64.powi(exponent(rough));
    let times = [1.0, 2.0, 5.0, 10.0].into_iter().find(|times| times * power >= 0.75 * rough).unwrap_or(10.0);
    times * power
}

/// The power of ten of a number's first digit.
fn exponent(value: f64) -> i32 {
    format!("{value:e}").split_once('e').and_then(|(_, power)| power.parse().ok()).unwrap_or(0)
}

/// A number to three digits: `0.123`, `12.3`, `1230`, `1.2e-5`.
#[must_use]
pub fn number(value: f64) -> String {
    let rounded: f64 = format!("{value:.2e}").parse().unwrap_or(value);
    if !value.is_finite() {
        return "–".to_owned();
    }
    if rounded != 0.0 && (rounded.abs() < 1e-3 || rounded.abs() >= 1e6) {
        return signed(format!("{value:.1e}"));
    }
    let decimals = usize::try_from(2 - if rounded == 0.0 { 2 } else { exponent(rounded) }).unwrap_or(0);
    let text = format!("{value:.decimals$}");
    signed(if decimals > 0 { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text })
}

/// A number in its unit.
#[must_use]
pub fn written(value: f64, unit: Unit) -> String {
    match unit {
        Unit::Plain => number(value),
        Unit::Share if !value.is_finite() => number(value),
        Unit::Share => signed(format!("{:.1} %", 100.0 * value)),
    }
}

/// With a minus sign for a hyphen; none before a zero.
fn signed(text: String) -> String {
    match text.strip_prefix('-') {
        Some(size) if size.chars().all(|c| !c.is_ascii_digit() || c == '0') => size.to_owned(),
        Some(size) => format!("−{}", size.replace("e-", "e−")),
        None => text.replace("e-", "e−"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_cover_the_values() {
        let labels = |values: &[f64], unit| {
            let axis = Axis::round(values.iter().copied(), 4);
            axis.ticks.iter().map(|tick| axis.label(*tick, unit)).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(labels(&[0.12, 0.71], Unit::Share), "0 % 20 % 40 % 60 % 80 %");
        assert_eq!(labels(&[-0.31, -0.29], Unit::Plain), "−0.310 −0.305 −0.300 −0.295 −0.290");
        assert_eq!(labels(&[5.0, 5.0], Unit::Plain), "0 1 2 3 4 5");
        assert_eq!(labels(&[0.0, 0.0], Unit::Plain), "0.0 0.2 0.4 0.6 0.8 1.0");
        assert_eq!(labels(&[3e-7, 1e-6], Unit::Plain), "0 2e−7 4e−7 6e−7 8e−7 1e−6");
        assert_eq!(labels(&[], Unit::Plain), "0.0 0.2 0.4 0.6 0.8 1.0");
        let steps = Axis::tight([1.0, 120.0].into_iter(), 5);
        assert_eq!(steps.ticks, [20.0, 40.0, 60.0, 80.0, 100.0, 120.0]);
        assert_eq!((steps.place(1.0), steps.place(120.0)), (0.0, 1.0));
    }

    #[test]
    fn numbers_have_three_digits() {
        let written = [0.0, -0.0, 0.12345, -12.345, 1234.5, 0.00012, f64::NAN, 10.0, 999.9, 2e9, -0.00001].map(number);
        assert_eq!(written, ["0", "0", "0.123", "−12.3", "1234", "1.2e−4", "–", "10", "1000", "2.0e9", "−1.0e−5"]);
    }
}
