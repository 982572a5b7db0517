//! The sections of an experiment: every value that shapes a run, nothing left to default.
//!
//! [`resolve`] turns a name and overrides into a [`Resolved`]: the typed [`ResolvedConfig`], the tree of values with
//! their origins, the canonical text, and the [`Key`] that names the run. [`Resolved::lock`] writes all of it down and
//! [`from_lock`] makes the same value again from that text alone; [`Resolved::show`] is for people. [`resolve_rules`]
//! is what `replay` goes by without an experiment. [`Resolved::warm_start`] is the identity of the warm start alone.
//!
//! This module reads the files that a config names ([`Outside`]), so that features are handed text; `root` is a folder
//! that holds `configs/` and `experiments/`. Documents that are not there are the binary's own. Mistakes come back as
//! [`Diagnostics`](crate::config::Diagnostics): all of them, rendered by the caller.

mod cells;
mod critic;
mod differences;
mod embedded;
mod explain;
pub mod foreign;
mod gradients;
mod identity;
mod lock;
mod outside;
mod parquet;
mod resolve;
mod rules;
mod task;
mod units;

pub use cells::{CellRun, Cells, sweep, sweep_exists, unknown_sweep};
pub use critic::{CriticConfig, NoCritic, OwnCritic, SharedCritic};
pub use differences::{Difference, differences};
pub use embedded::FILES as EMBEDDED;
pub use explain::explain;
pub use gradients::{Buckets, Edges, GradientsConfig, Quantiles};
pub use identity::{COMPONENTS, Key, RunId};
pub use lock::{arguments, check_lock, from_lock, read_lock, to_play, to_show};
pub use outside::{Home, Outside};
pub use resolve::{Resolved, exists, resolve, resolve_rules, resolve_with};
pub use task::{resolve_task, task_names};
pub use units::unit;

use crate::advantage::AdvantageConfig;
use crate::chat::{Mask, WindowConfig};
use crate::config::{Decode, Field, Folder, Input, Kind, Section, Value, choice, section, variants};
use crate::diagnose::CollapseConfig;
use crate::env::EnvConfig;
use crate::filter::FilterConfig;
use crate::objective::ObjectiveConfig;
use crate::reward::RewardConfig;
use crate::schedule::ScheduleConfig;
use crate::stop::StopConfig;

/// The description of a whole experiment.
pub const FIELDS: &[Field] = ResolvedConfig::FIELDS;

section! {
    /// A run: model, tasks, and how the one learns from the other.
    pub struct ResolvedConfig {
        /// Moves sampling and dynamics, never tasks.
        pub seed: u64,
        /// The arithmetic promised: equal bytes within one profile.
        pub numerics: Numerics,
        /// The policy.
        pub model: ModelConfig,
        /// Supervised learning before the first step: a run of its own, shared by all who ask for the same.
        pub warm_start: WarmStartConfig,
        /// Which parameters learn.
        pub adapter: AdapterConfig as "none",
        /// What is trained on: a mixture of environments.
        pub task: Vec<TaskConfig>,
        /// How episodes are played.
        pub rollout: RolloutConfig,
        /// What thoughts tell of their prompts.
        pub collapse: CollapseConfig,
        /// Which groups the update sees.
        pub filter: FilterConfig,
        /// What is credited.
        pub reward: RewardConfig,
        /// How it is credited.
        pub advantage: AdvantageConfig,
        /// The loss.
        pub objective: ObjectiveConfig,
        /// What foresees returns.
        pub critic: CriticConfig,
        /// The optimizer.
        pub update: UpdateConfig,
        /// The length of the run.
        pub train: TrainConfig,
        /// Gradient norms by reward spread, on the side.
        pub gradients: GradientsConfig,
        /// The held-out panel.
        pub eval: EvalConfig,
        /// What ends the run before its last step.
        pub stop: Vec<StopConfig>,
        /// Where and how the run is carried out.
        (local) pub execution: ExecutionConfig,
        /// What else the run's records are written as.
        (local) pub logging: LoggingConfig,
    }
}

impl ResolvedConfig {
    /// Whether a run needs the weights that it started from even to go on.
    #[must_use]
    pub fn needs_start(&self) -> bool {
        self.needs_reference() || matches!(self.adapter, AdapterConfig::Lora(_))
    }

    /// Whether the frozen start model scores the kept rows.
    #[must_use]
    pub fn needs_reference(&self) -> bool {
        self.objective.kl.coef > 0.0 || self.reward.needs_reference()
    }
}

choice! {
    /// A numerics profile.
    pub enum Numerics {
        /// 32-bit floats on the CPU.
        "cpu-f32" => CpuF32,
        /// 32-bit floats on a GPU.
        "gpu-f32" => GpuF32,
    }
}

variants! {
    /// Where the policy comes from.
    pub enum ModelConfig: "model" {
        "tiny" => Tiny(Tiny),
        "pretrained" => Pretrained(Pretrained),
    }
}

