//! `limited`: the system message and the last turns as a conversation (`limited_multi_turn` of RAGEN, Wang et al. 2025,
//! arXiv:2504.20073).
//!
//! A row a turn: user messages and responses of the last `turns` turns, the current one included, responses as they
//! were sampled. The current response alone is learned from.
//!
//! How it differs from RAGEN:
//! - Messages number no turns; the first one shown says nothing of what the turn before it earned.
//! - A turn that is left out for want of room takes its user message and its response along, and no mask moves.
//! - Room is kept for a whole response.

use super::History;
use crate::config::section;

section! {
    /// A row a turn: the last turns as a conversation (`limited_multi_turn` of RAGEN, arXiv:2504.20073).
    pub struct LimitedWindow epoch 1 {
        /// Turns shown at most, the current one included.
        pub turns: usize where 1..=10000,
    }
}

impl LimitedWindow {
    pub(super) fn prompt(&self, history: &History<'_>) -> Option<Vec<u32>> {
        history.longest(self.turns - 1, |first| conversation(history, first))
    }
}

/// The turns from `first` on.
fn conversation(history: &History<'_>, first: usize) -> Vec<u32> {
    let mut ids = history.system.to_vec();
    for turn in first..=history.turns.len() {
        ids.extend(history.chat.user(&history.message(turn, turn == first)));
        if let Some(row) = history.rows.get(turn) {
            ids.extend(&row.tokens[row.responses[0].start..]);
        }
    }
    ids
}
