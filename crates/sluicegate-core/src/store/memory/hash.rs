//! The hash of the table is foldhash with a secret seed. It is not a cryptographic hash. But no client ever
//! sees a fingerprint or what shares a bucket with it, so without the seed there is nothing to attack. A
//! fingerprint has 64 bits: the chance that any two of a million keys have the same one is 1 in 37 million.

use std::hash::{BuildHasher, Hasher, RandomState};

use foldhash::SharedSeed;
use foldhash::quality::FoldHasher;

use crate::key::KeyBuf;

/// A secret that no client knows, so that none can choose where its keys land.
///
/// foldhash multiplies and folds, which takes 2 ns for a short key where SipHash takes 15. Its own random
/// seeds are made of addresses and times; these are the operating system's.
pub(super) struct Seed {
    own: u64,
    shared: SharedSeed,
}

impl Seed {
    pub(super) fn new() -> Self {
        // Both are keyed by the operating system; no two stores get the same.
        let random = |which: u64| RandomState::new().hash_one(which);
        Self { own: random(0), shared: SharedSeed::from_u64(random(1)) }
    }

    /// One that is no secret: loom runs a test again and again, and has to find it the same.
    #[cfg(all(test, loom))]
    pub(super) fn fixed() -> Self {
        Self { own: 1, shared: SharedSeed::from_u64(2) }
    }

    /// What tells the row of this limit and key from all others; never 0, which marks an empty row.
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
