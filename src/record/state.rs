//! Where a run stands: one line in its file `state`.

use kdl::KdlDocument;

use crate::config::show::quoted;

/// What became of a run's latest attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// Nobody has begun it. Has no file.
    New,
    /// Under way, or killed: the lease tells.
    Running,
    /// Ended in order before its last step; resumes.
    Interrupted,
    /// Ended by an error, with its message; resumes.
    Failed(String),
    /// Finished, with its result.
    Done,
}

impl State {
    /// The word in the file and in lists.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Running => "running",
            Self::Interrupted => "interrupted",
            Self::Failed(_) => "failed",
            Self::Done => "done",
        }
    }
}

/// A state and the attempt that it is of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    pub state: State,
    /// From 1; 0 before the first.
    pub attempt: u32,
}

impl Status {
    /// Of a run that nobody has begun.
    pub const NEW: Self = Self { state: State::New, attempt: 0 };

    /// One line: the word, the attempt's number, and a failure's reason.
    pub(crate) fn to_text(&self) -> String {
        let (word, attempt) = (self.state.name(), self.attempt);
        match &self.state {
            State::Failed(reason) => format!("{word} {attempt} {}\n", quoted(reason)),
            _ => format!("{word} {attempt}\n"),
        }
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        let document: KdlDocument = text.parse().ok()?;
        let [line] = document.nodes() else { return None };
        let state = match line.name().value() {
            "running" => State::Running,
            "interrupted" => State::Interrupted,
            "failed" => State::Failed(line.get(1)?.as_string()?.to_owned()),
            "done" => State::Done,
            _ => return None,
        };
        Some(Self { state, attempt: line.get(0)?.as_integer()?.try_into().ok()? })
    }
}
