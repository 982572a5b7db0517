//! Early stops on plain records, and whole runs that refill, stop early, and keep their best checkpoint.

#![expect(clippy::unwrap_used, reason = "a test fails where it unwraps")]

use std::path::Path;

use serde_json::{Value, json};
use starpo::chat::Chat;
use starpo::config::Section;
use starpo::experiment::{Resolved, resolve_with};
use starpo::filter::{EmptyConfig, EqualRewards, FilterConfig, Refill};
use starpo::gather::gather;
use starpo::record::{Disk, checkpoint, reader};
use starpo::stop::{ActionConfig, EndRun, Rule, ScaleLr, SpreadCollapse, StopConfig, Stops, ValidationFloor, metric};
use starpo::trajectory::Group;

use crate::config::Files;
use crate::disk::{End, Memory};
use crate::run::{Characters, Choice, SMALL, attempt, latest, resolve};

/// The step of the record, counted from 0, at which one of these stops ends the run, and why.
fn ends(stops: &[StopConfig], records: &[Value]) -> Option<(usize, String)> {
    let mut calm = Stops::new(stops, 2);
    records.iter().enumerate().find_map(|(step, record)| {
        // Whatever it has seen survives being saved and restored.
        let mut resumed = Stops::new(stops, 2);
        resumed.restore(&serde_json::from_str(&calm.save().to_string()).unwrap()).unwrap();
        let reason = calm.feed(record).unwrap();
        assert_eq!(resumed.feed(record).unwrap(), reason);
        assert_eq!(resumed.save(), calm.save());
        reason.map(|reason| (step, reason))
    })
}

fn kept(kept: usize, spread: f64) -> Value {
    json!({ "step": 1, "rollout": { "reward_std": spread }, "filter": { "kept": kept } })
}

fn evaluated(step: usize, success: f64) -> Value {
    json!({ "step": step, "eval": { "success": success } })
}

