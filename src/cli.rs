//! The command line: one verb a file, and the only place that prints results.

use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};

use clap::error::{ContextKind, ContextValue};
use clap::{Args, Parser, Subcommand};
use miette::Diagnostic;
use serde_json::{Value, json};
use thiserror::Error;

use crate::config::Diagnostics;
use crate::experiment::{Outside, foreign};
use crate::record::RunError;
use crate::stage::StageError;
use crate::sweep::SweepError;

mod agent;
mod chat;
mod compare;
mod comparison;
mod complete;
mod env;
mod eval;
mod explain;
mod export;
mod gc;
mod ls;
mod metrics;
mod output;
mod outside;
mod replay;
mod report;
mod run;
mod show;
mod subject;
mod tag;
mod sweep;
mod tokenizer;
mod verify;
mod weights;
mod why;

/// Trains and diagnoses reasoning agents by reinforcement learning, reproducibly.
#[derive(Debug, Parser)]
#[command(name = "starpo", version, after_help = EXIT_CODES)]
pub struct Cli {
    #[command(subcommand)]
    verb: Verb,
    #[command(flatten)]
    common: Common,
}

const EXIT_CODES: &str = "Exit codes: 0 done · 1 failed · 2 bad config or usage · 3 bad input file · \
                          75 running elsewhere · 130, 143 interrupted, resumable";

/// What every verb takes.
#[derive(Clone, Debug, Args)]
struct Common {
    /// Folder of run directories
    #[arg(long, global = true, default_value = "runs", value_name = "DIR")]
    runs_dir: PathBuf,
    /// Look for `configs/` and `experiments/` in DIR first; then in the current folder, in $STARPO_HOME, in the binary
    #[arg(long, global = true, value_name = "DIR")]
    config_dir: Option<PathBuf>,
    /// Print one JSON document
    #[arg(long, global = true)]
    json: bool,
    /// Print results and errors only
    #[arg(long, short, global = true)]
    quiet: bool,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Run an experiment: `starpo run sokoban top_p=0.9`. A finished one answers at once, an interrupted one goes on
    Run(run::Run),
    /// Carry out the run of a directory
    Exec(run::Exec),
    /// Run a sweep and compare its arms: `starpo sweep filters`, `starpo sweep sokoban top_p=0.9,0.5 seed=1..=5`
    Sweep(sweep::Sweep),
    /// Compare runs and sweeps: means, errors, paired differences
    Compare(compare::Compare),
    /// Show a resolved experiment: each value with its origin, the inputs, the key
    Show(show::Show),
    /// Say what a value means: type, range, default, source, and where an experiment sets it
    Explain(explain::Explain),
    /// Say what two runs differ in
    Why(why::Why),
    /// List, show and play environments
    Env(env::Env),
    /// List runs
    Ls(ls::Ls),
    /// Make a finished run again beside it, and say whether the same came out
    Verify(verify::Verify),
    /// Give a run a name of its own, which keeps it from `gc`
    Tag(tag::Tag),
    /// Take such a name away
    Untag(tag::Untag),
    /// Write a finished run into one archive: lock, metrics, episodes, and the command that makes it again
    Export(export::Export),
    /// Free what no tag, sweep or golden names: says what, and asks
    Gc(gc::Gc),
    /// A run's metrics as CSV, Parquet or TensorBoard's events
    Metrics(metrics::Metrics),
    /// Play the held-out panel with a run's weights, an experiment's warm start, or a player without weights
    Eval(eval::Eval),
    /// Talk to a model, a line a message: `starpo chat MODEL`
    Chat(chat::Chat),
    /// Write a run's weights as a Hugging Face folder
    Weights(weights::Weights),
    /// Redo the arithmetic of an update on recorded episodes
    Replay(replay::Replay),
    /// Write one HTML file about a run (curves, filter, collapse, episodes, config) or a sweep (arms, statistics)
    Report(report::Report),
    /// Print the script that completes verbs, experiments, paths and values in a shell
    Completions(complete::Completions),
    #[command(hide = true)]
    Complete(complete::Complete),
    /// Train the small tokenizer on transcripts of the experts of all environments
    Tokenizer(tokenizer::Tokenizer),
}

