//! Mixtures: shares, what is measured of each environment, evaluations of other tasks; and stepping on threads.

use std::collections::BTreeMap;

use rayon::ThreadPoolBuilder;
use starpo::chat::Chat;
use starpo::evaluate::evaluate;
use starpo::experiment::{self, EMBEDDED, Resolved, WarmStartConfig};
use starpo::policy::{Expert, Policy, Tokenizer, Uniform, Voice};
use starpo::rollout::{self, RolloutStats};
use starpo::trajectory::Group;
use starpo::warm_start;

use crate::config::Files;
use crate::run::{Characters, resolve};

const ROOM: [&str; 2] = ["max-context-tokens=1000000", "max-response-tokens=1000"];

fn mixture(overrides: &[&str]) -> Resolved {
    resolve("mixture", &[&ROOM[..], overrides].concat())
}

pub(crate) fn uniform<'a>(resolved: &Resolved, chat: &'a Chat<'a>) -> Uniform<'a> {
    let script = resolved.config.rollout.script();
    let voice = Voice::new(|text: &str| chat.continuation(text), chat.end());
    Uniform::new(voice, move |thought, actions| {
        script.reply(thought, &actions.iter().map(String::as_str).collect::<Vec<_>>())
    })
}

pub(crate) fn expert<'a>(chat: &'a Chat<'a>) -> Expert<'a> {
    Expert::new(Voice::new(|text: &str| chat.continuation(text), chat.end()))
}

fn counts(groups: &[Group]) -> BTreeMap<&str, usize> {
    let mut counts = BTreeMap::new();
    groups.iter().for_each(|group| *counts.entry(group.task.env.as_str()).or_default() += 1);
    counts
}

#[test]
fn each_environment_has_its_share_and_its_metrics() {
    let resolved = mixture(&["groups=16", "group-size=3"]);
    let chat = Chat::new(&Characters, true).unwrap();
    let groups = rollout::collect(&resolved.config, &chat, &uniform(&resolved, &chat), 1, 0);
    assert_eq!(counts(&groups), [("blackjack", 4), ("frozen-lake", 8), ("number-line", 4)].into());
    let stats = RolloutStats::of(&groups, 0.0);
    assert!(stats.by_env.keys().eq(["blackjack", "frozen-lake", "number-line"]));
    for (env, of_env) in &stats.by_env {
        let own: Vec<Group> = groups.iter().filter(|group| group.task.env == *env).cloned().collect();
        let alone = RolloutStats::of(&own, 0.0);
        assert_eq!((of_env.success, of_env.reward, of_env.pass_at_k), (alone.success, alone.reward, alone.pass_at_k));
        assert!(alone.by_env.is_empty(), "one environment needs no second table");
    }
    let json = serde_json::to_value(&stats).unwrap();
    assert!(json["by_env"]["frozen-lake"]["pass_at_k"].is_f64(), "{json}");
}

#[test]
fn an_evaluation_may_have_tasks_of_its_own() {
    let resolved = mixture(&["eval.tasks=40"]);
    let chat = Chat::new(&Characters, true).unwrap();
    let evaluation = evaluate(&resolved.config, &chat, &expert(&chat));
    let each = [("bandit", 10), ("blackjack", 10), ("frozen-lake", 10), ("number-line", 10)];
    assert_eq!(counts(&evaluation.sampled), each.into());
    let json = serde_json::to_value(&evaluation.stats).unwrap();
    for path in ["/by_env/bandit/success", "/by_env/number-line/success", "/greedy/by_env/frozen-lake/reward"] {
        assert_eq!(json.pointer(path), Some(&1.0.into()), "{path} in {json}");
    }
    let own = resolve("bandit", &["eval.tasks=8"]);
    let alone = evaluate(&own.config, &chat, &expert(&chat)).stats;
    assert!(serde_json::to_value(&alone).unwrap().get("by_env").is_none());
}

/// Environments that say they are slow are stepped on rayon's threads.
#[test]
fn threads_change_nothing_in_what_is_played() {
    let task = "task \"sokoban\" { size 7 7; boxes 2 }; task \"points24\"; task \"frozen-lake\" { slip 0.3 }";
    let resolved =
        document(task, &[&ROOM[..], &["rollout.groups=6", "rollout.group-size=3", "rollout.max-turns=6"]].concat());
    assert!(resolved.config.task[0].env.is_slow() && !resolved.config.task[2].env.is_slow());
    let chat = Chat::new(&Characters, true).unwrap();
    for advised in [true, false] {
        let play = |threads: usize| {
            let pool = ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                let player: Box<dyn Policy + '_> =
                    if advised { Box::new(expert(&chat)) } else { Box::new(uniform(&resolved, &chat)) };
                rollout::collect(&resolved.config, &chat, &*player, 1, 0)
            })
        };
        let one = play(1);
        assert!(one.iter().any(|group| group.members.iter().any(|member| member.turns.len() > 1)));
        assert_eq!(play(2), one);
        assert_eq!(play(5), one);
    }
}

/// An experiment of these tasks on the tiny model's prompts.
fn document(tasks: &str, overrides: &[&str]) -> Resolved {
    let text = format!("experiment \"test\" {{\n    extends \"base\"\n    use \"model/tiny\"\n    {tasks}\n}}");
    let files = Files::with(&[("experiments/test.kdl", &text)]);
    let overrides: Vec<String> = overrides.iter().map(|text| (*text).to_owned()).collect();
    experiment::resolve_with("test", &overrides, &files).unwrap()
}

#[test]
fn what_the_experts_say_fits_into_each_experiment() {
    let tokenizer = Tokenizer::from_json(include_str!("../../configs/model/tiny-tokenizer.json")).unwrap();
    let chat = Chat::new(&tokenizer, true).unwrap();
    let experiment = |path: &str| path.starts_with("experiments/") && !path.starts_with("experiments/sweeps/");
    for (path, _) in EMBEDDED.iter().filter(|(path, _)| experiment(path)) {
        let resolved = resolve(path, &["warm-start.episodes=200"]);
        let WarmStartConfig::Expert(warm) = &resolved.config.warm_start else { continue };
        for episode in warm_start::episodes(&resolved.config, warm, &chat, &expert(&chat)) {
            let row = &episode.sequences[0];
            assert!(row.responses.iter().all(|span| row.tokens[span.end - 1] == chat.end()), "{path}: {episode:?}");
        }
    }
}
