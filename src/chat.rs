//! Prompts as tokens: a chat template that only appends, and what each turn says.
//!
//! An episode is one conversation: a system message with the rules, then a user message and a response a turn; its
//! [`window`] decides what of it a prompt shows. Responses are kept as they were sampled and never encoded again;
//! special tokens come from the template alone, since text is encoded without them.

use std::cmp::Reverse;

use crate::config::Input;

pub mod mask;
pub mod reply;
mod template;
pub mod window;

pub use mask::Mask;
use template::Pieces;
pub use template::Template;
pub use window::WindowConfig;

/// What a tokenizer does.
pub trait Tokens: Sync {
    /// Ids of plain text; text that spells a special token does not become one.
    fn encode(&self, text: &str) -> Vec<u32>;

    /// Text of ids, special tokens spelt out.
    fn decode(&self, ids: &[u32]) -> String;

    /// The special tokens: how a template spells them, and their ids.
    fn specials(&self) -> Vec<(String, u32)>;
}

/// The words that a prompt puts into the model's mouth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forced {
    /// `<think>`.
    Think,
    /// `<answer>`; a template that knows of thoughts is told that there is none.
    Answer,
    /// None but what the template itself puts there.
    Nothing,
}

impl Forced {
    /// Whether a thought comes before the answer.
    #[must_use]
    pub fn of(think: bool) -> Self {
        if think { Self::Think } else { Self::Answer }
    }
}

/// A conversation in a model's own template.
///
/// Every method returns the ids to append; together they are the template's own rendering of the conversation.
pub struct Chat<'a> {
    tokens: &'a dyn Tokens,
    specials: Vec<(String, u32)>,
    template: Template,
    /// What its template writes for the system message that it is tried on.
    system: String,
    think: bool,
    /// The head of a response, up to the forced prefix.
    header: Vec<u32>,
    /// `<think>` or `<answer>`: the prompt's last words, which the response goes on from.
    prefix: String,
    /// After a response: the token that ends it, and what follows that.
    close: Vec<u32>,
    /// Other tokens that end a response.
    ends: Vec<u32>,
    rewrites: Option<String>,
}

impl<'a> Chat<'a> {
    /// ChatML over a tokenizer. `think` decides the prefix.
    ///
    /// # Errors
    /// If the tokenizer lacks its special tokens.
    pub fn new(tokens: &'a dyn Tokens, think: bool) -> Result<Self, String> {
        Self::with_template(tokens, Template::chatml(), Vec::new(), Forced::of(think))
    }

    /// `template` over a tokenizer. `ends` are tokens that end a response, beside that which the template puts there.
    ///
    /// # Errors
    /// Why the template cannot carry a conversation that only grows, or what the tokenizer lacks.
    pub fn with_template(
        tokens: &'a dyn Tokens,
        template: Template,
        ends: Vec<u32>,
        forced: Forced,
    ) -> Result<Self, String> {
        let think = forced != Forced::Answer;
        let (opening, reply): (_, fn(&str) -> String) = match forced {
            Forced::Think => ("<think>", |thought| format!("<think>{thought}</think><answer>Up</answer>")),
            Forced::Answer => ("<answer>", |action| format!("<answer>{action}</answer>")),
            Forced::Nothing => ("", str::to_owned),
        };
        let Pieces { system, mut header, close, rewrites } = Pieces::of(&template, think, reply)?;
        // Some templates open the thought themselves; blanks after it belong to them.
        let prefix = match header.rfind("<think>").filter(|at| header[*at..].trim_end() == "<think>") {
            Some(_) if !think => return Err(format!("the chat template opens a thought with {header:?}: think #true")),
            Some(at) => header.split_off(at),
            None => opening.to_owned(),
        };
        let (specials, none) = (tokens.specials(), Vec::new());
        let mut chat = Self {
            tokens,
            specials,
            template,
            system,
            think,
            header: none.clone(),
            prefix,
            close: none,
            ends,
            rewrites,
        };
        chat.header = [chat.ids(&header, None), tokens.encode(&chat.prefix)].concat();
        chat.close = chat.ids(&close, None);
        match chat.specials.iter().any(|(name, _)| close.starts_with(name)) {
            true => Ok(chat),
            false => Err(format!("after a response the template writes {close:?}, no special token of the tokenizer")),
        }
    }

