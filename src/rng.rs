//! The only randomness: counter-based draws, keyed by what is drawn.
//!
//! Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011). A [`Stream`] is
//! named by a domain, a seed and a path of indices, such as ("sample", seed, [step, group, member, turn]);
//! its draws are a pure function of that name and of their index, so batch order, threads and resume cannot change
//! them.

/// Version of the mapping from a name to its draws; part of every run's key.
pub const EPOCH: u32 = 1;

const MULTIPLIERS: [u64; 2] = [0xD251_1F53, 0xCD9E_8D57];
const WEYL: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];

/// Ten rounds of Philox4x32 on `counter` under `key`.
#[must_use]
pub fn philox4x32(key: [u32; 2], counter: [u32; 4]) -> [u32; 4] {
    let (mut k, mut c) = (key, counter);
    for _ in 0..10 {
        let low = MULTIPLIERS[0] * u64::from(c[0]);
        let high = MULTIPLIERS[1] * u64::from(c[2]);
        c = [(high >> 32) as u32 ^ c[1] ^ k[0], high as u32, (low >> 32) as u32 ^ c[3] ^ k[1], low as u32];
        k = [k[0].wrapping_add(WEYL[0]), k[1].wrapping_add(WEYL[1])];
    }
    c
}

/// A named sequence of draws. Copying it forks nothing: a copy repeats the same draws.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stream {
    key: [u32; 2],
    block: [u32; 2],
    next: u64,
}

impl Stream {
    /// The stream `domain` of `seed` at `path`. Distinct names give independent streams (BLAKE3 to 128 bits).
    #[must_use]
    pub fn new(domain: &str, seed: u64, path: &[u64]) -> Self {
        let mut hasher = blake3::Hasher::new_derive_key("starpo rng 1");
        hasher.update(&(domain.len() as u64).to_le_bytes()).update(domain.as_bytes()).update(&seed.to_le_bytes());
        for index in path {
            hasher.update(&index.to_le_bytes());
        }
        let hash = hasher.finalize();
        let word = |i: usize| u32::from_le_bytes(std::array::from_fn(|b| hash.as_bytes()[4 * i + b]));
        Self { key: [word(0), word(1)], block: [word(2), word(3)], next: 0 }
    }

    /// The 32 bits at `index`, whatever was drawn before.
    #[must_use]
    pub fn bits_at(&self, index: u64) -> u32 {
        let block = index / 4;
        philox4x32(self.key, [block as u32, (block >> 32) as u32, self.block[0], self.block[1]])[(index % 4) as usize]
    }

    /// The uniform in [0, 1) at `index` of the 64-bit draws, with 53 random bits.
    #[must_use]
    pub fn uniform_at(&self, index: u64) -> f64 {
        let bits = u64::from(self.bits_at(2 * index)) << 32 | u64::from(self.bits_at(2 * index + 1));
        (bits >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// The next 32 bits.
    pub fn bits(&mut self) -> u32 {
        self.next += 1;
        self.bits_at(self.next - 1)
    }

    /// The next uniform in [0, 1).
    pub fn uniform(&mut self) -> f64 {
        let bits = u64::from(self.bits()) << 32 | u64::from(self.bits());
        (bits >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// True with probability `p`.
    pub fn chance(&mut self, p: f64) -> bool {
        self.uniform() < p
    }

    /// An unbiased integer in `0..n` (Lemire's rejection).
    ///
    /// # Panics
    /// If `n` is 0 or above 2³².
    pub fn below(&mut self, n: usize) -> usize {
        assert!(n > 0 && n as u64 <= 1 << 32, "below({n})");
        let n = n as u64;
        let threshold = (1u64 << 32) % n;
        loop {
            let product = u64::from(self.bits()) * n;
            if product & 0xFFFF_FFFF >= threshold {
                return (product >> 32) as usize;
            }
        }
    }

    /// One of `items`, uniformly.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }

    /// Fisher–Yates.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            items.swap(i, self.below(i + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The known answers of the Random123 distribution (`kat_vectors`, philox4x32 10).
    #[test]
    fn known_answers() {
        assert_eq!(philox4x32([0; 2], [0; 4]), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
        assert_eq!(philox4x32([u32::MAX; 2], [u32::MAX; 4]), [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]);
        assert_eq!(
            philox4x32([0xa409_3822, 0x299f_31d0], [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344]),
            [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]
        );
    }

    #[test]
    fn a_draw_depends_on_its_name_and_index_alone() {
        let mut drawn = Stream::new("sample", 7, &[1, 2]);
        let fresh = drawn;
        let first: Vec<u32> = (0..9).map(|_| drawn.bits()).collect();
        let again: Vec<u32> = (0..9).rev().map(|i| fresh.bits_at(i)).collect();
        assert!(first.iter().eq(again.iter().rev()));
        let names = [("sample", 7, [1, 3]), ("sample", 8, [1, 2]), ("dynamics", 7, [1, 2])];
        assert!(names.iter().all(|(d, s, p)| Stream::new(d, *s, p).bits_at(0) != first[0]));
    }

    #[test]
    fn draws_cover_their_range_evenly() {
        let mut stream = Stream::new("test", 1, &[]);
        let mut counts = [0u32; 7];
        (0..70_000).for_each(|_| counts[stream.below(7)] += 1);
        assert!(counts.iter().all(|c| (9_500..10_500).contains(c)), "{counts:?}");
        let mean = (0..50_000).map(|_| stream.uniform()).sum::<f64>() / 50_000.0;
        assert!((mean - 0.5).abs() < 0.01);
    }
}
