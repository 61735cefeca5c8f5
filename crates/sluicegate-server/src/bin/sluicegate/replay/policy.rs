//! What one policy did.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::hash::BuildHasherDefault;
use std::time::Duration;

use sluicegate_core::Limit;
use sluicegate_core::adapter::peaks::Peaks;
use sluicegate_core::adapter::remote::{Algorithm, LimitParameters};
use sluicegate_core::adapter::{ByHash, Hashed};
use sluicegate_core::key::KeyBuf;
use sluicegate_core::limit::LimitStatus;

use super::alternatives::Alternatives;
use super::durations::Durations;
use crate::log::Record;
use crate::series::Peak;
use crate::series::Series;
use crate::suggest::group_of;

/// Most clients of a policy that are told apart. Each takes about 16 bytes.
const CLIENTS: usize = 1 << 24;

/// Most refused clients that are followed. Each takes about 200 bytes.
const TOUCHED: usize = 1 << 20;

/// Most groups of paths: scanners ask for what does not exist.
const PATHS: usize = 4_096;

/// Whether requests wait in a queue of the limit itself.
pub(super) fn has_queue(limit: &Limit) -> bool {
    let algorithm = LimitParameters::of(limit).algorithm;
    matches!(algorithm, Algorithm::TokenBucket { queues: true, .. })
}

/// The limits of one name, and what they did.
pub(super) struct Policy {
    pub(super) name: String,
    /// The limit in words, and the rule that it belongs to.
    pub(super) words: String,
    pub(super) rule: String,
    pub(super) is_held: bool,
    pub(super) has_queue: bool,
    pub(super) count: u64,
    /// Zero for concurrency.
    pub(super) period: Duration,
    pub(super) requests: u64,
    pub(super) refused: u64,
    /// Refusals of clients that were told to wait, and came before they had waited.
    pub(super) repeated: u64,
    /// Refusals by a limit on trial.
    pub(super) shadowed: u64,
    /// Refusals by a ban.
    pub(super) banned: u64,
    pub(super) waits: Durations,
    /// How long refused clients would have had to wait. Not of requests that never fit, or that only a place that becomes free
    /// lets in.
    pub(super) retries: Durations,
    pub(super) most_in_use: u64,
    pub(super) capacity: u64,
    clients: HashSet<u64, BuildHasherDefault<Hashed>>,
    pub(super) touched: ByHash<Touched>,
    pub(super) paths: HashMap<String, u64>,
    /// Room for the text of a path.
    path: String,
    /// Refusals.
    pub(super) peak: Peak,
    pub(super) series: Series,
    pub(super) alternatives: Option<Alternatives>,
    /// The highest counts of its clients, for a page.
    pub(super) peaks: Option<Peaks>,
}

/// A client that was refused.
pub(super) struct Touched {
    pub(super) key: KeyBuf,
    pub(super) refused: u64,
    /// When it has waited long enough after a first refusal.
    until: u64,
}

impl Policy {
    pub(super) fn new(limit: &Limit, words: String, rule: String, begun: u64) -> Self {
        Self {
            name: limit.name().to_string(),
            words,
            rule,
            is_held: limit.is_held(),
            has_queue: has_queue(limit),
            count: limit.count(),
            period: limit.period().unwrap_or_default(),
            requests: 0,
            refused: 0,
            repeated: 0,
            shadowed: 0,
            banned: 0,
            waits: Durations::default(),
            retries: Durations::default(),
            most_in_use: 0,
            capacity: limit.capacity(),
            clients: HashSet::default(),
            touched: HashMap::default(),
            paths: HashMap::new(),
            path: String::new(),
            peak: Peak::default(),
            series: Series::from(begun),
            alternatives: None,
            peaks: None,
        }
    }

    /// A request was charged at the time `at`. `hash` is that of its key.
    pub(super) fn charged(&mut self, hash: u64, may_be_new: bool, at: u64, cost: u64) {
        self.requests += 1;
        if let Some(peaks) = &mut self.peaks {
            peaks.add(hash, at, cost);
        }
        if may_be_new && self.clients.len() < CLIENTS {
            self.clients.insert(hash);
        }
    }

    /// How many clients there were. `None`: more than are told apart.
    pub(super) fn clients(&self) -> Option<u64> {
        (self.clients.len() < CLIENTS).then_some(self.clients.len() as u64)
    }

    /// A request was refused at the time `at`.
    pub(super) fn refuse(
        &mut self,
        status: &LimitStatus,
        key: &KeyBuf,
        hash: u64,
        at: u64,
        record: &Record<'_>,
    ) {
        self.refused += 1;
        self.banned += u64::from(status.banned);
        if let Some(retry) = status.retry.filter(|retry| !retry.is_zero()) {
            self.retries.add(retry);
        }
        let until = status.retry.map_or(at, |retry| at.saturating_add(super::micros(retry)));
        let is_full = self.touched.len() >= TOUCHED;
        match self.touched.entry(hash) {
            Entry::Occupied(touched) => {
                let touched = touched.into_mut();
                touched.refused += 1;
                if at < touched.until {
                    self.repeated += 1;
                } else {
                    touched.until = until;
                }
            }
            Entry::Vacant(_) if is_full => {}
            Entry::Vacant(place) => drop(place.insert(Touched { key: *key, refused: 1, until })),
        }
        self.peak.add(at / 60_000_000);
        self.series.add(at);
        // Most refusals are of a path that is known.
        self.path.clear();
        self.path.extend([record.method, " ", group_of(record.path)]);
        if let Some(count) = self.paths.get_mut(&self.path) {
            *count += 1;
        } else if self.paths.len() < PATHS {
            self.paths.insert(self.path.clone(), 1);
        }
    }

    /// Whether more clients were refused than are followed.
    pub(super) fn is_touched_full(&self) -> bool {
        self.touched.len() >= TOUCHED
    }
}
