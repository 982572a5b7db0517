//! The episodes that a report holds: their records as they were written, compressed, and what the update made of them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;

use super::recorded::Recorded;
use crate::record::RunError;
use crate::record::episode::{self, EpisodeRecord};
use crate::replay::{GroupReplay, Replay, RowReplay};
use crate::stats;

/// Bytes of packed episodes in a report.
pub const BUDGET: usize = 3_400_000;
/// Steps that fit at least, be it with some of their groups.
const STEPS: usize = 16;
/// How hard they are packed, of 10.
const COMPRESSION: u8 = 7;

/// The episodes of some steps.
#[derive(Clone, Debug, Default)]
pub struct Episodes {
    /// Ascending by step and group.
    pub packs: Vec<Pack>,
    pub entries: Vec<Entry>,
    /// What the ids in them spell.
    pub vocabulary: BTreeMap<u32, String>,
    pub steps: usize,
}

/// A group's episodes. Texts are compressed by raw deflate (RFC 1951) and written in base64 (RFC 4648).
#[derive(Clone, Debug, Serialize)]
pub struct Pack {
    pub step: usize,
    pub group: usize,
    /// Lines of the step's record, byte for byte.
    pub records: String,
    /// [`Credit`] as JSON.
    pub credit: String,
}

/// What the update made of a group.
#[derive(Serialize)]
struct Credit<'a> {
    group: Option<&'a GroupReplay>,
    rows: Vec<&'a RowReplay>,
}

/// An episode in the list, as an array in this order.
#[derive(Clone, Debug, Serialize)]
pub struct Entry(
    /// Step.
    usize,
    /// Group.
    usize,
    /// Member.
    usize,
    /// Score.
    f64,
    /// Mean advantage over unmasked tokens; null where the update did not see it.
    Option<f64>,
    /// Mean pointwise mutual information of the turns that were drawn, nats.
    Option<f64>,
    /// End.
    &'static str,
    /// Whether the filter kept its group; null where records cannot tell.
    Option<bool>,
    /// Turns without a legal answer.
    usize,
    /// Turns.
    usize,
    /// Sampled tokens.
    usize,
    /// Environment.
    String,
    /// Task index.
    u64,
);

/// Chooses and packs episodes: whole groups of evenly spaced steps, the first and the last among them.
///
/// # Errors
/// The system's; [`RunError::Corrupt`].
pub fn episodes(run: &Recorded, budget: usize) -> Result<Episodes, RunError> {
    let mut chosen: Vec<Step> = Vec::new();
    let mut left = budget;
    for place in spread(run.rollouts.len()) {
        let (step, path) = &run.rollouts[place];
        let (text, replayed) = run.step(*step, path)?;
        let corrupt = |error: episode::ReadError| RunError::Corrupt { path: path.clone(), what: error.to_string() };
        let records = episode::read(&text).map_err(corrupt)?;
        let step = pack(&text, &records, replayed.as_ref(), budget / STEPS);
        if step.size > left {
            break;
        }
        left -= step.size;
        chosen.push(step);
    }
    chosen.sort_by_key(|step| step.packs.first().map(|pack| pack.step));
    let tokenizer = run.tokenizer();
    let ids: BTreeSet<u32> = chosen.iter().flat_map(|step| &step.ids).copied().collect();
    let spell = |id: u32| Some((id, tokenizer.as_ref()?.decode(&[id])));
    let mut episodes = Episodes {
        steps: chosen.len(),
        vocabulary: ids.into_iter().filter_map(spell).collect(),
        ..Episodes::default()
    };
    for step in chosen {
        episodes.packs.extend(step.packs);
        episodes.entries.extend(step.entries);
    }
    Ok(episodes)
}

/// The packed groups of a step.
#[derive(Default)]
struct Step {
    packs: Vec<Pack>,
    entries: Vec<Entry>,
    ids: BTreeSet<u32>,
    size: usize,
}

