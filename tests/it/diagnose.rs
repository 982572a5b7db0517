//! Collapse diagnostics: matrices by hand, draws, regimes, and policies that ignore or copy their prompts.
#![expect(clippy::single_range_in_vec_init, reason = "responses are lists of spans, often of one")]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::ops::Range;

use proptest::prelude::*;
use serde_json::Value;
use starpo::chat::{Chat, Tokens};
use starpo::diagnose::information::{Information, Matrix};
use starpo::diagnose::regime::{History, Point, Regime};
use starpo::diagnose::thought::{Place, Thought, draw, thoughts};
use starpo::diagnose::{Collapse, CollapseConfig};
use starpo::learners::Learners;
use starpo::policy::{
    self, Completion, Cotangent, Family, Learner, Norms, Optimizer, Policy, Request, Row, Sampling, Scores, Session,
    Shape, Transformer, Weights,
};
use starpo::record::Timings;
use starpo::record::episode::{self, Window};
use starpo::rng::Stream;
use starpo::stats;
use starpo::train::{StepRecord, train_step};
use starpo::trajectory::{End, Group, Malformed, Reply, Sequence, Split, Task, Trajectory, Turn};

use super::golden;
use super::run::{Characters, STOP, resolve};

/// A matrix as a person checks it: every row with its matched and marginal, then what follows.
fn table(title: &str, prompts: &[&str], names: &[String], matrix: &Matrix) -> String {
    let mut text = format!("{title}\n\n{:>5} {:<9} {:>3}", "times", "reasoning", "own");
    prompts.iter().for_each(|prompt| write!(text, " {prompt:>10}").unwrap());
    text.push_str("    matched − marginal\n");
    let gains = matrix.pointwise();
    let mut at = 0;
    let all: Vec<usize> = (0..gains.len()).collect();
    for alike in all.chunk_by(|&a, &b| (&names[a], matrix.own[a]) == (&names[b], matrix.own[b])) {
        let (row, own) = (&matrix.sums[at], matrix.own[at]);
        write!(text, "{:>5} {:<9} {:>3}", alike.len(), names[at], prompts[own]).unwrap();
        row.iter().for_each(|sum| write!(text, " {sum:>10.6}").unwrap());
        writeln!(text, "    {:.6} − {:.6} = {:.6}", row[own], row[own] - gains[at], gains[at]).unwrap();
        at += alike.len();
    }
    let (sequence, per_token) = matrix.information();
    writeln!(text, "\n{:<30} {:>9.6}", "mi_bound", matrix.bound()).unwrap();
    for (prefix, values) in [("", json(&sequence)), ("per_token.", json(&per_token)), ("", json(&matrix.retrieval()))] {
        for (name, value) in values.as_object().unwrap() {
            writeln!(text, "{:<30} {:>9.6}", format!("{prefix}{name}"), value.as_f64().unwrap()).unwrap();
        }
    }
    text
}

fn json(value: &impl serde::Serialize) -> Value {
    serde_json::to_value(value).unwrap()
}

#[track_caller]
fn near(a: f64, b: f64) {
    assert!((a - b).abs() < 5e-7, "{a} is not {b}");
}

fn t19(same: [usize; 3]) -> Matrix {
    let sums = vec![vec![-1.0, -2.0, -3.0], vec![-2.0, -1.0, -3.0], vec![-1.5, -1.0, -2.0]];
    Matrix { sums, lengths: vec![1; 3], own: vec![0, 1, 2], same: same.to_vec() }
}