/// What a verb can end by.
#[derive(Debug, Error, Diagnostic)]
enum CliError {
    #[error(transparent)]
    Config(#[from] Diagnostics),

    #[error(transparent)]
    #[diagnostic(transparent)]
    Run(#[from] RunError),

    #[error(transparent)]
    #[diagnostic(transparent)]
    Stage(#[from] StageError),

    #[error(transparent)]
    #[diagnostic(transparent)]
    Sweep(#[from] SweepError),

    /// Runs of a sweep failed.
    #[error("{message}")]
    #[diagnostic(help("the same command goes on; what they printed is in {}", output.display()))]
    Failed { message: String, output: PathBuf },

    /// Some of what was asked for could not be done; `document` is what `--json` prints of the rest.
    #[error("{message}")]
    #[diagnostic(help("once that is mended, run the same command again"))]
    Partly { message: String, document: Value },

    /// A file given by the user is not what it should be.
    #[error("{0}")]
    Input(String),

    /// What was asked for cannot be done.
    #[error("{message}")]
    Usage {
        message: String,
        #[help]
        help: Option<String>,
    },

    /// The model or the device does not work out.
    #[error("{0}")]
    Agent(String),

    #[error("interrupted; the same command goes on from the last checkpoint")]
    Interrupted(i32),
}

impl CliError {
    fn usage(message: &str, help: &str) -> Self {
        Self::Usage { message: message.to_owned(), help: Some(help.to_owned()) }
    }

    fn exit_code(&self) -> u8 {
        match self {
            Self::Config(_) | Self::Usage { .. } => 2,
            Self::Run(error) | Self::Sweep(SweepError::Run(error)) => error.exit_code(),
            Self::Stage(StageError::Run(error)) => error.exit_code(),
            Self::Stage(_) | Self::Sweep(_) | Self::Agent(_) | Self::Failed { .. } | Self::Partly { .. } => 1,
            Self::Input(_) => 3,
            Self::Interrupted(signal) => crate::record::signals::exit_code(*signal),
        }
    }
}

/// The command line of this process. A mistake in it ends the process, as clap does it; an option of another program
/// with what it is here.
#[must_use]
pub fn parse() -> Cli {
    Cli::try_parse().unwrap_or_else(|mut error| {
        if let Some(ContextValue::String(option)) = error.get(ContextKind::InvalidArg)
            && let Some(answer) = foreign::answer(option)
        {
            error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![answer.into()]));
        }
        if error.use_stderr() && std::env::args_os().any(|argument| argument == "--json") {
            let text = error.render().to_string();
            let message = text.trim().trim_start_matches("error: ").to_owned();
            complain(CliError::Usage { message, help: None }, true);
            std::process::exit(error.exit_code());
        }
        error.exit()
    })
}

/// Carries out a command line; errors are on standard error when it returns.
#[must_use]
pub fn main(cli: Cli) -> ExitCode {
    let common = &cli.common;
    let result = common.check().and_then(|()| match cli.verb {
        Verb::Run(verb) => verb.run(common),
        Verb::Exec(verb) => verb.run(common),
        Verb::Sweep(verb) => verb.run(common),
        Verb::Compare(verb) => verb.run(common),
        Verb::Show(verb) => verb.run(common),
        Verb::Explain(verb) => verb.run(common),
        Verb::Why(verb) => verb.run(common),
        Verb::Env(verb) => verb.run(common),
        Verb::Ls(verb) => verb.run(common),
        Verb::Verify(verb) => verb.run(common),
        Verb::Tag(verb) => verb.run(common),
        Verb::Untag(verb) => verb.run(common),
        Verb::Export(verb) => verb.run(common),
        Verb::Gc(verb) => verb.run(common),
        Verb::Metrics(verb) => verb.run(common),
        Verb::Eval(verb) => verb.run(common),
        Verb::Chat(verb) => verb.run(common),
        Verb::Weights(verb) => verb.run(common),
        Verb::Replay(verb) => verb.run(common),
        Verb::Report(verb) => verb.run(common),
        Verb::Completions(verb) => verb.run(),
        Verb::Complete(verb) => verb.run(common),
        Verb::Tokenizer(verb) => verb.run(common),
    });
    // Where a result did not get through, a document about that would not either.
    let ended = result.map_err(|error| (error, common.json)).and_then(|()| said().map_err(|error| (error, false)));
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err((error, json)) => {
            let code = error.exit_code();
            complain(error, json);
            ExitCode::from(code)
        }
    }
}

/// Shows an error. Where that cannot be written either, the exit code is all there is.
fn complain(error: CliError, json: bool) {
    match error {
        CliError::Config(diagnostics) if json => say(&diagnostics.json().to_string()),
        CliError::Config(diagnostics) => {
            let _ = write!(io::stderr(), "{}", diagnostics.render(in_colour()));
        }
        error if json => {
            let help = error.help().map(|help| help.to_string());
            let mut document = json!({ "error": error.to_string(), "help": help });
            if let (CliError::Partly { document: Value::Object(done), .. }, Some(all)) =
                (error, document.as_object_mut())
            {
                all.extend(done);
            }
            say(&document.to_string());
        }
        error => {
            let _ = writeln!(io::stderr(), "{:?}", miette::Report::new(error));
        }
    }
}

/// Whether standard error takes colours.
fn in_colour() -> bool {
    std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Why a result could not be printed, if one could not.
static UNSAID: Mutex<Option<io::Error>> = Mutex::new(None);

/// Prints a result. A reader that has gone had enough; any other failure is that of the whole command.
fn say(text: &str) {
    let mut output = io::stdout().lock();
    if let Err(error) = writeln!(output, "{text}").and_then(|()| output.flush())
        && error.kind() != io::ErrorKind::BrokenPipe
    {
        *UNSAID.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
    }
}

/// That all that was to be printed was.
fn said() -> Result<(), CliError> {
    match UNSAID.lock().unwrap_or_else(PoisonError::into_inner).take() {
        Some(error) => Err(RunError::io("write", Path::new("standard output"))(error).into()),
        None => Ok(()),
    }
}

impl Common {
    /// What is outside: the project's files and the runs. Documents and `(file)`s are looked for in `--config-dir`, the
    /// current folder, `$STARPO_HOME`, and documents then in the binary.
    fn outside(&self) -> outside::WithRuns {
        let here = std::env::current_dir().unwrap_or_default();
        let home = std::env::var_os("STARPO_HOME").filter(|home| !home.is_empty()).map(PathBuf::from);
        let folders = self.config_dir.clone().into_iter().chain([here.clone()]).chain(home);
        outside::WithRuns { outside: Outside::of(folders.collect(), &here), runs: self.runs_dir.clone() }
    }

    /// That folders which were named are there.
    fn check(&self) -> Result<(), CliError> {
        match &self.config_dir {
            Some(folder) if !folder.is_dir() => Err(CliError::Usage {
                message: format!("--config-dir {}: there is no such folder", folder.display()),
                help: Some("it holds `configs/`, `experiments/`, or both".to_owned()),
            }),
            _ => Ok(()),
        }
    }
}
