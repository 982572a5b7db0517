//! The players without weights: the uniform one, the script, the expert.

use starpo::policy::{Completion, Expert, Policy, Request, Sampling, Scripted, Uniform, Voice};
use starpo::rng::Stream;

fn sampling() -> Sampling {
    Sampling { temperature: 1.0, top_k: None, top_p: 1.0, stop: vec![1] }
}

/// One request of an episode.
fn ask<'a>(episode: usize, draw: u64, legal: &'a [String], advice: Option<&'a str>) -> Request<'a> {
    Request { episode, prompt: &[2], draws: Stream::new("ask", 1, &[draw]), limit: 30, legal, advice }
}

fn voice() -> Voice<'static> {
    Voice::new(|text| text.bytes().map(u32::from).collect(), 1)
}

/// What a completion says, without its stop token.
fn said(completion: &Completion) -> String {
    let (last, text) = completion.tokens.split_last().expect("a stop token");
    assert_eq!(*last, 1);
    assert!(completion.logprobs.len() == completion.tokens.len() && completion.logprobs.iter().all(|p| *p == 0.0));
    text.iter().map(|&b| char::from(b as u8)).collect()
}

#[test]
fn the_uniform_player_takes_every_legal_action_as_often() {
    let policy = Uniform::new(voice(), |_, actions| actions.join(","));
    let legal = ["Up", "Down", "Left"].map(str::to_owned);
    let mut session = policy.open(&sampling(), 900);
    let requests: Vec<_> = (0..900).map(|i| ask(i, i as u64, &legal, None)).collect();
    let completions = session.generate(&requests);
    for action in &legal {
        let count = completions.iter().filter(|c| said(c) == *action).count();
        assert!((250..350).contains(&count), "{action}: {count}");
    }
    assert_eq!(completions, policy.open(&sampling(), 900).generate(&requests));
    assert_eq!(said(&session.generate(&[ask(0, 0, &[], None)])[0]), "");
}

#[test]
fn the_script_is_read_by_episode_and_turn() {
    let policy = Scripted::new(voice(), |episode, turn| format!("{episode}/{turn}"));
    let mut session = policy.open(&sampling(), 3);
    session.generate(&[ask(2, 0, &[], None)]);
    let completions = session.generate(&[ask(0, 0, &[], None), ask(2, 0, &[], None)]);
    assert_eq!(completions.iter().map(said).collect::<Vec<_>>(), ["0/0", "2/1"]);
    let short = session.generate(&[Request { limit: 2, ..ask(0, 0, &[], None) }]);
    assert_eq!(short[0].tokens, [u32::from(b'0'), u32::from(b'/')]);
}

#[test]
fn the_expert_says_what_it_is_told() {
    let policy = Expert::new(voice());
    assert!(policy.wants_advice());
    let completions = policy.open(&sampling(), 2).generate(&[ask(0, 0, &[], Some("go")), ask(1, 0, &[], None)]);
    assert_eq!(completions.iter().map(said).collect::<Vec<_>>(), ["go", ""]);
}
