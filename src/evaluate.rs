//! The held-out panel: played twice, sampled and greedy, on the same tasks with the same draws every time.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::chat::Chat;
use crate::experiment::{ResolvedConfig, SamplingConfig};
use crate::policy::Policy;
use crate::rollout::{self, EnvStats, RolloutStats};
use crate::stats;
use crate::trajectory::{Group, Trajectory};

/// What one pass over the panel gave. Field paths are metric names.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PassStats {
    /// Share of tasks solved.
    pub success: f64,
    /// Standard error of `success` over tasks.
    pub success_error: f64,
    /// Mean episode score.
    pub reward: f64,
    /// Share of turns with legal actions only, and at least one.
    pub valid: f64,
    /// Mean turns an episode.
    pub turns: f64,
    /// Mean sampled tokens a turn.
    pub response_tokens: f64,
    /// Mean entropy, nats a token.
    pub entropy: f64,
    /// By environment, where there is more than one.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub by_env: BTreeMap<String, EnvStats>,
}

/// Both passes: the sampled one's metrics stand directly under `eval`, the greedy one's under `eval.greedy`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EvalStats {
    #[serde(flatten)]
    pub sampled: PassStats,
    pub greedy: PassStats,
}

/// An evaluation: its measures and its episodes.
pub struct Evaluation {
    pub stats: EvalStats,
    pub sampled: Vec<Group>,
    pub greedy: Vec<Group>,
}

/// Plays the panel.
#[must_use]
pub fn evaluate(config: &ResolvedConfig, chat: &Chat<'_>, policy: &dyn Policy) -> Evaluation {
    let sampled = rollout::panel(config, &config.eval.sampling, chat, policy);
    let greedy = rollout::panel(config, &SamplingConfig::GREEDY, chat, policy);
    let stats = EvalStats { sampled: pass(&sampled), greedy: pass(&greedy) };
    Evaluation { stats, sampled, greedy }
}

fn pass(groups: &[Group]) -> PassStats {
    let stats = RolloutStats::of(groups, 0.0);
    let RolloutStats { success, reward, valid, turns, response_tokens, entropy, by_env, .. } = stats;
    let success_error = stats::proportion_error(success, groups.len());
    PassStats { success, success_error, reward, valid, turns, response_tokens, entropy, by_env }
}

/// An episode as a person reads it.
#[must_use]
pub fn transcript(group: &Group, member: &Trajectory) -> String {
    let task = &group.task;
    let mut text = format!("── {} {} task {}\n", task.env, task.split.name(), task.index);
    for turn in &member.turns {
        let verdict = if turn.valid { "" } else { "  (invalid)" };
        let executed = if turn.executed.is_empty() { "nothing".to_owned() } else { turn.executed.join(", ") };
        text.push_str(&format!(
            "{}\n  {}\n  → {executed}, reward {:.3}{verdict}\n",
            turn.observation,
            turn.reply.text.replace('\n', "\n  "),
            turn.reward + turn.penalty,
        ));
    }
    text.push_str(&format!("── {}, score {:.3}\n", member.end.name(), member.score()));
    text
}
