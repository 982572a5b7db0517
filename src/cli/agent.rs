//! What plays and learns: tokenizer and policy as a config asks for them.

use std::path::Path;

use super::CliError;
use super::outside::{content, is_run};
use crate::chat::{Chat, Forced, Script};
use crate::config::{Folder, Input};
use crate::experiment::{
    AdapterConfig, CriticConfig, ExecutionConfig, ModelConfig, Outside, Resolved, ResolvedConfig, Rewrites, Tiny,
    WarmStartConfig, from_lock, to_play,
};
use crate::learners::{Critic, Learners};
use crate::policy::{
    self, Expert, Family, Learner, Memory, ModelFolder, Shape, Tokenizer, Transformer, Uniform, Voice, Weights,
};
use crate::record::{Disk, RunDir, RunError, State, checkpoint, reader};
use crate::rng::Stream;
use crate::trajectory::Split;

/// Added to the mean square in the norms of a model made here.
const NORM_EPSILON: f64 = 1e-6;

/// A model before any learning, with its tokenizer.
pub(super) struct Agent {
    pub(super) tokenizer: Tokenizer,
    pub(super) model: ModelFolder,
}

impl Agent {
    /// The model of a lock's config, whose folder must still be what it was when the run's key was made.
    pub(super) fn locked(config: &ResolvedConfig) -> Result<Self, CliError> {
        if let ModelConfig::Pretrained(pretrained) = &config.model {
            unchanged(&pretrained.path)?;
        }
        Self::new(config)
    }

    /// The model that `config` names, with the weights that its own section gives.
    pub(super) fn new(config: &ResolvedConfig) -> Result<Self, CliError> {
        // Slow environments step on rayon's own pool, which only the first call can size.
        let _ = rayon::ThreadPoolBuilder::new().num_threads(threads(config)).build_global();
        let (model, tokenizer) = match &config.model {
            ModelConfig::Tiny(tiny) => {
                let Input(text) = &tiny.tokenizer;
                let tokenizer =
                    Tokenizer::from_json(text).map_err(|error| CliError::Input(format!("model.tokenizer: {error}")))?;
                let seed = match &config.warm_start {
                    WarmStartConfig::Expert(warm) => warm.seed,
                    WarmStartConfig::None(_) => config.seed,
                };
                let weights = Weights::random(shape(tiny, &tokenizer), tiny.init_std, seed).map_err(CliError::Agent)?;
                (ModelFolder::new(weights, text.clone()), tokenizer)
            }
            ModelConfig::Pretrained(pretrained) => {
                if is_run(&pretrained.path.path) {
                    return Self::of_run(&pretrained.path.path);
                }
                let model = ModelFolder::read(&pretrained.path.path).map_err(CliError::Input)?;
                let tokenizer = model.tokenizer().map_err(CliError::Input)?;
                (model, tokenizer)
            }
        };
        let asked = config.rollout.max_context_tokens;
        match model.positions().filter(|positions| *positions < asked) {
            None => Ok(Self { tokenizer, model }),
            Some(most) => Err(CliError::Usage {
                message: format!("rollout.max-context-tokens is {asked}: more than the {most} positions of the model"),
                help: None,
            }),
        }
    }

    /// The model of a run, with its last weights.
    fn of_run(path: &Path) -> Result<Self, CliError> {
        let disk = Disk::default();
        let agent = Self::locked(&played(&RunDir::open(&disk, path))?.config)?;
        let weights = agent.checkpoint(&disk, path)?;
        Ok(Self { model: agent.model.with(weights), ..agent })
    }

