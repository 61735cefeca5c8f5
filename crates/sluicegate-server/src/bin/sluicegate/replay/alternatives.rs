//! What a limit would have refused otherwise: with another algorithm, and by the times that a log with whole seconds allows.

use std::time::Duration;

use sluicegate_core::adapter::remote::{Algorithm, LimitParameters};
use sluicegate_core::adapter::{Answer, Charge};
use sluicegate_core::key::KeyBuf;
use sluicegate_core::store::Store as _;
use sluicegate_core::{Limit, ManualClock, Memory};

use crate::check::words;

/// A limit that is asked beside the others, and refuses nobody.
struct Alternative {
    limit: Limit,
    refused: u64,
}

impl Alternative {
    fn new(limit: Limit) -> Self {
        Self { limit, refused: 0 }
    }

    fn ask(&mut self, store: &Memory, key: KeyBuf, cost: u64) {
        let charge = Charge::of(self.limit, key, cost);
        if let Answer::Now(Ok(outcome)) = store.take(&charge) {
            self.refused += u64::from(!outcome.is_admitted());
        }
    }
}

/// Other limits of the same numbers as one limit.
pub(super) struct Alternatives {
    store: Memory,
    algorithms: Vec<(&'static str, Alternative)>,
    /// A limit that admits whatever the true times may have admitted, and one that admits nothing that they may have refused.
    bounds: Option<[Option<Alternative>; 2]>,
    /// Whether requests were charged by this limit alone, once each.
    is_comparable: bool,
    is_bounded: bool,
    kind: Kind,
}

/// The numbers of a limit.
pub(super) struct Compared {
    pub(super) algorithms: Vec<(&'static str, u64)>,
    /// The least and the most that it may have refused.
    pub(super) bounds: Option<(u64, Option<u64>)>,
}

impl Alternatives {
    /// Alternatives to `limit`, in a store with room for `keys` keys.
    pub(super) fn new(limit: &Limit, clock: &ManualClock, keys: usize) -> Option<Self> {
        let (kind, count, period) = (Kind::of(limit)?, limit.count(), limit.period()?);
        let kinds = [Kind::Bucket, Kind::Fixed, Kind::Sliding, Kind::Log];
        let limits = kinds.map(|kind| (kind, kind.limit(count, period, limit.capacity())));
        let store = Memory::builder().clock(clock).capacity(keys).build();
        let others = limits.into_iter().filter(|(other, _)| *other != kind);
        let others = others.filter_map(|(other, limit)| Some((other.in_words(), limit?)));
        let algorithms = others
            .filter(|(_, limit)| store.check(limit).is_ok())
            .map(|(words, limit)| (words, Alternative::new(limit)))
            .collect();
        let bounds = kind.bounds(limit, period).map(|bounds| {
            let names = ["least", "most"].into_iter();
            let mut named = bounds.into_iter().zip(names).map(|(limit, name)| {
                limit.and_then(|limit| limit.try_named(name).ok()).map(Alternative::new)
            });
            [named.next().flatten(), named.next().flatten()]
        });
        Some(Self { store, algorithms, bounds, is_comparable: true, is_bounded: true, kind })
    }

    /// Asks all of them about a request at the time `at`. `is_alone`: no other limit was asked. `is_coarse`: the log has whole
    /// seconds.
    pub(super) fn ask(&mut self, key: KeyBuf, cost: u64, at: u64, is_alone: bool, is_coarse: bool) {
        // A start that was computed from the end may be in another window than the second of the log.
        let is_in_window = self.kind != Kind::Fixed || at.is_multiple_of(1_000_000);
        self.is_bounded &= is_alone && is_coarse && cost == 1 && is_in_window;
        if !self.is_comparable {
            return;
        }
        for (_, alternative) in &mut self.algorithms {
            alternative.ask(&self.store, key, cost);
        }
        if self.is_bounded {
            for bound in self.bounds.iter_mut().flatten().flatten() {
                bound.ask(&self.store, key, cost);
            }
        }
    }

    /// Responses change what is charged, which the alternatives do not follow.
    pub(super) fn give_up(&mut self) {
        self.is_comparable = false;
    }

