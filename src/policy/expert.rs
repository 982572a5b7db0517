//! The player that does what the environment's expert advises.

use super::{Completion, Policy, Request, Sampling, Session, Voice};

/// Says the expert's reply; nothing where there is none.
pub struct Expert<'a> {
    voice: Voice<'a>,
}

impl<'a> Expert<'a> {
    /// Speaks with `voice`.
    #[must_use]
    pub fn new(voice: Voice<'a>) -> Self {
        Self { voice }
    }
}

impl Policy for Expert<'_> {
    fn open<'a>(&'a self, _: &Sampling, _: usize) -> Box<dyn Session + 'a> {
        Box::new(Advised(self))
    }

    fn wants_advice(&self) -> bool {
        true
    }
}

struct Advised<'a>(&'a Expert<'a>);

impl Session for Advised<'_> {
    fn generate(&mut self, requests: &[Request<'_>]) -> Vec<Completion> {
        requests.iter().map(|request| self.0.voice.say(request.advice.unwrap_or_default(), request)).collect()
    }
}
