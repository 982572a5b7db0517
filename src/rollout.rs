//! Episodes: all of a step in lock-step, turn by turn. Render, generate, parse, act.

use std::collections::BTreeMap;

use rayon::prelude::*;

use crate::chat::reply::parse;
use crate::chat::window::History;
use crate::chat::{Chat, Mask, Script};
use crate::env::{EnvConfig, Episode, Outcome};
use crate::experiment::{ResolvedConfig, RolloutConfig, SamplingConfig, TaskConfig};
use crate::policy::{Completion, Policy, Request, Sampling, Session};
use crate::rng::Stream;
use crate::stats;
use crate::trajectory::{End, Group, Limit, Reply, Sequence, Split, Task, Trajectory, Turn};

/// An episode to play: its task, and the randomness of everything that is not the task.
#[derive(Clone, Debug)]
pub struct Plan<'a> {
    pub env: &'a EnvConfig,
    pub split: Split,
    pub index: u64,
    pub group: usize,
    pub member: usize,
    /// Slips and pay-outs.
    pub dynamics: Stream,
    /// Turn t draws its tokens from stream `(domain, seed, [path…, t])`.
    pub draws: (&'static str, u64, Vec<u64>),
    /// Share of turns in which an expert, if one plays, tries a random legal action instead.
    pub noise: f64,
}

impl Plan<'_> {
    /// What a turn draws its tokens from.
    fn stream(&self, turn: usize) -> Stream {
        let (domain, seed, path) = &self.draws;
        let path: Vec<u64> = path.iter().copied().chain([turn as u64]).collect();
        Stream::new(domain, *seed, &path)
    }
}

/// Plays round `round` (from 0) of training step `step` (from 1): `rollout.groups` tasks by `rollout.group-size`
/// members. Groups are numbered through all rounds, and every round that the step may play has its own tasks.
#[must_use]
pub fn collect(config: &ResolvedConfig, chat: &Chat<'_>, policy: &dyn Policy, step: u64, round: usize) -> Vec<Group> {
    let rollout = &config.rollout;
    let numbers = round * rollout.groups..(round + 1) * rollout.groups;
    let members = numbers.flat_map(|group| (0..rollout.group_size).map(move |member| (group, member)));
    let plans: Vec<Plan<'_>> = members.map(|(group, member)| plan(config, step, group, member)).collect();
    groups(&plans, play(rollout, &rollout.sampling, chat, policy, &plans))
}

/// Plays a greedy episode of each of the step's groups, with the dynamics of its first member, and notes its score as
/// the members' baseline.
pub fn baselines(config: &ResolvedConfig, chat: &Chat<'_>, policy: &dyn Policy, step: u64, groups: &mut [Group]) {
    let plans: Vec<Plan<'_>> = groups.iter().map(|group| plan(config, step, group.id, 0)).collect();
    for (group, episode) in groups.iter_mut().zip(play(&config.rollout, &SamplingConfig::GREEDY, chat, policy, &plans))
    {
        let score = config.reward.penalty_to.score(&episode);
        group.members.iter_mut().for_each(|member| member.baseline = Some(score));
    }
}

/// Member `member` of group `group` in training step `step`.
fn plan(config: &ResolvedConfig, step: u64, group: usize, member: usize) -> Plan<'_> {
    let tasks_a_step = (config.filter.rounds() * config.rollout.groups) as u64;
    let position = config.rollout.task_offset + (step - 1) * tasks_a_step + group as u64;
    let (env, index) = mixture(&config.task, position);
    let ice = if env.shared_dynamics() { 0 } else { member as u64 };
    let dynamics = Stream::new("dynamics", config.seed, &[step, group as u64, ice]);
    let draws = ("sample", config.seed, vec![step, group as u64, member as u64]);
    Plan { env, split: Split::Train, index, group, member, dynamics, draws, noise: 0.0 }
}

