//! `starpo run` and `starpo exec`: train, from wherever the run stands.

use std::io::Write;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};

use super::agent::{Agent, device, expert, locked, threads};
use super::show::documents;
use super::{CliError, Common, in_colour, say};
use crate::chat::Chat;
use crate::experiment::{self, Resolved, RunId, WarmStartConfig};
use crate::policy::{Optimizer, Weights};
use crate::record::{Begun, Disk, Facts, Progress, RunDir, RunError, State, digest, log, reader, signals, sinks};
use crate::stage::{Ended, catch_up, drive};
use crate::train::Training;
use crate::warm_start::{self, WarmStart};

/// How long to wait between looks at a warm start that another process makes.
const PATIENCE: Duration = Duration::from_millis(500);

/// An experiment and how it differs from its file.
#[derive(Clone, Debug, Args)]
pub(super) struct Run {
    /// A name in `experiments/`, or a path to a `.kdl` file
    experiment: String,
    /// `path=value`, `list+=value` or `@overlay.kdl`; short names and aliases will do
    overrides: Vec<String>,
    /// Start from the last weights of a finished run: short for `model=pretrained "model.path=(run)RUN"`, and for
    /// `warm-start=none` unless a warm start is asked for
    #[arg(long, value_name = "RUN")]
    from: Option<String>,
    /// Move what is there of this run aside, and start anew
    #[arg(long)]
    fresh: bool,
    /// Say what the run would be and what would happen, and do nothing
    #[arg(long)]
    dry_run: bool,
}

/// A run directory.
#[derive(Clone, Debug, Args)]
pub(super) struct Exec {
    /// A run's directory, a tag, or any unique prefix of its name or id
    run: String,
    /// Worker threads, whatever the run says: no number depends on them
    #[arg(long)]
    threads: Option<NonZeroUsize>,
}

impl Run {
    pub(super) fn run(self, common: &Common) -> Result<(), CliError> {
        let outside = common.outside();
        let resolved = experiment::resolve_with(&self.experiment, &self.overrides(), &outside)?;
        let (disk, name) = (Disk::default(), resolved.id().to_string());
        if self.dry_run {
            warn(common, &resolved);
            return self.foretell(&disk, &resolved, &documents(&resolved, &outside.outside), common);
        }
        // What cannot work leaves no directory, and moves none aside.
        let agent = Agent::new(&resolved.config)?;
        let chat = agent.ready(&resolved.config)?;
        if self.fresh
            && let Some(place) = RunDir::set_aside(&disk, &common.runs_dir, &name)?
        {
            tell(common, &format!("moved aside to {}", place.display()));
        }
        for short in &resolved.short_names {
            tell(common, &short.to_string());
        }
        let run = RunDir::open_or_create(&disk, &common.runs_dir, &name, &resolved.lock(), &resolved.canon)?;
        let how = carry_out(&disk, &run, &resolved, &agent, &chat, self.fresh, common)?;
        result(&disk, &run, &resolved, common, how)
    }

    /// The overrides, after those that `--from` is short for.
    fn overrides(&self) -> Vec<String> {
        let asked = |typed: &String| typed.replace('_', "-").starts_with("warm-start");
        let from = self.from.iter().flat_map(|run| {
            let model = ["model=pretrained".to_owned(), format!("model.path=(run){run}")];
            let cold = (!self.overrides.iter().any(asked)).then(|| "warm-start=none".to_owned());
            model.into_iter().chain(cold)
        });
        from.chain(self.overrides.iter().cloned()).collect()
    }

    /// What `run` would do, from what lies in the runs folder.
    fn foretell(&self, disk: &Disk, run: &Resolved, documents: &str, common: &Common) -> Result<(), CliError> {
        Agent::new(&run.config)?;
        let stands = |id: &RunId| {
            let path = common.runs_dir.join(id.to_string());
            disk.exists(&path)?.then(|| reader::summary(disk, &path)).transpose()
        };
        let would = match stands(&run.id())? {
            None => "start anew".to_owned(),
            Some(there) if there.state == State::Running => "find it running elsewhere".to_owned(),
            Some(_) if self.fresh => "move aside what is there, and start anew".to_owned(),
            Some(there) if there.state == State::Done => format!("answer at once: it is done, step {}", there.step),
            Some(there) => format!("go on: it is {}, step {}", there.state.name(), there.step),
        };
        let warm = match run.warm_start() {
            None => None,
            Some((_, id)) => {
                let state = stands(&id)?.map_or("to be made", |there| there.state.name());
                Some((id.to_string(), state))
            }
        };
        let directory = common.runs_dir.join(run.id().to_string());
        if common.json {
            let mut document = run.show_json();
            document["directory"] = json!(directory);
            document["would"] = json!(would);
            document["warm_start"] = json!(warm.map(|(id, state)| json!({"id": id, "state": state})));
            say(&document.to_string());
            return Ok(());
        }
        say(&format!("{}{}", run.show(), documents.trim_end()));
        if let Some((id, state)) = warm {
            say(&format!("warm start {id}: {state}"));
        }
        say(&format!("directory  {}\nwould      {would}", directory.display()));
        Ok(())
    }
}

