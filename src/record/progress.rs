//! What a person sees while a run goes: a bar on a terminal, else a line a step, on standard error.

use std::fmt;
use std::io::Write;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::record::timings::duration;

/// What a training step is seen to have done.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepView {
    /// Mean score of its episodes.
    pub reward: f64,
    /// Share of its episodes that succeeded.
    pub success: f64,
    /// A 95 % interval of that share.
    pub interval: (f64, f64),
    /// Groups that the filter kept, of `groups`.
    pub kept: usize,
    pub groups: usize,
    pub tokens_per_second: f64,
}

impl fmt::Display for StepView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [success, low, high] = [self.success, self.interval.0, self.interval.1].map(|share| 100.0 * share);
        write!(f, "reward {:.2} · success {success:.0}% ({low:.0}–{high:.0}%) · ", self.reward)?;
        write!(f, "kept {}/{} · {:.0} tok/s", self.kept, self.groups, self.tokens_per_second)
    }
}

/// The display of one run.
#[derive(Debug)]
pub struct Progress {
    shown: Shown,
    name: String,
    steps: usize,
}

#[derive(Debug)]
enum Shown {
    Nothing,
    Lines,
    Bar(ProgressBar),
}

impl Progress {
    /// For a run called `name` that has done `done` of `steps` steps; `quiet` shows nothing. `NO_COLOR` is respected.
    #[must_use]
    pub fn new(name: &str, done: usize, steps: usize, quiet: bool) -> Self {
        let target = ProgressDrawTarget::stderr();
        let shown = match (quiet, target.is_hidden()) {
            (true, _) => Shown::Nothing,
            (false, true) => Shown::Lines,
            (false, false) => Shown::Bar(bar(target, name, done, steps)),
        };
        Self { shown, name: name.to_owned(), steps }
    }

    /// Shows that step `step` ended: what it did, usually a [`StepView`], and how many seconds are left, if known.
    pub fn step(&self, step: usize, view: &impl fmt::Display, seconds_left: Option<f64>) {
        let left = seconds_left.map(|seconds| format!(" · {} left", duration(seconds))).unwrap_or_default();
        match &self.shown {
            Shown::Nothing => {}
            Shown::Lines => write_line(&format!("{} {step}/{} · {view}{left}", self.name, self.steps)),
            Shown::Bar(bar) => {
                bar.set_message(format!("{view}{left}"));
                bar.set_position(step as u64);
            }
        }
    }

    /// Shows what goes on within a step; where there is no bar, nothing.
    pub fn within(&self, view: &impl fmt::Display) {
        if let Shown::Bar(bar) = &self.shown {
            bar.set_message(view.to_string());
        }
    }

    /// Prints text of any number of lines above the bar.
    pub fn message(&self, text: &str) {
        match &self.shown {
            Shown::Nothing => {}
            Shown::Lines => write_line(text),
            Shown::Bar(bar) => bar.suspend(|| write_line(text)),
        }
    }

    /// Ends the display; its last state stays.
    pub fn finish(&self) {
        if let Shown::Bar(bar) = &self.shown {
            bar.abandon();
        }
    }
}

fn bar(target: ProgressDrawTarget, name: &str, done: usize, steps: usize) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(steps as u64), target).with_prefix(name.to_owned());
    // A template that does not parse would be the default one: nothing worth ending a run for.
    let template = "{prefix} {bar:24.cyan} {pos}/{len} · {wide_msg}";
    bar.set_style(ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()));
    bar.set_position(done as u64);
    bar
}

/// A closed standard error ends no run.
fn write_line(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_one_line_that_says_how_it_goes() {
        let interval = (0.375, 0.625);
        let view = StepView { reward: 4.126, success: 0.5, interval, kept: 7, groups: 8, tokens_per_second: 1234.5 };
        assert_eq!(view.to_string(), "reward 4.13 · success 50% (38–62%) · kept 7/8 · 1234 tok/s");
        assert_eq!([59.4, 61.0, 7200.0].map(duration), ["59s", "1m01s", "2h00m"]);
    }
}
