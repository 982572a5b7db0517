//! Windows and masks: what prompts show, what is left out, what is learned from, and whole steps under each.
#![expect(clippy::single_range_in_vec_init, reason = "a row's spans are a list, often of one")]

use std::fmt::Write as _;
use std::ops::{Range, RangeInclusive};
use std::path::Path;

use proptest::prelude::*;
use starpo::chat::window::{FullWindow, LimitedWindow, SingleTurnWindow};
use starpo::chat::{Chat, Mask, Tokens, WindowConfig};
use starpo::experiment::{Resolved, ResolvedConfig, RolloutConfig};
use starpo::learners::Learners;
use starpo::policy::{self, Family, Scripted, Shape, Tokenizer, Transformer, Voice, Weights};
use starpo::record::Timings;
use starpo::record::episode::{self, TurnMetrics, Window};
use starpo::rng::Stream;
use starpo::rollout::{self, Plan, RolloutStats};
use starpo::train::train_step;
use starpo::trajectory::{End, Limit, Sequence, Split, Trajectory};
use starpo::warm_start;

use crate::disk::{self, Memory};
use crate::golden;
use crate::run::{Characters, SMALL, attempt, resolve};

const WINDOWS: [&[&str]; 3] =
    [&["window=full"], &["window=limited", "window.turns=2"], &["window=single-turn", "window.memory=1"]];

/// The tokens of case T13's dialogue, whose texts are one word each.
struct Ids;

const NAMES: [(u32, &str); 9] = [
    (1, "<|im_start|>"),
    (2, "<|im_end|>"),
    (3, "newline"),
    (10, "system"),
    (11, "s"),
    (20, "user"),
    (21, "u1"),
    (22, "u2"),
    (30, "assistant"),
];

impl Tokens for Ids {
    fn encode(&self, text: &str) -> Vec<u32> {
        let ids: &[u32] = match text {
            "system\ns" => &[10, 11],
            "user\nu1" => &[20, 21],
            "user\nu2" => &[20, 22],
            "assistant\n" => &[30],
            "\n" => &[3],
            "<think>" => &[],
            text => panic!("{text:?} is not in T13"),
        };
        ids.to_vec()
    }

    fn decode(&self, _: &[u32]) -> String {
        String::new()
    }

    fn specials(&self) -> Vec<(String, u32)> {
        NAMES[..2].iter().map(|(id, name)| ((*name).to_owned(), *id)).collect()
    }
}

/// T13's rows: both turns in one, the second one's under `limited`, the first one's alone.
fn t13(chat: &Chat<'_>) -> [Sequence; 3] {
    let mut full = Sequence { tokens: chat.system("s"), ..Sequence::default() };
    for (user, response) in [("u1", &[31, 32, 2][..]), ("u2", &[33, 2])] {
        full.tokens.extend(chat.user(user));
        let start = full.tokens.len();
        full.tokens.extend(response);
        full.responses.push(start..full.tokens.len());
        full.tokens.extend(chat.close(response));
    }
    let limited = Sequence { responses: full.responses[1..].to_vec(), ..full.clone() };
    let single = Sequence { tokens: full.tokens[..16].to_vec(), responses: vec![12..15], ..Sequence::default() };
    [full, limited, single]
}

