//! `single-turn`: the system message and one user message that tells the history in words.
//!
//! A row a turn, as in verl-agent (Feng et al. 2025, arXiv:2505.10978) and RAGEN's `single_turn`: the last `memory`
//! pairs of observation and executed actions under the numbers of their turns, then the state. With nothing to tell
//! (the first turn, no memory, no room) the message is as in a first turn of every window.
//!
//! How it differs:
//! - The words are ours, the same for every environment. RAGEN quotes whole replies; here thoughts are not remembered.
//! - Observations are never cut; where room is short, the oldest pairs are left out, and the count says so.

use super::History;
use crate::config::section;

section! {
    /// A row a turn: one user message that tells the last turns in words (verl-agent, arXiv:2505.10978).
    pub struct SingleTurnWindow epoch 1 {
        /// Turns told at most: what was seen and done; 0 tells nothing.
        pub memory: usize where 0..=10000,
    }
}

impl SingleTurnWindow {
    pub(super) fn prompt(&self, history: &History<'_>) -> Option<Vec<u32>> {
        history.longest(self.memory, |first| {
            let mut ids = history.system.to_vec();
            ids.extend(history.chat.user(&told(history, first)));
            ids
        })
    }
}

/// The turns from `first` on, and the state.
fn told(history: &History<'_>, first: usize) -> String {
    let (played, script) = (history.turns.len(), history.script);
    let now = history.message(played, true);
    if first == played {
        return now;
    }
    let mut text = format!("Turns played: {played}. The last {}:\n", played - first);
    for (turn, number) in history.turns[first..].iter().zip(first + 1..) {
        let actions = if turn.executed.is_empty() { "none".to_owned() } else { script.actions(&turn.executed) };
        let earned = script.earned(turn.reward + turn.penalty);
        text.push_str(&format!("Turn {number}:\n{}\nActions: {actions}\n{earned}", turn.observation));
    }
    text + &format!("Turn {}:\n{now}", played + 1)
}