#[test]
fn t19_a_matrix_by_hand() {
    let matrix = t19([0, 1, 2]);
    let (sequence, per_token) = matrix.information();
    assert_eq!(sequence, per_token, "one token each");
    near(sequence.mi, 0.266785);
    near(matrix.bound(), 1.098612);
    near(sequence.conditional_entropy, 4.0 / 3.0);
    near(sequence.marginal_entropy - sequence.conditional_entropy, sequence.mi);
    let marginals: Vec<f64> = [-1.0, -1.0, -2.0].iter().zip(matrix.pointwise()).map(|(m, gain)| m - gain).collect();
    marginals.iter().zip([-1.691006, -1.691006, -1.418343]).for_each(|(&a, b)| near(a, b));
    let found = matrix.retrieval();
    near(found.retrieval, 2.0 / 3.0);
    near(found.retrieval_chance, 1.0 / 3.0);
    near(found.retrieval_2, 2.0 / 3.0);
    let names = ["z0", "z1", "z2"].map(str::to_owned);
    golden("diagnose", "collapse-t19", &table("Case T19, one token each", &["x0", "x1", "x2"], &names, &matrix));
}

/// The second half of T19. At 2, chance is not min(1, 2 · 0.555556) as in RAGEN: two of three prompts miss the first
/// reasoning's own with probability 1/3.
#[test]
fn t19_with_equal_prompts() {
    let found = t19([0, 1, 1]).retrieval();
    assert_eq!((found.retrieval, found.retrieval_2, found.retrieval_4), (1.0, 1.0, 1.0));
    near(found.retrieval_chance, 0.555556);
    near(found.retrieval_2_chance, (2.0 / 3.0 + 1.0 + 1.0) / 3.0);
    assert_eq!(found.retrieval_4_chance, 1.0);
}

/// Says `a` with probability 3/4 after prompt `A`, 1/4 after `B`, whatever it has said before.
#[test]
fn a_memoryless_language_model_by_hand() {
    let p = |prompt: usize, token: char| if (prompt == 0) == (token == 'a') { 0.75f64 } else { 0.25 };
    let mut text = String::new();
    for (length, title) in [(1, "One token: 3 a and 1 b after A, the reverse after B"), (2, "Two tokens: the squares")]
    {
        // Every reasoning as often as the model says it.
        let (mut names, mut matrix) = (vec![], Matrix { sums: vec![], lengths: vec![], own: vec![], same: vec![0, 1] });
        let says = if length == 1 { vec!["a", "b"] } else { vec!["aa", "ab", "ba", "bb"] };
        for own in 0..2 {
            for say in &says {
                let of = |prompt| say.chars().map(|token| p(prompt, token)).product::<f64>();
                for _ in 0..(of(own) * 4f64.powi(length)) as usize {
                    names.push((*say).to_owned());
                    matrix.sums.push((0..2).map(|prompt| of(prompt).ln()).collect());
                    matrix.lengths.push(length as usize);
                    matrix.own.push(own);
                }
            }
        }
        let (sequence, per_token) = matrix.information();
        let entropy = 0.25 * 4f64.ln() + 0.75 * (4.0f64 / 3.0).ln();
        near(sequence.conditional_entropy, f64::from(length) * entropy);
        near(per_token.conditional_entropy, entropy);
        // ln 2 − H(3/4); then 9/16 ln 9/5 + 6/16 ln 1 + 1/16 ln 1/5.
        let mi = [2f64.ln() - entropy, 9.0 / 16.0 * 1.8f64.ln() + 0.2f64.ln() / 16.0][length as usize - 1];
        near(sequence.mi, mi);
        text.push_str(&table(title, &["A", "B"], &names, &matrix));
        text.push('\n');
    }
    golden("diagnose", "collapse-memoryless", text.trim_end());
}

#[test]
fn a_constant_marginal_has_no_z() {
    let sums = vec![vec![-1.5, -1.05]; 4];
    let matrix = Matrix { sums, lengths: vec![3; 4], own: vec![0; 4], same: vec![0, 1] };
    let (sequence, _) = matrix.information();
    assert!(sequence.mi < -0.1 && sequence.marginal_std == 0.0 && sequence.mi_z == 0.0);
}

