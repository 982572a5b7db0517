//! The reply grammar against the worked cases, and a conversation as a document.

use proptest::prelude::*;
use starpo::chat::reply::{Parsed, parse};
use starpo::chat::{Chat, Tokens};
use starpo::policy::{Scripted, Tokenizer, Voice};
use starpo::rng::Stream;
use starpo::rollout::{self, Plan};
use starpo::trajectory::{Malformed, Split};

use crate::golden;
use crate::run::resolve;

fn actions(text: &str) -> Result<Vec<String>, Malformed> {
    parse(text, true, "||", 2).actions
}

fn ok(actions: &[&str]) -> Result<Vec<String>, Malformed> {
    Ok(actions.iter().map(ToString::to_string).collect())
}

/// Case T14. The stored response is ours as sampled, so only the actions are compared.
#[test]
fn t14_parsing() {
    assert_eq!(actions("<think>a</think><answer>Up || Down</answer>"), ok(&["Up", "Down"]));
    assert_eq!(actions("<think>a</think> \n <answer>Up||Down||Left</answer>"), ok(&["Up", "Down"]));
    assert_eq!(actions("<think>a</think> so <answer>Up</answer>"), Err(Malformed::Tags));
    assert_eq!(actions("<think>a</think><answer></answer>"), Err(Malformed::Empty));
    assert_eq!(actions("<think>a<answer>Up</answer>"), Err(Malformed::Tags));
    assert_eq!(actions("Up"), Err(Malformed::Tags));
    assert_eq!(actions("<think><think>x</think><answer> up ||  || Left </answer> trailing"), ok(&["up", "Left"]));
    assert_eq!(
        actions("<think>a</think><answer>Up</answer><think>b</think><answer>Down</answer>"),
        ok(&["Up"]),
        "two pairs: the first only"
    );
    assert_eq!(actions("<think>a</think><answer><answer>Up</answer>"), ok(&["Up"]));
    assert_eq!(actions("<think>line one\nline two\n</think><answer>Up</answer>"), ok(&["Up"]));
    assert_eq!(actions("<think>a</think><answer><|im_start|>Up<|im_end|></answer>"), ok(&["Up"]));
}

#[test]
fn t14_answer_alone() {
    let actions = |text| parse(text, false, "||", 2).actions;
    assert_eq!(actions("<answer>Up"), Err(Malformed::Tags));
    assert_eq!(actions("<answer><think>x</think>Up</answer>"), ok(&["xUp"]));
}

#[test]
fn the_thought_is_found_where_it_stands() {
    let text = "<think>go up</think><answer>Up</answer>";
    let Parsed { thought, .. } = parse(text, true, "||", 2);
    assert_eq!(thought.map(|span| &text[span]), Some("go up"));
}

/// Tokens as a strip, parted by bars.
fn strip(tokens: &dyn Tokens, ids: &[u32]) -> String {
    ids.iter().map(|&id| tokens.decode(&[id]).replace('\n', "⏎")).collect::<Vec<_>>().join("│")
}

/// A conversation as its learner sees it: what was appended and what was sampled, token by token.
#[test]
fn a_conversation_and_its_mask() {
    let resolved = resolve("sokoban", &["render=coord", "max-turns=2"]);
    let config = &resolved.config.rollout;
    let json = include_str!("../../configs/model/tiny-tokenizer.json");
    let tokenizer = Tokenizer::from_json(json).unwrap();
    let chat = Chat::new(&tokenizer, config.think).unwrap();
    let replies = [
        "<think>go to the box</think><answer>Left || Up</answer>",
        "<think>push √ é</think> <answer>Down || jump</answer>",
    ];
    let voice = Voice::new(|text: &str| chat.continuation(text), chat.end());
    let policy = Scripted::new(voice, move |_, turn| replies[turn].to_owned());
    let plan = Plan {
        env: &resolved.config.task[0].env,
        split: Split::Train,
        index: 1,
        group: 0,
        member: 0,
        dynamics: Stream::new("test", 0, &[]),
        draws: ("test", 0, vec![]),
        noise: 0.0,
    };
    let episode = rollout::play(config, &config.sampling, &chat, &policy, &[plan]).remove(0);
    let row = &episode.sequences[0];
    let mut text =
        String::from("Tokens parted by │; a newline is ⏎. The mask is 1 on sampled tokens, end token included.\n");
    let mut at = 0;
    for (span, turn) in row.responses.iter().zip(&episode.turns) {
        text.push_str(&format!("\nmask 0  {}\n", strip(&tokenizer, &row.tokens[at..span.start])));
        text.push_str(&format!("mask 1  {}\n", strip(&tokenizer, &row.tokens[span.clone()])));
        let thought = turn.reply.reasoning.clone().map(|range| &row.tokens[span.clone()][range]);
        text.push_str(&format!("  thought   {}\n", thought.map_or("-".into(), |ids| strip(&tokenizer, ids))));
        text.push_str(&format!("  proposed  {:?}\n  executed  {:?}\n", turn.reply.actions, turn.executed));
        text.push_str(&format!("  reward    {:.1}, penalty {:.1}\n", turn.reward, turn.penalty));
        at = span.end;
    }
    text.push_str(&format!("\nmask 0  {}\nend     {}\n", strip(&tokenizer, &row.tokens[at..]), episode.end.name()));
    assert_eq!(chat.text(&row.tokens[row.responses[1].clone()]), replies[1]);
    golden("chat", "chatml", &text);
}

proptest! {
    /// Any tokens, the bytes of broken characters too: as if every prefix were decoded by itself.
    #[test]
    fn tokens_are_counted_as_their_text_grows(
        ids in prop::collection::vec(prop_oneof![0..500u32, 99..250u32, 3..99u32], 0..40),
        end in 0..90usize,
    ) {
        let tokenizer = Tokenizer::from_json(include_str!("../../configs/model/tiny-tokenizer.json")).unwrap();
        let chat = Chat::new(&tokenizer, true).unwrap();
        let before = |n: &usize| "<think>".len() + tokenizer.decode(&ids[..*n]).len() < end.max("<think>".len());
        prop_assert_eq!(chat.tokens_before(&ids, end), (0..ids.len()).take_while(before).count());
    }
}

/// Text that spells a special token stays text.
#[test]
fn no_text_becomes_a_special_token() {
    let tokenizer = Tokenizer::from_json(include_str!("../../configs/model/tiny-tokenizer.json")).unwrap();
    let text = "a <|im_end|> in an observation, and <|im_start|>system";
    let ids = tokenizer.encode(text);
    for special in ["<|im_start|>", "<|im_end|>"] {
        assert!(!ids.contains(&tokenizer.special(special).unwrap()));
    }
    assert_eq!(tokenizer.decode(&ids), text);
}
