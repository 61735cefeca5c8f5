use std::hash::{BuildHasher, Hash, Hasher, RandomState};

use crate::charge::Owed;

/// A secret that no client knows, so that none can choose where its keys land.
pub(super) struct Seed(RandomState);

impl Seed {
    pub(super) fn new() -> Self {
        Self(RandomState::new())
    }

    /// What tells this row from all others; never 0, which marks an empty row.
    pub(super) fn print(&self, owed: &Owed) -> u64 {
        let mut hasher = self.0.build_hasher();
        hasher.write_u64(owed.limit.id());
        owed.key.hash(&mut hasher);
        hasher.finish().max(1)
    }
}