section! {
    /// A small decoder made here, with random weights: Llama's layout, tied head.
    pub struct Tiny epoch 1 {
        /// Size of the residual stream.
        pub width: usize where 8..=4096,
        /// Number of layers.
        pub layers: usize where 1..=64,
        /// Query heads; divides `width`.
        pub heads: usize where 1..=64,
        /// Key and value heads; divides `heads`.
        pub kv_heads: usize where 1..=64,
        /// Hidden size of the feed-forward block.
        pub ffn: usize where 8..=16384,
        /// Base of the rotary position embedding.
        pub rope_theta: f64 where 1.0..=1e9,
        /// Deviation of the initial weights.
        pub init_std: f64 where 0.0..=1.0,
        /// The tokenizer, as a `tokenizer.json`.
        pub tokenizer: Input,
    }
}

section! {
    /// A Hugging Face folder: `config.json`, safetensors, `tokenizer.json`, and a chat template.
    pub struct Pretrained epoch 1 {
        /// The folder; or by `(run)` a finished run, named as everywhere, which gives its last weights and tokenizer.
        pub path: Folder,
        /// What to do if the chat template would change earlier responses, as some leave out old thoughts.
        pub rewrites: Rewrites,
    }
}

choice! {
    /// What to do about a chat template that changes earlier responses.
    pub enum Rewrites {
        /// Do not run, unless the window shows no earlier responses.
        "refuse" => Refuse,
        /// Keep responses as they were sampled.
        "pin" => Pin,
    }
}

variants! {
    /// Supervised learning before reinforcement learning.
    pub enum WarmStartConfig: "warm-start" {
        "none" => None(NoWarmStart),
        "expert" => Expert(ExpertWarmStart),
    }
}

section! {
    /// The policy starts as it is.
    pub struct NoWarmStart {}
}

section! {
    /// Next-token learning on the responses of the environment's own expert, on training tasks.
    pub struct ExpertWarmStart epoch 1 {
        /// Its own seed, so that runs of different seeds share it.
        pub seed: u64,
        /// Number of expert episodes, from training task 0 on.
        pub episodes: usize where 1..=1000000,
        /// Optimizer steps.
        pub steps: usize where 0..=1000000,
        /// Rows a step: episodes, or under a window of turns, turns.
        pub batch: usize where 1..=65536,
        /// Peak learning rate; falls along a cosine to a tenth.
        pub learning_rate: f64 where 0.0..=1.0,
        /// Share of turns in which the expert tries a random legal action instead, and says so in its thought.
        pub noise: f64 where 0.0..=1.0,
    }
}

variants! {
    /// Which of the policy's parameters learn after the warm start.
    pub enum AdapterConfig: "adapter" {
        "none" => None(NoAdapter),
        "lora" => Lora(LoraConfig),
    }
}

section! {
    /// All of them.
    pub struct NoAdapter {}
}

section! {
    /// Low-rank changes of some projections (Hu et al. 2021, arXiv:2106.09685).
    pub struct LoraConfig epoch 1 {
        /// Rank of a change.
        pub rank: usize where 1..=1024,
        /// A change is scaled by alpha / rank.
        pub alpha: f64 where 0.0..=65536.0,
        /// The projections that change, in every layer.
        pub targets: Vec<Projection>,
    }
}

choice! {
    /// A projection of a layer, by Hugging Face's name.
    pub enum Projection {
        "q_proj" => Query,
        "k_proj" => Key,
        "v_proj" => Value,
        "o_proj" => Output,
        "gate_proj" => Gate,
        "up_proj" => Up,
        "down_proj" => Down,
    }
}

/// An environment and its share of the groups.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskConfig {
    pub env: EnvConfig,
    /// Weight in the mixture: of every Σ shares groups, this many.
    pub share: usize,
}

section! {
    /// The fields of every task node, whatever its environment.
    pub struct TaskCommon {
        /// Weight in the mixture: of every Σ shares groups, this many.
        pub share: usize where 1..=1000000,
    }
}

impl Decode for TaskConfig {
    const KIND: Kind = match EnvConfig::KIND {
        Kind::Variant { family, alternatives, .. } => {
            Kind::Variant { family, alternatives, common: TaskCommon::FIELDS }
        }
        _ => unreachable!(),
    };

    fn decode(value: &Value) -> Self {
        let Value::Variant { fields, .. } = value else { unreachable!("resolution left {value:?} for a task") };
        Self { env: EnvConfig::decode(value), share: TaskCommon::decode_fields(fields).share }
    }
}

