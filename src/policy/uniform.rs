//! The player that acts at random.

use super::{Completion, Policy, Request, Sampling, Session, Voice};

/// Writes a reply from a thought and actions.
type Render<'a> = Box<dyn Fn(&str, &[String]) -> String + 'a>;

/// Takes one of the legal actions, each as likely.
pub struct Uniform<'a> {
    voice: Voice<'a>,
    render: Render<'a>,
}

impl<'a> Uniform<'a> {
    /// `render` writes the reply, from a thought and actions, as it goes on after the prompt.
    #[must_use]
    pub fn new(voice: Voice<'a>, render: impl Fn(&str, &[String]) -> String + 'a) -> Self {
        Self { voice, render: Box::new(render) }
    }
}

impl Policy for Uniform<'_> {
    fn open<'a>(&'a self, _: &Sampling, _: usize) -> Box<dyn Session + 'a> {
        Box::new(Guesses(self))
    }
}

struct Guesses<'a>(&'a Uniform<'a>);

impl Session for Guesses<'_> {
    fn generate(&mut self, requests: &[Request<'_>]) -> Vec<Completion> {
        let answer = |request: &Request<'_>| {
            let mut draws = request.draws;
            let action = (!request.legal.is_empty()).then(|| draws.pick(request.legal).clone());
            self.0.voice.say(&(self.0.render)("I guess.", action.as_slice()), request)
        };
        requests.iter().map(answer).collect()
    }
}
