use std::cmp::Reverse;
use std::collections::HashMap;

use super::summary::{RefusalBounds, Summary};
use crate::key::KeyBuf;
use crate::observe::show::ShowKeys;

/// The keys that one policy refused most, as [`Watch::snapshot`](super::Watch::snapshot) returns them.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MostRefused {
    /// The name of the limit.
    pub policy: String,
    /// The number of refusals.
    pub refusals: u64,
    /// The number of refusals whose keys are unknown.
    pub missed: u64,
    /// The refused keys, the most refused first.
    pub keys: Vec<RefusedKey>,
}

/// How often a key was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RefusedKey {
    /// The key, or a digest of it.
    pub who: String,
    /// A lower bound of its refusals.
    pub at_least: u64,
    /// An upper bound of its refusals.
    pub at_most: u64,
}

impl MostRefused {
    pub(super) fn of(
        policy: &str,
        parts: &[Summary],
        missed: u64,
        keys: usize,
        show: &ShowKeys,
    ) -> Self {
        let total: u64 = parts.iter().map(Summary::total).sum();
        let shown = merged(parts).into_iter().take(keys).map(|bounds| RefusedKey {
            who: show.show(&bounds.key).unwrap_or_default(),
            at_least: bounds.at_least,
            at_most: bounds.at_most + missed,
        });
        Self { policy: policy.to_owned(), refusals: total + missed, missed, keys: shown.collect() }
    }
}

/// The keys with a counter in any part, the most refused first. In a part without a counter for the key, it was
/// refused at most as often as the lowest counter there says.
pub(super) fn merged(parts: &[Summary]) -> Vec<RefusalBounds> {
    let unseen: u64 = parts.iter().map(Summary::at_most_unseen).sum();
    let mut all: HashMap<KeyBuf, RefusalBounds> = HashMap::new();
    for part in parts {
        for bounds in part.bounds() {
            let nobody = RefusalBounds { key: bounds.key, at_least: 0, at_most: unseen };
            let sum = all.entry(bounds.key).or_insert(nobody);
            sum.at_least += bounds.at_least;
            sum.at_most += bounds.at_most - part.at_most_unseen();
        }
    }
    let mut all: Vec<_> = all.into_values().collect();
    all.sort_by_key(|bounds| Reverse((bounds.at_most, bounds.at_least)));
    all
}
