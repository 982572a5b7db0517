//! Line charts as SVG. Written here and not by a library, so that colours are the page's own (light and dark, one
//! stylesheet) and lines are named where they end.

use serde::Serialize;

use super::scale::{Axis, Unit, written};

const WIDTH: f64 = 400.0;
const HEIGHT: f64 = 176.0;
const LEFT: f64 = 46.0;
const RIGHT: f64 = 100.0;
const TOP: f64 = 8.0;
const BOTTOM: f64 = 20.0;
/// Between the names of two lines.
const LEADING: f64 = 12.5;
/// Characters at a line's end: its name, and its value where both find room.
const LONGEST: usize = 17;

/// Points of a line: more than its width can tell apart.
const POINTS: usize = 400;
/// Of the stylesheet.
const COLOURS: usize = 8;

/// Some lines over steps.
#[derive(Clone, Debug)]
pub struct Chart {
    pub title: String,
    pub about: String,
    pub unit: Unit,
    pub series: Vec<Series>,
}

/// A line, or an area.
#[derive(Clone, Debug, Default)]
pub struct Series {
    pub name: String,
    /// Of the stylesheet's, by number.
    pub colour: usize,
    /// (step, value), finite; none for an area.
    pub points: Vec<(f64, f64)>,
    /// (step, low, high): around the line, or the area.
    pub band: Vec<(f64, f64, f64)>,
    /// Marks each point: for what is measured now and then.
    pub dots: bool,
    /// Stands behind, without a name: the values that another line is the mean of.
    pub faint: bool,
}

/// What a pointer reads from a chart.
#[derive(Clone, Debug, Serialize)]
pub struct Readout<'a> {
    name: &'a str,
    colour: usize,
    share: bool,
    steps: Vec<f64>,
    values: Vec<f32>,
}

impl Chart {
    /// The drawing. The place of step s is `data-left + (s − data-first) / (data-last − data-first) · data-width`.
    #[must_use]
    pub fn svg(&self, number: usize) -> String {
        let steps = || self.series.iter().flat_map(Series::steps);
        let x = Axis::tight(steps(), 5);
        let y = Axis::round(self.series.iter().flat_map(Series::values), 4);
        let (wide, high) = (WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM);
        let place = |step: f64, value: f64| (LEFT + x.place(step) * wide, TOP + (1.0 - y.place(value)) * high);
        let first = steps().fold(f64::INFINITY, f64::min);
        let last = steps().fold(first, f64::max);
        let mut out = format!(
            r#"<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{}" data-chart="{number}""#,
            escaped(&self.said()),
        );
        let end = if last > first { last } else { first + 1.0 };
        out += &format!(r#" data-left="{LEFT}" data-width="{wide}" data-first="{first}" data-last="{end}">"#);
        let (right, floor) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
        for tick in &y.ticks {
            let at = place(first, *tick).1;
            out += &format!(r#"<path class="grid" d="M{LEFT} {at:.1}H{right}"/>"#);
            out += &text("tick end", LEFT - 6.0, at + 3.5, &y.label(*tick, self.unit));
        }
        for tick in &x.ticks {
            let at = place(*tick, 0.0).0;
            out += &format!(r#"<path class="grid" d="M{at:.1} {floor}v4"/>"#);
            out += &text("tick middle", at, HEIGHT - 5.0, &x.label(*tick, Unit::Plain));
        }
        let (behind, before): (Vec<&Series>, Vec<&Series>) = self.series.iter().partition(|series| series.faint);
        behind.into_iter().chain(before).for_each(|series| out += &series.svg(&place));
        let ends = self.series.iter().filter_map(|series| Some((series, place(first, series.end()?).1)));
        for (series, at) in apart(ends.collect(), TOP + 4.0, floor) {
            let value = series.points.last().map_or_else(String::new, |(_, value)| written(*value, self.unit));
            let both = series.name.chars().count() + value.chars().count();
            let value = if both < LONGEST { value } else { String::new() };
            out += &format!(
                r#"<text class="name f{}" x="{}" y="{:.1}">{} <tspan class="value">{}</tspan></text>"#,
                series.colour % COLOURS,
                right + 6.0,
                at + 3.5,
                escaped(&short(&series.name)),
                value,
            );
        }
        out + "</svg>"
    }

    /// What a pointer reads.
    #[must_use]
    pub fn readouts(&self) -> Vec<Readout<'_>> {
        let read = |series: &'_ Series| {
            let values = series.points.iter().map(|(step, value)| (*step, *value as f32));
            let heights = series.band.iter().map(|(step, low, high)| (*step, (high - low) as f32));
            let (steps, values) = if series.points.is_empty() { heights.unzip() } else { values.unzip() };
            (steps, values)
        };
        let shown = self.series.iter().filter(|series| !series.name.is_empty());
        let readout = |series| {
            let (steps, values) = read(series);
            Readout {
                name: &series.name,
                colour: series.colour % COLOURS,
                share: self.unit == Unit::Share,
                steps,
                values,
            }
        };
        shown.map(readout).collect()
    }

    /// The chart in words.
    fn said(&self) -> String {
        let line = |series: &Series| {
            let ((first, from), (last, to)) = (series.points.first()?, series.points.last()?);
            let (from, to) = (written(*from, self.unit), written(*to, self.unit));
            Some(format!("{} {from} at step {first}, {to} at step {last}", series.name))
        };
        let lines: Vec<String> = self.series.iter().filter(|series| !series.faint).filter_map(line).collect();
        format!("{}: {}", self.title, lines.join("; "))
    }
}

impl Series {
    fn steps(&self) -> impl Iterator<Item = f64> {
        self.points.iter().map(|(step, _)| *step).chain(self.band.iter().map(|(step, ..)| *step))
    }

