use std::sync::atomic::{AtomicU64, Ordering};

/// How often a layer did something other than admit a request at once.
///
/// Requests that pass at once are not counted: that would cost one more shared cache line for every request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// Requests refused because of a limit.
    pub refused: u64,
    /// Requests sent elsewhere.
    pub redirected: u64,
    /// Requests forwarded with the mark to serve less.
    pub degraded: u64,
    /// Requests forwarded that a limit on trial would have refused: all limits of the layer are on trial, or the
    /// limit is a [shadow](crate::Limit::shadow).
    pub shadowed: u64,
    /// Requests that waited for their turn.
    pub waited: u64,
    /// Requests without a key.
    pub keyless: u64,
    /// Requests forwarded although a limit was not counted for them, because the store had no room for the key. Their
    /// other limits were counted.
    pub uncounted: u64,
    /// Decisions that the store failed to make.
    pub store_failures: u64,
    /// Answers charged what was reserved for them, or what was seen of them, because nobody has read what they
    /// cost: the answer did not say it, it was compressed, or its client left before. See
    /// [`settle_by`](crate::rule::By::settle_by).
    pub unread: u64,
}

/// The counters of an adapter. [`Counts`] is a copy of them.
#[derive(Debug, Default)]
pub struct Counters {
    /// For [`Counts::refused`].
    pub refused: Counter,
    /// For [`Counts::redirected`].
    pub redirected: Counter,
    /// For [`Counts::degraded`].
    pub degraded: Counter,
    /// For [`Counts::shadowed`].
    pub shadowed: Counter,
    /// For [`Counts::waited`].
    pub waited: Counter,
    /// For [`Counts::keyless`].
    pub keyless: Counter,
    /// For [`Counts::uncounted`].
    pub uncounted: Counter,
    /// For [`Counts::store_failures`].
    pub store_failures: Counter,
    /// For [`Counts::unread`].
    pub unread: Counter,
    /// When a failing store, or a key that the server does not provide, was last logged.
    pub(crate) failures: LastReport,
    /// When limits that were not counted were last logged.
    pub(crate) full: LastReport,
    /// When a soft limit that was exceeded was last logged.
    pub(crate) soft: LastReport,
    /// When a ban was last logged.
    pub(crate) bans: LastReport,
    /// When a request that a limit on trial would have refused was last logged.
    pub(crate) trials: LastReport,
    /// When an answer whose usage was not read was last logged.
    pub(crate) unread_reports: LastReport,
}

/// When something was last logged that every request can cause.
#[derive(Debug, Default)]
pub(crate) struct LastReport(AtomicU64);

/// Microseconds between two warnings: a flood of requests must not become a flood of log lines.
const QUIET: u64 = 1_000_000;

/// A number that only grows.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// One more.
    pub fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn read(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl LastReport {
    /// Whether it is time to log again; at most once a second.
    pub(crate) fn is_over(&self, now: u64) -> bool {
        let last = self.0.load(Ordering::Relaxed);
        (last == 0 || now.abs_diff(last) >= QUIET)
            && self
                .0
                .compare_exchange(last, now.max(1), Ordering::Relaxed, Ordering::Relaxed)
                .is_ok()
    }
}

impl Counters {
    /// The present counts.
    pub fn read(&self) -> Counts {
        Counts {
            refused: self.refused.read(),
            redirected: self.redirected.read(),
            degraded: self.degraded.read(),
            shadowed: self.shadowed.read(),
            waited: self.waited.read(),
            keyless: self.keyless.read(),
            uncounted: self.uncounted.read(),
            store_failures: self.store_failures.read(),
            unread: self.unread.read(),
        }
    }
}
