//! Whom a run teaches and asks: the policy, a critic, the frozen reference.

use crate::policy::{Learner, Row, Scores};
use crate::trajectory::Sequence;

/// Begins the names of an own critic's files in a checkpoint.
const CRITIC: &str = "critic-";

/// The models of a run.
pub struct Learners<'a> {
    pub policy: &'a mut dyn Learner,
    pub critic: Critic<'a>,
    /// The start model, where it is needed: it never learns, and is made anew on resume.
    pub reference: Option<Box<dyn Learner + 'a>>,
}

/// Who foresees returns.
pub enum Critic<'a> {
    None,
    /// A model of its own.
    Own(Box<dyn Learner + 'a>),
    /// The policy, by a value head.
    Shared,
}

impl<'a> Learners<'a> {
    /// A policy without company.
    pub fn alone(policy: &'a mut dyn Learner) -> Self {
        Self { policy, critic: Critic::None, reference: None }
    }

    /// Writes into rows what the reference and the critic say of them.
    pub fn annotate(&self, rows: &mut [&mut Sequence], temperature: f64) {
        if let Some(reference) = &self.reference {
            score(&**reference, rows, temperature, |row, scores| row.reference = scores.logprobs);
        }
        let critic = match &self.critic {
            Critic::None => return,
            Critic::Own(critic) => &**critic,
            Critic::Shared => &*self.policy,
        };
        score(critic, rows, temperature, |row, scores| row.values = scores.values);
    }

    /// Everything that later steps depend on, as named files: the policy's, and an own critic's under names of its own.
    #[must_use]
    pub fn save(&self) -> Vec<(String, Vec<u8>)> {
        let mut files = self.policy.save();
        if let Critic::Own(critic) = &self.critic {
            files.extend(critic.save().into_iter().map(|(name, bytes)| (format!("{CRITIC}{name}"), bytes)));
        }
        files
    }

    /// Takes back what [`Learners::save`] gave.
    ///
    /// # Errors
    /// What does not fit.
    pub fn restore(&mut self, files: &[(String, Vec<u8>)]) -> Result<(), String> {
        let Critic::Own(critic) = &mut self.critic else { return self.policy.restore(files) };
        let (own, policy): (Vec<_>, Vec<_>) = files.iter().cloned().partition(|(name, _)| name.starts_with(CRITIC));
        let own: Vec<_> = own.into_iter().map(|(name, bytes)| (name[CRITIC.len()..].to_owned(), bytes)).collect();
        critic.restore(&own).map_err(|error| format!("the critic's {error}"))?;
        self.policy.restore(&policy)
    }
}

/// Has `learner` score rows, and gives each row its scores.
pub fn score(
    learner: &dyn Learner,
    rows: &mut [&mut Sequence],
    temperature: f64,
    give: impl Fn(&mut Sequence, Scores),
) {
    let views: Vec<Row<'_>> = rows.iter().map(|row| Row { tokens: &row.tokens, responses: &row.responses }).collect();
    let scores = learner.score(&views, temperature);
    rows.iter_mut().zip(scores).for_each(|(row, scores)| give(row, scores));
}
