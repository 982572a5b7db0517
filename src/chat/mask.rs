//! Masks: which tokens of a row are learned from.
//!
//! RAGEN finds its masks by counting `<|im_start|>` in a finished row, aligned to targets: its slot t is our token
//! t + 1. Here a mask is made from the lengths of the pieces that the row was made of.
//!
//! How `assistant` and `after-system` differ from RAGEN's `enable_response_mask` true and false: they begin and end at
//! the same tokens (one `<|im_start|>` later in a full row than in others, and with the next turn's), but a reply that
//! spells a special token moves nothing. RAGEN has no `after-system` for rows of one turn; ours begins where its full
//! one does.

use std::ops::Range;

use super::Chat;
use crate::config::choice;
use crate::trajectory::Sequence;

choice! {
    /// Which tokens of a row are learned from.
    pub enum Mask {
        /// Those that were sampled: content and end token.
        "sampled" => Sampled,
        /// Also the response's role, its forced prefix, and what closes it (RAGEN's default).
        "assistant" => Assistant,
        /// All after the system message (RAGEN's `enable_response_mask` false).
        "after-system" => AfterSystem,
    }
}

impl Mask {
    /// The spans of a finished row, one a response, whose system message has `system` tokens. `appended`: the row is a
    /// whole episode, which turns were appended to.
    #[must_use]
    pub fn spans(self, chat: &Chat<'_>, row: &Sequence, system: usize, appended: bool) -> Vec<Range<usize>> {
        let header = chat.header().len() - usize::from(appended);
        let last = row.responses.len().saturating_sub(1);
        let mut before = system + 1;
        let span = |(number, response): (usize, &Range<usize>)| {
            let closed = response.end + chat.close(&row.tokens[response.clone()]).len();
            let end = if number == last { closed } else { closed + 1 };
            let start = std::mem::replace(&mut before, end);
            match self {
                Self::Sampled => response.clone(),
                Self::Assistant => response.start - header..end,
                Self::AfterSystem => start..end,
            }
        };
        row.responses.iter().enumerate().map(span).collect()
    }
}
