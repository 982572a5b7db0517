//! `starpo env`: environments as a person meets them, in the words that the model sees.

use std::io::{IsTerminal, stdin};

use clap::{Args, Subcommand, ValueEnum};
use serde_json::json;

use super::agent::Agent;
use super::chat::ask;
use super::{CliError, Common, say};
use crate::chat::{Chat, Script};
use crate::experiment::{self, Resolved, ResolvedConfig};
use crate::policy::Completion;
use crate::record::episode::{self, Window};
use crate::rng::Stream;
use crate::rollout::{self, Plan, Running};
use crate::trajectory::{Malformed, Split, Turn};

#[derive(Clone, Debug, Args)]
pub(super) struct Env {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Clone, Debug, Subcommand)]
enum Verb {
    /// List environments and their parts
    Ls,
    /// Show a task's first prompt
    Render(Task),
    /// Play a task by hand: a line is an answer's actions, or a whole reply with its tags; `?` asks the expert
    Play(Task),
}

/// A task of an environment.
#[derive(Clone, Debug, Args)]
struct Task {
    /// A name that `starpo env ls` lists; or else an experiment
    name: String,
    /// `path=value`
    overrides: Vec<String>,
    /// Which one, from 0
    #[arg(long, default_value_t = 0, value_name = "I")]
    task: u64,
    /// Of which tasks
    #[arg(long, value_enum, default_value_t = Of::Train)]
    split: Of,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Of {
    /// Those that are trained on
    Train,
    /// The held-out ones
    #[value(alias = "eval")]
    Validation,
}

impl Env {
    pub(super) fn run(self, common: &Common) -> Result<(), CliError> {
        match self.verb {
            Verb::Ls => list(common),
            Verb::Render(task) => task.with(common, |table| table.render(common)),
            Verb::Play(task) => task.with(common, |table| table.play(common)),
        }
    }
}

fn list(common: &Common) -> Result<(), CliError> {
    let outside = common.outside();
    let names = experiment::task_names(&outside);
    let all = names.iter().map(|name| Ok((name, experiment::resolve_task(name, &[], &outside)?.config)));
    let all: Vec<(&String, ResolvedConfig)> = all.collect::<Result<_, CliError>>()?;
    if common.json {
        let entry = |(name, config): &(&String, ResolvedConfig)| {
            let rollout = &config.rollout;
            json!({
                "name": name, "env": config.task[0].env.name(), "max_turns": rollout.max_turns,
                "max_actions": rollout.max_actions, "max_actions_per_turn": rollout.max_actions_per_turn,
            })
        };
        say(&all.iter().map(entry).collect::<serde_json::Value>().to_string());
        return Ok(());
    }
    let mut text = format!("{:<28} {:<12} {:>6} {:>8} {:>8}", "name", "environment", "turns", "a turn", "actions");
    for (name, config) in &all {
        let (env, rollout) = (config.task[0].env.name(), &config.rollout);
        let (turns, each, most) = (rollout.max_turns, rollout.max_actions_per_turn, rollout.max_actions);
        text.push_str(&format!("\n{name:<28} {env:<12} {turns:>6} {each:>8} {most:>8}"));
    }
    say(&text);
    Ok(())
}

/// A task laid out, with the words that go with it.
struct Table<'a> {
    config: &'a ResolvedConfig,
    agent: &'a Agent,
    chat: &'a Chat<'a>,
    script: &'a Script,
    plan: &'a Plan<'a>,
}

impl Task {
    fn resolve(&self, common: &Common) -> Result<Resolved, CliError> {
        let outside = common.outside();
        if experiment::task_names(&outside).contains(&self.name) {
            return Ok(experiment::resolve_task(&self.name, &self.overrides, &outside)?);
        }
        if experiment::exists(&self.name, &outside) {
            return Ok(experiment::resolve_with(&self.name, &self.overrides, &outside)?);
        }
        Err(CliError::Usage {
            message: format!("no environment is called {}", self.name),
            help: Some("`starpo env ls` lists them; the name or the file of an experiment will do too".to_owned()),
        })
    }