impl Exec {
    pub(super) fn run(self, common: &Common) -> Result<(), CliError> {
        let disk = Disk::default();
        let run = RunDir::open(&disk, &reader::find(&disk, &common.runs_dir, &self.run)?);
        let mut resolved = locked(&run)?;
        resolved.config.execution.threads = self.threads.map(NonZeroUsize::get).or(resolved.config.execution.threads);
        let agent = Agent::locked(&resolved.config)?;
        if resolved.id().to_string() == run.name() {
            let how = carry_out(&disk, &run, &resolved, &agent, &agent.ready(&resolved.config)?, false, common)?;
            return result(&disk, &run, &resolved, common, how);
        }
        // A warm start's lock is that of the run which asked for it first.
        match resolved.warm_start() {
            Some((_, id)) if id.to_string() == run.name() => {
                make_warm_start(&disk, &run, &id, &resolved, &agent, common)
            }
            _ => Err(CliError::Usage {
                message: format!("{} has been renamed from {}", run.name(), resolved.id()),
                help: Some("rename it back: a run's directory is found by its name".to_owned()),
            }),
        }
    }
}

/// Takes a run from where it stands to its end: how it came there. A `fresh` one takes nothing from a shorter one.
pub(super) fn carry_out(
    disk: &Disk,
    run: &RunDir,
    resolved: &Resolved,
    agent: &Agent,
    chat: &Chat<'_>,
    fresh: bool,
    common: &Common,
) -> Result<&'static str, CliError> {
    tell(common, &format!("run {}  key {}  {}", resolved.id(), resolved.key, run.path().display()));
    let config = &resolved.config;
    if config.logging.parquet && run.status()?.state != State::Done {
        sinks::parquet::check().map_err(|what| CliError::usage(what, "or go on with logging.parquet=false"))?;
    }
    let Some(mut begun) = run.begin(&facts(resolved))? else {
        let what = digest::differs(disk, run.path(), &reader::finished(disk, run.path())?.digest)?;
        if let Some(what) = what {
            return Err(RunError::Corrupt { path: run.path().to_owned(), what }.into());
        }
        catch_up(disk, run.path(), &config.logging)?;
        return Ok("finished before");
    };
    if !fresh && let Some((shorter, step)) = begun.prolong()? {
        tell(common, &format!("the first {step} steps are those of {shorter}"));
    }
    begun.warnings.extend(resolved.warnings().iter().map(|warning| warning.render(false).trim().to_owned()));
    log_to(disk, run, resolved)?;
    catch_signals()?;
    let weights = match begun.checkpoint {
        // The checkpoint has the weights of then, and nothing else needs those of the start.
        Some(_) if !config.needs_start() => agent.model.weights.clone(),
        _ => match warm_start(disk, resolved, agent, common) {
            Ok(weights) => weights,
            Err(CliError::Interrupted(signal)) => {
                begun.attempt.interrupt(&format!("signal {signal}"))?;
                return Err(CliError::Interrupted(signal));
            }
            Err(error) => {
                begun.attempt.fail(&error.to_string())?;
                return Err(error);
            }
        },
    };
    log_to(disk, run, resolved)?;
    let mut policy = agent.policy(config, weights.clone())?;
    let learners = agent.learners(config, weights, &mut policy)?;
    let mut training = Training::new(config, chat, learners);
    let progress = progress(&resolved.name, &begun, config.train.steps, common);
    let ended = drive(&mut training, begun, &config.execution, &config.logging, &progress);
    progress.finish();
    match ended? {
        Ended::Done { .. } => Ok("finished"),
        Ended::Interrupted(signal) => Err(CliError::Interrupted(signal)),
    }
}

/// The weights that a run starts from: those of its warm start, made here if nobody has.
pub(super) fn warm_start(
    disk: &Disk,
    resolved: &Resolved,
    agent: &Agent,
    common: &Common,
) -> Result<Weights, CliError> {
    let Some((canon, id)) = resolved.warm_start() else { return Ok(agent.model.weights.clone()) };
    let run = RunDir::open_or_create(disk, &common.runs_dir, &id.to_string(), &resolved.lock(), &canon)?;
    make_warm_start(disk, &run, &id, resolved, agent, common)?;
    agent.checkpoint(disk, run.path())
}