proptest! {
    #[test]
    fn information_is_bounded_and_follows_its_prompts(
        rows in prop::collection::vec((prop::collection::vec(-9.0..0.0f64, 5), 0..5usize, 1..9usize), 1..12),
        same in prop::collection::vec(0..5usize, 5), shift in 1..5usize,
    ) {
        let same: Vec<usize> = (0..5).map(|j| same.iter().position(|s| *s == same[j]).unwrap()).collect();
        let turned = |column: usize| (column + shift) % 5;
        let turn = |row: &[f64]| (0..5).map(|j| row[(j + 5 - shift) % 5]).collect::<Vec<_>>();
        let lengths: Vec<usize> = rows.iter().map(|row| row.2).collect();
        let matrix = Matrix {
            sums: rows.iter().map(|row| row.0.clone()).collect(),
            lengths: lengths.clone(),
            own: rows.iter().map(|row| row.1).collect(),
            same: same.clone(),
        };
        let other = Matrix {
            sums: rows.iter().map(|row| turn(&row.0)).collect(),
            lengths,
            own: rows.iter().map(|row| turned(row.1)).collect(),
            same: (0..5).map(|j| same[(j + 5 - shift) % 5]).collect(),
        };
        let close = |a: f64, b: f64| (a - b).abs() < 1e-9;
        let ((a, b), (c, d)) = (matrix.information(), other.information());
        for (one, two) in [(a, c), (b, d)] {
            prop_assert!(one.mi <= matrix.bound() + 1e-9);
            prop_assert!(close(one.marginal_entropy - one.conditional_entropy, one.mi));
            prop_assert!(close(one.mi, two.mi) && close(one.marginal_std, two.marginal_std));
        }
        prop_assert!(close(stats::mean(&matrix.pointwise()), a.mi));
        let (found, again) = (matrix.retrieval(), other.retrieval());
        prop_assert!(found.retrieval == again.retrieval && close(found.retrieval_2_chance, again.retrieval_2_chance));
        let shares = [found.retrieval, found.retrieval_2, found.retrieval_4, found.retrieval_8];
        prop_assert!(shares.is_sorted() && shares[3] == 1.0 && close(found.retrieval_8_chance, 1.0));
    }
}

fn config(overrides: &[&str]) -> CollapseConfig {
    resolve("bandit", overrides).config.collapse
}

#[test]
fn regimes_by_hand() {
    let regime = config(&[]).regime;
    let starts = [Point { mi: 1.6, entropy: 0.8 }, Point { mi: 0.0, entropy: 0.8 }, Point { mi: 0.0, entropy: 0.0 }];
    let points = [(1.5, 0.7), (0.8, 0.7), (1.5, 0.4), (0.8, 0.4), (0.05, 0.7), (0.06, 0.7), (0.0, 0.05), (0.0, 0.06)];
    let mut text =
        String::from("Low: at most half of the first measurement's, or 0.05 (the uniform player is at 0).\n");
    for start in starts {
        writeln!(text, "\nfirst MI {}, H(Z|X) {} a token", start.mi, start.entropy).unwrap();
        for (mi, entropy) in points {
            let name = regime.regime(Point { mi, entropy }, start).name();
            writeln!(text, "    MI {mi:<5} H(Z|X) {entropy:<5} {name}").unwrap();
        }
    }
    golden("diagnose", "collapse-regimes", &text);
}

/// A measurement of these numbers, of first turns.
fn measured(mi: f64, std: f64, entropy: f64) -> Collapse {
    let groups = [group(0, &[&[(&[1], &[5])]]), group(1, &[&[(&[2], &[6])]])];
    let mut collapse = config(&[]).measure(&groups, 1, 1, &|_, _| vec![vec![-1.0, -2.0], vec![-2.0, -1.0]]);
    let family = collapse.first_turn.as_mut().unwrap();
    for information in [&mut family.sequence, &mut family.per_token] {
        *information = Information { mi, marginal_std: std, conditional_entropy: entropy, ..*information };
    }
    collapse
}