    pub(super) fn compared(&self) -> Option<Compared> {
        let algorithms =
            self.algorithms.iter().map(|(words, alternative)| (*words, alternative.refused));
        let refused = |bound: &Option<Alternative>| bound.as_ref().map(|bound| bound.refused);
        let bounds = self.bounds.as_ref().filter(|_| self.is_bounded);
        let bounds =
            bounds.map(|[least, most]| (refused(least).unwrap_or_default(), refused(most)));
        let compared = || Compared { algorithms: algorithms.collect(), bounds };
        // A key without a count of its own is admitted, or refused with others.
        let is_complete = self.store.turned_away() + self.store.counted_together() == 0;
        (self.is_comparable && is_complete).then(compared)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Bucket,
    Fixed,
    Sliding,
    Log,
}

impl Kind {
    fn of(limit: &Limit) -> Option<Self> {
        match LimitParameters::of(limit).algorithm {
            Algorithm::TokenBucket { queues: false, .. } | Algorithm::SteppedBucket { .. } => {
                Some(Self::Bucket)
            }
            Algorithm::FixedWindow { .. } => Some(Self::Fixed),
            Algorithm::SlidingWindow { .. } => Some(Self::Sliding),
            Algorithm::SlidingLog { .. } => Some(Self::Log),
            Algorithm::TokenBucket { queues: true, .. } | Algorithm::Concurrency { .. } => None,
        }
    }

    const fn in_words(self) -> &'static str {
        match self {
            Self::Bucket => "token bucket",
            Self::Fixed => "fixed window",
            Self::Sliding => "sliding window",
            Self::Log => "log",
        }
    }

    /// Limits that refuse at least and at most what `limit` refuses, if every request came up to a second after the time that
    /// it is decided at. `None` in their place: nothing is known.
    ///
    /// A bucket or a log admits as many requests of one cost as any choice of them that keeps to it. Requests that a bucket
    /// with burst b and rate r admits by their true times keep, by times that are up to a second earlier, to a bucket with
    /// burst b + r; and those that a bucket with burst b - r admits by the earlier times keep to the bucket by the true
    /// ones. A log of a period P is between logs of P - 1 s and P + 1 s in the same way. Whole seconds do not cross the
    /// border of a window of whole seconds.
    fn bounds(self, limit: &Limit, period: Duration) -> Option<[Option<Limit>; 2]> {
        const SECOND: Duration = Duration::from_secs(1);
        let (count, capacity) = (limit.count(), limit.capacity());
        // A ban, a gap or another option makes it another limit.
        let plain = self.limit(count, period, capacity)?;
        if plain.to_string() != words(limit) {
            return None;
        }
        match self {
            Self::Bucket => {
                let in_a_second =
                    (u128::from(count) * 1_000_000).div_ceil(period.as_micros().max(1));
                let in_a_second = u64::try_from(in_a_second).unwrap_or(u64::MAX);
                let with_burst = |burst| self.limit(count, period, burst);
                let least = with_burst(capacity.saturating_add(in_a_second));
                let most = capacity.checked_sub(in_a_second).filter(|burst| *burst > 0);
                Some([least, most.and_then(with_burst)])
            }
            Self::Fixed => (period.subsec_nanos() == 0).then_some([Some(plain), Some(plain)]),
            Self::Log => {
                let shorter = period.checked_sub(SECOND).filter(|period| !period.is_zero());
                let log = |period| self.limit(count, period, capacity);
                Some([shorter.and_then(log), log(period.saturating_add(SECOND))])
            }
            Self::Sliding => None,
        }
    }

    /// The limit of this kind with these numbers.
    fn limit(self, count: u64, period: Duration, capacity: u64) -> Option<Limit> {
        match self {
            Self::Bucket => Limit::try_per(count, period).and_then(|it| it.try_burst(capacity)),
            Self::Fixed => Limit::try_fixed_window(count, period),
            Self::Sliding => Limit::try_sliding_window(count, period),
            Self::Log => Limit::try_sliding_log(count, period),
        }
        .ok()
    }
}
