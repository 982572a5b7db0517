//! `starpo chat`: talk to a model, a line a message.

use std::io::{BufRead, IsTerminal, Write};
use std::num::NonZeroUsize;
use std::path::Path;

use clap::Args;
use serde_json::{Value, json};

use super::agent::{device, threads};
use super::run::tell;
use super::subject::Subject;
use super::{CliError, Common, say};
use crate::chat::{self, Forced};
use crate::policy::{self, Device, ModelFolder, Policy, Request, Sampling, Session, Transformer};
use crate::rng::Stream;

/// Tokens sampled between looks at what there is to print.
const CHUNK: usize = 8;

/// A model, and how it is drawn from.
#[derive(Clone, Debug, Args)]
pub(super) struct Chat {
    /// A Hugging Face folder; or an experiment; or a run's directory, or a unique prefix of its name or id
    model: String,
    /// `path=value`, for an experiment
    overrides: Vec<String>,
    /// The system message; the template's own by default
    #[arg(long, value_name = "TEXT")]
    system: Option<String>,
    /// Divides the logits; 0 takes the most probable token
    #[arg(long, default_value_t = 0.7, value_parser = |text: &str| within(text, 0.0, 100.0))]
    temperature: f64,
    /// Only the most probable tokens that reach this mass
    #[arg(long, default_value_t = 0.95, value_parser = |text: &str| within(text, 0.0, 1.0))]
    top_p: f64,
    /// Tokens of a response at most
    #[arg(long, default_value = "512", value_name = "N")]
    max_tokens: NonZeroUsize,
    /// Moves the draws
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// A number of a range, ends included, which `rollout.sampling` has too.
fn within(text: &str, least: f64, most: f64) -> Result<f64, String> {
    let number = text.parse().ok().filter(|number| (least..=most).contains(number));
    number.ok_or_else(|| format!("it is no number between {least} and {most}"))
}

impl Chat {
    pub(super) fn run(self, common: &Common) -> Result<(), CliError> {
        let (model, device, threads) = self.load(common)?;
        let tokenizer = model.tokenizer().map_err(CliError::Input)?;
        let (template, ends) = (model.template().map_err(CliError::Input)?, model.ends().map_err(CliError::Input)?);
        let chat = chat::Chat::with_template(&tokenizer, template, ends, Forced::Nothing).map_err(CliError::Agent)?;
        let positions = model.positions().unwrap_or(usize::MAX);
        let policy = Transformer::new(model.weights, device, threads);
        let sampling = Sampling { temperature: self.temperature, top_k: None, top_p: self.top_p, stop: chat.ends() };
        let mut session = policy.open(&sampling, 1);
        let mut tokens = match &self.system {
            Some(text) => chat.system(text),
            None => chat.opening().map_err(CliError::Agent)?,
        };
        let mut turns = Vec::new();
        for number in 0.. {
            let Some(message) = ask(common)? else { break };
            tokens.extend(chat.user(&message));
            let room = positions.saturating_sub(tokens.len());
            if room == 0 {
                tell(common, &format!("the conversation has reached the {positions} positions of the model"));
                break;
            }
            let start = tokens.len();
            self.respond(session.as_mut(), &chat, &mut tokens, room.min(self.max_tokens.get()), number, common);
            let response = &tokens[start..];
            let ended = response.last().is_some_and(|last| chat.ends().contains(last));
            turns.push(
                json!({ "user": message, "response": chat.text(response), "tokens": response.len(), "ended": ended }),
            );
            let close = chat.close(response).to_vec();
            tokens.extend(close);
        }
        if common.json {
            say(&Value::Array(turns).to_string());
        }
        Ok(())
    }

    /// The model with its device and threads: a folder's is on one of the CPU.
    fn load(&self, common: &Common) -> Result<(ModelFolder, Device, usize), CliError> {
        let folder = Path::new(&self.model);
        if folder.join("config.json").exists() {
            if let Some(first) = self.overrides.first() {
                return Err(CliError::usage(
                    &format!("`{first}` changes nothing: {} is a model folder", self.model),
                    "overrides go with an experiment's name",
                ));
            }
            let device = policy::device("cpu").map_err(CliError::Agent)?;
            return Ok((ModelFolder::read(folder).map_err(CliError::Input)?, device, 1));
        }
        let subject = Subject::find(&self.model, &self.overrides, common)?;
        let config = &subject.resolved.config;
        let sampling = subject.resolved.typed().into_iter().find(|path| path.starts_with("rollout.sampling."));
        if let Some(path) = sampling {
            return Err(CliError::usage(
                &format!("`{path}` changes nothing in a chat"),
                "--temperature and --top-p say how it is drawn",
            ));
        }
        let agent = subject.agent()?;
        let weights = subject.weights(&agent, common)?;
        Ok((agent.model.with(weights), device(config)?, threads(config)))
    }

    /// Appends a response, and prints it as it comes.
    fn respond(
        &self,
        session: &mut dyn Session,
        chat: &chat::Chat<'_>,
        tokens: &mut Vec<u32>,
        limit: usize,
        number: u64,
        common: &Common,
    ) {
        let (start, mut shown) = (tokens.len(), 0);
        for chunk in 0.. {
            let request = Request {
                episode: 0,
                prompt: tokens,
                draws: Stream::new("chat", self.seed, &[number, chunk]),
                limit: CHUNK.min(start + limit - tokens.len()),
                legal: &[],
                advice: None,
            };
            let completion = session.generate(&[request]).remove(0);
            tokens.extend(completion.tokens);
            let ended = tokens.last().is_some_and(|last| chat.ends().contains(last)) || tokens.len() == start + limit;
            let text = chat.text(&tokens[start..]);
            // A character may be in the making.
            if (ended || !text.ends_with(char::REPLACEMENT_CHARACTER)) && !common.json {
                let mut out = std::io::stdout().lock();
                let _ = out.write_all(&text.as_bytes()[shown..]).and_then(|()| out.flush());
                shown = text.len();
            }
            if ended {
                break;
            }
        }
        if !common.json {
            say("");
        }
    }
}

/// The next line of standard input; None at its end.
pub(super) fn ask(common: &Common) -> Result<Option<String>, CliError> {
    let input = std::io::stdin();
    if input.is_terminal() && !common.quiet {
        let mut out = std::io::stderr().lock();
        let _ = write!(out, "> ").and_then(|()| out.flush());
    }
    let mut line = String::new();
    let read = input.lock().read_line(&mut line);
    let read = read.map_err(|error| CliError::Input(format!("standard input: {error}")))?;
    Ok((read > 0).then(|| line.trim_end_matches(['\r', '\n']).to_owned()))
}