/// Makes the warm start of a directory, if nobody has; whoever is at it is waited for.
pub(super) fn make_warm_start(
    disk: &Disk,
    run: &RunDir,
    id: &RunId,
    resolved: &Resolved,
    agent: &Agent,
    common: &Common,
) -> Result<(), CliError> {
    let WarmStartConfig::Expert(warm) = &resolved.config.warm_start else { return Ok(()) };
    device(&resolved.config)?;
    let Some(begun) = wait_for(run, id, resolved, common)? else { return Ok(()) };
    tell(common, &format!("warm start {id}  {}", run.path().display()));
    log_to(disk, run, resolved)?;
    catch_signals()?;
    let chat = agent.chat(&resolved.config)?;
    let mut learner = agent.learner(&resolved.config, agent.model.weights.clone())?;
    let progress = progress("warm start", &begun, warm.steps, common);
    let episodes = warm_start::episodes(&resolved.config, warm, &chat, &expert(&chat));
    let mut stage = WarmStart {
        warm,
        optimizer: optimizer(resolved),
        stop: chat.end(),
        rows: episodes.into_iter().flat_map(|episode| episode.sequences).collect(),
        learner: &mut learner,
    };
    let ended = drive(&mut stage, begun, &resolved.config.execution, &resolved.config.logging, &progress);
    progress.finish();
    match ended? {
        Ended::Done { .. } => Ok(()),
        Ended::Interrupted(signal) => Err(CliError::Interrupted(signal)),
    }
}

/// Begins the warm start, or waits until the process that makes it is done (None) or gone.
fn wait_for(run: &RunDir, id: &RunId, resolved: &Resolved, common: &Common) -> Result<Option<Begun>, CliError> {
    let mut told = false;
    loop {
        match run.begin(&facts(resolved)) {
            Err(RunError::RunningElsewhere { host, pid, .. }) => {
                if !told {
                    tell(common, &format!("waits for warm start {id}, which process {pid} on {host} makes"));
                    told = true;
                }
                if let Some(signal) = signals::interrupted() {
                    return Err(CliError::Interrupted(signal));
                }
                std::thread::sleep(PATIENCE);
            }
            begun => return Ok(begun?),
        }
    }
}

fn optimizer(resolved: &Resolved) -> Optimizer {
    let update = &resolved.config.update;
    Optimizer {
        learning_rate: 0.0,
        beta1: update.beta1,
        beta2: update.beta2,
        epsilon: update.epsilon,
        weight_decay: update.weight_decay,
        clip_norm: update.clip_norm,
    }
}

fn facts(resolved: &Resolved) -> Facts {
    Facts {
        command: std::env::args().collect::<Vec<_>>().join(" "),
        device: resolved.config.execution.device.clone(),
        threads: threads(&resolved.config),
    }
}

fn progress(name: &str, begun: &Begun, steps: usize, common: &Common) -> Progress {
    let done = begun.checkpoint.as_ref().map_or(0, |checkpoint| checkpoint.step);
    Progress::new(name, done, steps, common.quiet || common.json)
}

fn log_to(disk: &Disk, run: &RunDir, resolved: &Resolved) -> Result<(), CliError> {
    Ok(log::log_to(disk, run.path(), &resolved.config.execution.log)?)
}

pub(super) fn catch_signals() -> Result<(), CliError> {
    signals::catch().map_err(|error| CliError::Agent(format!("cannot catch signals: {error}")))
}

/// What a finished run came to.
fn result(disk: &Disk, run: &RunDir, resolved: &Resolved, common: &Common, how: &str) -> Result<(), CliError> {
    let metrics = reader::metrics(disk, run.path())?;
    let reader::RunResult { step, digest, stop, best } = reader::finished(disk, run.path())?;
    let evals: Vec<&Value> = metrics.iter().filter(|line| line["eval"].is_object()).collect();
    if common.json {
        say(&json!({
            "run": resolved.id().to_string(), "key": resolved.key.to_string(), "directory": run.path(),
            "digest": digest, "stop": stop, "best": best, "first": evals.first(), "last": metrics.last(),
        })
        .to_string());
        return Ok(());
    }
    say(&format!("{how}: {} step {step}", resolved.id()));
    if let Some(reason) = stop {
        say(&format!("stopped    {reason}"));
    }
    if let (Some(first), Some(last)) = (evals.first(), evals.last()) {
        say(&success("before", first));
        say(&success("after", last));
    }
    if let Some(line) = evals.iter().find(|line| line["step"].as_u64() == best) {
        say(&success("best", line));
    }
    say(&format!("key        {}", resolved.key));
    say(&format!("digest     {digest}"));
    say(&format!("directory  {}", directory(run.path()).display()));
    Ok(())
}

fn success(when: &str, line: &Value) -> String {
    let share = |value: &Value| 100.0 * value.as_f64().unwrap_or(f64::NAN);
    let eval = &line["eval"];
    format!(
        "{when:<10} success {:.1} % ± {:.1} sampled, {:.1} % ± {:.1} greedy (step {})",
        share(&eval["success"]),
        share(&eval["success_error"]),
        share(&eval["greedy"]["success"]),
        share(&eval["greedy"]["success_error"]),
        line["step"],
    )
}

fn directory(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// Something to know on the way: on standard error, unless `--quiet` or `--json`.
pub(super) fn tell(common: &Common, text: &str) {
    if !common.quiet && !common.json {
        // A closed standard error ends nothing.
        let _ = writeln!(std::io::stderr().lock(), "{text}");
    }
}

/// What hardly anyone wants, as [`tell`].
pub(super) fn warn(common: &Common, resolved: &Resolved) {
    for warning in resolved.warnings() {
        tell(common, warning.render(in_colour()).trim_end());
    }
}
