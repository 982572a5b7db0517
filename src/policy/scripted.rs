//! The player that reads from a script.

use super::{Completion, Policy, Request, Sampling, Session, Voice};

/// Says what the script has for an episode and a turn, both counted from 0.
pub struct Scripted<'a> {
    voice: Voice<'a>,
    script: Box<dyn Fn(usize, usize) -> String + 'a>,
}

impl<'a> Scripted<'a> {
    /// `script` gives the reply of (episode, turn).
    #[must_use]
    pub fn new(voice: Voice<'a>, script: impl Fn(usize, usize) -> String + 'a) -> Self {
        Self { voice, script: Box::new(script) }
    }
}

impl Policy for Scripted<'_> {
    fn open<'a>(&'a self, _: &Sampling, episodes: usize) -> Box<dyn Session + 'a> {
        Box::new(Reading { policy: self, turns: vec![0; episodes] })
    }
}

struct Reading<'a> {
    policy: &'a Scripted<'a>,
    turns: Vec<usize>,
}

impl Session for Reading<'_> {
    fn generate(&mut self, requests: &[Request<'_>]) -> Vec<Completion> {
        let mut answer = |request: &Request<'_>| {
            let turn = &mut self.turns[request.episode];
            *turn += 1;
            self.policy.voice.say(&(self.policy.script)(request.episode, *turn - 1), request)
        };
        requests.iter().map(&mut answer).collect()
    }
}