/// Packs a step's groups, as many evenly spaced ones as `room` has place for, and one at least.
fn pack(text: &str, records: &[EpisodeRecord], replayed: Option<&Replay>, room: usize) -> Step {
    let lines: Vec<(&str, &EpisodeRecord)> = text.split('\n').zip(records).collect();
    let groups: Vec<usize> = records.iter().map(|record| record.group).collect::<BTreeSet<_>>().into_iter().collect();
    let mut step = Step::default();
    for place in spread(groups.len()) {
        let group = groups[place];
        let members: Vec<_> = lines.iter().filter(|(_, record)| record.group == group).collect();
        let of = |row: &&RowReplay| row.group == group;
        let credit = Credit {
            group: replayed.and_then(|replayed| replayed.groups.iter().find(|found| found.group == group)),
            rows: replayed.iter().flat_map(|replayed| replayed.rows.iter().filter(of)).collect(),
        };
        let written: String = members.iter().flat_map(|(line, _)| [*line, "\n"]).collect();
        let pack = Pack {
            step: members.first().map_or(0, |(_, record)| record.step),
            group,
            records: packed(written.as_bytes()),
            credit: packed(&serde_json::to_vec(&credit).unwrap_or_default()),
        };
        let size = pack.records.len() + pack.credit.len();
        if !step.packs.is_empty() && step.size + size > room {
            break;
        }
        step.size += size;
        step.packs.push(pack);
        step.entries.extend(members.iter().map(|(_, record)| Entry::new(record, &credit)));
        let turns = members.iter().flat_map(|(_, record)| &record.turns);
        step.ids.extend(turns.flat_map(|turn| turn.prompt.iter().chain(&turn.response).flatten()));
    }
    step.packs.sort_by_key(|pack| pack.group);
    step.entries.sort_by_key(|entry| (entry.1, entry.2));
    step
}

impl Entry {
    fn new(record: &EpisodeRecord, credit: &Credit<'_>) -> Self {
        let own = credit.rows.iter().filter(|row| row.member == record.member);
        let unmasked = own.flat_map(|row| row.mask.iter().zip(&row.advantages).filter(|(mask, _)| **mask == 1));
        let advantages: Vec<f64> = unmasked.map(|(_, advantage)| *advantage).collect();
        let drawn = |name: &str| record.turns.iter().filter_map(|turn| turn.metrics.get(name).copied()).collect();
        let along: Vec<f64> = drawn("mi");
        let informed: Vec<f64> = if along.is_empty() { drawn("mi_first_turn") } else { along };
        let mean = |values: &[f64]| (!values.is_empty()).then(|| stats::mean(values));
        let trajectory = record.trajectory();
        Self(
            record.step,
            record.group,
            record.member,
            trajectory.score(),
            mean(&advantages),
            mean(&informed),
            record.end.name(),
            credit.group.map(|group| group.kept),
            record.turns.iter().filter(|turn| !turn.valid).count(),
            record.turns.len(),
            trajectory.sequences.iter().map(|row| row.response_tokens()).sum(),
            record.task.env.clone(),
            record.task.index,
        )
    }
}

fn packed(bytes: &[u8]) -> String {
    STANDARD.encode(miniz_oxide::deflate::compress_to_vec(bytes, COMPRESSION))
}

/// Places of `count` things, each next one in the middle of a widest gap: the first, the last, the middle, …
fn spread(count: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count.min(1)).collect();
    order.extend((count > 1).then_some(count.saturating_sub(1)));
    let mut gaps = VecDeque::from([(0, count.saturating_sub(1))]);
    while let Some((low, high)) = gaps.pop_front().filter(|_| order.len() < count) {
        let middle = usize::midpoint(low, high);
        if middle > low {
            order.push(middle);
            gaps.extend([(low, middle), (middle, high)]);
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use super::spread;

    #[test]
    fn steps_are_evenly_spaced_with_both_ends() {
        assert_eq!(spread(9), [0, 8, 4, 2, 6, 1, 3, 5, 7]);
        assert_eq!((spread(0), spread(1), spread(2)), (vec![], vec![0], vec![0, 1]));
        for count in 0..50 {
            let mut order = spread(count);
            order.sort_unstable();
            assert!(order.into_iter().eq(0..count));
        }
    }
}
