use std::collections::BTreeSet;

/// What a new master has still to learn of a resource.
#[derive(Debug, Clone)]
pub(super) struct Learning {
    /// When every grant of the last master has ended.
    until: u64,
    /// Clients that may hold a lease and have not told yet; `None` if nobody knows who they are.
    unknown: Option<BTreeSet<Box<str>>>,
}

impl Learning {
    pub(super) fn new(until: u64, known: Option<BTreeSet<Box<str>>>) -> Self {
        Self { until, unknown: known }
    }

    pub(super) fn is_over(&self, now: u64) -> bool {
        now >= self.until || self.unknown.as_ref().is_some_and(BTreeSet::is_empty)
    }

    /// A client has told what it holds. Returns whether it may hold something that is not known yet.
    pub(super) fn reported(&mut self, client: &str) -> bool {
        self.unknown.as_mut().is_none_or(|unknown| unknown.remove(client))
    }
}
