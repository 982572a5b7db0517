//! Prompts as tokens: a chat template that only appends, and what each turn says.
//!
//! An episode is one conversation: a system message with the rules, then a user message and a response a turn; its
//! [`window`] decides what of it a prompt shows. Responses are kept as they were sampled and never encoded again;
//! special tokens come from the template alone, since text is encoded without them.

use crate::config::Input;

pub mod mask;
pub mod reply;
pub mod window;

pub use mask::Mask;
pub use window::WindowConfig;

/// What a tokenizer does.
pub trait Tokens: Sync {
    /// Ids of plain text; text that spells a special token does not become one.
    fn encode(&self, text: &str) -> Vec<u32>;

    /// Text of ids, special tokens spelt out.
    fn decode(&self, ids: &[u32]) -> String;

    /// The id of a special token.
    fn special(&self, name: &str) -> Option<u32>;
}

/// ChatML, the template of Qwen and SmolLM: `<|im_start|>role\n…<|im_end|>\n`.
///
/// Every method returns the ids to append; together they are the template's own rendering of the conversation.
pub struct Chat<'a> {
    tokens: &'a dyn Tokens,
    start: u32,
    end: u32,
    /// `<think>` or `<answer>`: the prompt's last words, which the response goes on from.
    prefix: &'static str,
}

impl<'a> Chat<'a> {
    /// The template over a tokenizer. `think` decides the prefix.
    ///
    /// # Errors
    /// The special token that the tokenizer lacks.
    pub fn new(tokens: &'a dyn Tokens, think: bool) -> Result<Self, String> {
        let special = |name: &str| tokens.special(name).ok_or(format!("the tokenizer has no special token {name}"));
        let prefix = if think { "<think>" } else { "<answer>" };
        Ok(Self { tokens, start: special("<|im_start|>")?, end: special("<|im_end|>")?, prefix })
    }

    /// The token that ends a response.
    #[must_use]
    pub fn end(&self) -> u32 {
        self.end
    }

    /// What the prompt ends with and the response goes on from.
    #[must_use]
    pub fn prefix(&self) -> &'static str {
        self.prefix
    }

    /// The system message.
    #[must_use]
    pub fn system(&self, text: &str) -> Vec<u32> {
        let mut ids = vec![self.start];
        ids.extend(self.tokens.encode(&format!("system\n{text}")));
        ids.push(self.end);
        ids.extend(self.tokens.encode("\n"));
        ids
    }

    /// A user message, and the head of the response to it up to the forced prefix.
    #[must_use]
    pub fn user(&self, text: &str) -> Vec<u32> {
        let mut ids = vec![self.start];
        ids.extend(self.tokens.encode(&format!("user\n{text}")));
        ids.push(self.end);
        ids.extend(self.tokens.encode("\n"));
        ids.extend(self.header());
        ids
    }

    /// The head of a response: its role and the forced prefix.
    #[must_use]
    pub fn header(&self) -> Vec<u32> {
        let mut ids = vec![self.start];
        ids.extend(self.tokens.encode("assistant\n"));
        ids.extend(self.tokens.encode(self.prefix));
        ids
    }

    /// What follows a response: its end token, unless it was sampled, and a newline.
    #[must_use]
    pub fn close(&self, response: &[u32]) -> Vec<u32> {
        let mut ids = if response.last() == Some(&self.end) { Vec::new() } else { vec![self.end] };
        ids.extend(self.tokens.encode("\n"));
        ids
    }

    /// A whole reply's text as the tokens to sample after the prefix, without the end token.
    #[must_use]
    pub fn continuation(&self, reply: &str) -> Vec<u32> {
        self.tokens.encode(reply.strip_prefix(self.prefix).unwrap_or(reply))
    }

    /// The response's text with the forced prefix before it and without its end token.
    #[must_use]
    pub fn text(&self, response: &[u32]) -> String {
        let content = response.strip_suffix(&[self.end]).unwrap_or(response);
        format!("{}{}", self.prefix, self.tokens.decode(content))
    }

    /// The number of first tokens of a response that it takes to reach byte `end` of its [`Chat::text`].
    #[must_use]
    pub fn tokens_before(&self, response: &[u32], end: usize) -> usize {
        let end = end.saturating_sub(self.prefix.len());
        let text = |from: usize, to: usize| self.tokens.decode(&response[from..to]);
        // The text of ..known has `bytes` bytes. What follows is decoded from `from` on, a token before, since some
        // decoders cut the blank that a text begins with.
        let (mut from, mut known, mut bytes) = (0, 0, 0);
        let short = |&n: &usize| {
            let length = bytes + text(from, n).len() - text(from, known).len();
            // A token that is a character's part may change with its neighbours.
            let whole = |text: &str| !text.contains(|c: char| c == char::REPLACEMENT_CHARACTER || c.is_control());
            if n > known && whole(&text(n - 1, n)) {
                (from, known, bytes) = (n - 1, n, length);
            }
            length < end
        };
        (0..response.len()).take_while(short).count()
    }
}

