//! The collapse plane: conditional entropy of thoughts against their mutual information with prompts, through time.

use serde_json::Value;

use super::chart::{escaped, line, text};
use super::scale::{Axis, Unit};
use crate::diagnose::CollapseConfig;
use crate::diagnose::regime::{Point, Regime};
use crate::record::values::at;

const SIZE: (f64, f64) = (560.0, 340.0);
const LEFT: f64 = 52.0;
const RIGHT: f64 = 16.0;
const TOP: f64 = 24.0;
const BOTTOM: f64 = 40.0;

/// The drawing of a run's measurements; none if there are none. Low numbers are as the run's config says.
#[must_use]
pub fn plane(metrics: &[Value], config: &CollapseConfig) -> Option<String> {
    let family = if config.first_turn > 0 { "first_turn" } else { "trajectory" };
    let point = |line: &Value| {
        let number = |name: &str| at(line, &format!("collapse.{family}.{name}"));
        Some((at(line, "step")?, Point { mi: number("mi")?, entropy: number("per_token.conditional_entropy")? }))
    };
    let points: Vec<(f64, Point)> = metrics.iter().filter_map(point).collect();
    let low = config.regime.bounds(points.first()?.1);
    let all = |of: fn(&Point) -> f64| points.iter().map(|(_, point)| point).chain([&low]).map(of).collect::<Vec<_>>();
    let zero = [0.0];
    let x = Axis::round(all(|point| point.entropy).into_iter().chain(zero), 5);
    let y = Axis::round(all(|point| point.mi).into_iter().chain(zero), 5);
    let (right, floor) = (SIZE.0 - RIGHT, SIZE.1 - BOTTOM);
    let place = |point: &Point| {
        (LEFT + x.place(point.entropy) * (right - LEFT), TOP + (1.0 - y.place(point.mi)) * (floor - TOP))
    };
    let (first, last) = (points.first()?, points.last()?);
    let mut out = format!(
        r#"<svg viewBox="0 0 {} {}" class="plane" role="img" aria-label="{}">"#,
        SIZE.0,
        SIZE.1,
        escaped(&format!(
            "collapse plane: {} at step {}, {} at step {}",
            config.regime.regime(first.1, first.1).name(),
            first.0,
            config.regime.regime(last.1, first.1).name(),
            last.0
        )),
    );
    let (middle, bar) = place(&low);
    let quarters = [
        (Regime::Diverse, middle, TOP, right, bar),
        (Regime::TemplateCollapse, middle, bar, right, floor),
        (Regime::Compressed, LEFT, TOP, middle, bar),
        (Regime::LowEntropyCollapse, LEFT, bar, middle, floor),
    ];
    for (regime, x0, y0, x1, y1) in quarters {
        let (name, wide, high) = (regime.name(), x1 - x0, y1 - y0);
        out += &format!(r#"<path class="quarter {name}" d="M{x0:.1} {y0:.1}h{wide:.1}v{high:.1}h-{wide:.1}z"/>"#);
    }
    for (tick, place) in x.ticks.iter().map(|tick| (tick, LEFT + x.place(*tick) * (right - LEFT))) {
        out += &text("tick middle", place, floor + 15.0, &x.label(*tick, Unit::Plain));
    }
    for (tick, place) in y.ticks.iter().map(|tick| (tick, TOP + (1.0 - y.place(*tick)) * (floor - TOP))) {
        out += &text("tick end", LEFT - 6.0, place + 3.5, &y.label(*tick, Unit::Plain));
    }
    out += &text("tick end", right, SIZE.1 - 6.0, "H(Z|X), nats a token →");
    out += &text("tick", 4.0, 11.0, "↑ I(X;Z), nats");
    out += &names(&quarters);
    Some(out + &path(&points, place) + "</svg>")
}

/// A quarter's name in its outer corner.
fn names(quarters: &[(Regime, f64, f64, f64, f64)]) -> String {
    let name = |(regime, x0, y0, x1, y1): &(Regime, f64, f64, f64, f64)| {
        let inner = matches!(regime, Regime::Compressed | Regime::LowEntropyCollapse);
        let upper = matches!(regime, Regime::Diverse | Regime::Compressed);
        let (x, class) = if inner { (x0 + 8.0, "regime") } else { (x1 - 8.0, "regime end") };
        text(class, x, if upper { y0 + 16.0 } else { y1 - 8.0 }, regime.name())
    };
    quarters.iter().map(name).collect()
}

/// The way through time: early measurements pale, the last one full.
fn path(points: &[(f64, Point)], place: impl Fn(&Point) -> (f64, f64)) -> String {
    let places: Vec<(f64, f64)> = points.iter().map(|(_, point)| place(point)).collect();
    let mut out = format!(r#"<path class="way" d="{}"/>"#, line(places.iter().copied()));
    for (number, ((step, point), (x, y))) in points.iter().zip(&places).enumerate() {
        let age = 0.25 + 0.75 * (number + 1) as f64 / points.len() as f64;
        let said = format!("step {step}: H(Z|X) {:.3}, MI {:.3}", point.entropy, point.mi);
        out += &format!(
            r#"<circle cx="{x:.1}" cy="{y:.1}" r="3.5" opacity="{age:.2}"><title>{}</title></circle>"#,
            escaped(&said)
        );
    }
    let ends = [points.first().zip(places.first()), points.last().zip(places.last())];
    let shown = ends.into_iter().flatten().take(points.len());
    for ((step, _), (x, y)) in shown {
        out += &text("step", x + 7.0, y + 4.0, &format!("{step}"));
    }
    out
}