section! {
    /// How episodes are played.
    pub struct RolloutConfig epoch 1 {
        /// Groups (tasks) a step.
        pub groups: usize where 1..=65536,
        /// Episodes of each group.
        pub group_size: usize where 1..=65536,
        /// First training task; step s begins at offset + (s − 1)·groups·rounds: 1, or 1 + `filter.empty.tries`.
        pub task_offset: u64 where 0..=1e15,
        /// Turns of an episode.
        pub max_turns: usize where 1..=10000,
        /// Executed actions of an episode.
        pub max_actions: usize where 1..=100000,
        /// Actions taken from one answer; more are cut without penalty.
        pub max_actions_per_turn: usize where 1..=1000,
        /// Sampled tokens of one response, its end token included.
        pub max_response_tokens: usize where 1..=65536,
        /// Tokens of a row, prompts included. A full episode that would exceed it ends; other windows leave out turns.
        pub max_context_tokens: usize where 16..=1000000,
        /// Which history a prompt shows.
        pub window: WindowConfig,
        /// Which tokens are learned from.
        pub mask: Mask,
        /// The system message's first line; empty, it has none.
        pub system: Input,
        /// The rules; the environment's own by default.
        pub instruction: Option<Input>,
        /// The sentence that ends each user message and says how to answer.
        pub format: Option<Input>,
        /// Whether a thought comes before the answer.
        pub think: bool,
        /// Stands between the actions of an answer.
        pub action_separator: String,
        /// Whether a turn's reward is shown with the next observation.
        pub show_reward: bool,
        /// Added once to a turn whose answer has no legal action, or an illegal one.
        pub format_penalty: f64 where -1000.0..=0.0,
        /// How tokens are drawn.
        pub sampling: SamplingConfig,
        /// Rows checked each step: their recorded log-probs against an uncached forward pass of the whole row.
        pub spot_check: usize where 0..=65536,
    }
}

section! {
    /// How a token is drawn from the model's distribution.
    pub struct SamplingConfig {
        /// Divides the logits; 0 takes the most probable token.
        pub temperature: f64 where 0.0..=100.0,
        /// Only so many of the most probable tokens.
        pub top_k: Option<usize> where 1..=1000000,
        /// Only the most probable tokens that reach this mass.
        pub top_p: f64 where 0.0..=1.0,
    }
}

impl SamplingConfig {
    /// The most probable token.
    pub const GREEDY: Self = Self { temperature: 0.0, top_k: None, top_p: 1.0 };
}

section! {
    /// AdamW (Loshchilov and Hutter 2019) with clipping by the global norm.
    pub struct UpdateConfig epoch 2 {
        /// Passes over the kept rows.
        pub epochs: usize where 1..=1000,
        /// Rows of one optimizer step.
        pub mini_batch: usize where 1..=1000000,
        /// Peak learning rate.
        pub learning_rate: f64 where 0.0..=1.0,
        /// How the learning rate changes over the run.
        pub schedule: ScheduleConfig,
        /// Decay of the first moment.
        pub beta1: f64 where 0.0..=0.9999999,
        /// Decay of the second moment.
        pub beta2: f64 where 0.0..=0.9999999,
        /// Added to the root of the second moment.
        pub epsilon: f64 where 1e-30..=1.0,
        /// Decoupled weight decay.
        pub weight_decay: f64 where 0.0..=1.0,
        /// Bound on the gradient's global norm.
        pub clip_norm: f64 where 0.0..=1e12,
    }
}

section! {
    /// The length of the run.
    pub struct TrainConfig {
        /// Training steps.
        pub steps: usize where 0..=100000000,
    }
}

section! {
    /// The held-out panel: the same tasks at every evaluation, disjoint from training.
    pub struct EvalConfig epoch 1 {
        /// Tasks; 0 evaluates nothing.
        pub tasks: usize where 0..=1000000,
        /// Training steps between evaluations; there is one before the first step and one after the last.
        pub every: usize where 1..=100000000,
        /// How the sampled half is drawn; the other half is greedy.
        pub sampling: SamplingConfig,
        /// What is evaluated; the run's own tasks if none is given.
        pub task: Vec<TaskConfig>,
    }
}

section! {
    /// Where and how a run is carried out; nothing here can change its numbers.
    pub struct ExecutionConfig {
        /// `cpu`, `wgpu` or `cuda:0`.
        (local) pub device: String,
        /// Worker threads; absent means all cores.
        (local) pub threads: Option<usize> where 1..=4096,
        /// MiB of activations that an update keeps, over all threads; what has no room is computed twice.
        (local) pub activation_mib: usize where 0..=100000000 as "1024",
        /// MiB of keys and values that episodes under way keep; those that have no room are read again in each turn.
        /// Absent means no bound.
        (local) pub cache_mib: Option<usize> where 0..=100000000,
        /// Training steps between checkpoints.
        (local) pub checkpoint_every: usize where 1..=100000000,
        /// Newest checkpoints kept, beside that of the best evaluation.
        (local) pub checkpoints: usize where 1..=1000,
        /// What the run's log holds: a `tracing` filter.
        (local) pub log: String,
    }
}

section! {
    /// Copies of a run's records for other tools, in its directory.
    pub struct LoggingConfig {
        /// Whether each step's metrics are written to `tensorboard/`, for `tensorboard --logdir runs`.
        (local) pub tensorboard: bool as "false",
        /// Whether the run ends by writing `metrics.parquet` (a row a step) and `episodes.parquet` (a row a turn).
        /// Needs a build with `--features parquet`.
        (local) pub parquet: bool as "false",
    }
}