/// Case T13. RAGEN's slots are targets of a row with two pads before it: its slot t is token t − 1 here.
#[test]
fn t13_masks_of_every_window() {
    let chat = Chat::new(&Ids, true).unwrap();
    let [full, limited, single] = t13(&chat);
    let ids = [1, 10, 11, 2, 3, 1, 20, 21, 2, 3, 1, 30, 31, 32, 2, 3, 1, 20, 22, 2, 3, 1, 30, 33, 2, 3];
    assert_eq!(full.tokens, ids);
    let slots = |slots: RangeInclusive<usize>| slots.start() - 1..*slots.end();
    let spans = |mask: Mask, row: &Sequence, appended: bool| mask.spans(&chat, row, 5, appended);

    assert_eq!(spans(Mask::Assistant, &full, true), [slots(12..=17), slots(23..=26)]);
    assert_eq!(spans(Mask::Assistant, &limited, false), [slots(22..=26)]);
    assert_eq!(spans(Mask::Assistant, &single, false), [slots(11..=16)]);
    assert_eq!(spans(Mask::Assistant, &single, true), [slots(12..=16)], "an episode of one turn");
    // A span a turn, and no gap between them.
    assert_eq!(spans(Mask::AfterSystem, &full, true), [slots(7..=17), slots(18..=26)]);
    assert_eq!(spans(Mask::AfterSystem, &limited, false), [slots(7..=26)]);
    assert_eq!(spans(Mask::AfterSystem, &single, false), [slots(7..=16)]);
    // [F] What was sampled, and nothing else.
    assert_eq!(spans(Mask::Sampled, &full, true), [12..15, 23..25]);
    assert_eq!(spans(Mask::Sampled, &limited, false), [23..25]);
    assert_eq!(spans(Mask::Sampled, &single, false), [12..15]);
}

#[test]
fn golden_masks() {
    let chat = Chat::new(&Ids, true).unwrap();
    let windows = ["full", "limited, the second turn", "single-turn, the first turn"];
    let mut out = String::from(
        "RAGEN T13's dialogue, its padding aside, under each mask. RAGEN's slots begin with two pads and stand for\n\
         the next token, so that they are ours plus 1. Its masks: full 12-17 and 23-26, limited 22-26, single-turn\n\
         11-16, and full without enable_response_mask 7-26.\n",
    );
    for (name, row) in windows.iter().zip(t13(&chat)) {
        let appended = *name == "full";
        let all = [Mask::Sampled, Mask::Assistant, Mask::AfterSystem];
        let masks = all.map(|mask| mask.spans(&chat, &row, 5, appended));
        writeln!(out, "\n{name}\nslot    id  token         sampled  assistant  after-system").unwrap();
        for (slot, token) in row.tokens.iter().enumerate() {
            let word = NAMES.iter().find(|(id, _)| id == token).map_or("sampled", |(_, name)| name);
            let on = |spans: &Vec<Range<usize>>| if spans.iter().any(|span| span.contains(&slot)) { "1" } else { "0" };
            let [sampled, assistant, after] = masks.each_ref().map(on);
            writeln!(out, "{slot:>4}  {token:>4}  {word:<12}  {sampled:>7}  {assistant:>9}  {after:>12}").unwrap();
        }
    }
    golden("mask", "masks", &out);
}

fn plan(resolved: &Resolved, index: u64) -> Plan<'_> {
    Plan {
        env: &resolved.config.task[0].env,
        split: Split::Train,
        index,
        group: 0,
        member: 0,
        dynamics: Stream::new("test", 0, &[]),
        draws: ("test", 0, vec![]),
        noise: 0.0,
    }
}

/// One episode of what the replies say.
fn told(tokens: &dyn Tokens, config: &RolloutConfig, plan: &Plan<'_>, replies: &[String]) -> Trajectory {
    let chat = Chat::new(tokens, config.think).unwrap();
    let voice = Voice::new(|text: &str| chat.continuation(text), chat.end());
    let policy = Scripted::new(voice, |_, turn| replies[turn].clone());
    rollout::play(config, &config.sampling, &chat, &policy, std::slice::from_ref(plan)).remove(0)
}