fn rule(when: &str, below: Option<f64>, above: Option<f64>, records: usize) -> Rule {
    Rule { when: when.into(), below, above, r#for: records, action: ActionConfig::Stop(EndRun {}) }
}

#[test]
fn spreads_that_fall_to_a_share_of_the_first_end_the_run() {
    let stop = [StopConfig::SpreadCollapse(SpreadCollapse { window: 2, share: 0.5 })];
    // The baseline is (4 + 2) / 2; steps that keep nothing count nowhere, and one at the bound begins anew.
    let spreads = [(1, 4.0), (0, 9.0), (1, 2.0), (1, 1.4), (1, 1.5), (1, 1.4), (0, 9.0), (1, 0.1), (1, 0.1)];
    let records = spreads.map(|(groups, spread)| kept(groups, spread));
    let (step, reason) = ends(&stop, &records).unwrap();
    assert_eq!(step, 7);
    let why = "rollout.reward_std was below 0.5 of its first 2 steps' mean, 3, in 2 steps (stop \"spread-collapse\")";
    assert_eq!(reason, why);
    assert_eq!(ends(&stop, &records[..7]), None);
    assert_eq!(ends(&stop, &[(); 9].map(|()| kept(1, 0.0))), None, "nothing is below a share of nothing");
}

#[test]
fn evaluations_that_solve_nothing_end_the_run() {
    let stop = [StopConfig::ValidationFloor(ValidationFloor { below: 0.01, r#for: 2 })];
    let records = [(0, 0.0), (5, 0.0), (10, 0.01), (15, 0.0), (20, 0.0)].map(|(step, share)| evaluated(step, share));
    let (step, reason) = ends(&stop, &records).unwrap();
    assert_eq!(
        (step, &*reason),
        (4, "eval.success was below 0.01 in 2 consecutive evaluations (stop \"validation-floor\")")
    );
    assert_eq!(ends(&stop, &records[..4]), None, "neither the first of all nor what is not below it counts");
}

#[test]
fn a_rule_counts_the_records_that_have_its_metric() {
    let stop = [StopConfig::Rule(rule("update.kl", None, Some(0.1), 2))];
    let kl = |kl: f64| json!({ "step": 1, "update": { "kl": kl } });
    let records = [kl(0.2), kl(0.1), kl(0.3), json!({ "step": 2 }), kl(f64::NAN), kl(0.2), kl(0.0)];
    let (step, reason) = ends(&stop, &records).unwrap();
    assert_eq!((step, &*reason), (5, "update.kl was above 0.1 in 2 consecutive records (stop \"rule\")"));
    let below = [StopConfig::Rule(rule("update.kl", Some(0.2), None, 1))];
    assert_eq!(ends(&below, &records).unwrap().0, 1);
}

#[test]
fn a_rule_scales_the_learning_rate_each_time_it_holds() {
    let action = ActionConfig::ScaleLr(ScaleLr { factor: 0.5 });
    let stop = [StopConfig::Rule(Rule { action, ..rule("eval.success", Some(0.5), None, 2) })];
    let mut stops = Stops::new(&stop, 0);
    let scales = [0.1, 0.1, 0.1, 0.1, 0.9, 0.1].map(|success| {
        assert_eq!(stops.feed(&evaluated(1, success)).unwrap(), None);
        stops.lr_scale()
    });
    assert_eq!(scales, [1.0, 0.5, 0.5, 0.25, 0.25, 0.25]);
}

#[test]
fn a_metric_that_is_not_there_is_an_error_with_the_names_of_those_that_are() {
    let record = json!({ "step": 3, "rollout": { "success": 0.5, "entropy": null, "turn": { "mean": 1 } } });
    assert_eq!(metric(&record, "rollout.turn.mean").unwrap(), Some(1.0));
    assert_eq!(metric(&record, "rollout.entropy").unwrap(), None);
    assert_eq!(metric(&record, "eval.success").unwrap(), None);
    // Thoughts that are all alike, or all missing, leave nothing to measure: no reason to fail.
    let mute = json!({ "step": 2, "collapse": { "valid_thinking": 0.0, "first_turn": null } });
    assert_eq!(metric(&mute, "collapse.first_turn.mi").unwrap(), None);
    let names = "it has rollout.success, rollout.entropy, rollout.turn.mean";
    for path in ["rollout.succes", "rollout.turn", "rollout.success.mean", "rollout"] {
        let error = Stops::new(&[StopConfig::Rule(rule(path, Some(1.0), None, 1))], 0).feed(&record).unwrap_err();
        assert_eq!(error, format!("the record of step 3 has no number `{path}`: {names}"));
    }
    let two = [StopConfig::Rule(rule("rollout.success", Some(0.0), None, 1))];
    let other = Stops::new(&two, 0).save();
    assert!(Stops::new(&[], 0).restore(&other).is_err() && Stops::new(&two, 0).restore(&Value::Null).is_err());
}

/// The bandit, small, with more in its file.
fn bandit(more: &str, overrides: &[&str]) -> Resolved {
    let head = "experiment \"test\" {\n    extends \"bandit\"\n";
    let files = Files::with(&[("experiments/test.kdl", &format!("{head}{more}\n}}\n"))]);
    resolve_with("test", &latest(&[&SMALL[..], overrides].concat()), &files).unwrap()
}

/// Runs it calmly and killed once at call `call` of the disk: equal digests. Gives the calm run's folder.
fn twice(resolved: &Resolved, call: usize) -> tempfile::TempDir {
    let (calm, killed) = (tempfile::tempdir().unwrap(), Memory::killed_at(call));
    let expected = attempt(&Disk::default(), calm.path(), resolved).unwrap();
    assert!(attempt(&killed.disk(), Path::new("runs"), resolved).is_err(), "killed before its end");
    killed.restart(End::Everything);
    assert_eq!(attempt(&killed.disk(), Path::new("runs"), resolved).unwrap(), expected);
    let result = |disk: &Disk, runs: &Path| reader::result(disk, &runs.join(resolved.id().to_string())).unwrap();
    assert_eq!(result(&Disk::default(), calm.path()), result(&killed.disk(), Path::new("runs")));
    calm
}

fn lines(runs: &Path, resolved: &Resolved) -> Vec<Value> {
    reader::metrics(&Disk::default(), &runs.join(resolved.id().to_string())).unwrap()
}

#[test]
fn a_run_that_refills_plays_fresh_tasks_until_it_has_enough() {
    let refill = ["filter=equal-rewards", "filter.empty=refill", "filter.empty.tries=2", "group-size=2"];
    let resolved = bandit("", &refill);
    let runs = twice(&resolved, 45);
    let mut tries = Vec::new();
    for line in &lines(runs.path(), &resolved)[1..] {
        let number = |path| metric(line, path).unwrap().unwrap();
        tries.push(number("filter.tries"));
        let (kept, played) = (number("filter.kept"), 6.0 * number("filter.tries"));
        assert!(kept == 6.0 || number("filter.tries") == 3.0);
        assert_eq!(number("filter.wasted"), 2.0 * (played - kept));
        assert_eq!(number("filter.kept_share"), kept / played);
        let step = line["step"].as_u64().unwrap();
        let path = runs.path().join(resolved.id().to_string()).join(format!("rollouts/step-{step:06}.jsonl.zst"));
        assert_eq!(reader::episodes(&Disk::default(), &path).unwrap().lines().count() as f64, 2.0 * played);
    }
    assert!(tries.iter().any(|tries| *tries > 1.0), "{tries:?}");
}

#[test]
fn rounds_have_tasks_numbers_and_draws_of_their_own() {
    let overrides = ["groups=2", "group-size=2", "task-offset=100", "task.low=0.0", "task.high=1e-12", "chance=1.0"];
    let mut resolved = resolve("bandit", &[&SMALL[..], &overrides].concat());
    let chat = Chat::new(&Characters, true).unwrap();
    let mut play = |empty: EmptyConfig, step| {
        resolved.config.filter = FilterConfig::EqualRewards(EqualRewards { empty, empty_stop: 0 });
        gather(&resolved.config, &chat, &Choice::new(), step)
    };
    let tasks = |groups: &[Group]| groups.iter().map(|group| (group.id, group.task.index)).collect::<Vec<_>>();
    let refill = || EmptyConfig::Refill(Refill { tries: 2 });
    let first = play(refill(), 1);
    // Nothing is ever kept here, so every round is played: step s begins at 100 + 6·(s − 1).
    assert_eq!(tasks(&first.groups), (0..6).map(|group| (group, 100 + group as u64)).collect::<Vec<_>>());
    assert_eq!((first.kept.len(), first.tries, first.stats().wasted), (0, 3, 12));
    assert_eq!(tasks(&play(refill(), 2).groups)[0], (0, 106));
    let calm = play(EmptyConfig::Skip(starpo::filter::Skip {}), 1);
    assert_eq!((calm.tries, &calm.groups[..]), (1, &first.groups[..2]));
}

#[test]
fn kept_groups_of_all_rounds_are_cut_to_a_steps_number() {
    let overrides = ["groups=3", "group-size=3", "filter=equal-rewards", "filter.empty=refill", "filter.empty.tries=9"];
    let resolved = bandit("", &overrides);
    let chat = Chat::new(&Characters, true).unwrap();
    let mut surplus = 0;
    for step in 1..20 {
        let gathered = gather(&resolved.config, &chat, &Choice::new(), step);
        let differ: Vec<usize> = (0..gathered.groups.len())
            .filter(|group| starpo::filter::zero(&gathered.groups[*group..=*group]) == 0)
            .collect();
        assert_eq!(gathered.kept, differ[..3]);
        assert!(differ.iter().filter(|group| **group < 3 * (gathered.tries - 1)).count() < 3, "no round too many");
        surplus += differ.len() - 3;
    }
    assert!(surplus > 0, "some step kept more than it needs");
}

#[test]
fn a_run_that_stops_early_ends_in_order_and_says_why() {
    let stop = "stop \"rule\" { when \"rollout.success\"; above -1.0; for 3 }\nstop \"spread-collapse\"";
    let resolved = bandit(stop, &["steps=50", "eval.every=20"]);
    let runs = twice(&resolved, 31);
    let lines = lines(runs.path(), &resolved);
    let last = lines.last().unwrap();
    assert_eq!(last["step"], 3);
    assert!(last["eval"].is_object() && lines[2]["eval"].is_null(), "with a final evaluation");
    let run = runs.path().join(resolved.id().to_string());
    let result = reader::result(&Disk::default(), &run).unwrap().unwrap();
    assert_eq!(result.stop.unwrap(), "rollout.success was above -1 in 3 consecutive records (stop \"rule\")");
    assert_eq!(checkpoint::steps(&Disk::default(), &run).unwrap().last(), Some(&3));
    // Every part of a record is one that a rule may look at.
    let parts = lines.iter().flat_map(|line| line.as_object().unwrap().keys());
    let known = starpo::stop::parts();
    assert!(parts.into_iter().all(|part| part == "step" || known.contains(&part.as_str())));
}

#[test]
fn a_rule_over_a_metric_that_no_record_has_fails_the_first_step() {
    let two = "task \"bandit\"\ntask \"number-line\"\n";
    let stop = "stop \"rule\" { when \"rollout.by_env.sokoban.success\"; below 0.0 }";
    let resolved = bandit(&format!("{two}{stop}"), &[]);
    let runs = tempfile::tempdir().unwrap();
    let error = attempt(&Disk::default(), runs.path(), &resolved).unwrap_err().to_string();
    assert!(error.contains("step 1 of ") && error.contains("it has rollout.success, "), "{error}");
}

#[test]
fn a_rule_scales_what_is_left_of_the_run() {
    let stop = "stop \"rule\" { when \"rollout.success\"; above -1.0; for 2; action \"scale-lr\" factor=0.5 }";
    let resolved = bandit(stop, &["update.schedule=constant", "update.learning-rate=0.25"]);
    let runs = twice(&resolved, 39);
    let rates: Vec<Value> =
        lines(runs.path(), &resolved)[1..].iter().map(|line| line["update"]["learning_rate"].clone()).collect();
    assert_eq!(rates, [0.25, 0.25, 0.125, 0.125, 0.0625]);
}

#[test]
fn the_checkpoint_of_the_best_evaluation_is_kept() {
    // Seeds move what is drawn, so that the best evaluation comes early in some runs and late in others.
    let mut found = Vec::new();
    for seed in ["seed=4", "seed=5", "seed=6"] {
        let restless =
            [seed, "steps=9", "eval.every=1", "update.learning-rate=0.3", "checkpoint-every=4", "checkpoints=1"];
        let resolved = bandit("", &restless);
        let runs = twice(&resolved, 55);
        let run = runs.path().join(resolved.id().to_string());
        let scores: Vec<f64> =
            lines(runs.path(), &resolved).iter().map(|line| line["eval"]["success"].as_f64().unwrap()).collect();
        let best = (0..scores.len()).max_by(|a, b| scores[*a].total_cmp(&scores[*b]).then(b.cmp(a))).unwrap();
        let result = reader::result(&Disk::default(), &run).unwrap().unwrap();
        assert_eq!(result.best, Some(best as u64), "{scores:?}");
        let mut kept = vec![best, 9];
        kept.dedup();
        assert_eq!(checkpoint::steps(&Disk::default(), &run).unwrap(), kept);
        assert_eq!(checkpoint::load(&Disk::default(), &run, best).unwrap().counters["best"]["step"], best);
        found.push(best);
    }
    assert!(found.iter().any(|best| ![0, 4, 8, 9].contains(best)), "{found:?}: off the cadence");
}

#[test]
fn stops_have_the_defaults_of_ragen() {
    let config = bandit("stop \"spread-collapse\"\nstop \"validation-floor\"", &[]).config;
    let spread = StopConfig::SpreadCollapse(SpreadCollapse { window: 10, share: 0.1 });
    let floor = StopConfig::ValidationFloor(ValidationFloor { below: 0.01, r#for: 5 });
    assert_eq!(config.stop, [spread, floor]);
    assert!(Rule::FIELDS.iter().any(|field| field.name == "for"));
}