#[test]
fn a_history_averages_and_names_what_changes() {
    let (config, mut history) = (config(&[]), History::default());
    let mut first = measured(1.0, 0.4, 2.0);
    let told = history.judge(&config, &mut first).unwrap();
    assert_eq!(told, "thoughts: diverse; MI 1.00 of 0.69 nats (first 1.00), H(Z|X) 2.00 nats a token (first 2.00)");
    assert_eq!(first.first_turn.unwrap().sequence.marginal_std_ema, Some(0.4));
    let mut second = measured(0.9, 0.2, 2.0);
    assert_eq!(history.judge(&config, &mut second), None, "nothing new");
    let sequence = second.first_turn.as_ref().unwrap().sequence;
    assert_eq!(sequence.marginal_std_ema, Some(0.9 * 0.4 + (1.0 - 0.9) * 0.2));
    assert_eq!(sequence.mi_z_ema, Some(0.9 / (sequence.marginal_std_ema.unwrap() + 1e-3)));
    let saved: History = serde_json::from_str(&serde_json::to_string(&history).unwrap()).unwrap();
    assert_eq!(saved, history);
    let mut third = measured(0.1, 0.2, 2.0);
    let told = history.judge(&config, &mut third).unwrap();
    assert!(told.starts_with("thoughts: template-collapse, after diverse; MI 0.10"), "{told}");
    assert_eq!(third.regime, Some(Regime::TemplateCollapse));
}

/// What is appended before a thought, and the thought.
type Said<'a> = (&'a [u32], &'a [u32]);

