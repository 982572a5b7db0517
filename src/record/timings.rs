//! The one place with clocks: seconds by phase, rates and memory of a step, and the time of day for leases and
//! attempts.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use serde_json::{Map, Value, json};

/// Measures the phases of steps. What it measures goes to `timings.jsonl`, never into a result.
#[derive(Debug)]
pub struct Timings {
    began: Instant,
    step_began: Instant,
    steps: u64,
    tokens: u64,
    phases: Vec<(&'static str, f64)>,
}

impl Default for Timings {
    fn default() -> Self {
        Self::new()
    }
}

impl Timings {
    /// Starts the clock of the attempt and of its first step.
    #[must_use]
    pub fn new() -> Self {
        let now = now();
        Self { began: now, step_began: now, steps: 0, tokens: 0, phases: Vec::new() }
    }

    /// Runs `act` and adds its time to the phase of this step.
    pub fn phase<T>(&mut self, name: &'static str, act: impl FnOnce() -> T) -> T {
        let start = now();
        let result = act();
        let seconds = start.elapsed().as_secs_f64();
        match self.phases.iter_mut().find(|(phase, _)| *phase == name) {
            Some((_, sum)) => *sum += seconds,
            None => self.phases.push((name, seconds)),
        }
        result
    }

    /// Counts tokens sampled in this step.
    pub fn count_tokens(&mut self, tokens: usize) {
        self.tokens += tokens as u64;
    }

    /// Ends step `step`: its record, and the clock starts anew. Seconds, tokens a second of the whole step, and the
    /// process's peak resident memory in MiB (null where the system does not say).
    pub fn end_step(&mut self, step: usize) -> Value {
        let seconds = self.step_began.elapsed().as_secs_f64();
        let phases: Map<String, Value> =
            self.phases.drain(..).map(|(name, seconds)| (name.to_owned(), rounded(seconds))).collect();
        let record = json!({
            "step": step,
            "seconds": rounded(seconds),
            "attempt_seconds": rounded(self.began.elapsed().as_secs_f64()),
            "tokens": self.tokens,
            "tokens_per_second": rounded(self.tokens as f64 / seconds.max(1e-9)),
            "peak_memory_mib": peak_memory_mib(),
            "phases": phases,
        });
        self.steps += 1;
        self.tokens = 0;
        self.step_began = now();
        record
    }

    /// Tokens a second in this step so far.
    #[must_use]
    pub fn tokens_per_second(&self) -> f64 {
        self.tokens as f64 / self.step_began.elapsed().as_secs_f64().max(1e-9)
    }

    /// Seconds that `steps` more steps will take, at the mean pace of this attempt; none before its first step ended.
    #[must_use]
    pub fn seconds_left(&self, steps: usize) -> Option<f64> {
        (self.steps > 0).then(|| (self.step_began - self.began).as_secs_f64() / self.steps as f64 * steps as f64)
    }
}

/// Milliseconds are enough.
fn rounded(value: f64) -> Value {
    Value::from((value * 1000.0).round() / 1000.0)
}

/// Peak resident memory of this process in MiB, where the system says (Linux).
#[must_use]
pub fn peak_memory_mib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.split_whitespace().next()?.parse::<u64>().ok()? / 1024)
}

/// Seconds since 1970.
#[expect(clippy::disallowed_methods, reason = "this is the one place with clocks")]
#[must_use]
pub fn unix_time() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[expect(clippy::disallowed_methods, reason = "this is the one place with clocks")]
fn now() -> Instant {
    Instant::now()
}

/// Seconds since 1970 as `2026-01-31T12:34:56Z`.
#[must_use]
pub fn utc(seconds: u64) -> String {
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    // Days to date by eras of 400 years that start on 1 March (Hinnant, "chrono-compatible low-level date algorithms").
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    let year = 400 * era + year_of_era + u64::from(month <= 2);
    let (hour, minute) = (second / 3_600, second % 3_600 / 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{:02}Z", second % 60)
}

/// Seconds as a person says them: `42s`, `3m05s`, `2h07m`.
#[must_use]
pub fn duration(seconds: f64) -> String {
    let whole = seconds.round() as u64;
    match whole {
        0..60 => format!("{whole}s"),
        60..3600 => format!("{}m{:02}s", whole / 60, whole % 60),
        _ => format!("{}h{:02}m", whole / 3600, whole % 3600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        assert_eq!(utc(0), "1970-01-01T00:00:00Z");
        assert_eq!(utc(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(utc(1_767_225_599), "2025-12-31T23:59:59Z");
    }

    #[test]
    fn a_step_reports_its_phases_and_starts_anew() {
        let mut timings = Timings::new();
        assert_eq!(timings.phase("rollout", || 7), 7);
        timings.phase("update", || ());
        timings.count_tokens(12);
        let first = timings.end_step(1);
        assert_eq!(first["tokens"], 12);
        assert!(first["phases"].as_object().is_some_and(|phases| phases.keys().eq(["rollout", "update"])));
        assert_eq!(timings.end_step(2)["tokens"], 0);
        assert!(timings.seconds_left(3).is_some());
    }
}