/// Every row of an episode: its prompt as text, what was sampled and what was not as tokens.
fn rows_as_read(name: &str, window: &[&str]) {
    let words = ["show-reward=true", "render=coord", "max-turns=4", "system=You play."];
    let resolved = resolve("sokoban", &[&words[..], window].concat());
    let tokenizer = Tokenizer::from_json(include_str!("../../configs/model/tiny-tokenizer.json")).unwrap();
    let replies = [
        "<think>go</think><answer>Left || Up</answer>",
        "<think>hm</think>",
        "<think>now</think><answer>Down</answer>",
        "<think>up</think><answer>Up</answer>",
    ];
    let plan = plan(&resolved, 1);
    let episode = told(&tokenizer, &resolved.config.rollout, &plan, &replies.map(str::to_owned));
    let strip = |ids: &[u32]| {
        let text = |id: &u32| Tokens::decode(&tokenizer, &[*id]).replace('\n', "⏎");
        ids.iter().map(text).collect::<Vec<_>>().join("│")
    };
    let mut out = format!("{}: a row a turn. Prompts as text, the rest as tokens.\n", window.join(" "));
    for row in &episode.sequences {
        let span = row.responses[0].clone();
        let prompt = Tokens::decode(&tokenizer, &row.tokens[..span.start]);
        writeln!(out, "\nturn {}, mask 0 on a prompt of {} tokens", row.turns[0] + 1, span.start).unwrap();
        prompt.lines().for_each(|line| writeln!(out, "    {line}").unwrap());
        writeln!(out, "mask 1  {}", strip(&row.tokens[span.clone()])).unwrap();
        writeln!(out, "mask 0  {}", strip(&row.tokens[span.end..])).unwrap();
    }
    golden("chat", name, &out);
}

#[test]
fn prompts_of_limited_windows() {
    rows_as_read("limited", &["window=limited", "window.turns=2"]);
}

#[test]
fn prompts_of_single_turns() {
    rows_as_read("single-turn", &["window=single-turn", "window.memory=2"]);
}

#[test]
fn without_memory_every_prompt_is_the_state_alone() {
    let [limited, single] =
        [&["window=limited", "window.turns=1"], &["window=single-turn", "window.memory=0"]].map(|window| {
            resolve("frozen-lake", &[&window[..], &["show-reward=true", "max-context-tokens=9000"]].concat())
        });
    let replies = vec!["<think>a</think><answer>Up</answer>".to_owned(); 9];
    let plan = plan(&limited, 3);
    let [limited, single] = [&limited, &single].map(|run| told(&Characters, &run.config.rollout, &plan, &replies));
    assert_eq!(limited, single);
    assert!(limited.sequences.len() > 2);
    for (row, turn) in limited.sequences.iter().zip(&limited.turns) {
        let prompt = Characters.decode(&row.tokens[..row.responses[0].start]);
        assert!(prompt.contains(&turn.observation) && !prompt.contains("Reward"), "{prompt}");
    }
}

fn limited(turns: usize) -> WindowConfig {
    WindowConfig::Limited(LimitedWindow { turns })
}

fn single(shown: usize) -> WindowConfig {
    WindowConfig::SingleTurn(SingleTurnWindow { memory: shown - 1 })
}