    /// The chat of a run, if all is there that the run needs.
    pub(super) fn ready(&self, config: &ResolvedConfig) -> Result<Chat<'_>, CliError> {
        self.check_tokenizer(config)?;
        device(config)?;
        self.chat(config)
    }

    /// The chat over the agent's tokenizer.
    pub(super) fn chat(&self, config: &ResolvedConfig) -> Result<Chat<'_>, CliError> {
        let (template, ends) = (self.model.template(), self.model.ends());
        let (template, ends) = (template.map_err(CliError::Input)?, ends.map_err(CliError::Input)?);
        let chat = Chat::with_template(&self.tokenizer, template, ends, Forced::of(config.rollout.think));
        let chat = chat.map_err(CliError::Agent)?;
        let pinned = matches!(&config.model, ModelConfig::Pretrained(model) if model.rewrites == Rewrites::Pin);
        match chat.rewrites().filter(|_| !pinned && config.rollout.window.quotes()) {
            None => Ok(chat),
            Some(how) => Err(CliError::Usage {
                message: format!("the model's chat template changes earlier responses: {how}"),
                help: Some(
                    "model.rewrites=pin keeps them as they were sampled, which is not quite what the model was trained \
                     on; rollout.window=single-turn shows none"
                        .to_owned(),
                ),
            }),
        }
    }

    /// The policy that learns, on the config's device.
    pub(super) fn learner(&self, config: &ResolvedConfig, weights: Weights) -> Result<Transformer, CliError> {
        Ok(Transformer::new(weights, device(config)?, threads(config)).within(memory(config)))
    }

    /// The policy of a run from its start weights, with a value head if it is the critic too.
    pub(super) fn policy(&self, config: &ResolvedConfig, start: Weights) -> Result<Transformer, CliError> {
        let policy = match config.critic {
            CriticConfig::Shared(_) => self.learner(config, start.with_value_head())?,
            CriticConfig::None(_) | CriticConfig::Own(_) => self.learner(config, start)?,
        };
        Ok(match &config.adapter {
            AdapterConfig::None(_) => policy,
            AdapterConfig::Lora(lora) => policy.with_lora(lora, config.seed),
        })
    }

    /// `policy` with whom the run needs beside it, made from its start weights.
    pub(super) fn learners<'a>(
        &self,
        config: &ResolvedConfig,
        start: Weights,
        policy: &'a mut Transformer,
    ) -> Result<Learners<'a>, CliError> {
        let critic = match config.critic {
            CriticConfig::None(_) => Critic::None,
            CriticConfig::Shared(_) => Critic::Shared,
            CriticConfig::Own(_) => {
                let critic = Transformer::critic(start.clone(), device(config)?, threads(config));
                Critic::Own(Box::new(critic.within(memory(config))))
            }
        };
        let reference: Option<Box<dyn Learner>> = match config.needs_reference() {
            true => Some(Box::new(self.learner(config, start)?)),
            false => None,
        };
        Ok(Learners { policy, critic, reference })
    }

    /// Weights in the newest checkpoint of the run in the folder `run`: a finished run's last, or none.
    pub(super) fn checkpoint(&self, disk: &Disk, run: &Path) -> Result<Weights, CliError> {
        let corrupt = |what: String| RunError::Corrupt { path: run.to_owned(), what };
        let bytes = checkpoint_file(disk, run, "model.safetensors")?;
        Ok(Weights::from_safetensors(self.model.weights.shape().clone(), &bytes).map_err(corrupt)?)
    }

    /// That the tokenizer can say everything that the tasks' first prompts do.
    pub(super) fn check_tokenizer(&self, config: &ResolvedConfig) -> Result<(), CliError> {
        let script = config.rollout.script();
        for task in config.task.iter().chain(&config.eval.task) {
            let episode = task.env.start(Split::Train, 0, Stream::new("tokenizer", 0, &[]));
            let prompt = script.rules(&task.env.instruction()) + &script.turn(&episode.observe(), 1, None);
            if !self.tokenizer.covers(&prompt) {
                let name = task.env.name();
                return Err(CliError::usage(
                    &format!("the tokenizer loses part of what {name} shows: {prompt:?}"),
                    "take a tokenizer that covers it, or other words in the prompt",
                ));
            }
        }
        Ok(())
    }
}