/// A group of episodes of such turns, each in one row.
fn group(id: usize, episodes: &[&[Said<'_>]]) -> Group {
    let member = |(member, turns): (usize, &&[Said<'_>])| {
        let mut row = Sequence::default();
        for (turn, (prompt, thought)) in turns.iter().enumerate() {
            row.tokens.extend_from_slice(prompt);
            row.turns.push(turn);
            row.responses.push(row.tokens.len()..row.tokens.len() + thought.len() + 1);
            row.tokens.extend(thought.iter().chain(&[9]));
        }
        let turns = turns.iter().map(|(_, thought)| turn(thought.len())).collect();
        Trajectory { member, turns, sequences: vec![row], baseline: None, end: End::Failed }
    };
    let task = Task { env: "bandit".into(), epoch: 1, split: Split::Train, index: id as u64 };
    Group { id, task, members: episodes.iter().enumerate().map(member).collect() }
}

/// A turn whose response begins with a thought of so many tokens; none if it has none.
fn turn(thought: usize) -> Turn {
    let reasoning = (thought > 0).then_some(0..thought);
    Turn {
        observation: String::new(),
        anchor: String::new(),
        reply: Reply { text: String::new(), actions: Err(Malformed::Tags), reasoning },
        executed: vec![],
        reward: 0.0,
        penalty: 0.0,
        valid: false,
        effective: false,
    }
}

#[test]
fn a_thought_is_found_in_every_window() {
    let mut group = group(3, &[&[(&[1, 2], &[5, 6]), (&[3], &[]), (&[4], &[7])]]);
    let place = |turn| Place { group: 3, member: 0, turn };
    let wanted = [
        Thought { place: place(0), prompt: &[1, 2], reasoning: &[5, 6] },
        Thought { place: place(2), prompt: &[1, 2, 5, 6, 9, 3, 9, 4], reasoning: &[7] },
    ];
    assert_eq!(thoughts(&group, &group.members[0]), wanted);
    // A row a turn: the prompt is what that row holds.
    let row = |turn, prompt: &[u32], thought: &[u32]| {
        let tokens = [prompt, thought, &[9]].concat();
        let responses = vec![prompt.len()..tokens.len()];
        Sequence { turns: vec![turn], responses, tokens, ..Sequence::default() }
    };
    group.members[0].sequences = vec![row(0, &[1, 2], &[5, 6]), row(1, &[1, 3], &[]), row(2, &[1, 4], &[7])];
    let found = thoughts(&group, &group.members[0]);
    assert_eq!(found, [wanted[0], Thought { prompt: &[1, 4], ..wanted[1] }]);
}

#[test]
fn draws_lose_nothing_and_repeat_nothing() {
    let episode = |member, turns: &[usize]| -> Vec<Thought<'static>> {
        let thought = |&turn| Thought { place: Place { group: 0, member, turn }, prompt: &[1], reasoning: &[2] };
        turns.iter().map(thought).collect()
    };
    let episodes = || vec![episode(0, &[0, 1, 2, 3]), episode(1, &[]), episode(2, &[1]), episode(3, &[0, 2])];
    let stream = |seed| Stream::new("test", seed, &[]);
    let mut counts = BTreeMap::new();
    for seed in 0..400 {
        for count in 0..9 {
            let drawn = draw(episodes(), count, &mut stream(seed));
            assert_eq!(drawn.len(), count.min(7));
            assert!(drawn.is_sorted_by(|a, b| a.place < b.place));
            assert_eq!(drawn, draw(episodes(), count, &mut stream(seed)));
        }
        let first = draw(episodes(), 1, &mut stream(seed))[0].place;
        *counts.entry((first.member, first.turn)).or_insert(0) += 1;
    }
    // A third an episode; then evenly over its thoughts.
    assert!((100..170).contains(&counts[&(2, 1)]), "{counts:?}");
    assert!((20..50).contains(&counts[&(0, 3)]) && (45..90).contains(&counts[&(3, 0)]), "{counts:?}");
}

#[test]
fn equal_prompts_are_scored_once_and_counted_each() {
    let groups = [
        group(0, &[&[(&[1], &[5])], &[(&[1], &[5])]]),
        group(1, &[&[(&[1], &[6])], &[(&[1], &[])]]),
        group(2, &[&[(&[2], &[6])], &[(&[2], &[5])]]),
    ];
    let asked = std::cell::RefCell::new(vec![]);
    let cross = |prompts: &[&[u32]], reasonings: &[&[u32]]| {
        asked.borrow_mut().push((prompts.concat(), reasonings.concat()));
        reasonings.iter().map(|z| prompts.iter().map(|x| -f64::from(x[0] + z[0] - 5)).collect()).collect()
    };
    let collapse = config(&[]).measure(&groups, 1, 1, &cross);
    assert_eq!(asked.borrow()[0], (vec![1, 2], vec![5, 6]));
    assert_eq!(collapse.valid_thinking, 5.0 / 6.0);
    let family = collapse.first_turn.as_ref().unwrap();
    assert_eq!((family.reasonings, family.prompts, family.different_prompts), (5, 3, 2));
    near(family.mi_bound, 3f64.ln());
    // Three reasonings of one of the two equal prompts, which guessing finds in 2 of 3; two of the other.
    near(family.retrieval.retrieval_chance, (3.0 * 2.0 + 2.0 * 1.0) / 15.0);
    let along = collapse.trajectory.as_ref().unwrap();
    assert_eq!((along.reasonings, along.prompts, along.different_prompts), (5, 5, 2));
    let alike = [group(0, &[&[(&[1], &[5])]]), group(1, &[&[(&[1], &[6])]])];
    assert_eq!(config(&[]).measure(&alike, 1, 1, &cross).first_turn, None, "there is nothing to tell apart");
}

const LETTERS: [char; 4] = ['a', 'b', 'c', 'd'];
/// Tokens of a [`Thinker`]'s thought, and where in its prompt it copies from, counted from the end: the board.
const THOUGHT: usize = 40;
const FROM: usize = 80;

/// Thinks 40 letters, then goes up. Deaf, it draws each evenly from four. Copying, it takes nine of ten from its
/// prompt, and else one of 95 characters.
struct Thinker {
    copies: bool,
}

struct Thinking<'a>(&'a Thinker);

impl Thinker {
    fn probability(&self, prompt: &[u32], at: usize, token: u32) -> f64 {
        if !self.copies {
            return 0.25;
        }
        f64::from(u8::from(prompt[prompt.len() - FROM + at] == token)) * 0.9 + 0.1 / 95.0
    }

    fn think(&self, prompt: &[u32], at: usize, draws: &Stream) -> u32 {
        let u = draws.uniform_at(at as u64);
        match self.copies {
            false => u32::from(LETTERS[(4.0 * u) as usize]),
            true if u < 0.9 => prompt[prompt.len() - FROM + at],
            true => 32 + ((u - 0.9) * 950.0) as u32,
        }
    }

    fn scores(&self, prompt: &[u32], response: &[u32]) -> Scores {
        let logprob = |(at, &token)| if at < THOUGHT { self.probability(prompt, at, token).ln() as f32 } else { 0.0 };
        let logprobs = response.iter().enumerate().map(logprob).collect();
        Scores { logprobs, entropies: vec![0.0; response.len()], values: vec![] }
    }
}

impl Policy for Thinker {
    fn open<'a>(&'a self, _: &Sampling, _: usize) -> Box<dyn Session + 'a> {
        Box::new(Thinking(self))
    }
}