/// Plays the held-out panel once: `eval.tasks` tasks, one member each, with the same draws at every evaluation.
#[must_use]
pub fn panel(config: &ResolvedConfig, sampling: &SamplingConfig, chat: &Chat<'_>, policy: &dyn Policy) -> Vec<Group> {
    let tasks = if config.eval.task.is_empty() { &config.task } else { &config.eval.task };
    let plans: Vec<Plan<'_>> = (0..config.eval.tasks)
        .map(|group| {
            let (env, index) = mixture(tasks, group as u64);
            let dynamics = Stream::new("eval-dynamics", config.seed, &[group as u64]);
            let draws = ("eval-sample", config.seed, vec![group as u64]);
            Plan { env, split: Split::Eval, index, group, member: 0, dynamics, draws, noise: 0.0 }
        })
        .collect();
    groups(&plans, play(&config.rollout, sampling, chat, policy, &plans))
}

/// The environment and its task index at `position` of a mixture: each cycle of Σ shares positions gives every
/// environment its share of consecutive tasks.
#[must_use]
pub fn mixture(tasks: &[TaskConfig], position: u64) -> (&EnvConfig, u64) {
    let total: u64 = tasks.iter().map(|task| task.share as u64).sum();
    let (cycle, mut within) = (position / total, position % total);
    for task in tasks {
        let share = task.share as u64;
        if within < share {
            return (&task.env, cycle * share + within);
        }
        within -= share;
    }
    unreachable!("shares add up")
}

/// How responses of a run are drawn.
#[must_use]
pub fn sampling(config: &SamplingConfig, chat: &Chat<'_>) -> Sampling {
    Sampling { temperature: config.temperature, top_k: config.top_k, top_p: config.top_p, stop: chat.ends() }
}

impl RolloutConfig {
    /// The words around observations.
    #[must_use]
    pub fn script(&self) -> Script {
        Script {
            system: self.system.clone(),
            instruction: self.instruction.clone(),
            format: self.format.clone(),
            think: self.think,
            separator: self.action_separator.clone(),
            show_reward: self.show_reward,
        }
    }
}

fn groups(plans: &[Plan<'_>], trajectories: Vec<Trajectory>) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for (plan, trajectory) in plans.iter().zip(trajectories) {
        match groups.last_mut() {
            Some(group) if group.id == plan.group => group.members.push(trajectory),
            _ => groups.push(Group {
                id: plan.group,
                task: plan.env.task(plan.split, plan.index),
                members: vec![trajectory],
            }),
        }
    }
    groups
}

/// The results of `work` on each item, in order: on rayon's threads if that is worth while. Items share nothing that
/// changes, so threads change nothing.
fn each<T: Send, R: Send>(items: Vec<T>, slow: bool, work: impl Fn(T) -> R + Send + Sync) -> Vec<R> {
    if slow { items.into_par_iter().map(work).collect() } else { items.into_iter().map(work).collect() }
}

