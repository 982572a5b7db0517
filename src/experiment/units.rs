//! What numbers count or measure. Beside the schema, whose fields say the rest, since most of them share a few units.

use crate::config::Explanation;

/// A unit, and the ends of the paths of its fields; `path=member` where another member's field counts something else.
const UNITS: &[(&str, &[&str])] = &[
    ("actions", &["rollout.max-actions", "rollout.max-actions-per-turn", "task.max-steps"]),
    ("answers", &["task.attempts"]),
    ("boxes", &["task.boxes"]),
    ("buckets", &["gradients.buckets.count"]),
    ("calculations", &["task.questions.operations"]),
    ("cells", &["task.blanks", "task.size=frozen-lake", "task.size=sokoban", "task.size=sudoku"]),
    ("checkpoints", &["execution.checkpoints"]),
    ("episodes", &["rollout.group-size", "warm-start.episodes"]),
    ("evaluations", &["stop.for=validation-floor"]),
    ("groups", &["rollout.groups", "filter.value=top-k-abs"]),
    ("heads", &["model.heads", "model.kv-heads"]),
    ("layers", &["model.layers"]),
    ("MiB", &["execution.activation-mib", "execution.cache-mib"]),
    ("moves", &["task.search-depth"]),
    ("nats", &["collapse.regime.mi-floor"]),
    ("nats a token", &["collapse.regime.entropy-floor", "reward.kl.target"]),
    ("numbers", &["task.numbers"]),
    ("passes", &["update.epochs"]),
    ("positions", &["task.size=number-line"]),
    ("probability, 0 to 1", &["task.chance", "task.holes", "task.slip"]),
    ("quarter turns", &["task.distance"]),
    ("records", &["stop.for=rule"]),
    ("reward", &["rollout.format-penalty", "task.high=bandit", "task.low", "task.illegal", "gradients.buckets.edges"]),
    ("rounds", &["filter.empty.tries"]),
    ("rows", &["update.mini-batch", "warm-start.batch", "rollout.spot-check", "reward.kl.horizon"]),
    (
        "share, 0 to 1",
        &[
            "collapse.regime.entropy-share",
            "collapse.regime.mi-share",
            "filter.value=min-p",
            "filter.value=top-k",
            "filter.value=top-p",
            "sampling.top-p",
            "stop.below=validation-floor",
            "stop.share",
            "update.schedule.floor",
            "warm-start.noise",
        ],
    ),
    (
        "steps",
        &[
            "collapse.every",
            "critic.warmup",
            "eval.every",
            "execution.checkpoint-every",
            "filter.empty-stop",
            "gradients.every",
            "stop.window",
            "train.steps",
            "update.schedule.warmup",
            "warm-start.steps",
        ],
    ),
    ("tasks", &["eval.tasks", "rollout.task-offset"]),
    ("thoughts", &["collapse.first-turn", "collapse.trajectory"]),
    ("threads", &["execution.threads"]),
    (
        "tokens",
        &["objective.aggregate.width", "rollout.max-context-tokens", "rollout.max-response-tokens", "sampling.top-k"],
    ),
    ("turns", &["advantage.history", "rollout.max-turns", "rollout.window.memory", "rollout.window.turns"]),
];

/// The unit of a field's numbers; None of one that is a pure number, or no number.
#[must_use]
pub fn unit(explained: &Explanation) -> Option<&'static str> {
    UNITS.iter().find(|(_, fields)| fields.iter().any(|field| says(field, explained))).map(|(unit, _)| *unit)
}

/// Whether an entry of the tables is of that field.
fn says(entry: &str, Explanation { path, member, .. }: &Explanation) -> bool {
    let (end, of) = entry.split_once('=').map_or((entry, None), |(end, of)| (end, Some(of)));
    let is_end = path.strip_suffix(end).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
    is_end && of.is_none_or(|of| member.as_ref().is_some_and(|(_, name, _)| *name == of))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::{Kind, fields};
    use crate::experiment::{FIELDS, Outside, explain};

    /// The ends of the paths of pure numbers.
    const PURE: &[&str] = &[
        "adapter.alpha",
        "adapter.rank",
        "advantage.alpha",
        "advantage.ddof",
        "advantage.epsilon",
        "advantage.gamma",
        "advantage.lambda",
        "advantage.similarity",
        "advantage.step-weight",
        "advantage.turn-gamma",
        "clip.dual",
        "clip.high",
        "clip.low",
        "clip-norm",
        "collapse.ema",
        "filter.eps",
        "kl.coef",
        "learning-rate",
        "model.ffn",
        "model.init-std",
        "model.rope-theta",
        "model.width",
        "objective.entropy-coef",
        "objective.value-clip",
        "objective.value-coef",
        "sampling.temperature",
        "seed",
        "stop.above",
        "stop.action.factor",
        "stop.below=rule",
        "task.goal",
        "task.high=countdown",
        "task.share",
        "task.target",
        "task.targets",
        "update.beta1",
        "update.beta2",
        "update.epsilon",
        "update.weight-decay",
    ];

    fn entries() -> impl Iterator<Item = &'static str> {
        UNITS.iter().flat_map(|(_, fields)| fields.iter()).chain(PURE).copied()
    }

    fn is_number(kind: &Kind) -> bool {
        match kind {
            Kind::Int { .. } | Kind::Float => true,
            Kind::Optional(inner) | Kind::List(inner) => is_number(inner),
            _ => false,
        }
    }

    #[test]
    fn every_number_has_one_unit_or_is_a_pure_number() {
        let mut used = std::collections::BTreeSet::new();
        for (path, _) in fields(FIELDS) {
            for explained in explain(&path, &Outside::new(Path::new("nowhere"))).unwrap() {
                let own: Vec<&str> = entries().filter(|entry| says(entry, &explained)).collect();
                let expected = usize::from(is_number(explained.field.kind));
                assert_eq!(own.len(), expected, "{path}, {:?}: {own:?}", explained.member);
                used.extend(own);
            }
        }
        assert_eq!(used, entries().collect(), "each entry is of some field");
    }
}