impl Session for Thinking<'_> {
    fn generate(&mut self, requests: &[Request<'_>]) -> Vec<Completion> {
        let answer = |request: &Request<'_>| {
            let mut tokens: Vec<u32> =
                (0..THOUGHT).map(|at| self.0.think(request.prompt, at, &request.draws)).collect();
            tokens.extend(Characters.encode("</think><answer>Up</answer>"));
            tokens.push(STOP);
            let Scores { logprobs, entropies, .. } = self.0.scores(request.prompt, &tokens);
            Completion { tokens, logprobs, entropies }
        };
        requests.iter().map(answer).collect()
    }
}

impl Learner for Thinker {
    fn score(&self, rows: &[Row<'_>], _: f64) -> Vec<Scores> {
        let score = |row: &Row<'_>| {
            let mut all = Scores::default();
            for response in row.responses {
                let scores = self.scores(&row.tokens[..response.start], &row.tokens[response.clone()]);
                all.logprobs.extend(scores.logprobs);
                all.entropies.extend(scores.entropies);
            }
            all
        };
        rows.iter().map(score).collect()
    }

    fn gradient(
        &mut self,
        rows: &[Row<'_>],
        _: &[Range<usize>],
        temperature: f64,
        _: &(dyn Fn(usize, &Scores) -> Cotangent + Sync),
    ) -> Vec<Scores> {
        self.score(rows, temperature)
    }

    fn step(&mut self, _: &Optimizer) -> Result<Norms, f64> {
        Ok(Norms { gradient: 0.0 })
    }

    fn discard(&mut self) -> f64 {
        0.0
    }

    fn save(&self) -> Vec<(String, Vec<u8>)> {
        vec![]
    }

    fn restore(&mut self, _: &[(String, Vec<u8>)]) -> Result<(), String> {
        Ok(())
    }
}

/// A whole training step, with the measurement judged as a run's first.
fn step(copies: bool, overrides: &[&str], step: usize, timings: &mut Timings) -> (StepRecord, Vec<Group>) {
    let small = ["warm-start=none", "groups=6", "group-size=8", "max-turns=3", "max-response-tokens=80"];
    let long = ["max-context-tokens=4000"];
    let resolved = resolve("sokoban", &[&small[..], &long, overrides].concat());
    let chat = Chat::new(&Characters, resolved.config.rollout.think).unwrap();
    let mut learner = Thinker { copies };
    let learners = &mut Learners::alone(&mut learner);
    let (mut record, groups) = train_step(&resolved.config, &chat, learners, step, 1.0, &mut 0.0, timings).unwrap();
    record.collapse.as_mut().map(|collapse| History::default().judge(&resolved.config.collapse, collapse));
    (record, groups)
}

#[test]
fn a_policy_that_ignores_its_prompt_is_template_collapse_in_every_window() {
    for window in ["window=full", "window=limited", "window=single-turn"] {
        let collapse = step(false, &[window], 1, &mut Timings::new()).0.collapse.unwrap();
        for family in [collapse.first_turn.as_ref().unwrap(), collapse.trajectory.as_ref().unwrap()] {
            assert!(family.sequence.mi.abs() <= 0.05 && family.per_token.mi.abs() <= 0.05, "{family:?}");
            near(family.per_token.conditional_entropy, f64::from(0.25f32.ln()).abs());
            assert_eq!((family.sequence.marginal_std, family.sequence.mi_z), (0.0, 0.0));
        }
        assert_eq!((collapse.regime, collapse.valid_thinking), (Some(Regime::TemplateCollapse), 1.0));
    }
}

#[test]
fn a_policy_that_copies_its_prompt_is_retrieved() {
    let (record, groups) = step(true, &[], 1, &mut Timings::new());
    let collapse = record.collapse.unwrap();
    let first = collapse.first_turn.as_ref().unwrap();
    // What is matched is what was recorded while sampling.
    let rows = groups.iter().flat_map(|group| &group.members).map(|member| &member.sequences[0].logprobs[..THOUGHT]);
    let recorded: Vec<f64> = rows.map(|thought| thought.iter().map(|&l| f64::from(l)).sum()).collect();
    assert_eq!(first.sequence.conditional_entropy, -stats::mean(&recorded));
    assert!(first.retrieval.retrieval >= 0.95 && first.retrieval.retrieval_chance < 0.2, "{first:?}");
    assert!(first.sequence.mi > 0.9 * first.mi_bound && first.sequence.mi <= first.mi_bound + 1e-9);
    // Later prompts may show one board after different thoughts, which a copy of the board cannot tell apart.
    let along = collapse.trajectory.as_ref().unwrap();
    assert!(along.retrieval.retrieval > 10.0 * along.retrieval.retrieval_chance, "{along:?}");
    assert_eq!(collapse.regime, Some(Regime::Diverse));
}

#[test]
fn measured_at_the_first_step_and_at_multiples() {
    let due = |overrides: &[&str]| -> Vec<usize> { (0..12).filter(|&step| config(overrides).due(step)).collect() };
    assert_eq!(due(&["collapse.every=4"])[..], [0, 1, 4, 8]);
    assert!(due(&["collapse.every=0"]).is_empty());
    let mut timings = Timings::new();
    let phases = |timings: &mut Timings| timings.end_step(1)["phases"].clone();
    assert!(step(true, &[], 2, &mut timings).0.collapse.is_none() && phases(&mut timings)["collapse"].is_null());
    assert!(step(true, &["think=false"], 5, &mut timings).0.collapse.is_none());
    assert!(step(true, &[], 5, &mut timings).0.collapse.is_some() && phases(&mut timings)["collapse"].is_f64());
    let one = step(true, &["collapse.trajectory=0", "collapse.first-turn=9"], 5, &mut timings).0.collapse.unwrap();
    assert!(one.trajectory.is_none() && one.first_turn.unwrap().reasonings == 9);
}

#[test]
fn records_hold_the_information_of_single_turns() {
    let (record, groups) = step(true, &["collapse.trajectory=20"], 1, &mut Timings::new());
    let collapse = record.collapse.unwrap();
    let records = episode::read(&episode::lines(1, Window::Full, &groups, &collapse.turns())).unwrap();
    let mut found = BTreeSet::new();
    let (mut sum, mut first) = (0.0, 0);
    for record in &records {
        for turn in &record.turns {
            if let Some(mi) = turn.metrics.get("mi") {
                found.insert((record.group, record.member, turn.turn));
                sum += mi;
            }
            first += usize::from(turn.metrics.contains_key("mi_first_turn"));
            assert!(turn.turn == 1 || !turn.metrics.contains_key("mi_first_turn"));
        }
    }
    let along = collapse.trajectory.unwrap();
    assert_eq!((found.len(), first), (20, 48));
    near(sum / 20.0, along.sequence.mi);
}

fn transformer(threads: usize) -> Transformer {
    let shape = Shape {
        family: Family::Llama,
        vocab: 40,
        width: 64,
        layers: 3,
        heads: 4,
        kv_heads: 2,
        head_dim: 16,
        ffn: 96,
        rope_theta: 1e4,
        norm_eps: 1e-5,
        tied: true,
    };
    Transformer::new(Weights::random(shape, 0.3, 5).unwrap(), policy::device("cpu").unwrap(), threads)
}

fn texts(name: u64, count: usize, lengths: Range<usize>) -> Vec<Vec<u32>> {
    let text = |i| {
        let mut stream = Stream::new("texts", name, &[i as u64]);
        (0..lengths.start + stream.below(lengths.len())).map(|_| stream.below(40) as u32).collect()
    };
    (0..count).map(text).collect()
}

/// To the bit, from prompts of one token on, on any number of threads.
#[test]
fn a_prompt_read_once_gives_what_whole_rows_give() {
    let (prompts, continuations) = (texts(1, 5, 1..50), texts(2, 37, 1..20));
    let prompts: Vec<&[u32]> = prompts.iter().map(Vec::as_slice).chain([&[7][..]]).collect();
    let continuations: Vec<&[u32]> = continuations.iter().map(Vec::as_slice).collect();
    for temperature in [1.0, 0.7, 0.0] {
        let one = transformer(1);
        let crossed = one.cross(&prompts, &continuations, temperature);
        assert_eq!(crossed, transformer(3).cross(&prompts, &continuations, temperature));
        for (continuation, sums) in continuations.iter().zip(&crossed) {
            for (prompt, sum) in prompts.iter().zip(sums) {
                let tokens = [*prompt, *continuation].concat();
                let response = prompt.len()..tokens.len();
                let row = Row { tokens: &tokens, responses: std::slice::from_ref(&response) };
                let scores = &one.score(&[row], temperature)[0].logprobs;
                assert_eq!(scores.iter().map(|&l| f64::from(l)).sum::<f64>(), *sum);
            }
        }
    }
}

/// Without what attention adds, a token sees itself alone, so a thought sees of its prompt its last token.
#[test]
fn a_decoder_without_attention_is_template_collapse() {
    let mut weights = transformer(1).weights().clone();
    let parts = weights.shape().parts();
    for part in parts.into_iter().filter(|part| part.name.ends_with("o_proj.weight")) {
        weights.values_mut()[part.range].fill(0.0);
    }
    let deaf = Transformer::new(weights, policy::device("cpu").unwrap(), 2);
    let episodes: Vec<(Vec<u32>, Vec<Vec<u32>>)> =
        texts(1, 8, 9..20).into_iter().map(|mut x| (x.pop(), x).1).zip((0..8).map(|g| texts(9 + g, 8, 4..9))).collect();
    let groups: Vec<Group> = episodes
        .iter()
        .enumerate()
        .map(|(id, (prompt, thoughts))| {
            let prompt = [prompt.as_slice(), &[0]].concat();
            let turns: Vec<[Said<'_>; 1]> = thoughts.iter().map(|z| [(&prompt[..], &z[..])]).collect();
            group(id, &turns.iter().map(|turn| &turn[..]).collect::<Vec<_>>())
        })
        .collect();
    let mut regimes = vec![];
    for learner in [&deaf, &transformer(2)] {
        let cross = |prompts: &[&[u32]], reasonings: &[&[u32]]| learner.cross(prompts, reasonings, 1.0);
        let mut collapse = config(&[]).measure(&groups, 1, 1, &cross);
        History::default().judge(&config(&[]), &mut collapse);
        regimes.push((collapse.regime.unwrap(), collapse.first_turn.unwrap().sequence.mi));
    }
    assert_eq!(regimes[0], (Regime::TemplateCollapse, 0.0));
    assert_ne!(regimes[1].1, 0.0, "with attention the prompt shows");
}