proptest! {
    /// A prompt that is too long is that of the largest smaller window which leaves room for a whole response. So turns
    /// go as wholes; and the mask stays on what was sampled.
    #[test]
    fn truncation_is_a_smaller_window(
        context in 250..1200usize,
        shown in 1..5usize,
        thoughts in prop::collection::vec(0..60usize, 5),
        words in any::<bool>(),
    ) {
        let resolved = resolve("frozen-lake", &["max-turns=5", "max-response-tokens=120", "show-reward=true"]);
        let plan = plan(&resolved, 3);
        let window = if words { single } else { limited };
        let reply = |length: &usize| format!("<think>{}</think><answer>Up</answer>", "é".repeat(*length));
        let replies: Vec<String> = thoughts.iter().map(reply).collect();
        let play = |window: WindowConfig, max_context_tokens: usize| {
            let config = RolloutConfig { window, max_context_tokens, ..resolved.config.rollout.clone() };
            told(&Characters, &config, &plan, &replies)
        };
        let whole: Vec<Trajectory> = (1..=shown).map(|shown| play(window(shown), 100_000)).collect();
        let cut = play(window(shown), context);
        prop_assert_eq!(&cut.turns, &whole[0].turns[..cut.turns.len()]);
        for (turn, row) in cut.sequences.iter().enumerate() {
            let fits = |episode: &&Trajectory| episode.sequences[turn].responses[0].start + 120 <= context;
            let largest = whole.iter().rev().find(fits).map(|episode| &episode.sequences[turn]);
            prop_assert_eq!(Some(row), largest);
            let said = format!("{}<|im_end|>", replies[turn].trim_start_matches("<think>"));
            prop_assert_eq!(Characters.decode(&row.tokens[row.responses[0].clone()]), said);
            prop_assert_eq!((&row.turns[..], row.responses.len()), (&[turn][..], 1));
        }
        if cut.turns.len() < whole[0].turns.len() {
            prop_assert_eq!(cut.end, End::Truncated(Limit::Tokens));
            prop_assert!(whole[0].sequences[cut.turns.len()].responses[0].start + 120 > context);
        }
        // The same episode in one row.
        prop_assert_eq!(&play(WindowConfig::Full(FullWindow {}), 100_000).turns, &whole[0].turns);
    }
}

fn learner(tokenizer: &Tokenizer, threads: usize) -> Transformer {
    let shape = Shape {
        family: Family::Llama,
        vocab: tokenizer.vocab(),
        width: 16,
        layers: 1,
        heads: 2,
        kv_heads: 1,
        head_dim: 8,
        ffn: 16,
        rope_theta: 1e4,
        norm_eps: 1e-6,
        tied: true,
    };
    Transformer::new(Weights::random(shape, 0.5, 1).unwrap(), policy::device("cpu").unwrap(), threads)
}

/// The record, the episodes and the learner after a step.
fn step(config: &ResolvedConfig, threads: usize) -> (starpo::train::StepRecord, String, Vec<(String, Vec<u8>)>) {
    let tokenizer = Tokenizer::from_json(include_str!("../../configs/model/tiny-tokenizer.json")).unwrap();
    let chat = Chat::new(&tokenizer, true).unwrap();
    let mut learner = learner(&tokenizer, threads);
    let learners = &mut Learners::alone(&mut learner);
    let (record, groups) = train_step(config, &chat, learners, 1, 1.0, &mut 0.0, &mut Timings::new()).unwrap();
    let lines = episode::lines(1, Window::of(&config.rollout.window), &groups, &TurnMetrics::new());
    (record, lines, learners.save())
}

/// The entropy's gradient is never 0, whatever the scores of so poor a player.
const STEP: [&str; 6] =
    ["groups=2", "group-size=3", "max-turns=3", "max-response-tokens=6", "spot-check=99", "objective.entropy-coef=0.1"];

/// Every row is checked: what was recorded is what an uncached pass gives, and what the first step's ratios start from.
#[test]
fn a_step_in_every_window_and_mask_learns_from_what_it_sampled() {
    for window in WINDOWS {
        for mask in ["mask=sampled", "mask=assistant", "mask=after-system"] {
            let resolved = resolve("sokoban", &[&STEP[..], window, &[mask]].concat());
            let (record, lines, weights) = step(&resolved.config, 1);
            assert_eq!(record.rollout.as_ref().unwrap().logprob_mismatch_max, 0.0, "{window:?} {mask}");
            assert_eq!(record.update.unwrap().ratio_gap, 0.0, "{window:?} {mask}");
            assert_eq!(step(&resolved.config, 2), (record, lines.clone(), weights), "{window:?} {mask}");
            let name = resolved.config.rollout.window.name();
            assert_eq!(lines.contains(&format!("\"window\":\"{name}\"")), name != "full");
            let read = episode::read(&lines).unwrap();
            assert!(read.iter().all(|record| Window::of(&resolved.config.rollout.window) == record.window));
        }
    }
}

