//! `full`: the whole episode is one conversation and one row.
//!
//! A row only grows, so every token is read once and the row's log-probs are those of sampling. So nothing is ever left
//! out: an episode without room for a token of response ends (`token-limit`), and the last response may be cut short.
//! RAGEN drops the oldest turns of this window too: what it then trains on is not what it sampled from, and its mask
//! falls on user messages.

use super::History;
use crate::config::section;

section! {
    /// The whole episode is one conversation and one row.
    pub struct FullWindow epoch 1 {}
}

pub(super) fn prompt(history: &History<'_>) -> Option<Vec<u32>> {
    let turn = history.turns.len();
    let mut ids = history.rows.last().map_or_else(|| history.system.to_vec(), |row| row.tokens.clone());
    ids.extend(history.chat.user(&history.message(turn, turn == 0)));
    (ids.len() < history.max_context).then_some(ids)
}
