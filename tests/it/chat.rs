//! The reply grammar against the worked cases, and a conversation as a document.

use starpo::chat::reply::{Parsed, parse};
use starpo::trajectory::Malformed;

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