/// What a wider mask learns from is more than what a narrower one does.
#[test]
fn masks_change_what_is_learnt_and_not_what_is_recorded() {
    let run = |mask| step(&resolve("sokoban", &[&STEP[..], &[mask]].concat()).config, 1);
    let [sampled, assistant, after] = ["mask=sampled", "mask=assistant", "mask=after-system"].map(run);
    assert!(sampled.1 == assistant.1 && sampled.1 == after.1);
    assert!(sampled.2 != assistant.2 && sampled.2 != after.2 && assistant.2 != after.2);
}

#[test]
fn a_run_of_turns_killed_anywhere_ends_with_the_same_digest() {
    for window in &WINDOWS[1..] {
        let resolved = resolve("sokoban", &[&SMALL[..], window, &["max-turns=3", "steps=3", "groups=2"]].concat());
        let (runs, calm) = (Path::new("runs"), Memory::new());
        let expected = attempt(&calm.disk(), runs, &resolved).unwrap();
        for quarter in 1..4 {
            let memory = Memory::killed_at(calm.calls() * quarter / 4);
            assert!(attempt(&memory.disk(), runs, &resolved).is_err());
            memory.restart(disk::End::Process);
            assert_eq!(attempt(&memory.disk(), runs, &resolved).unwrap(), expected, "killed in quarter {quarter}");
        }
    }
}

/// A warm start learns from every row of every expert episode, and the figures of episodes do not depend on rows.
#[test]
fn the_expert_plays_in_every_window() {
    let warm = ["warm-start.episodes=6", "max-response-tokens=200", "max-context-tokens=100000"];
    let stats = WINDOWS.map(|window| {
        let resolved = resolve("sokoban", &[window, &warm].concat());
        let starpo::experiment::WarmStartConfig::Expert(warm) = &resolved.config.warm_start else { unreachable!() };
        let chat = Chat::new(&Characters, true).unwrap();
        let voice = Voice::new(|text: &str| chat.continuation(text), chat.end());
        let mut played = warm_start::episodes(&resolved.config, warm, &chat, &policy::Expert::new(voice));
        let turns: usize = played.iter().map(|episode| episode.turns.len()).sum();
        let rows: Vec<&Sequence> = played.iter().flat_map(|episode| &episode.sequences).collect();
        assert_eq!(rows.iter().map(|row| row.responses.len()).sum::<usize>(), turns);
        assert_eq!(rows.len(), if window[0] == "window=full" { played.len() } else { turns });
        let task = resolved.config.task[0].env.task(Split::Train, 0);
        let group = starpo::trajectory::Group { id: 0, task, members: std::mem::take(&mut played) };
        RolloutStats::of(&[group], 0.0)
    });
    assert!(stats[0].success > 0.0 && stats[0] == stats[1] && stats[0] == stats[2], "{stats:?}");
}

#[test]
fn a_prompt_without_room_for_a_response_ends_the_episode() {
    for window in WINDOWS {
        let resolved = resolve("sokoban", &[window, &["max-response-tokens=100"]].concat());
        let play = |max_context_tokens: usize| {
            let config = RolloutConfig { max_context_tokens, ..resolved.config.rollout.clone() };
            told(&Characters, &config, &plan(&resolved, 1), &vec!["<think>a".to_owned(); 5])
        };
        let prompt = play(1000).sequences[0].responses[0].start;
        let full = window[0] == "window=full";
        // `full` cuts a response short, the others keep its room.
        for (context, turns) in [(prompt, 0), (prompt + 1, usize::from(full)), (prompt + 99, usize::from(full))] {
            let episode = play(context);
            assert_eq!((episode.turns.len(), episode.sequences.len()), (turns, turns), "{window:?} {context}");
            assert_eq!(episode.end, End::Truncated(Limit::Tokens));
            assert!(episode.sequences.iter().all(|row| row.response_tokens() <= context - prompt));
        }
        assert!(!play(prompt + 100).turns.is_empty());
    }
}