    fn with(&self, common: &Common, act: impl FnOnce(&Table<'_>) -> Result<(), CliError>) -> Result<(), CliError> {
        let config = &self.resolve(common)?.config;
        let agent = &Agent::new(config)?;
        agent.check_tokenizer(config)?;
        let (env, index) = rollout::mixture(&config.task, self.task);
        let split = match self.split {
            Of::Train => Split::Train,
            Of::Validation => Split::Eval,
        };
        let dynamics = Stream::new("play", config.seed, &[self.task]);
        let draws = ("play", config.seed, vec![self.task]);
        let plan = &Plan { env, split, index, group: 0, member: 0, dynamics, draws, noise: 0.0 };
        let (chat, script) = (&agent.chat(config)?, &config.rollout.script());
        act(&Table { config, agent, chat, script, plan })
    }
}

impl Table<'_> {
    fn start(&self) -> Result<Running<'_>, CliError> {
        let mut episode = Running::start(self.plan, self.script, self.chat);
        match episode.ask(&self.config.rollout, self.script, self.chat) {
            true => Ok(episode),
            false => Err(CliError::Usage {
                message: "the first prompt leaves no room for an answer".to_owned(),
                help: Some("such as rollout.max-context-tokens=8192".to_owned()),
            }),
        }
    }

    fn text(&self, tokens: &[u32]) -> String {
        self.agent.tokenizer.decode(tokens)
    }

    fn render(&self, common: &Common) -> Result<(), CliError> {
        let episode = self.start()?;
        let prompt = self.text(episode.prompt());
        if common.json {
            let task = self.plan.env.task(self.plan.split, self.plan.index);
            say(&json!({
                "env": task.env, "epoch": task.epoch, "split": task.split.name(), "index": task.index,
                "prompt": prompt, "actions": episode.state().actions(),
            })
            .to_string());
        } else {
            say(&prompt);
        }
        Ok(())
    }

    /// With `--json` the episode's record at the end, and nothing before.
    fn play(&self, common: &Common) -> Result<(), CliError> {
        let mut episode = self.start()?;
        let rollout = &self.config.rollout;
        let show = |text: &str| {
            if !common.json {
                say(text)
            }
        };
        let mut shown = 0;
        loop {
            show(self.text(&episode.prompt()[shown..]).trim_start_matches('\n'));
            let Some(reply) = self.reply(&episode, show, common)? else {
                show("\nleft");
                return Ok(());
            };
            let mut tokens = self.chat.continuation(&reply);
            tokens.push(self.chat.end());
            shown = if rollout.window.appends() { episode.prompt().len() + tokens.len() } else { 0 };
            episode.answer(rollout, self.chat, Completion { tokens, ..Completion::default() });
            episode.turns().last().into_iter().for_each(|turn| show(&(verdict(turn) + "\n")));
            if episode.end().is_some() || !episode.ask(rollout, self.script, self.chat) {
                break;
            }
        }
        show(&episode.state().observe());
        let trajectory = episode.finish(rollout, self.chat);
        let (end, turns, score) = (trajectory.end.name(), trajectory.turns.len(), trajectory.score());
        let turns = if turns == 1 { "1 turn".to_owned() } else { format!("{turns} turns") };
        show(&format!("end         {end} after {turns}, score {score:.3}"));
        if common.json {
            let task = self.plan.env.task(self.plan.split, self.plan.index);
            say(&episode::line(0, Window::of(&rollout.window), &task, 0, &trajectory));
        }
        Ok(())
    }

    /// A line of standard input as a reply; None at its end.
    fn reply(&self, episode: &Running<'_>, show: impl Fn(&str), common: &Common) -> Result<Option<String>, CliError> {
        loop {
            let Some(line) = ask(common)? else { return Ok(None) };
            let line = line.trim();
            if !stdin().is_terminal() {
                show(&format!("> {line}"));
            }
            if line != "?" {
                let whole = line.contains("<answer>");
                return Ok(Some(if whole { line.to_owned() } else { self.script.reply("", &[line]) }));
            }
            let advice = episode.advice(&self.config.rollout, self.script, episode.turns().len());
            show(advice.as_deref().unwrap_or("the expert knows no way on"));
        }
    }
}

/// What came of a reply.
fn verdict(turn: &Turn) -> String {
    let understood = match &turn.reply.actions {
        Err(Malformed::Tags) => "nothing: its tags are not those asked for".to_owned(),
        Err(Malformed::Empty) => "nothing: it names no action".to_owned(),
        Ok(said) if turn.executed.is_empty() => format!("nothing: `{}` is no action", said.join(", ")),
        Ok(_) if turn.valid => turn.executed.join(", "),
        Ok(said) => format!("{}, of {}", turn.executed.join(", "), said.join(", ")),
    };
    let penalty = if turn.penalty == 0.0 { String::new() } else { format!(", penalty {:.3}", turn.penalty) };
    format!("understood  {understood}\nreward      {:.3}{penalty}", turn.reward)
}