    fn values(&self) -> impl Iterator<Item = f64> {
        self.points.iter().map(|(_, v)| *v).chain(self.band.iter().flat_map(|(_, low, high)| [*low, *high]))
    }

    /// Where its name stands; nowhere if it is faint or empty.
    fn end(&self) -> Option<f64> {
        let middle = || self.band.last().map(|(_, low, high)| (low + high) / 2.0);
        self.points.last().map(|(_, value)| *value).or_else(middle).filter(|_| !self.faint)
    }

    /// Of a very long line the means of neighbours.
    #[must_use]
    pub fn thinned(mut self) -> Self {
        let together = self.points.len().max(self.band.len()).div_ceil(POINTS).max(1);
        let mean = |values: Vec<f64>| crate::stats::mean(&values);
        let point = |near: &[(f64, f64)]| (near[0].0, mean(near.iter().map(|point| point.1).collect()));
        let edge = |near: &[(f64, f64, f64)], of: fn(&(f64, f64, f64)) -> f64| mean(near.iter().map(of).collect());
        let band = |near: &[(f64, f64, f64)]| (near[0].0, edge(near, |edges| edges.1), edge(near, |edges| edges.2));
        self.points = self.points.chunks(together).map(point).collect();
        self.band = self.band.chunks(together).map(band).collect();
        self
    }

    /// A long uneven line as it is, behind the mean of each step and its neighbours.
    #[must_use]
    pub fn smoothed(self) -> Vec<Self> {
        let reach = self.points.len() / 30;
        let steady = self.points.is_sorted_by(|a, b| a.1 <= b.1) || self.points.is_sorted_by(|a, b| a.1 >= b.1);
        if reach == 0 || self.dots || steady {
            return vec![self];
        }
        let mean = |at: usize| {
            let near = at.saturating_sub(reach)..(at + reach + 1).min(self.points.len());
            let window: Vec<f64> = self.points[near].iter().map(|(_, value)| *value).collect();
            (self.points[at].0, crate::stats::mean(&window))
        };
        let points = (0..self.points.len()).map(mean).collect();
        let line = Self { points, ..self.clone() };
        vec![Self { faint: true, name: String::new(), band: Vec::new(), ..self }, line]
    }

    fn svg(&self, place: &impl Fn(f64, f64) -> (f64, f64)) -> String {
        let mut out = String::new();
        if !self.band.is_empty() {
            let class = if self.points.is_empty() { "area" } else { "band" };
            let top = self.band.iter().map(|(step, _, high)| place(*step, *high));
            let bottom = self.band.iter().rev().map(|(step, low, _)| place(*step, *low));
            out += &format!(r#"<path class="{class} f{}" d="{}Z"/>"#, self.colour % COLOURS, line(top.chain(bottom)));
        }
        let points = || self.points.iter().map(|(step, value)| place(*step, *value));
        if !self.points.is_empty() {
            let class = if self.faint { "line faint" } else { "line" };
            out += &format!(r#"<path class="{class} s{}" d="{}"/>"#, self.colour % COLOURS, line(points()));
        }
        if self.dots || self.points.len() == 1 {
            let dots: String = points().map(|(x, y)| format!("M{x:.1} {y:.1}h0")).collect();
            out += &format!(r#"<path class="dots s{}" d="{dots}"/>"#, self.colour % COLOURS);
        }
        out
    }
}

/// A path through some places.
pub(super) fn line(places: impl Iterator<Item = (f64, f64)>) -> String {
    places.enumerate().map(|(n, (x, y))| format!("{}{x:.1} {y:.1}", if n == 0 { "M" } else { "L" })).collect()
}

/// Names at their lines' ends, moved apart where they would cover one another.
fn apart(mut names: Vec<(&Series, f64)>, top: f64, floor: f64) -> Vec<(&Series, f64)> {
    names.sort_by(|(_, a), (_, b)| a.total_cmp(b));
    let mut free = top;
    for (_, at) in &mut names {
        *at = at.max(free);
        free = *at + LEADING;
    }
    let mut free = floor;
    for (_, at) in names.iter_mut().rev() {
        *at = at.min(free);
        free = *at - LEADING;
    }
    names
}

pub(super) fn text(class: &str, x: f64, y: f64, text: &str) -> String {
    format!(r#"<text class="{class}" x="{x:.1}" y="{y:.1}">{}</text>"#, escaped(text))
}

fn short(name: &str) -> String {
    match name.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name.to_owned(),
    }
}

/// Text within markup.
pub(super) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
