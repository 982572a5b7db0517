//! The keys of RAGEN (base.yaml and what it takes from verl) and verl-agent, each with ours.

use super::{Foreign, Program};
use crate::config::first;

macro_rules! table {
    ($(
        $of:ident $name:literal => $ours:literal $({ $($from:literal => $to:literal),+ $(,)? })? $(, $note:literal)?;
    )*) => {
        &[$(Foreign {
            of: Program::$of,
            name: $name,
            ours: $ours,
            values: &[$($(($from, $to)),+)?],
            note: first!($($note,)? ""),
        }),*]
    };
}

/// In the order of their pages. A key without ours has the reason. A value that is not listed stays as it is.
pub const TABLE: &[Foreign] = table! {
    Ragen "system.CUDA_VISIBLE_DEVICES" => "", "a run has one device: execution.device=cuda:0";
    Ragen "seed.train" => "rollout.task-offset",
        "`seed` moves sampling and dynamics, which are unseeded there, and never tasks";
    Ragen "seed.val" => "", "the held-out tasks are always the same, and disjoint from those of training";
    Ragen "micro_batch_size_per_gpu" => "", "no split of a batch changes a bit here, so there is none to set";
    Ragen "log_prob_micro_batch_size_per_gpu" => "", "no split of a batch changes a bit here, so there is none to set";
    Ragen "ppo_mini_batch_size" => "update.mini-batch", "counts rows; no row is copied or dropped to fill one";
    Ragen "model_path" => "model.path",
        "with model=pretrained: a Hugging Face folder on this machine, nothing is downloaded";
    Ragen "enable_response_mask" => "rollout.mask" { "True" => "assistant", "False" => "after-system" },
        "the default \"sampled\" learns from sampled tokens alone, without the role and the next turn's start";
    Ragen "grpo_advantage_length_weight" => "advantage.length-weight";
    Ragen "lora.rank" => "adapter.rank", "with adapter=lora; there 0 trains all weights, as adapter=none here";
    Ragen "lora.alpha" => "adapter.alpha", "with adapter=lora";
    Ragen "lora.target_modules" => "adapter.targets", "with adapter=lora; all-linear is all seven projections";
    Both "actor_rollout_ref.model.path" => "model.path", "with model=pretrained: a Hugging Face folder on this machine";
    Both "actor_rollout_ref.model.lora_rank" => "adapter.rank",
        "with adapter=lora; there 0 trains all weights, as adapter=none here";
    Both "actor_rollout_ref.model.lora_alpha" => "adapter.alpha", "with adapter=lora";
    Both "actor_rollout_ref.model.target_modules" => "adapter.targets",
        "with adapter=lora; all-linear is all seven projections";
    Both "actor_rollout_ref.model.enable_gradient_checkpointing" => "",
        "gradients are the same either way; shards are small";
    Both "actor_rollout_ref.model.use_remove_padding" => "", "rows are never padded";
    Both "actor_rollout_ref.actor.ppo_mini_batch_size" => "update.mini-batch",
        "counts rows; no row is copied or dropped to fill one";
    Both "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu" => "",
        "no split of a batch changes a bit here, so there is none to set";
    Both "actor_rollout_ref.actor.ppo_micro_batch_size" => "",
        "no split of a batch changes a bit here, so there is none to set";
    Both "actor_rollout_ref.actor.use_dynamic_bsz" => "",
        "no split of a batch changes a bit here, so there is none to set";
    Both "actor_rollout_ref.actor.ppo_max_token_len_per_gpu" => "",
        "no split of a batch changes a bit here, so there is none to set";
    Ragen "actor_rollout_ref.actor.use_ref" => "",
        "the start model is asked where a KL is weighed: objective.kl.coef, reward.kl";
    Both "actor_rollout_ref.actor.entropy_coeff" => "objective.entropy-coef";
    Both "actor_rollout_ref.actor.use_kl_loss" => "objective.kl.coef" { "True" => "0.001", "False" => "0" },
        "a coefficient above 0 is on";
    Both "actor_rollout_ref.actor.kl_loss_coef" => "objective.kl.coef";
    Both "actor_rollout_ref.actor.kl_loss_type" => "objective.kl.estimator"
        { "kl" => "k1", "k1" => "k1", "abs" => "abs", "mse" => "k2", "k2" => "k2", "low_var_kl" => "k3", "k3" => "k3" },
        "as a loss k1, the default there, has an expected gradient of 0";
    Both "actor_rollout_ref.actor.clip_ratio" => "objective.clip.low", "and objective.clip.high";
    Both "actor_rollout_ref.actor.clip_ratio_low" => "objective.clip.low";
    Both "actor_rollout_ref.actor.clip_ratio_high" => "objective.clip.high";
    Both "actor_rollout_ref.actor.clip_ratio_c" => "objective.clip.dual";
    Ragen "actor_rollout_ref.actor.grpo_advantage_length_weight" => "advantage.length-weight";
    Ragen "actor_rollout_ref.actor.filter_loss_scaling" => "advantage.loss-scaling";
    Both "actor_rollout_ref.actor.loss_agg_mode" => "objective.aggregate",
        "from counts of the mini-batch, not of a micro-batch";
    Both "actor_rollout_ref.actor.policy_loss.loss_mode" => "objective" { "vanilla" => "ppo", "gspo" => "gspo" };
    Both "actor_rollout_ref.actor.optim.lr" => "update.learning-rate";
    Both "actor_rollout_ref.actor.optim.betas" => "update.beta1", "and update.beta2";
    Both "actor_rollout_ref.actor.optim.weight_decay" => "update.weight-decay";
    Both "actor_rollout_ref.actor.optim.lr_warmup_steps" => "update.schedule.warmup";
    Both "actor_rollout_ref.actor.optim.lr_warmup_steps_ratio" => "update.schedule.warmup",
        "in steps, not a share of them";
    Both "actor_rollout_ref.actor.optim.warmup_style" => "update.schedule";
    Both "actor_rollout_ref.actor.grad_clip" => "update.clip-norm",
        "a norm that is not finite ends the run; there it is skipped";
    Both "actor_rollout_ref.actor.ppo_epochs" => "update.epochs";
    Both "actor_rollout_ref.actor.shuffle" => "", "rows are learned from in order of groups";
    Both "actor_rollout_ref.actor.fsdp_config.param_offload" => "", "weights and optimizer live on the host";
    Both "actor_rollout_ref.actor.fsdp_config.optimizer_offload" => "", "weights and optimizer live on the host";
    VerlAgent "actor_rollout_ref.actor.use_invalid_action_penalty" => "rollout.format-penalty"
        { "True" => "-0.1", "False" => "0" },
        "with reward.penalty-to=row; 0 is off";
    VerlAgent "actor_rollout_ref.actor.invalid_action_penalty_coef" => "rollout.format-penalty",
        "negative, with reward.penalty-to=row";
    Both "actor_rollout_ref.ref.log_prob_micro_batch_size_per_gpu" => "",
        "no split of a batch changes a bit here, so there is none to set";
    Both "actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu" => "",
        "no split of a batch changes a bit here, so there is none to set";
    Both "actor_rollout_ref.rollout.name" => "",
        "the policy samples by its own forward pass, so that log-probs are those of training";
    Both "actor_rollout_ref.rollout.load_format" => "", "the policy samples by its own forward pass";
    Both "actor_rollout_ref.rollout.tensor_model_parallel_size" => "", "a run has one device";
    Both "actor_rollout_ref.rollout.gpu_memory_utilization" => "", "no engine reserves memory";
    Both "actor_rollout_ref.rollout.max_num_batched_tokens" => "",
        "no engine batches: all episodes of a step go in lock-step";
    Both "actor_rollout_ref.rollout.enforce_eager" => "", "no engine compiles graphs";
    Both "actor_rollout_ref.rollout.free_cache_engine" => "", "caches live as long as their episodes";
    Ragen "actor_rollout_ref.rollout.max_model_len" => "rollout.max-context-tokens",
        "room for the response is kept in it";
    Ragen "actor_rollout_ref.rollout.response_length" => "rollout.max-response-tokens";
    Ragen "actor_rollout_ref.rollout.prompt_length" => "", "it is not used there either";
    Both "actor_rollout_ref.rollout.temperature" => "rollout.sampling.temperature";
    Both "actor_rollout_ref.rollout.top_p" => "rollout.sampling.top-p";
    Both "actor_rollout_ref.rollout.top_k" => "rollout.sampling.top-k" { "-1" => "null" };
    Both "actor_rollout_ref.rollout.do_sample" => "rollout.sampling.temperature" { "True" => "1", "False" => "0" };
    Both "actor_rollout_ref.rollout.n" => "rollout.group-size";
    Both "actor_rollout_ref.rollout.val_kwargs.temperature" => "eval.sampling.temperature";
    Both "actor_rollout_ref.rollout.val_kwargs.top_p" => "eval.sampling.top-p";
    Both "actor_rollout_ref.rollout.val_kwargs.top_k" => "eval.sampling.top-k" { "-1" => "null" };
    Both "actor_rollout_ref.rollout.val_kwargs.do_sample" => "eval.sampling.temperature"
        { "True" => "1", "False" => "0" },
        "a greedy half is evaluated in any case";
    Both "actor_rollout_ref.rollout.val_kwargs.n" => "", "a task is played twice: once sampled, once greedy";
    Ragen "actor_rollout_ref.rollout.rollout_filter_strategy" => "filter"
        { "top_p" => "top-p", "top_k" => "top-k", "top_k_abs" => "top-k-abs", "min_p" => "min-p" };
    Ragen "actor_rollout_ref.rollout.rollout_filter_value" => "filter.value",
        "with filter=top-p; 1.0 there is filter=none";
    Ragen "actor_rollout_ref.rollout.rollout_filter_ratio" => "filter.value", "with filter=top-k";
    Ragen "actor_rollout_ref.rollout.rollout_filter_type" => "filter.keep";
    Ragen "actor_rollout_ref.rollout.rollout_filter_include_zero" => "filter.include-zero";
    Ragen "actor_rollout_ref.rollout.rollout_filter_top_p_prob_mode" => "filter.mass";
    Ragen "actor_rollout_ref.rollout.rollout_filter_selection_eps" => "filter.eps";
    Ragen "actor_rollout_ref.rollout.rollout_filter_empty_stop_steps" => "filter.empty-stop";
    Ragen "actor_rollout_ref.rollout.rollout_filter_metric" => "filter.score"
        { "reward_variance" => "reward-std", "reward_std" => "reward-std", "reward" => "reward-mean",
          "reward_sum" => "reward-sum", "entropy" => "entropy", "entropy_variance" => "entropy-std",
          "entropy_std" => "entropy-std", "length" => "length" },
        "what is called a variance there is the standard deviation";
    Ragen "actor_rollout_ref.rollout.gradient_analysis_num_buckets" => "gradients.buckets.count";
    Ragen "actor_rollout_ref.rollout.gradient_analysis_bucket_mode" => "gradients.buckets"
        { "quantile" => "quantiles", "fixed_rv" => "edges" };
    Both "critic.optim.lr" => "critic.learning-rate", "with critic=own";
    Both "critic.optim.betas" => "update.beta1", "and update.beta2: a critic's steps are those of `update`";
    Both "critic.optim.weight_decay" => "update.weight-decay", "a critic's steps are those of `update`";
    Both "critic.model.path" => "", "a critic starts from the policy's weights";
    Both "critic.ppo_mini_batch_size" => "update.mini-batch", "a critic's steps are those of `update`";
    Both "critic.ppo_micro_batch_size_per_gpu" => "", "no split of a batch changes a bit here, so there is none to set";
    Both "critic.cliprange_value" => "objective.value-clip";
    Both "critic.grad_clip" => "critic.clip-norm";
    Both "critic.enable" => "critic" { "True" => "own", "False" => "none" };
    Both "data.train_batch_size" => "rollout.groups";
    Both "data.val_batch_size" => "eval.tasks";
    Both "data.max_prompt_length" => "rollout.max-context-tokens", "prompt and response together";
    Both "data.max_response_length" => "rollout.max-response-tokens";
    VerlAgent "data.truncation" => "",
        "a context that is too long leaves out whole turns, the oldest first; a full episode ends";
    VerlAgent "data.shuffle" => "", "tasks are played in order of their index";
    VerlAgent "data.seed" => "rollout.task-offset";
    Both "data.train_files" => "", "environments make their tasks; math and countdown read a file: task.questions.path";
    Both "data.val_files" => "", "held-out tasks are split off by the environments";
    VerlAgent "env.env_name" => "task"
        { "Sokoban" => "sokoban", "NumberLine" => "number-line", "gym_cards/NumberLine-v0" => "number-line",
          "EZPoints" => "ez-points", "gym_cards/EZPoints-v0" => "ez-points", "Points24" => "points24",
          "gym_cards/Points24-v0" => "points24", "Blackjack" => "blackjack", "gym_cards/Blackjack-v0" => "blackjack" },
        "there is no ALFWorld, WebShop, Search or AppWorld here";
    VerlAgent "env.seed" => "rollout.task-offset", "`seed` moves sampling and dynamics, never tasks";
    VerlAgent "env.max_steps" => "rollout.max-turns";
    VerlAgent "env.history_length" => "rollout.window.memory", "with rollout.window=single-turn";
    VerlAgent "env.rollout.n" => "rollout.group-size";
    VerlAgent "env.resources_per_worker.num_cpus" => "execution.threads", "environments run on the run's own threads";
    VerlAgent "env.alfworld.eval_dataset" => "", "there is no ALFWorld here";
    VerlAgent "env.search.search_url" => "", "there is no Search here";
    VerlAgent "env.search.topk" => "", "there is no Search here";
    VerlAgent "env.search.timeout" => "", "there is no Search here";
    VerlAgent "env.sokoban.dim_room" => "task.size", "of task=sokoban";
    VerlAgent "env.sokoban.num_boxes" => "task.boxes", "of task=sokoban";
    VerlAgent "env.sokoban.search_depth" => "task.search-depth", "of task=sokoban";
    VerlAgent "env.sokoban.mode" => "task.render", "text only: grid, coord or grid-coord";
    VerlAgent "env.webshop.use_small" => "", "there is no WebShop here";
    VerlAgent "env.webshop.human_goals" => "", "there is no WebShop here";
    Both "algorithm.adv_estimator" => "advantage"
        { "gae" => "gae", "grpo" => "grpo", "grpo_passk" => "pass-k", "rloo" => "rloo",
          "reinforce_plus_plus" => "reinforce-pp",
          "reinforce_plus_plus_baseline" => "reinforce-pp-baseline", "remax" => "remax", "gigpo" => "gigpo" },
        "gae asks for a critic: critic=own";
    Both "algorithm.gamma" => "advantage.gamma";
    Both "algorithm.lam" => "advantage.lambda", "of advantage=gae";
    Ragen "algorithm.high_level_gamma" => "advantage.turn-gamma", "of advantage=bi-level-gae";
    Ragen "algorithm.bi_level_gae" => "advantage" { "True" => "bi-level-gae", "False" => "gae" };
    Both "algorithm.norm_adv_by_std_in_grpo" => "advantage.std", "false is Dr. GRPO";
    Ragen "algorithm.soft_advantage_reweight" => "advantage.reweight"
        { "True" => "group-deviation", "False" => "none" };
    Ragen "algorithm.zero_task_advantage" => "advantage.zero-task";
    Both "algorithm.use_kl_in_reward" => "reward.kl" { "True" => "fixed", "False" => "none" };
    Both "algorithm.kl_penalty" => "reward.kl.estimator"
        { "kl" => "k1", "k1" => "k1", "abs" => "abs", "mse" => "k2", "k2" => "k2", "low_var_kl" => "k3", "k3" => "k3" };
    Both "algorithm.kl_ctrl.type" => "reward.kl";
    Both "algorithm.kl_ctrl.kl_coef" => "reward.kl.coef", "with reward.kl=fixed";
    Both "algorithm.kl_ctrl.horizon" => "reward.kl.horizon", "with reward.kl=adaptive";
    Both "algorithm.kl_ctrl.target_kl" => "reward.kl.target", "with reward.kl=adaptive";
    VerlAgent "algorithm.gigpo.step_advantage_w" => "advantage.step-weight", "of advantage=gigpo";
    VerlAgent "algorithm.gigpo.mode" => "advantage.mode" { "mean_norm" => "mean", "mean_std_norm" => "mean-std" },
        "of advantage=gigpo";
    VerlAgent "algorithm.gigpo.enable_similarity" => "advantage.similarity" { "True" => "0.95", "False" => "null" },
        "the threshold itself; unset, anchors must be equal";
    VerlAgent "algorithm.gigpo.similarity_thresh" => "advantage.similarity", "of advantage=gigpo";
    VerlAgent "algorithm.filter_groups.enable" => "filter" { "True" => "equal-rewards", "False" => "none" },
        "with filter.empty=refill a step plays on until it has its groups";
    VerlAgent "algorithm.filter_groups.max_num_gen_batches" => "filter.empty.tries", "with filter.empty=refill";
    VerlAgent "reward_model.reward_manager" => "",
        "an episode's score is the sum of its rewards and penalties; see `reward`";
    Both "trainer.total_training_steps" => "train.steps";
    Both "trainer.total_epochs" => "train.steps", "there is no data set to go through: steps are what is counted";
    Both "trainer.test_freq" => "eval.every";
    Both "trainer.save_freq" => "execution.checkpoint-every", "a checkpoint changes no number";
    Both "trainer.val_before_train" => "",
        "there is always an evaluation before the first step; eval.tasks=0 has none at all";
    Ragen "trainer.validation_steps" => "eval.tasks", "all held-out tasks are one evaluation";
    Both "trainer.val_only" => "", "`starpo eval EXPERIMENT` or `starpo eval RUN` evaluates alone";
    Ragen "trainer.generations_to_log_to_wandb.val" => "",
        "every episode of every evaluation is kept in the run's folder";
    Both "trainer.logger" => "",
        "records are files of the run's folder: metrics.jsonl, rollouts/, evals/; logging.tensorboard=true and \
         logging.parquet=true copy them";
    Both "trainer.max_actor_ckpt_to_keep" => "execution.checkpoints";
    Both "trainer.max_critic_ckpt_to_keep" => "execution.checkpoints", "a critic is in the policy's checkpoint";
    Both "trainer.critic_warmup" => "critic.warmup", "with critic=own";
    Both "trainer.balance_batch" => "", "rows keep their order, and threads change no number";
    Both "trainer.resume_mode" => "", "the same command resumes; --fresh starts anew";
    Both "trainer.project_name" => "", "a run is called by its experiment and its key";
    Both "trainer.experiment_name" => "", "a run is called by its experiment and its key";
    Both "trainer.default_local_dir" => "", "--runs-dir says where runs live";
    Ragen "trainer.local_log_dir" => "", "--runs-dir says where runs live";
    Both "trainer.n_gpus_per_node" => "", "a run has one device: execution.device";
    Both "trainer.nnodes" => "", "a run has one device: execution.device";
    Ragen "trainer.log_group_rv_table" => "", "every episode's score is in the run's rollouts/";
    Ragen "trainer.gradient_analysis_mode" => "gradients.every" { "True" => "50", "False" => "0" }, "0 is off";
    Ragen "trainer.gradient_analysis_every" => "gradients.every", "0 is off";
    Ragen "trainer.gradient_analysis_env_groups" => "", "the step's own groups are analysed";
    Ragen "trainer.gradient_analysis_group_size" => "", "the step's own groups are analysed";
    Ragen "trainer.gradient_analysis_log_prefilter" => "",
        "the groups that the update sees are analysed; filter=none shows all";
    Ragen "trainer.gradient_analysis_only" => "", "it is done beside the update, whose numbers it does not change";
    Ragen "trainer.exit_after_gradient_analysis" => "train.steps", "end the run with the step that is analysed";
    Ragen "agent_proxy.context_window_mode" => "rollout.window"
        { "full" => "full", "limited_multi_turn" => "limited", "single_turn" => "single-turn" };
    Ragen "agent_proxy.max_context_window" => "rollout.window.turns",
        "with rollout.window=limited; of single-turn it is rollout.window.memory, one less";
    Ragen "agent_proxy.batch_adjust_mode" => "", "no row is copied or dropped: fewer rows than a mini-batch are one";
    Ragen "agent_proxy.max_turn" => "rollout.max-turns";
    Ragen "agent_proxy.action_sep" => "rollout.action-separator";
    Ragen "agent_proxy.max_actions_per_turn" => "rollout.max-actions-per-turn";
    Ragen "agent_proxy.use_turn_scores" => "reward.turn-scores";
    Ragen "agent_proxy.enable_think" => "rollout.think";
    Ragen "agent_proxy.fail_on_prompt_too_long" => "",
        "a full episode that would grow too long ends; other windows leave out turns";
    Ragen "agent_proxy.reward_normalization.grouping" => "reward.normalise.by"
        { "state" => "group", "inductive" => "environment", "batch" => "batch" }, "of reward.normalise=mean-std";
    Ragen "agent_proxy.reward_normalization.method" => "reward.normalise"
        { "identity" => "identity", "mean" => "mean", "mean_std" => "mean-std", "asym_clip" => "asym-clip" },
        "after the filter; reward.when=before-filter is theirs";
    Ragen "collapse_detection.compute_freq" => "collapse.every";
    Ragen "collapse_detection.micro_batch_size" => "",
        "no split of a batch changes a bit here, so there is none to set";
    Ragen "collapse_detection.first_turn_enabled" => "collapse.first-turn" { "True" => "64", "False" => "0" },
        "0 is off";
    Ragen "collapse_detection.multi_turn_enabled" => "collapse.trajectory" { "True" => "32", "False" => "0" },
        "0 is off";
    Ragen "collapse_detection.num_samples" => "collapse.first-turn", "and collapse.trajectory";
    Ragen "collapse_detection.std_eps" => "", "a deviation of 0 gives a z-score of 0";
    Ragen "collapse_detection.ema_decay" => "collapse.ema";
    Ragen "es_manager.format_penalty" => "rollout.format-penalty";
    Ragen "es_manager.train.env_groups" => "rollout.groups";
    Ragen "es_manager.train.group_size" => "rollout.group-size";
    Ragen "es_manager.train.env_configs.tags" => "task"
        { "Bandit" => "bandit", "CoordSokoban" => "sokoban", "SimpleSokoban" => "sokoban", "LargerSokoban" => "sokoban",
          "SokobanDifferentGridVocab" => "sokoban", "FrozenLake" => "frozen-lake", "CoordFrozenLake" => "frozen-lake",
          "Countdown" => "countdown", "MetamathQA" => "math", "SimpleSudoku" => "sudoku", "MediumSudoku" => "sudoku",
          "game_2048" => "2048", "rubikscube" => "rubiks-cube" },
        "or a part of configs/env, which has the tag's settings: @configs/env/coord-sokoban.kdl";
    Ragen "es_manager.train.env_configs.n_groups" => "task.share", "a weight in the mixture, one a task";
    Ragen "es_manager.val.env_groups" => "eval.tasks";
    Ragen "es_manager.val.group_size" => "", "a task is played twice: once sampled, once greedy";
    Ragen "es_manager.val.env_configs.tags" => "eval.task", "the run's own tasks if none is given";
    Ragen "es_manager.val.env_configs.n_groups" => "eval.task.share", "a weight in the mixture, one a task";
    Ragen "ctx_manager.generation.gen_config" => "", "it is never read there; here rollout.sampling";
    Ragen "custom_envs.*.env_type" => "task";
    Ragen "custom_envs.*.max_actions_per_traj" => "rollout.max-actions";
    Ragen "custom_envs.*.max_tokens" => "",
        "it is quoted in the prompt alone; rollout.max-response-tokens is the bound";
    Ragen "custom_envs.*.parallel_friendly" => "", "threads change no number: execution.threads";
    Ragen "custom_envs.*.max_workers" => "execution.threads";
    Ragen "custom_envs.*.env_config" => "task", "its settings are fields of the task: task.size=6,6";
    Ragen "output.dir" => "", "an evaluation's episodes are in the run's folder: evals/";
    Ragen "output.filename" => "", "an evaluation's episodes are in the run's folder: evals/";
    Ragen "output.format" => "", "episodes are JSON lines, compressed by zstd";
};