/// The words around observations; the choices that `rollout` makes.
#[derive(Clone, Debug, PartialEq)]
pub struct Script {
    /// First line of the system message; empty, there is none.
    pub system: Input,
    /// The rules; None takes the environment's own.
    pub instruction: Option<Input>,
    /// Last line of a user message; None takes [`Script::default_format`].
    pub format: Option<Input>,
    pub think: bool,
    pub separator: String,
    pub show_reward: bool,
}

impl Script {
    /// The system message for an environment whose own rules are `instruction`.
    #[must_use]
    pub fn rules(&self, instruction: &str) -> String {
        let own = self.instruction.as_ref().map_or(instruction, |text| &text.0);
        [&self.system.0, own].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n")
    }

    /// A user message: what the turn before earned, the state, the actions left, how to answer.
    #[must_use]
    pub fn turn(&self, observation: &str, actions_left: usize, earned: Option<f64>) -> String {
        let earned = earned.map_or_else(String::new, |reward| self.earned(reward));
        let format = self.format.as_ref().map_or_else(|| self.default_format(), |text| text.0.clone());
        let format = if format.is_empty() { format } else { format!("\n{format}") };
        format!("{earned}{observation}\nActions left: {actions_left}{format}")
    }

    /// What a turn earned, as a line; nothing where rewards are not shown.
    fn earned(&self, reward: f64) -> String {
        if self.show_reward { format!("Reward: {}\n", tenths(reward)) } else { String::new() }
    }

    /// Actions as an answer lists them.
    fn actions<T: AsRef<str>>(&self, actions: &[T]) -> String {
        let names: Vec<&str> = actions.iter().map(AsRef::as_ref).collect();
        names.join(&format!(" {} ", self.separator))
    }

    /// The sentence that shows the grammar.
    #[must_use]
    pub fn default_format(&self) -> String {
        let think = if self.think { "<think>your thought</think>" } else { "" };
        format!("Answer as {think}<answer>action {} action</answer>.", self.separator)
    }

    /// A reply in the grammar, from the start of its prefix.
    #[must_use]
    pub fn reply(&self, thought: &str, actions: &[&str]) -> String {
        let answer = self.actions(actions);
        if self.think {
            format!("<think>{thought}</think><answer>{answer}</answer>")
        } else {
            format!("<answer>{answer}</answer>")
        }
    }
}

/// A reward as prompts show it: at most three decimals, so that sums of tenths read as tenths.
fn tenths(reward: f64) -> String {
    let text = format!("{reward:.3}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".into() } else { text.into() }
}

#[cfg(test)]
mod tests {
    use super::tenths;

    #[test]
    fn rewards_read_as_decimals() {
        assert_eq!(
            [-0.1 - 0.1 - 0.1, 10.9, 0.0, -0.0, 1.0, 0.0625].map(tenths),
            ["-0.3", "10.9", "0", "0", "1", "0.062"]
        );
    }
}