    /// How the template itself would render earlier responses other than they were sent, if it would.
    #[must_use]
    pub fn rewrites(&self) -> Option<&str> {
        self.rewrites.as_deref()
    }

    /// The token that the template ends a response with.
    #[must_use]
    pub fn end(&self) -> u32 {
        self.close[0]
    }

    /// All tokens that end a response.
    #[must_use]
    pub fn ends(&self) -> Vec<u32> {
        let others = self.ends.iter().copied().filter(|end| *end != self.end());
        std::iter::once(self.end()).chain(others).collect()
    }

    /// What the prompt ends with and the response goes on from.
    #[must_use]
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// The system message.
    ///
    /// # Panics
    /// If the template refuses the text.
    #[must_use]
    pub fn system(&self, text: &str) -> Vec<u32> {
        let guard = guard(text);
        let rendered = self.template.render(&[("system", &self.disarmed(text, guard))], self.think, false);
        self.ids(&rendered.expect("the template takes any text"), Some(guard))
    }

    /// What stands before the first message where there is no system message: some templates have one of their own.
    ///
    /// # Errors
    /// If the template needs a system message.
    pub fn opening(&self) -> Result<Vec<u32>, String> {
        Ok(self.ids(&self.template.opening(&self.system, self.think)?, None))
    }

    /// A user message, and the head of the response to it up to the forced prefix.
    ///
    /// # Panics
    /// If the template refuses the text.
    #[must_use]
    pub fn user(&self, text: &str) -> Vec<u32> {
        let guard = guard(text);
        let rendered = self.template.user(&self.system, &self.disarmed(text, guard), self.think);
        let mut ids = self.ids(&rendered.expect("the template takes any text"), Some(guard));
        ids.extend(&self.header);
        ids
    }

    /// The head of a response: its role and the forced prefix.
    #[must_use]
    pub fn header(&self) -> &[u32] {
        &self.header
    }

    /// What follows a response: its end token, unless it was sampled, and what the template puts behind it.
    #[must_use]
    pub fn close(&self, response: &[u32]) -> &[u32] {
        &self.close[usize::from(response.last() == Some(&self.end()))..]
    }

    /// A whole reply's text as the tokens to sample after the prefix, without the end token.
    #[must_use]
    pub fn continuation(&self, reply: &str) -> Vec<u32> {
        self.tokens.encode(reply.strip_prefix(self.prefix.trim_end()).unwrap_or(reply))
    }

    /// The response's text with the forced prefix before it and without its end token.
    #[must_use]
    pub fn text(&self, response: &[u32]) -> String {
        let content = match response {
            [content @ .., last] if *last == self.end() || self.ends.contains(last) => content,
            whole => whole,
        };
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

    /// `text` with `guard` in the names of special tokens, so that only the template's own are found.
    fn disarmed(&self, text: &str, guard: char) -> String {
        self.specials.iter().fold(text.to_owned(), |text, (name, _)| {
            let first = name.chars().next().map_or(0, char::len_utf8);
            text.replace(name, &format!("{}{guard}{}", &name[..first], &name[first..]))
        })
    }

    /// The ids of rendered text: special tokens where their names stand, and the text between them without `guard`.
    fn ids(&self, rendered: &str, guard: Option<char>) -> Vec<u32> {
        let (mut ids, mut rest) = (Vec::new(), rendered);
        let encode = |text: &str| match text {
            "" => Vec::new(),
            text => self.tokens.encode(&text.replace(|c| Some(c) == guard, "")),
        };
        loop {
            let found = |(name, id): &'_ (String, u32)| Some((rest.find(name.as_str())?, Reverse(name.len()), *id));
            let Some((at, Reverse(length), id)) = self.specials.iter().filter_map(found).min() else { break };
            ids.extend(encode(&rest[..at]));
            ids.push(id);
            rest = &rest[at + length..];
        }
        ids.extend(encode(rest));
        ids
    }
}

/// A character that stands for nothing and is not in `text`.
fn guard(text: &str) -> char {
    ('\u{FDD0}'..='\u{FDEF}').find(|c| !text.contains(*c)).expect("no text has all noncharacters")
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
