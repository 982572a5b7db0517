//! Gradient analysis: how strongly groups of small and of large spread pull, and what pulls beside the task.

use std::ops::Range;

use crate::config::{section, variants};

section! {
    /// Norms of the task's, the entropy's and the KL's gradient by the groups' reward spread, on the side.
    pub struct GradientsConfig epoch 1 {
        /// Steps between analyses, from the first on; 0 for none.
        pub every: usize where 0..=100000000,
        /// How groups are sorted by spread.
        pub buckets: Buckets,
    }
}

variants! {
    /// How groups are sorted by the deviation of their scores.
    pub enum Buckets: "buckets" {
        "quantiles" => Quantiles(Quantiles),
        "edges" => Edges(Edges),
    }
}

section! {
    /// Buckets of equally many groups, by ascending spread; what is left over goes to the last.
    pub struct Quantiles epoch 1 {
        /// Buckets, if there are as many groups.
        pub count: usize where 1..=99,
    }
}

section! {
    /// Buckets between fixed spreads: below the first edge, from each edge up to the next, and from the last on.
    pub struct Edges epoch 1 {
        /// Ascending.
        pub edges: Vec<f64> where 0.0..=1e12,
    }
}

impl GradientsConfig {
    /// Whether step `step` (from 1) is analysed.
    #[must_use]
    pub fn due(&self, step: usize) -> bool {
        self.every > 0 && (step - 1).is_multiple_of(self.every)
    }
}

impl Buckets {
    /// The numbers of the groups of each bucket, by ascending spread and then by number; a bucket may be empty.
    #[must_use]
    pub fn split(&self, spreads: &[f64]) -> Vec<Vec<usize>> {
        let mut order: Vec<usize> = (0..spreads.len()).collect();
        order.sort_by(|a, b| spreads[*a].total_cmp(&spreads[*b]));
        let ranges: Vec<Range<usize>> = match self {
            Buckets::Quantiles(Quantiles { count }) => {
                let count = (*count).min(order.len());
                let size = order.len() / count.max(1);
                let end = |bucket| if bucket + 1 == count { order.len() } else { size * (bucket + 1) };
                (0..count).map(|bucket| size * bucket..end(bucket)).collect()
            }
            Buckets::Edges(Edges { edges }) => {
                let below = |edge: f64| order.partition_point(|group| spreads[*group] < edge);
                let ends: Vec<usize> = edges.iter().map(|edge| below(*edge)).chain([order.len()]).collect();
                (0..ends.len()).map(|bucket| if bucket == 0 { 0 } else { ends[bucket - 1] }..ends[bucket]).collect()
            }
        };
        ranges.into_iter().map(|range| order[range].to_vec()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_go_to_buckets_by_spread() {
        let spreads = [0.5, 0.0, 2.0, 0.0, 1.0, 0.25, 3.0];
        let quantiles = |count| Buckets::Quantiles(Quantiles { count }).split(&spreads);
        assert_eq!(quantiles(3), [vec![1, 3], vec![5, 0], vec![4, 2, 6]]);
        assert_eq!(quantiles(9), [[1], [3], [5], [0], [4], [2], [6]]);
        let edges = Buckets::Edges(Edges { edges: vec![0.1, 1.0, 2.5, 9.0] }).split(&spreads);
        assert_eq!(edges, [vec![1, 3], vec![5, 0], vec![4, 2], vec![6], vec![]]);
        assert!(Buckets::Quantiles(Quantiles { count: 6 }).split(&[]).is_empty());
    }

    #[test]
    fn the_first_step_is_analysed() {
        let config = |every| GradientsConfig { every, buckets: Buckets::Quantiles(Quantiles { count: 6 }) };
        assert_eq!([1, 2, 50, 51].map(|step| config(50).due(step)), [true, false, false, true]);
        assert!(!config(0).due(1));
    }
}
