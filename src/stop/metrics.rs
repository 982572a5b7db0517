//! The names of the numbers in a step's record. Not every record has all: an update needs a group to learn from, and
//! evaluations and diagnoses come now and then.

const PASS: &[&str] = &["success", "success_error", "reward", "valid", "turns", "response_tokens", "entropy"];
const ENV: &[&str] = &["success", "reward", "pass_at_k"];
const INFORMATION: &[&str] =
    &["mi", "conditional_entropy", "marginal_entropy", "marginal_std", "mi_z", "marginal_std_ema", "mi_z_ema"];
const THOUGHTS: &[&str] = &[
    "reasonings",
    "prompts",
    "different_prompts",
    "mi_bound",
    "retrieval",
    "retrieval_chance",
    "retrieval_2",
    "retrieval_2_chance",
    "retrieval_4",
    "retrieval_4_chance",
    "retrieval_8",
    "retrieval_8_chance",
];

/// Where the numbers stand, and what they are called there; `*` is any one name.
const NAMES: &[(&str, &[&str])] = &[
    ("rollout", &["success", "reward", "reward_std", "turns", "response_tokens", "valid", "effective", "pass_at_k"]),
    ("rollout", &["entropy", "logprob_mismatch_max"]),
    ("rollout.by_env.*", ENV),
    ("collapse", &["valid_thinking"]),
    ("collapse.first_turn", INFORMATION),
    ("collapse.first_turn", THOUGHTS),
    ("collapse.first_turn.per_token", INFORMATION),
    ("collapse.trajectory", INFORMATION),
    ("collapse.trajectory", THOUGHTS),
    ("collapse.trajectory.per_token", INFORMATION),
    ("filter", &["kept", "kept_share", "zero", "tries", "wasted"]),
    ("reward", &["kl", "kl_coef"]),
    ("advantage", &["std"]),
    ("gradients.*", &["groups", "tokens", "spread", "spread_min", "spread_max", "task", "entropy", "kl"]),
    ("critic", &["loss", "clip_fraction", "explained_variance", "grad_norm", "learning_rate"]),
    ("update", &["loss", "policy", "entropy", "clip_fraction", "clip_fraction_lower", "grad_norm", "kl"]),
    ("update", &["reference_kl", "learning_rate", "ratio_gap", "steps"]),
    ("eval", PASS),
    ("eval.by_env.*", ENV),
    ("eval.greedy", PASS),
    ("eval.greedy.by_env.*", ENV),
];

/// The parts of a record that hold metrics.
#[must_use]
pub fn parts() -> Vec<&'static str> {
    let mut parts: Vec<&str> = NAMES.iter().map(|(path, _)| path.split('.').next().unwrap_or(path)).collect();
    parts.dedup();
    parts
}

/// Whether some record of some run has a number of that path.
#[must_use]
pub fn is_metric(path: &str) -> bool {
    let Some((part, name)) = path.rsplit_once('.') else { return false };
    let same = |known: &str| {
        let (known, part): (Vec<&str>, Vec<&str>) = (known.split('.').collect(), part.split('.').collect());
        known.len() == part.len() && known.iter().zip(&part).all(|(known, part)| *known == "*" || known == part)
    };
    NAMES.iter().any(|(known, names)| names.contains(&name) && same(known))
}

/// The paths that a name which is none may have meant, the nearest first.
pub(super) fn nearest(path: &str) -> Vec<String> {
    let all = NAMES.iter().flat_map(|(part, names)| names.iter().map(move |name| format!("{part}.{name}")));
    let all: Vec<String> = all.collect();
    crate::config::nearest(path, all.iter().map(String::as_str)).into_iter().map(str::to_owned).collect()
}
