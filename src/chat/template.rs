//! A model's own chat template: Jinja as Hugging Face's `apply_chat_template` renders it, taken apart into the pieces
//! that a conversation is appended from.
//!
//! How it differs from `transformers`:
//! - The template is asked for single messages, never for a conversation so far, so what was sent is never changed.
//!   [`Pieces::of`] makes sure that the pieces together are what the template says of a whole conversation, and tells
//!   where it would change earlier responses (as Qwen3's leaves out old thoughts).
//! - There is no `strftime_now`: a prompt does not depend on the day. Templates that ask whether it is defined have a
//!   date of their own; others fail.
//! - No tools and no documents. `enable_thinking` says whether a thought comes before the answer.

use minijinja::{Environment, Error, ErrorKind, Value, context};

/// What is tried on a template.
const SYSTEM: (&str, &str) = ("system", "Play well.");
const USERS: [(&str, &str); 3] = [("user", "first"), ("user", "second"), ("user", "third")];

/// A compiled template with the special tokens that it may name.
#[derive(Clone, Debug)]
pub struct Template {
    environment: Environment<'static>,
    /// Names such as `bos_token` and their texts.
    tokens: Vec<(String, String)>,
}

/// What a template writes around the contents of messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pieces {
    /// What [`Template::user`] is told.
    pub(super) system: String,
    /// Before a response that is due.
    pub(super) header: String,
    /// After a response.
    pub(super) close: String,
    /// How the template would change earlier responses, if it would.
    pub(super) rewrites: Option<String>,
}

impl Template {
    /// `<|im_start|>role\n…<|im_end|>\n`, as Qwen and SmolLM speak.
    pub const CHATML: &'static str = "{% for message in messages %}\
         {{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>\\n' }}{% endfor %}\
         {% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

    /// # Errors
    /// Where the text is no template.
    pub fn new(text: &str, tokens: Vec<(String, String)>) -> Result<Self, String> {
        let mut environment = Environment::new();
        environment.set_trim_blocks(true);
        environment.set_lstrip_blocks(true);
        environment.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
        environment.add_filter("tojson", |value: Value| {
            serde_json::to_string(&value).map_err(|error| Error::new(ErrorKind::BadSerialization, error.to_string()))
        });
        environment.add_function("raise_exception", |message: String| -> Result<Value, Error> {
            Err(Error::new(ErrorKind::InvalidOperation, message))
        });
        environment
            .add_template_owned("chat", text.to_owned())
            .map_err(|error| format!("the chat template: {error}"))?;
        Ok(Self { environment, tokens })
    }

    /// ChatML.
    ///
    /// # Panics
    /// Never.
    #[must_use]
    pub fn chatml() -> Self {
        Self::new(Self::CHATML, Vec::new()).expect("it is a template")
    }

    /// The text of messages, each a role and a content. `answer`: the next response is due.
    pub(super) fn render(&self, messages: &[(&str, &str)], think: bool, answer: bool) -> Result<String, String> {
        let message = |&(role, content): &(&str, &str)| context! { role, content };
        let messages: Value = messages.iter().map(message).collect();
        let conversation = context! {
            messages, add_generation_prompt => answer, enable_thinking => think, tools => (), documents => (),
        };
        let tokens: Value = self.tokens.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
        let template = self.environment.get_template("chat").expect("it was added");
        template.render(context! { ..conversation, ..tokens }).map_err(|error| format!("the chat template: {error}"))
    }

    /// What it writes for a system message, any one.
    pub(super) fn system(&self, think: bool) -> Result<String, String> {
        self.render(&[SYSTEM], think, false)
    }

    /// What it writes for a message of the user, the response to it not included:
    /// after `system`, which is [`Template::system`].
    pub(super) fn user(&self, system: &str, text: &str, think: bool) -> Result<String, String> {
        let both = self.render(&[SYSTEM, ("user", text)], think, false)?;
        let piece = both.strip_prefix(system).ok_or_else(|| {
            format!("the chat template does not append a user's message to a system message: {system:?}, then {both:?}")
        })?;
        Ok(piece.to_owned())
    }

    /// What it writes before the first message of a conversation without a system message.
    pub(super) fn opening(&self, system: &str, think: bool) -> Result<String, String> {
        let [first, ..] = USERS;
        let (both, piece) = (self.render(&[first], think, false)?, self.user(system, first.1, think)?);
        let opening = both.strip_suffix(&piece).map(str::to_owned);
        opening.ok_or_else(|| format!("the chat template needs a system message: without one it is {both:?}"))
    }
}

impl Pieces {
    /// # Errors
    /// What the template cannot render, or where it does not append.
    pub(super) fn of(template: &Template, think: bool, reply: impl Fn(&str) -> String) -> Result<Self, String> {
        let [one, two, three] = USERS;
        let alone = template.render(&[SYSTEM, one], think, false)?;
        let due = template.render(&[SYSTEM, one], think, true)?;
        let header = due.strip_prefix(&alone).ok_or_else(|| {
            format!("the chat template does not append the head of a response: {alone:?}, then {due:?}")
        })?;
        let system = template.system(think)?;
        let users = [two, three].map(|(_, text)| template.user(&system, text, think));
        let [second, third] = [users[0].clone()?, users[1].clone()?];
        let talk = |a: &str, b: &str| {
            template.render(&[SYSTEM, one, ("assistant", a), two, ("assistant", b), three], think, true)
        };
        let plain = talk("alpha", "beta")?;
        let parted = || {
            let (head, rest) = plain.strip_prefix(&alone)?.split_once("alpha")?;
            let (close, rest) = rest.split_once(&second)?;
            (rest == format!("{head}beta{close}{third}{header}")).then_some((head, close))
        };
        let (head, close) = parted().ok_or_else(|| {
            format!("the chat template does not render a conversation message after message: {plain:?}")
        })?;
        // What was sent begins with the header, whatever the template makes of the response once it is there.
        let begun = header.strip_prefix(head).unwrap_or_default();
        let [a, b] = ["because", "therefore"].map(|thought| format!("{begun}{}", reply(thought)));
        let sent = format!("{alone}{head}{a}{close}{second}{head}{b}{close}{third}{header}");
        let rendered = talk(&a, &b)?;
        let rewrites = (sent != rendered).then(|| {
            let same = sent.chars().zip(rendered.chars()).take_while(|(a, b)| a == b).count();
            let excerpt = |text: &str| text.chars().skip(same.saturating_sub(12)).take(48).collect::<String>();
            format!("it writes {:?} where {:?} was sent", excerpt(&rendered), excerpt(&sent))
        });
        Ok(Self { system, header: header.to_owned(), close: close.to_owned(), rewrites })
    }
}
