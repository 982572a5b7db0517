//! What the statistics of a group count: its members, or their rows.

use crate::config::choice;
use crate::reward::Rewards;
use crate::stats;

choice! {
    /// What a group's statistics count.
    pub enum Unit {
        /// Each member once.
        "trajectory" => Trajectory,
        /// Each row once: a member of n rows weighs n times.
        "row" => Row,
    }
}

choice! {
    /// The advantage of a group's only unit.
    pub enum Lone {
        /// 0: there is nothing to compare it with.
        "zero" => Zero,
        /// Its score, as if the mean were 0 and the deviation 1.
        "raw" => Raw,
    }
}

choice! {
    /// How scores are compared with their group's.
    pub enum Mode {
        /// Less their mean.
        "mean" => Mean,
        /// Less their mean, over their deviation.
        "mean-std" => MeanStd,
    }
}

/// A deviation to divide by: its degrees of freedom taken off, and what is added to it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Deviation {
    pub ddof: u32,
    pub epsilon: f64,
}

impl Unit {
    /// The scores of a group's units.
    #[must_use]
    pub fn scores<'r>(self, rewards: &'r Rewards<'_>) -> &'r [f64] {
        match self {
            Self::Trajectory => &rewards.scores,
            Self::Row => &rewards.rows,
        }
    }

    /// Gives each unit's value to all its response tokens.
    #[must_use]
    pub fn spread<T: Copy>(self, rewards: &Rewards<'_>, values: &[T]) -> Vec<T> {
        let members = rewards.group.members.iter().enumerate();
        let rows = members.flat_map(|(member, episode)| episode.sequences.iter().map(move |row| (member, row)));
        let unit = |row: usize, member: usize| match self {
            Self::Trajectory => values[member],
            Self::Row => values[row],
        };
        rows.enumerate()
            .flat_map(|(index, (member, row))| std::iter::repeat_n(unit(index, member), row.response_tokens()))
            .collect()
    }
}

impl Mode {
    /// The deviation that scores are divided by, if they are.
    #[must_use]
    pub fn deviation(self, ddof: u32, epsilon: f64) -> Option<Deviation> {
        (self == Self::MeanStd).then_some(Deviation { ddof, epsilon })
    }
}

/// (s − μ) / (σ + ε), or s − μ without a deviation. Exactly 0 where scores are constant; a lone score is 0, or with
/// `raw` itself, over 1 + ε where there is a deviation.
#[must_use]
pub fn relative(scores: &[f64], deviation: Option<Deviation>, lone: Lone) -> Vec<f64> {
    let scale = |std: f64| deviation.map_or(1.0, |deviation| std + deviation.epsilon);
    if let ([score], Lone::Raw) = (scores, lone) {
        return vec![score / scale(1.0)];
    }
    if stats::constant(scores) {
        return vec![0.0; scores.len()];
    }
    let std = deviation.map_or(1.0, |deviation| stats::std(scores, deviation.ddof));
    stats::centred(scores).into_iter().map(|score| score / scale(std)).collect()
}
