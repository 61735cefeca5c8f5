use std::cmp::Reverse;
use std::collections::HashMap;

use super::summary::{Seen, Summary};
use crate::key::KeyBuf;
use crate::observe::show::ShowKeys;

/// Who was refused most by one policy, as [`Watch::snapshot`](super::Watch::snapshot) shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MostRefused {
    /// The name of the limit.
    pub policy: String,
    /// How often it refused anybody.
    pub refusals: u64,
    /// How many of these nobody knows any more whose they were.
    pub missed: u64,
    /// Who was refused, the most refused first.
    pub keys: Vec<RefusedKey>,
}

/// How often a key was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RefusedKey {
    /// Whose key it is, or a digest of it.
    pub who: String,
    /// No fewer times.
    pub at_least: u64,
    /// No more times.
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
        let shown = merged(parts).into_iter().take(keys).map(|seen| RefusedKey {
            who: show.show(&seen.key).unwrap_or_default(),
            at_least: seen.at_least,
            at_most: seen.at_most + missed,
        });
        Self { policy: policy.to_owned(), refusals: total + missed, missed, keys: shown.collect() }
    }
}

/// Those who have a counter in any part, the most refused first. In a part where one has none, he was
/// refused no more often than its lowest counter says.
pub(super) fn merged(parts: &[Summary]) -> Vec<Seen> {
    let unseen: u64 = parts.iter().map(Summary::at_most_unseen).sum();
    let mut all: HashMap<KeyBuf, Seen> = HashMap::new();
    for part in parts {
        for seen in part.seen() {
            let nobody = Seen { key: seen.key, at_least: 0, at_most: unseen };
            let sum = all.entry(seen.key).or_insert(nobody);
            sum.at_least += seen.at_least;
            sum.at_most += seen.at_most - part.at_most_unseen();
        }
    }
    let mut all: Vec<_> = all.into_values().collect();
    all.sort_by_key(|seen| Reverse((seen.at_most, seen.at_least)));
    all
}