/// A file of the newest checkpoint of the run in the folder `run`: a finished run's last, or none.
pub(super) fn checkpoint_file(disk: &Disk, run: &Path, name: &str) -> Result<Vec<u8>, CliError> {
    let corrupt = |what: String| RunError::Corrupt { path: run.to_owned(), what };
    let found = checkpoint::latest(disk, run)?;
    let summary = reader::summary(disk, run)?;
    if found.checkpoint.is_none() && found.warnings.is_empty() && summary.state != State::Done {
        let (begun, does) = match &summary.state {
            State::New => ("not begun".to_owned(), "begins it"),
            state => (format!("{}, step {}", state.name(), summary.step), "goes on with it"),
        };
        return Err(CliError::Usage {
            message: format!("{} has no checkpoint with weights yet: it is {begun}", summary.name),
            help: Some(format!("starpo exec {} {does}", summary.name)),
        });
    }
    if !disk.exists(&run.join("checkpoints"))? && !summary.name.starts_with("warm-") {
        let message = format!("the weights of {} are not here: an archive is without them", summary.name);
        let help = "where its README has a command, that with --fresh makes the run again, weights too";
        return Err(CliError::usage(&message, help));
    }
    let newest = found.checkpoint.ok_or_else(|| corrupt("it has no checkpoint with weights".into()))?;
    // Another checkpoint than the one asked for would be other numbers under the same name.
    if let Some(warning) = found.warnings.into_iter().next() {
        return Err(corrupt(warning).into());
    }
    if summary.state == State::Done && newest.step != summary.step {
        return Err(corrupt(format!("the checkpoint of its last step, {}, is missing", summary.step)).into());
    }
    let file = newest.files.into_iter().find(|(found, _)| found == name);
    Ok(file.ok_or_else(|| corrupt(format!("its checkpoint has no {name}")))?.1)
}

/// That a folder is still what the run's key was made from.
pub(super) fn unchanged(folder: &Folder) -> Result<(), CliError> {
    let path = folder.path.display().to_string();
    let here = Outside::new(Path::new("."));
    let found = content(&here, &path).map_err(|error| CliError::Input(format!("{path}: {error}")))?;
    if found == folder.digest {
        return Ok(());
    }
    Err(CliError::Input(format!("{path} has changed since the run was named: {} then, {found} now", folder.digest)))
}

fn shape(tiny: &Tiny, tokenizer: &Tokenizer) -> Shape {
    let Tiny { width, layers, heads, kv_heads, ffn, rope_theta, .. } = *tiny;
    Shape {
        family: Family::Llama,
        vocab: tokenizer.vocab(),
        width,
        layers,
        heads,
        kv_heads,
        head_dim: width / heads,
        ffn,
        rope_theta,
        norm_eps: NORM_EPSILON,
        tied: true,
    }
}

/// The device that a config asks for.
pub(super) fn device(config: &ResolvedConfig) -> Result<policy::Device, CliError> {
    let device = policy::device(&config.execution.device);
    device.map_err(|message| CliError::Usage { message, help: None })
}

/// The threads that a config asks for: all cores if it does not say.
pub(super) fn threads(config: &ResolvedConfig) -> usize {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    config.execution.threads.unwrap_or(cores)
}

/// The memory that a config allows.
fn memory(config: &ResolvedConfig) -> Memory {
    let bytes = |mib: usize| mib << 20;
    let ExecutionConfig { activation_mib, cache_mib, .. } = config.execution;
    Memory { activations: bytes(activation_mib), cache: cache_mib.map_or(usize::MAX, bytes) }
}

/// The expert, speaking through `chat`.
pub(super) fn expert<'a>(chat: &'a Chat<'a>) -> Expert<'a> {
    Expert::new(voice(chat))
}

/// A player of uniform legal actions, speaking through `chat`.
pub(super) fn uniform<'a>(chat: &'a Chat<'a>, script: &'a Script) -> Uniform<'a> {
    let render = |thought: &str, actions: &[String]| {
        script.reply(thought, &actions.iter().map(String::as_str).collect::<Vec<_>>())
    };
    Uniform::new(voice(chat), render)
}

fn voice<'a>(chat: &'a Chat<'a>) -> Voice<'a> {
    Voice::new(|text: &str| chat.continuation(text), chat.end())
}

/// The run that a directory holds, for whoever only has its model play.
pub(super) fn played(run: &RunDir) -> Result<Resolved, CliError> {
    Ok(to_play(&run.lock()?)?)
}

/// The run that a directory holds.
pub(super) fn locked(run: &RunDir) -> Result<Resolved, CliError> {
    Ok(from_lock(&run.lock()?)?)
}
