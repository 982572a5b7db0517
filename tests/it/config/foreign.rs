//! What people from elsewhere type, and the pages for them.

use std::path::Path;

use starpo::config::{Kind, fields};
use starpo::experiment::foreign::{Program, TABLE, answer, page};
use starpo::experiment::{self, FIELDS};

use super::{golden, root, strings};

/// What a kind may be called by, if it is a choice.
fn names(kind: &Kind) -> Option<Vec<&'static str>> {
    match kind {
        Kind::Optional(inner) | Kind::List(inner) => names(inner),
        Kind::Choice(names) => Some(names.to_vec()),
        Kind::Variant { alternatives, .. } => Some(alternatives.iter().map(|member| member.name).collect()),
        _ => None,
    }
}

#[test]
fn every_target_is_in_the_schema() {
    let all = fields(FIELDS);
    for row in TABLE.iter().filter(|row| !row.ours.is_empty()) {
        let kinds: Vec<&Kind> = all.iter().filter(|(path, _)| path == row.ours).map(|(_, field)| field.kind).collect();
        assert!(!kinds.is_empty(), "{} leads to {}, which is nothing", row.name, row.ours);
        let known: Vec<&str> = kinds.iter().filter_map(|kind| names(kind)).flatten().collect();
        for (theirs, ours) in row.values {
            let number = known.is_empty() && (*ours == "null" || ours.parse::<f64>().is_ok());
            assert!(known.contains(ours) || number, "{}: {theirs} is {ours}, and {} has {known:?}", row.name, row.ours);
        }
    }
    for row in TABLE {
        assert!(!row.ours.is_empty() || !row.note.is_empty(), "{} has neither a target nor a reason", row.name);
        let more = row.note.split_whitespace().map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()));
        // A path in a note is one too.
        for word in
            more.filter(|word| word.contains('.') && word.chars().all(|c| c.is_alphanumeric() || ".-".contains(c)))
        {
            let is_path = all.iter().any(|(path, _)| path == word) || word.contains(".kdl") || word.contains(".json");
            assert!(is_path || word.parse::<f64>().is_ok(), "{}: {word} in its note", row.name);
        }
    }
    // What is said not to be here is in no path.
    for row in TABLE {
        let Some(what) = row.note.strip_prefix("there is no ") else { continue };
        let what = what.split([' ', ':', ',']).next().unwrap().to_lowercase();
        let is_part = |path: &str| path.split('.').any(|part| part == what);
        assert!(
            !all.iter()
                .any(|(path, field)| is_part(path)
                    || names(field.kind).is_some_and(|names| names.contains(&what.as_str()))),
            "{}: {}",
            row.name,
            row.note
        );
    }
    let mut seen: Vec<&str> = TABLE.iter().map(|row| row.name).collect();
    seen.sort_unstable();
    assert!(seen.windows(2).all(|pair| pair[0] != pair[1]));
}

/// The pages are what the table says; `INSTA_UPDATE=always` writes them anew.
#[test]
fn the_pages_are_up_to_date() {
    for (program, name) in [(Program::Ragen, "docs/from-ragen.md"), (Program::VerlAgent, "docs/from-verl-agent.md")] {
        let path = Path::new(root()).join(name);
        if std::env::var("INSTA_UPDATE").is_ok_and(|mode| mode == "always") {
            std::fs::write(&path, page(program)).unwrap();
        }
        assert!(
            std::fs::read_to_string(&path).unwrap_or_default() == page(program),
            "{name} is not what the table says"
        );
    }
}

/// The overrides that scripts and readmes of RAGEN and verl-agent have most.
const COMMONEST: [&str; 46] = [
    "model_path=Qwen/Qwen2.5-3B-Instruct",
    "trainer.total_training_steps=200",
    "trainer.experiment_name=sokoban-ppo",
    "trainer.project_name=ragen",
    "trainer.nnodes=1",
    "trainer.n_gpus_per_node=8",
    "trainer.save_freq=-1",
    "trainer.test_freq=10",
    "trainer.val_before_train=True",
    "trainer.logger=['console','wandb']",
    "trainer.total_epochs=150",
    "trainer.critic_warmup=0",
    "system.CUDA_VISIBLE_DEVICES='0,1'",
    "micro_batch_size_per_gpu=1",
    "ppo_mini_batch_size=32",
    "algorithm.adv_estimator=gae",
    "algorithm.adv_estimator=reinforce_plus_plus",
    "algorithm.gamma=0.95",
    "algorithm.lam=1.0",
    "algorithm.norm_adv_by_std_in_grpo=False",
    "algorithm.use_kl_in_reward=False",
    "algorithm.kl_ctrl.kl_coef=0.001",
    "algorithm.gigpo.mode=mean_norm",
    "algorithm.gigpo.step_advantage_w=1.0",
    "algorithm.filter_groups.enable=True",
    "actor_rollout_ref.actor.optim.lr=1e-6",
    "actor_rollout_ref.actor.use_kl_loss=True",
    "actor_rollout_ref.actor.kl_loss_coef=0.01",
    "actor_rollout_ref.actor.kl_loss_type=low_var_kl",
    "actor_rollout_ref.actor.clip_ratio_high=0.28",
    "actor_rollout_ref.actor.entropy_coeff=0.001",
    "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=4",
    "actor_rollout_ref.actor.use_invalid_action_penalty=True",
    "actor_rollout_ref.rollout.rollout_filter_value=0.9",
    "actor_rollout_ref.rollout_filter_strategy=top_p",
    "actor_rollout_ref.rollout.gpu_memory_utilization=0.6",
    "actor_rollout_ref.rollout.tensor_model_parallel_size=2",
    "actor_rollout_ref.rollout.val_kwargs.do_sample=True",
    "agent_proxy.max_turn=5",
    "agent_proxy.context_window_mode=single_turn",
    "es_manager.train.env_groups=8",
    "es_manager.train.env_configs.tags=[CoordSokoban]",
    "env.env_name=Sokoban",
    "env.rollout.n=8",
    "data.train_batch_size=16",
    "data.max_response_length=512",
];

/// Hydra's ways of saying things.
const GRAMMAR: [&str; 9] = [
    "+seed=3",
    "++trainer.total_training_steps=5",
    "+x=1",
    "~filter",
    "~x",
    "env=sokoban",
    "algorithm/estimator=gae",
    "hydra.run.dir=out",
    "hydra.job.name=x",
];

#[test]
fn words_of_other_programs_are_answered() {
    let mut out = String::new();
    for argument in COMMONEST.iter().chain(&GRAMMAR) {
        let errors = experiment::resolve("sokoban", &strings(&[argument]), root()).unwrap_err();
        let json = errors.json();
        assert_eq!(errors.iter().count(), 1, "{errors}");
        let help = json[0]["help"].as_str().unwrap();
        assert_eq!(answer(argument).as_deref(), Some(help), "{argument}");
        out.push_str(&format!("$ starpo run sokoban {argument}\n  {}\n\n", help.replace('\n', "\n  ")));
    }
    for option in ["--config-name", "--config-path", "--cfg", "--multirun", "-m", "-p"] {
        out.push_str(&format!("$ starpo run {option}\n  {}\n\n", answer(option).unwrap()));
    }
    golden("error", "foreign", &out);
    assert_eq!(answer("filter.valeu=0.9"), None);
    assert_eq!(answer("nothing.path=1"), None);
}
