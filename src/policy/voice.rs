//! Speaking in words: how policies without a model make tokens.

use super::{Completion, Request};

/// The ids of a text.
type Encode<'a> = Box<dyn Fn(&str) -> Vec<u32> + 'a>;

/// Turns a reply's text into a completion.
pub struct Voice<'a> {
    encode: Encode<'a>,
    stop: u32,
}

impl<'a> Voice<'a> {
    /// Speaks the tokens of `encode`, and ends with `stop`.
    #[must_use]
    pub fn new(encode: impl Fn(&str) -> Vec<u32> + 'a, stop: u32) -> Self {
        Self { encode: Box::new(encode), stop }
    }

    /// `text` and the stop token, cut at the request's limit. There is no distribution that the tokens were drawn from:
    /// their log-probs and entropies are 0.
    pub(super) fn say(&self, text: &str, request: &Request<'_>) -> Completion {
        let mut tokens = (self.encode)(text);
        tokens.push(self.stop);
        tokens.truncate(request.limit);
        let zeros = vec![0.0; tokens.len()];
        Completion { tokens, logprobs: zeros.clone(), entropies: zeros }
    }
}
