//! Thoughts where they were thought, and which of them are looked at.

use crate::rng::Stream;
use crate::trajectory::{Group, Trajectory};

/// A turn of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The group's id.
    pub group: usize,
    pub member: usize,
    /// From 0.
    pub turn: usize,
}

/// The tokens of a thought as they were sampled, and all that stands before them in their row: the prompt up to its
/// `<think>`. Neither is empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thought<'a> {
    pub place: Place,
    pub prompt: &'a [u32],
    pub reasoning: &'a [u32],
}

/// The thoughts of an episode in the order of its turns, whatever its window. A turn whose reply has no thought, or an
/// empty one, has none here.
#[must_use]
pub fn thoughts<'a>(group: &'a Group, episode: &'a Trajectory) -> Vec<Thought<'a>> {
    let mut found = Vec::new();
    for row in &episode.sequences {
        for (&turn, response) in row.turns.iter().zip(&row.responses) {
            let Some(thought) = &episode.turns[turn].reply.reasoning else { continue };
            let (start, end) = (response.start + thought.start, response.start + thought.end);
            if start > 0 && start < end {
                let place = Place { group: group.id, member: episode.member, turn };
                found.push(Thought { place, prompt: &row.tokens[..start], reasoning: &row.tokens[start..end] });
            }
        }
    }
    found
}

/// At most `count` thoughts, none twice, in order of place. A draw takes one of the episodes that have thoughts left,
/// each as likely, then one of its thoughts, each as likely.
#[must_use]
pub fn draw<'a>(mut episodes: Vec<Vec<Thought<'a>>>, count: usize, stream: &mut Stream) -> Vec<Thought<'a>> {
    let mut drawn = Vec::new();
    episodes.retain(|thoughts| !thoughts.is_empty());
    while drawn.len() < count && !episodes.is_empty() {
        let episode = stream.below(episodes.len());
        let thoughts = &mut episodes[episode];
        drawn.push(thoughts.remove(stream.below(thoughts.len())));
        if thoughts.is_empty() {
            episodes.remove(episode);
        }
    }
    drawn.sort_by_key(|thought| thought.place);
    drawn
}
