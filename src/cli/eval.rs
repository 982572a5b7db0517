//! `starpo eval`: the held-out panel, played by a run's weights, an experiment's start, or a player without weights.

use clap::{Args, ValueEnum};
use serde_json::json;

use super::agent::{expert, uniform};
use super::subject::Subject;
use super::{CliError, Common, say};
use crate::chat::Chat;
use crate::evaluate::{self, Evaluation, PassStats};
use crate::experiment::Resolved;
use crate::policy::Policy;

/// A run or an experiment, and who plays.
#[derive(Clone, Debug, Args)]
pub(super) struct Eval {
    /// An experiment; or else a run's directory, a tag, or a unique prefix of its name or id
    subject: String,
    /// `path=value`, for an experiment
    overrides: Vec<String>,
    /// Who plays
    #[arg(long, value_enum, default_value_t = Player::Model)]
    player: Player,
    /// Transcripts to print
    #[arg(long, default_value_t = 2, value_name = "N")]
    show: usize,
}

/// Who plays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Player {
    /// The run's newest weights; an experiment's after its warm start
    Model,
    /// Legal actions at random
    Uniform,
    /// The environment's own expert
    Expert,
}

impl Eval {
    pub(super) fn run(self, common: &Common) -> Result<(), CliError> {
        let subject = Subject::find(&self.subject, &self.overrides, common)?;
        let resolved = &subject.resolved;
        if resolved.config.eval.tasks == 0 {
            return Err(CliError::usage("eval.tasks is 0: there is nothing to play", "such as eval.tasks=256"));
        }
        let agent = subject.agent()?;
        let chat = agent.chat(&resolved.config)?;
        agent.check_tokenizer(&resolved.config)?;
        let script = resolved.config.rollout.script();
        let evaluation = match self.player {
            Player::Uniform => play(resolved, &chat, &uniform(&chat, &script)),
            Player::Expert => play(resolved, &chat, &expert(&chat)),
            Player::Model => {
                let weights = subject.weights(&agent, common)?;
                play(resolved, &chat, &agent.learner(&resolved.config, weights)?)
            }
        };
        if common.json {
            say(&json!(evaluation.stats).to_string());
        } else {
            say(&table(&evaluation));
            for group in evaluation.sampled.iter().take(self.show) {
                say(&evaluate::transcript(group, &group.members[0]));
            }
        }
        Ok(())
    }
}

fn play(resolved: &Resolved, chat: &Chat<'_>, policy: &dyn Policy) -> Evaluation {
    evaluate::evaluate(&resolved.config, chat, policy)
}

fn table(evaluation: &Evaluation) -> String {
    let mut text =
        format!("{:<10} {:>16} {:>8} {:>8} {:>7} {:>8}", "pass", "success", "reward", "valid", "turns", "tokens");
    let passes = [("sampled", &evaluation.stats.sampled), ("greedy", &evaluation.stats.greedy)];
    for (name, PassStats { success, success_error, reward, valid, turns, response_tokens, by_env, .. }) in passes {
        let success = format!("{:.1} % ± {:.1}", 100.0 * success, 100.0 * success_error);
        text.push_str(&format!(
            "\n{name:<10} {success:>16} {reward:>8.3} {:>6.1} % {turns:>7.2} {response_tokens:>8.1}",
            100.0 * valid
        ));
        for (env, stats) in by_env {
            text.push_str(&format!("\n  {env:<16} {:>6.1} % {:>10.3}", 100.0 * stats.success, stats.reward));
        }
    }
    text.push_str(&format!("\n{} held-out tasks", evaluation.sampled.len()));
    text
}
