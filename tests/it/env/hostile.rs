//! Answers that were not written to be read.
#![expect(clippy::disallowed_methods, reason = "what an answer costs is measured here")]

use super::{dynamics, examples};
use starpo::rng::Stream;
use starpo::trajectory::Split;
use std::time::{Duration, Instant};

/// Ten megabytes and less of what parsers dislike.
fn answers() -> Vec<String> {
    let long = |piece: &str| piece.repeat(10_000_000 / piece.len());
    let mut answers = vec![
        String::new(),
        long("("),
        long("-"),
        long("(1+"),
        long("9"),
        long("Up "),
        long("\0\u{1b}[2J\r\n"),
        long("İ"),
        "9**9**9**9".into(),
        "9^999999999".into(),
        format!("{}1{}", "(".repeat(127), ")".repeat(127)),
        "-".repeat(255) + "1",
        "99999999999999999999".into(),
        "1/0".into(),
        "\u{202e}pU\u{feff}".into(),
        "上 ارفع вверх".into(),
        "١ + ٢".into(),
        "place 0 at row 0 col 0".into(),
        "place 18446744073709551616 at row 1 col 1".into(),
        "U\u{2019}".into(),
    ];
    let mut stream = Stream::new("hostile", 1, &[]);
    answers.extend((0..200).map(|_| {
        let length = 1 + stream.below(40);
        let signs: Vec<char> = "()+-*/ 0123456789,placetrowcl'URDLFB\u{0}é".chars().collect();
        (0..length).map(|_| *stream.pick(&signs)).collect()
    }));
    answers
}

#[test]
fn a_hostile_answer_is_cheap_and_means_nothing_or_an_action() {
    let answers = answers();
    for env in examples() {
        let episode = env.start(Split::Train, 1, dynamics(0));
        for answer in &answers {
            let head: String = answer.chars().take(40).collect();
            let timed = || {
                let clock = Instant::now();
                let meant = episode.understand(answer);
                (clock.elapsed(), meant)
            };
            let (took, meant) = (0..3).map(|_| timed()).min_by_key(|(took, _)| *took).unwrap();
            assert!(took < Duration::from_millis(10), "{took:?} for {head} in {env:?}");
            let Some(action) = meant else { continue };
            assert_eq!(episode.understand(&action), Some(action.clone()), "{head}");
            let step = env.start(Split::Train, 1, dynamics(0)).act(&action);
            assert!(step.reward.is_finite() && action.len() < 1000, "{head}");
        }
    }
}

#[test]
fn an_action_is_its_own_name_and_has_no_case() {
    for env in examples() {
        let episode = env.start(Split::Train, 2, dynamics(0));
        let advised = episode.expert(3).unwrap().actions;
        for action in episode.actions().iter().chain(&advised) {
            assert_eq!(episode.understand(action).as_ref(), Some(action));
            assert_eq!(episode.understand(&action.to_uppercase()).as_ref(), Some(action));
        }
    }
}
