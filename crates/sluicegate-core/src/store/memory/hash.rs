//! The hash of the table is foldhash with a secret seed. It is not a cryptographic hash. But a client never sees a
//! fingerprint or which keys share a bucket, so without the seed it has nothing to attack. A fingerprint has 64 bits:
//! the chance that any two of a million keys share one is 1 in 37 million.

use std::hash::{BuildHasher, Hasher, RandomState};

use foldhash::SharedSeed;
use foldhash::quality::FoldHasher;

use crate::key::{KeyBuf, Part};

/// A secret seed. Without it a client cannot choose where its keys land.
///
/// foldhash multiplies and folds, which takes 2 ns for a short key; SipHash takes 15. foldhash's own random seeds are
/// made from addresses and times; this seed comes from the operating system.
pub(super) struct Seed {
    own: u64,
    shared: SharedSeed,
}

impl Seed {
    pub(super) fn new() -> Self {
        // Both halves are seeded by the operating system. Every store has a different seed.
        let random = |which: u64| RandomState::new().hash_one(which);
        Self { own: random(0), shared: SharedSeed::from_u64(random(1)) }
    }

    /// A fixed seed, not secret: loom runs a test many times and needs the same result each time.
    #[cfg(all(test, loom))]
    pub(super) fn fixed() -> Self {
        Self { own: 1, shared: SharedSeed::from_u64(2) }
    }

    /// Identifies the row of this limit and key. Never 0, which marks an empty row.
    #[inline]
    pub(super) fn fingerprint(&self, limit: u64, key: &KeyBuf) -> u64 {
        let mut hasher = self.hasher(limit);
        let [low, high] = key.length_words();
        hasher.write_u64(low);
        let mut pairs = key.words().chunks_exact(2);
        for pair in pairs.by_ref() {
            hasher.write_u64(pair[0]);
            hasher.write_u64(pair[1]);
        }
        if let [last] = pairs.remainder() {
            hasher.write_u64(*last);
        }
        if high != 0 {
            hasher.write_u64(high);
        }
        hasher.finish().max(1)
    }

    /// The [`fingerprint`](Self::fingerprint) of the key of one value.
    #[inline(always)]
    pub(super) fn fingerprint_of(&self, limit: u64, part: &impl Part) -> u64 {
        let mut hasher = self.hasher(limit);
        match part.single().hash_words(&mut hasher) {
            Some(()) => hasher.finish().max(1),
            None => self.fingerprint(limit, &KeyBuf::of(part)),
        }
    }

    #[inline(always)]
    fn hasher(&self, limit: u64) -> FoldHasher<'_> {
        FoldHasher::with_seed(self.own ^ limit, &self.shared)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_value_has_the_fingerprint_of_its_key() {
        let seed = Seed::new();
        let text = "0123456789abcdef".repeat(8);
        for length in 0..=text.len() {
            let text = &text[..length];
            let expected = seed.fingerprint(7, &KeyBuf::of(text));
            assert_eq!(seed.fingerprint_of(7, &text), expected, "{length} bytes");
        }
        let parts = (7_u64, "a");
        assert_eq!(seed.fingerprint_of(7, &parts), seed.fingerprint(7, &KeyBuf::of(parts)));
        assert_eq!(seed.fingerprint_of(7, &7_u64), seed.fingerprint(7, &KeyBuf::of(7_u64)));
    }
}
