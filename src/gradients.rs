//! Gradient analysis (RAGEN-2, arXiv:2604.06268): the norms of the task's, the entropy's and the KL's gradient, of the
//! kept groups by reward spread and of all of them, at the weights before the update. Where spread is small the task
//! pulls little, and what pulls besides it wins.
//!
//! How it differs from RAGEN: the loss of a bucket is normalised by the bucket's own counts (there by those of a
//! mini-batch, so that a small bucket seems weak), as one mini-batch; no coefficient is in the norms, so that they can
//! be read where one is 0; groups without spread are sorted by their number; episodes are the step's own, never played
//! for the purpose. The optimizer is not touched.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::advantage::Credit;
use crate::batch::Batch;
use crate::experiment::ResolvedConfig;
use crate::objective::{Derivatives, Loss};
use crate::policy::{Learner, Scores};
use crate::stats;
use crate::trajectory::Group;
use crate::update::{cotangent, losses, views};

/// What pulls at some groups' tokens.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Pull {
    pub groups: usize,
    /// Response tokens.
    pub tokens: usize,
    /// Deviation of the members' scores (ddof 1): mean, least and greatest over groups.
    pub spread: f64,
    pub spread_min: f64,
    pub spread_max: f64,
    /// Norm of the policy loss's gradient.
    pub task: f64,
    /// Norm of the entropy's.
    pub entropy: f64,
    /// Norm of the distance to the reference's; absent without a reference.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kl: Option<f64>,
}

/// What pulls at `all` kept groups, and at those of `bucket_01`, `bucket_02`, … by ascending spread; a bucket without
/// groups is left out.
#[must_use]
pub fn analyse(
    config: &ResolvedConfig,
    groups: &[&Group],
    credits: &[Credit],
    learner: &mut dyn Learner,
) -> BTreeMap<String, Pull> {
    let spreads: Vec<f64> = groups.iter().map(|group| stats::std(&group.scores(), 1)).collect();
    let buckets = config.gradients.buckets.split(&spreads).into_iter().enumerate();
    let named = buckets.map(|(number, bucket)| (format!("bucket_{:02}", number + 1), bucket));
    let all = ("all".to_owned(), (0..groups.len()).collect());
    let filled = named.chain([all]).filter(|(_, bucket): &(_, Vec<usize>)| !bucket.is_empty());
    filled.map(|(name, bucket)| (name, pull(config, groups, credits, &spreads, &bucket, learner))).collect()
}

fn pull(
    config: &ResolvedConfig,
    groups: &[&Group],
    credits: &[Credit],
    spreads: &[f64],
    bucket: &[usize],
    learner: &mut dyn Learner,
) -> Pull {
    let groups: Vec<&Group> = bucket.iter().map(|group| groups[*group]).collect();
    let credits: Vec<Credit> = bucket.iter().map(|group| credits[*group].clone()).collect();
    let spreads: Vec<f64> = bucket.iter().map(|group| spreads[*group]).collect();
    let batch = Batch::new(&groups, &credits);
    let mut norm = |part: &(dyn Fn(Loss) -> Derivatives + Sync)| {
        for rows in batch.mini_batches(usize::MAX) {
            let loss = losses(&config.objective, &batch, &rows);
            let pushed = |row: usize, scores: &Scores| {
                let mut derivatives = part(loss(row, scores));
                derivatives.logprobs.resize(scores.logprobs.len(), 0.0);
                derivatives.entropies.resize(scores.entropies.len(), 0.0);
                derivatives.values.resize(scores.values.len(), 0.0);
                cotangent(&derivatives)
            };
            learner.gradient(&views(&batch, &rows), &rows.shards, config.rollout.sampling.temperature, &pushed);
        }
        learner.discard()
    };
    Pull {
        groups: groups.len(),
        tokens: batch.advantages.len(),
        spread: stats::mean(&spreads),
        spread_min: spreads.iter().copied().fold(f64::INFINITY, f64::min),
        spread_max: spreads.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        task: norm(&|loss| Derivatives { logprobs: loss.policy, ..Derivatives::default() }),
        entropy: norm(&|loss| Derivatives { entropies: loss.entropy, ..Derivatives::default() }),
        kl: (!batch.reference.is_empty())
            .then(|| norm(&|loss| Derivatives { logprobs: loss.kl, ..Derivatives::default() })),
    }
}
