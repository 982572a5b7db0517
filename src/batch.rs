//! The kept episodes as flat arrays over response tokens, cut into mini-batches and shards.

use std::ops::Range;

use crate::advantage::Credit;
use crate::trajectory::{Group, Sequence};

/// The rows of the kept groups: groups in their order, within a group members in order, within a member its sequences.
#[derive(Clone, Debug)]
pub struct Batch<'a> {
    pub rows: Vec<Row<'a>>,
    /// Of each response token of each row.
    pub advantages: Vec<f64>,
    /// What a critic's values should be, of each response token of each row.
    pub returns: Vec<f64>,
    /// Log-probs recorded while sampling, of each response token of each row; empty if none were recorded.
    pub old: Vec<f64>,
    /// Log-probs under the frozen reference, as `old`.
    pub reference: Vec<f64>,
    /// The critic's values, as `old`.
    pub values: Vec<f64>,
}

/// One sequence of one member.
#[derive(Clone, Debug)]
pub struct Row<'a> {
    /// The group's id.
    pub group: usize,
    pub member: usize,
    /// Which of the member's sequences it is.
    pub index: usize,
    pub sequence: &'a Sequence,
    /// Where its response tokens stand in the batch's flat arrays.
    pub span: Range<usize>,
}

/// The rows of one optimizer step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MiniBatch {
    /// In the batch.
    pub rows: Range<usize>,
    /// Each the rows of one group, counted from the mini-batch's first row.
    pub shards: Vec<Range<usize>>,
}

impl<'a> Batch<'a> {
    /// Lays the groups out flat, each with its credit.
    ///
    /// # Panics
    /// If the credit is not one number a response token of its group.
    #[must_use]
    pub fn new(groups: &[&'a Group], credits: &[Credit]) -> Self {
        assert_eq!(groups.len(), credits.len(), "one credit a group");
        let mut batch = Self {
            rows: Vec::new(),
            advantages: credits.iter().flat_map(|credit| &credit.advantages).copied().collect(),
            returns: credits.iter().flat_map(|credit| &credit.returns).copied().collect(),
            old: Vec::new(),
            reference: Vec::new(),
            values: Vec::new(),
        };
        let widen = |flat: &mut Vec<f64>, values: &[f32]| flat.extend(values.iter().map(|value| f64::from(*value)));
        let mut start = 0;
        for (group, credit) in groups.iter().zip(credits) {
            let end = start + credit.advantages.len();
            for member in &group.members {
                for (index, sequence) in member.sequences.iter().enumerate() {
                    let span = start..start + sequence.response_tokens();
                    start = span.end;
                    widen(&mut batch.old, &sequence.logprobs);
                    widen(&mut batch.reference, &sequence.reference);
                    widen(&mut batch.values, &sequence.values);
                    batch.rows.push(Row { group: group.id, member: member.member, index, sequence, span });
                }
            }
            assert_eq!(start, end, "one advantage a response token of group {}", group.id);
            assert_eq!(credit.returns.len(), credit.advantages.len(), "one return an advantage of group {}", group.id);
        }
        batch
    }

    /// Numbers of response tokens of some rows.
    #[must_use]
    pub fn counts(&self, rows: Range<usize>) -> Vec<usize> {
        self.rows[rows].iter().map(|row| row.span.len()).collect()
    }

    /// The batch in mini-batches of `size` rows, in order; the last may be smaller. A group that is cut by the boundary
    /// of two mini-batches is a shard in each.
    #[must_use]
    pub fn mini_batches(&self, size: usize) -> Vec<MiniBatch> {
        let starts = (0..self.rows.len()).step_by(size.max(1));
        starts.map(|start| self.mini_batch(start..(start + size.max(1)).min(self.rows.len()))).collect()
    }

    fn mini_batch(&self, rows: Range<usize>) -> MiniBatch {
        let mut shards = Vec::new();
        let mut start = 0;
        for shard in self.rows[rows.clone()].chunk_by(|a, b| a.group == b.group) {
            shards.push(start..start + shard.len());
            start += shard.len();
        }
        MiniBatch { rows, shards }
    }
}
