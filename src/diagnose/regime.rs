//! The four regimes of RAGEN-2 (arXiv:2604.06268): what became of the policy, by two numbers of its thoughts.
//!
//! | H(Z\|X) a token | MI high | MI low |
//! | --- | --- | --- |
//! | high | `diverse` | `template-collapse` |
//! | low | `compressed` | `low-entropy-collapse` |
//!
//! A number is low if it is at most max(share · its value at the run's first measurement, floor). The floors are
//! distances from the uniform player, whose thought never changes: its MI and H(Z|X) are 0. RAGEN names the regimes and
//! gives no thresholds; these are ours. MI is that of whole thoughts, H(Z|X) the mean over thoughts of nats a token,
//! so that shorter thoughts are no collapse; of first turns if they are measured, else along trajectories.

use serde::{Deserialize, Serialize};

use super::collapse::{Collapse, CollapseConfig, Family};
use super::information::{Information, z};
use crate::config::section;

section! {
    /// Below what the regime counts a number as low: max(share · its value at the first measurement, floor).
    pub struct RegimeConfig {
        /// Share of the first measurement's mutual information.
        pub mi_share: f64 where 0.0..=1.0,
        /// Nats; the uniform player is at 0.
        pub mi_floor: f64 where 0.0..=100.0,
        /// Share of the first measurement's conditional entropy a token.
        pub entropy_share: f64 where 0.0..=1.0,
        /// Nats a token; the uniform player is at 0.
        pub entropy_floor: f64 where 0.0..=100.0,
    }
}

/// A regime.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Regime {
    /// Thoughts vary, and with their prompts.
    Diverse,
    /// Thoughts vary, whatever the prompt.
    TemplateCollapse,
    /// A prompt has one thought, another prompt another.
    Compressed,
    /// One thought for all.
    LowEntropyCollapse,
}

impl Regime {
    /// Its name in records.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Diverse => "diverse",
            Self::TemplateCollapse => "template-collapse",
            Self::Compressed => "compressed",
            Self::LowEntropyCollapse => "low-entropy-collapse",
        }
    }
}

/// Where thoughts stand.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Of whole thoughts, nats.
    pub mi: f64,
    /// H(Z|X), nats a token.
    pub entropy: f64,
}

impl RegimeConfig {
    /// The largest numbers that are low in a run that began at `start`.
    #[must_use]
    pub fn bounds(&self, start: Point) -> Point {
        Point {
            mi: f64::max(self.mi_share * start.mi, self.mi_floor),
            entropy: f64::max(self.entropy_share * start.entropy, self.entropy_floor),
        }
    }

    /// The regime at `point` of a run that began at `start`.
    #[must_use]
    pub fn regime(&self, point: Point, start: Point) -> Regime {
        let low = self.bounds(start);
        match (point.entropy <= low.entropy, point.mi <= low.mi) {
            (false, false) => Regime::Diverse,
            (false, true) => Regime::TemplateCollapse,
            (true, false) => Regime::Compressed,
            (true, true) => Regime::LowEntropyCollapse,
        }
    }
}

/// What a run's measurements leave for those to come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct History {
    start: Option<Point>,
    regime: Option<Regime>,
    /// Moving averages of `marginal_std`: of first turns and trajectories, each of sequences and per token.
    first_turn: [Option<f64>; 2],
    trajectory: [Option<f64>; 2],
}

impl History {
    /// Completes a measurement by what came before it: the averages, and the regime. Says so where that has changed.
    pub fn judge(&mut self, config: &CollapseConfig, measured: &mut Collapse) -> Option<String> {
        let families =
            [(&mut measured.first_turn, &mut self.first_turn), (&mut measured.trajectory, &mut self.trajectory)];
        for (family, [sequence, per_token]) in families {
            if let Some(family) = family {
                average(&mut family.sequence, sequence, config.ema);
                average(&mut family.per_token, per_token, config.ema);
            }
        }
        let family = if config.first_turn > 0 { &measured.first_turn } else { &measured.trajectory };
        let family = family.as_ref()?;
        let point = Point { mi: family.sequence.mi, entropy: family.per_token.conditional_entropy };
        let start = *self.start.get_or_insert(point);
        let regime = config.regime.regime(point, start);
        measured.regime = Some(regime);
        let before = self.regime.replace(regime);
        (before != Some(regime)).then(|| told(regime, before, point, start, family))
    }
}

/// v ← ema·v + (1 − ema)·new; the first value as it is.
fn average(information: &mut Information, value: &mut Option<f64>, ema: f64) {
    let new = information.marginal_std;
    let std = value.map_or(new, |old| ema * old + (1.0 - ema) * new);
    *value = Some(std);
    information.marginal_std_ema = Some(std);
    information.mi_z_ema = Some(z(information.mi, std));
}

/// A new regime for a person.
fn told(regime: Regime, before: Option<Regime>, point: Point, start: Point, family: &Family) -> String {
    let was = before.map(|before| format!(", after {}", before.name())).unwrap_or_default();
    format!(
        "thoughts: {}{was}; MI {:.2} of {:.2} nats (first {:.2}), H(Z|X) {:.2} nats a token (first {:.2})",
        regime.name(),
        point.mi,
        family.mi_bound,
        start.mi,
        point.entropy,
        start.entropy,
    )
}