/// Plays the episodes to their ends. An episode that ends leaves; the others go on, in lock-step.
#[must_use]
pub fn play(
    config: &RolloutConfig,
    sampled: &SamplingConfig,
    chat: &Chat<'_>,
    policy: &dyn Policy,
    plans: &[Plan<'_>],
) -> Vec<Trajectory> {
    let script = config.script();
    let slow = plans.iter().any(|plan| plan.env.is_slow());
    let start = |plan| Running::start(plan, &script, chat);
    let mut running: Vec<Running<'_>> = each(plans.iter().collect(), slow, start);
    let mut session = policy.open(&sampling(sampled, chat), plans.len());
    for turn in 0..config.max_turns {
        let playing = running.iter_mut().enumerate().filter(|(_, episode)| episode.end.is_none()).collect();
        let ask = |(number, episode): (usize, &mut Running<'_>)| episode.ask(config, &script, chat).then_some(number);
        let asked: Vec<usize> = each(playing, slow, ask).into_iter().flatten().collect();
        if asked.is_empty() {
            break;
        }
        let advise = |number: usize| running[number].advice(config, &script, turn);
        let advice = if policy.wants_advice() { each(asked.clone(), slow, advise) } else { vec![None; asked.len()] };
        let completions = generate(config, session.as_mut(), &running, &asked, turn, &advice);
        let answered = running.iter_mut().filter(|episode| episode.end.is_none()).zip(completions).collect();
        let answer = |(episode, completion): (&mut Running<'_>, _)| episode.answer(config, chat, completion);
        each(answered, slow, answer);
    }
    running.into_iter().map(|episode| episode.finish(config, chat)).collect()
}

fn generate(
    config: &RolloutConfig,
    session: &mut dyn Session,
    running: &[Running<'_>],
    asked: &[usize],
    turn: usize,
    advice: &[Option<String>],
) -> Vec<Completion> {
    let requests: Vec<Request<'_>> = asked
        .iter()
        .zip(advice)
        .map(|(&number, advice)| {
            let episode = &running[number];
            let prompt = episode.prompt();
            Request {
                episode: number,
                prompt,
                draws: episode.plan.stream(turn),
                limit: config.max_response_tokens.min(config.max_context_tokens - prompt.len()),
                legal: episode.state.actions(),
                advice: advice.as_deref(),
            }
        })
        .collect();
    session.generate(&requests)
}

/// An episode under way: asked, answered, asked again, until it has an end.
pub struct Running<'a> {
    plan: &'a Plan<'a>,
    state: Box<dyn Episode>,
    /// The system message.
    system: Vec<u32>,
    /// What the environment shows in the turn under way.
    observation: String,
    turns: Vec<Turn>,
    /// The last one is a prompt while an answer is due.
    rows: Vec<Sequence>,
    actions: usize,
    end: Option<End>,
}

impl<'a> Running<'a> {
    /// Before its first turn.
    #[must_use]
    pub fn start(plan: &'a Plan<'a>, script: &Script, chat: &Chat<'_>) -> Self {
        let state = plan.env.start(plan.split, plan.index, plan.dynamics);
        let system = chat.system(&script.rules(&plan.env.instruction()));
        let (observation, turns, rows) = (String::new(), Vec::new(), Vec::new());
        Self { plan, state, system, observation, turns, rows, actions: 0, end: None }
    }

    /// Makes the turn's prompt; false (and the episode over) where the context has no room for an answer.
    pub fn ask(&mut self, config: &RolloutConfig, script: &Script, chat: &Chat<'_>) -> bool {
        self.observation = self.state.observe();
        let history = History {
            chat,
            script,
            system: &self.system,
            turns: &self.turns,
            rows: &self.rows,
            observation: &self.observation,
            max_actions: config.max_actions,
            max_response: config.max_response_tokens,
            max_context: config.max_context_tokens,
        };
        let Some(tokens) = config.window.prompt(&history) else {
            self.end = Some(End::Truncated(Limit::Tokens));
            return false;
        };
        match self.rows.last_mut() {
            Some(row) if config.window.appends() => row.tokens = tokens,
            _ => self.rows.push(Sequence { tokens, ..Sequence::default() }),
        }
        true
    }

    /// The environment's part.
    #[must_use]
    pub fn state(&self) -> &dyn Episode {
        &*self.state
    }

    /// The turns played.
    #[must_use]
    pub fn turns(&self) -> &[Turn] {
        &self.turns
    }

    /// How it ended, once it has.
    #[must_use]
    pub fn end(&self) -> Option<End> {
        self.end
    }

    /// All that comes before the answer that is due.
    #[must_use]
    pub fn prompt(&self) -> &[u32] {
        self.rows.last().map_or(&[], |row| &row.tokens)
    }

    /// What the expert would say in turn `turn` (from 0), which is now.
    #[must_use]
    pub fn advice(&self, config: &RolloutConfig, script: &Script, turn: usize) -> Option<String> {
        let legal = self.state.actions();
        let mut draws = self.plan.stream(turn);
        if draws.chance(self.plan.noise) {
            let action = draws.pick(legal);
            return Some(script.reply(&format!("try {action}"), &[action]));
        }
        let most = config.max_actions_per_turn.min(config.max_actions - self.actions);
        let advice = self.state.expert(most)?;
        let names: Vec<&str> = advice.actions.iter().map(String::as_str).collect();
        Some(script.reply(&advice.thought, &names))
    }

    /// Takes a response: its tokens enter the row, its actions the environment.
    ///
    /// # Panics
    /// Where none was asked for.
    pub fn answer(&mut self, config: &RolloutConfig, chat: &Chat<'_>, completion: Completion) {
        let row = self.rows.last_mut().expect("a prompt comes before its answer");
        let from = row.tokens.len();
        row.tokens.extend(&completion.tokens);
        row.responses.push(from..row.tokens.len());
        row.turns.push(self.turns.len());
        row.logprobs.extend(completion.logprobs);
        row.entropies.extend(completion.entropies);
        row.tokens.extend(chat.close(&completion.tokens));
        let reply = read(config, chat, &completion.tokens);
        self.act(config, reply);
        if self.end.is_none() && self.turns.len() == config.max_turns {
            self.end = Some(End::Truncated(Limit::Turns));
        }
    }

    /// Executes the reply's legal actions within the budget, up to the first that ends the environment.
    fn act(&mut self, config: &RolloutConfig, reply: Reply) {
        let proposed = reply.actions.as_deref().unwrap_or_default();
        let legal: Vec<String> = proposed.iter().filter_map(|words| self.state.understand(words)).collect();
        let valid = !legal.is_empty() && legal.len() == proposed.len();
        let (mut executed, mut reward, mut effective) = (Vec::new(), 0.0, false);
        for action in legal {
            if self.actions == config.max_actions || self.end.is_some() {
                break;
            }
            let step = self.state.act(&action);
            executed.push(action);
            self.actions += 1;
            reward += step.reward;
            effective |= step.effective;
            self.end = step.outcome.map(|outcome| match outcome {
                Outcome::Solved => End::Solved,
                Outcome::Failed => End::Failed,
            });
        }
        if self.end.is_none() && self.actions == config.max_actions {
            self.end = Some(End::Truncated(Limit::Actions));
        }
        let penalty = if valid { 0.0 } else { config.format_penalty };
        let observation = std::mem::take(&mut self.observation);
        let anchor = observation.clone();
        self.turns.push(Turn { observation, anchor, reply, executed, reward, penalty, valid, effective });
    }

    /// What was played.
    #[must_use]
    pub fn finish(mut self, config: &RolloutConfig, chat: &Chat<'_>) -> Trajectory {
        if config.mask != Mask::Sampled {
            let spans = |row: &Sequence| config.mask.spans(chat, row, self.system.len(), config.window.appends());
            self.rows.iter_mut().for_each(|row| row.learned = spans(row));
        }
        let end = self.end.unwrap_or(End::Truncated(Limit::Turns));
        Trajectory { member: self.plan.member, turns: self.turns, sequences: self.rows, baseline: None, end }
    }
}

/// A response as a reply.
fn read(config: &RolloutConfig, chat: &Chat<'_>, response: &[u32]) -> Reply {
    let text = chat.text(response);
    let parsed = parse(&text, config.think, &config.action_separator, config.max_actions_per_turn);
    let reasoning = parsed
        .thought
        .map(|thought| chat.tokens_before(response, thought.start)..chat.tokens_before(response, thought.end));
    Reply { text, actions: parsed.actions, reasoning }
}

/// Why episodes that could not take a single turn mean nothing; None if there are none.
#[must_use]
pub fn unplayable(groups: &[Group]) -> Option<String> {
    let group = groups.iter().find(|group| group.members.iter().any(|member| member.turns.is_empty()))?;
    let Task { env, index, .. } = &group.task;
    let what = format!("the first prompt of {env} task {index} leaves no room for an answer");
    Some(format!("{what}: raise rollout.max-context-tokens"))
}

/// What a step's episodes were like. Field paths are metric names.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct RolloutStats {
    /// Share of episodes solved.
    pub success: f64,
    /// Mean episode score, raw.
    pub reward: f64,
    /// Mean over groups of the deviation of their scores (ddof 1; 0 for one member).
    pub reward_std: f64,
    /// Mean turns an episode.
    pub turns: f64,
    /// Mean sampled tokens a turn.
    pub response_tokens: f64,
    /// Share of turns whose answer had legal actions only, and at least one.
    pub valid: f64,
    /// Share of turns that changed the state.
    pub effective: f64,
    /// Share of groups with at least one member that solved its task.
    pub pass_at_k: f64,
    /// Mean entropy of the distributions sampled from, in nats a token.
    pub entropy: f64,
    /// Largest difference between recorded log-probs and those of an uncached forward pass of some whole rows.
    pub logprob_mismatch_max: f64,
    /// By environment, where there is more than one.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub by_env: BTreeMap<String, EnvStats>,
}

/// How one environment's episodes went.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct EnvStats {
    /// Share of episodes solved.
    pub success: f64,
    /// Mean episode score, raw.
    pub reward: f64,
    /// Share of groups with at least one member that solved its task.
    pub pass_at_k: f64,
}

impl EnvStats {
    fn of(groups: &[&Group]) -> Self {
        let members: Vec<&Trajectory> = groups.iter().flat_map(|group| &group.members).collect();
        let scores: Vec<f64> = members.iter().map(|member| member.score()).collect();
        let passed = groups.iter().filter(|group| group.members.iter().any(Trajectory::solved)).count();
        Self {
            success: share(members.iter().filter(|member| member.solved()).count(), members.len()),
            reward: stats::mean(&scores),
            pass_at_k: share(passed, groups.len()),
        }
    }

    /// Of each environment by name; empty where all groups are of one.
    fn by_env(groups: &[Group]) -> BTreeMap<String, Self> {
        let mut by_env: BTreeMap<&str, Vec<&Group>> = BTreeMap::new();
        groups.iter().for_each(|group| by_env.entry(&group.task.env).or_default().push(group));
        let several = by_env.len() > 1;
        by_env.into_iter().filter(|_| several).map(|(env, groups)| (env.to_owned(), Self::of(&groups))).collect()
    }
}

fn share(count: usize, of: usize) -> f64 {
    if of == 0 { 0.0 } else { count as f64 / of as f64 }
}

impl RolloutStats {
    /// Measures `groups`, in (group, member, turn) order.
    #[must_use]
    pub fn of(groups: &[Group], logprob_mismatch_max: f64) -> Self {
        let members: Vec<&Trajectory> = groups.iter().flat_map(|group| &group.members).collect();
        let turns: Vec<&Turn> = members.iter().flat_map(|member| &member.turns).collect();
        let entropies: Vec<f64> = members
            .iter()
            .flat_map(|member| &member.sequences)
            .flat_map(|row| row.entropies.iter().map(|&h| f64::from(h)))
            .collect();
        let tokens: usize = members.iter().flat_map(|m| &m.sequences).map(Sequence::response_tokens).sum();
        let EnvStats { success, reward, pass_at_k } = EnvStats::of(&groups.iter().collect::<Vec<_>>());
        let spreads: Vec<f64> = groups.iter().map(|group| stats::std(&group.scores(), 1)).collect();
        Self {
            success,
            reward,
            reward_std: stats::mean(&spreads),
            turns: share(turns.len(), members.len()),
            response_tokens: share(tokens, turns.len()),
            valid: share(turns.iter().filter(|turn| turn.valid).count(), turns.len()),
            effective: share(turns.iter().filter(|turn| turn.effective).count(), turns.len()),
            pass_at_k,
            entropy: if entropies.is_empty() { 0.0 } else { stats::mean(&entropies) },
            logprob_mismatch_max,
            by_env: EnvStats::by_env(groups),
        }
    }
}
