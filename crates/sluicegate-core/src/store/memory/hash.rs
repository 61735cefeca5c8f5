//! The hash of the table is foldhash with a secret seed. It is not a cryptographic hash. But a client never sees a
//! fingerprint or which keys share a bucket, so without the seed it has nothing to attack. A fingerprint has 64 bits:
//! the chance that any two of a million keys share one is 1 in 37 million.

use std::hash::{BuildHasher, Hasher, RandomState};

use foldhash::SharedSeed;
use foldhash::quality::FoldHasher;

use crate::key::KeyBuf;

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
        let mut hasher = FoldHasher::with_seed(self.own ^ limit, &self.shared);
        let [low, high] = key.length_words();
        hasher.write_u64(low);
        key.words().iter().for_each(|word| hasher.write_u64(*word));
        if high != 0 {
            hasher.write_u64(high);
        }
        hasher.finish().max(1)
    }
}
