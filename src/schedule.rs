//! How a learning rate changes over the steps of a run, as a share of its peak.
//!
//! Every schedule rises in a straight line over its first `warmup` steps: step s of S has s / warmup. The peak is at
//! step p = max(1, warmup). From there on:
//! - `constant`: 1.
//! - `linear`: 1 − (s − p) / (S + 1 − p), which would be 0 one step after the last.
//! - `cosine` (Loshchilov and Hutter 2017, arXiv:1608.03983, eq. 5, one period): floor + (1 − floor)·(1 + cos πx) / 2,
//!   x = (s − p) / (S − p), which is `floor` at the last step.

use crate::config::{section, variants};

variants! {
    /// A learning rate over the steps of a run.
    pub enum ScheduleConfig: "schedule" {
        "constant" => Constant(Constant),
        "linear" => Linear(Linear),
        "cosine" => Cosine(Cosine),
    }
}

section! {
    /// The peak at every step after the rise.
    pub struct Constant epoch 1 {
        /// Steps of linear rise.
        pub warmup: usize where 0..=100000000,
    }
}

section! {
    /// Falls in a straight line, and would be 0 one step after the last.
    pub struct Linear epoch 1 {
        /// Steps of linear rise.
        pub warmup: usize where 0..=100000000,
    }
}

section! {
    /// Falls along half a cosine (Loshchilov and Hutter 2017, arXiv:1608.03983).
    pub struct Cosine epoch 1 {
        /// Share of the peak at the last step.
        pub floor: f64 where 0.0..=1.0,
        /// Steps of linear rise.
        pub warmup: usize where 0..=100000000,
    }
}

impl ScheduleConfig {
    /// The share of the peak at step `step` (from 1) of as many as `steps` says, if it is asked.
    #[must_use]
    pub fn share(&self, step: usize, steps: impl FnOnce() -> usize) -> f64 {
        let (Self::Constant(Constant { warmup })
        | Self::Linear(Linear { warmup })
        | Self::Cosine(Cosine { warmup, .. })) = self;
        let peak = (*warmup).max(1);
        if step < peak {
            return step as f64 / peak as f64;
        }
        let since = (step - peak) as f64;
        let left = || steps().max(step) - peak;
        match self {
            Self::Constant(_) => 1.0,
            Self::Linear(_) => 1.0 - since / (left() + 1) as f64,
            Self::Cosine(cosine) => half_cosine(cosine.floor, since / left().max(1) as f64),
        }
    }
}

/// How far a run goes, as its steps may know it. What they are told is remembered: a longer run would be told
/// otherwise, so up to the first step that was told, the two are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Horizon {
    steps: usize,
    foreseen: bool,
}

impl Horizon {
    /// `foreseen`: whether a step has been told already.
    #[must_use]
    pub fn new(steps: usize, foreseen: bool) -> Self {
        Self { steps, foreseen }
    }

    /// The number of steps.
    pub fn steps(&mut self) -> usize {
        self.foreseen = true;
        self.steps
    }

    /// Whether `step` is the last. That it is not is no secret: nor is it in a longer run.
    pub fn is_last(&mut self, step: usize) -> bool {
        let last = step >= self.steps;
        self.foreseen |= last;
        last
    }

    /// Whether any step so far knew how many there are.
    #[must_use]
    pub fn foreseen(&self) -> bool {
        self.foreseen
    }
}

/// From 1 at x = 0 to `floor` at x = 1.
#[must_use]
pub fn half_cosine(floor: f64, x: f64) -> f64 {
    floor + (1.0 - floor) / 2.0 * (1.0 + libm::cos(std::f64::consts::PI * x))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_over_a_run() {
        let shares = |schedule: ScheduleConfig, steps: [usize; 4]| steps.map(|step| schedule.share(step, || 9));
        assert_eq!(shares(ScheduleConfig::Constant(Constant { warmup: 0 }), [1, 2, 5, 9]), [1.0; 4]);
        assert_eq!(shares(ScheduleConfig::Constant(Constant { warmup: 4 }), [1, 2, 4, 9]), [0.25, 0.5, 1.0, 1.0]);
        // (10 − s) / 9 without a rise, (10 − s) / 8 after a rise of two steps.
        let linear = |warmup| ScheduleConfig::Linear(Linear { warmup });
        assert_eq!(shares(linear(0), [1, 4, 7, 9]), [1.0, 1.0 - 3.0 / 9.0, 1.0 - 6.0 / 9.0, 1.0 - 8.0 / 9.0]);
        assert_eq!(shares(linear(2), [1, 2, 6, 9]), [0.5, 1.0, 0.5, 0.125]);
        let cosine = |warmup| ScheduleConfig::Cosine(Cosine { floor: 0.2, warmup });
        for (share, by_hand) in
            shares(cosine(1), [1, 3, 5, 9]).into_iter().zip([1.0, 0.6 + 0.4 * 0.5f64.sqrt(), 0.6, 0.2])
        {
            assert!((share - by_hand).abs() < 1e-15, "{share} is not {by_hand}");
        }
        assert_eq!(shares(cosine(12), [3, 6, 9, 9]), [0.25, 0.5, 0.75, 0.75]);
        assert_eq!((cosine(0).share(1, || 1), linear(0).share(1, || 1)), (1.0, 1.0));
    }
}
