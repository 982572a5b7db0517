//! `starpo tokenizer`: the small tokenizer, trained on what the experts of all environments see and say.

use std::path::PathBuf;

use clap::Args;

use super::agent::expert;
use super::{CliError, Common, output};
use crate::chat::{Chat, Tokens};
use crate::experiment::{self, ResolvedConfig};
use crate::policy;
use crate::record::Disk;
use crate::rng::Stream;
use crate::rollout::{self, Plan};
use crate::trajectory::Split;

/// Where to, and from what.
#[derive(Clone, Debug, Args)]
pub(super) struct Tokenizer {
    /// The `tokenizer.json` to write
    out: PathBuf,
    /// Experiments whose environments are transcribed
    #[arg(default_values_t = ["sokoban".to_owned(), "frozen-lake".to_owned(), "bandit".to_owned()])]
    experiments: Vec<String>,
    /// Episodes of each
    #[arg(long, default_value_t = 400)]
    episodes: u64,
    /// Size of the vocabulary
    #[arg(long, default_value_t = 512)]
    vocab: usize,
}

impl Tokenizer {
    pub(super) fn run(self, common: &Common) -> Result<(), CliError> {
        let mut texts = Vec::new();
        for name in &self.experiments {
            // The experiment's own tokenizer is what is to be made.
            let overrides = ["model.tokenizer={}".to_owned()];
            let resolved = experiment::resolve_with(name, &overrides, &common.outside())?;
            texts.extend(transcripts(&resolved.config, self.episodes)?);
        }
        let json = policy::train_tokenizer(&texts, self.vocab).map_err(CliError::Agent)?;
        output::write(&Disk::default(), &self.out, "the first argument", json.as_bytes())?;
        output::say(&self.out, &format!("{} from {} conversations", self.out.display(), texts.len()));
        Ok(())
    }
}

/// The conversations of an experiment's experts, as text.
fn transcripts(config: &ResolvedConfig, episodes: u64) -> Result<Vec<String>, CliError> {
    let chat = Chat::new(&Characters, config.rollout.think).map_err(CliError::Agent)?;
    let plans: Vec<Plan<'_>> = (0..episodes)
        .map(|position| {
            let (env, index) = rollout::mixture(&config.task, position);
            let dynamics = Stream::new("tokenizer", 0, &[position]);
            let draws = ("tokenizer", 0, vec![position]);
            Plan { env, split: Split::Train, index, group: position as usize, member: 0, dynamics, draws, noise: 0.1 }
        })
        .collect();
    let mut rollout = config.rollout.clone();
    (rollout.max_response_tokens, rollout.max_context_tokens) = (usize::MAX / 4, usize::MAX / 2);
    let played = rollout::play(&rollout, &rollout.sampling, &chat, &expert(&chat), &plans);
    Ok(played.iter().flat_map(|episode| &episode.sequences).map(|row| Characters.decode(&row.tokens)).collect())
}

/// A character an id; the template's special tokens stand in Unicode's private use area.
struct Characters;

const SPECIAL: [(&str, u32); 2] = [("<|im_start|>", 0xE000), ("<|im_end|>", 0xE001)];

impl Tokens for Characters {
    fn encode(&self, text: &str) -> Vec<u32> {
        text.chars().map(u32::from).collect()
    }

    fn decode(&self, ids: &[u32]) -> String {
        ids.iter().filter_map(|&id| char::from_u32(id)).filter(|c| !('\u{E000}'..='\u{E001}').contains(c)).collect()
    }

    fn specials(&self) -> Vec<(String, u32)> {
        SPECIAL.map(|(name, id)| (name.to_owned(), id)).to_vec()
    }
}
