//! What a limit would have refused otherwise: with another algorithm, and by the times that a log with whole seconds allows.

use std::collections::VecDeque;
use std::time::Duration;

use sluicegate_core::Limit;
use sluicegate_core::adapter::remote::{Algorithm, LimitParameters};
use sluicegate_core::adapter::{Attempt, ByHash, Keys, State, decide};

use crate::check::words;
use crate::virtual_time::micros;

/// Most keys with a row, which take 120 MB. The table would double with the next key. If more than half of the keys have not
/// recovered by then, nothing is compared any more.
const MOST_KEYS: usize = 900_000;

/// Most times that the logs of all keys have room for, which take 256 MB. Another limit may be a log of a long period with a high count.
const MOST_TIMES: usize = 1 << 24;

/// The first number of keys at which those that have recovered are let go.
const FIRST_ROOM: usize = 1 << 16;

/// The most alternatives with two words: two algorithms and two bounds.
const WITH_WORDS: usize = 4;

/// What the alternatives know of a key. It is small, because looking at one that is not in the cache is what most of the time goes
/// into.
#[derive(Default)]
struct Row {
    words: [[u64; 2]; WITH_WORDS],
    log: Log,
    /// Only a log has two bounds that are logs.
    second_log: Option<Box<Log>>,
}

/// When something was spent, and how much, in order of time. Most keys come once in a while, so the last one needs no
/// allocation. A store rounds the times of long logs, of which it could not keep all.
#[derive(Default)]
struct Log {
    #[expect(clippy::box_collection, reason = "most keys have none, and a row is small")]
    older: Option<Box<VecDeque<(u64, u64)>>>,
    newest: (u64, u64),
    total: u64,
}

impl Row {
    /// How many times it has room for beside the newest ones.
    fn times(&self) -> usize {
        self.log.times() + self.second_log.as_ref().map_or(0, |log| log.times())
    }
}

impl Log {
    fn times(&self) -> usize {
        self.older.as_ref().map_or(0, |older| older.capacity())
    }

    fn take(&mut self, limit: &Limit, now: u64, cost: u64) -> bool {
        let period = limit.period().map_or(0, micros);
        let mut is_alone = true;
        if let Some(older) = &mut self.older {
            while let Some((_, cost)) = older.front().filter(|(stamp, _)| stamp + period <= now) {
                self.total -= cost;
                older.pop_front();
            }
            is_alone = older.is_empty();
        }
        if is_alone && self.newest.0 + period <= now {
            (self.newest, self.total) = ((now, 0), 0);
        }
        let is_admitted = cost <= limit.count() - self.total;
        if is_admitted && cost > 0 {
            self.total += cost;
            if self.newest.0 == now {
                self.newest.1 += cost;
            } else {
                self.older.get_or_insert_default().push_back(self.newest);
                self.newest = (now, cost);
            }
        }
        is_admitted
    }

    fn is_fresh(&self, limit: &Limit, now: u64) -> bool {
        self.newest.0 + limit.period().map_or(0, micros) <= now
    }
}

/// A limit that is asked beside the others, and refuses nobody.
struct Alternative {
    limit: Limit,
    place: Place,
    refused: u64,
}

/// Where the state of an alternative is in a row.
#[derive(Clone, Copy)]
enum Place {
    Words(usize),
    Log,
    SecondLog,
}

impl Alternative {
    #[inline]
    fn ask(&mut self, row: &mut Row, at: u64, cost: u64) {
        let limit = &self.limit;
        let is_admitted = match self.place {
            Place::Words(place) => {
                let mut state = State::of(row.words[place]);
                let attempt = Attempt { limit, state: &mut state, cost };
                let outcome = decide(&mut [attempt], at, None, Keys::One);
                row.words[place] = state.words;
                outcome.is_admitted()
            }
            Place::Log => row.log.take(limit, at, cost),
            Place::SecondLog => row.second_log.get_or_insert_default().take(limit, at, cost),
        };
        self.refused += u64::from(!is_admitted);
    }

    /// Whether a key has recovered, so that it needs no row.
    fn is_fresh(&self, row: &Row, at: u64) -> bool {
        match self.place {
            Place::Words(place) => {
                let fresh_in = self.limit.fresh_in(&State::of(row.words[place]), at);
                fresh_in.is_some_and(|time| time.is_zero())
            }
            Place::Log => row.log.is_fresh(&self.limit, at),
            Place::SecondLog => {
                row.second_log.as_ref().is_none_or(|log| log.is_fresh(&self.limit, at))
            }
        }
    }
}

/// Other limits of the same numbers as one limit.
pub(super) struct Alternatives {
    /// By the hash of the key.
    rows: ByHash<Row>,
    /// With as many keys, those that have recovered are let go.
    room: usize,
    most: usize,
    /// How many times the logs of all keys have room for, and the most of it.
    times: usize,
    most_times: usize,
    /// The algorithms, and then the bounds.
    limits: Vec<Alternative>,
    algorithms: Vec<&'static str>,
    /// A limit that admits whatever the true times may have admitted, and one that admits nothing that they may have refused:
    /// their places among the limits.
    bounds: Option<[Option<usize>; 2]>,
    /// Whether responses change nothing of what is charged, and the keys have had room.
    is_comparable: bool,
    /// Whether requests were charged by this limit alone, once each, in whole seconds.
    is_bounded: bool,
    /// Why nothing is compared, if there was too much to follow.
    is_full: Option<String>,
    kind: Kind,
}

/// The numbers of a limit.
pub(super) struct Compared {
    pub(super) algorithms: Vec<(&'static str, u64)>,
    /// The least and the most that it may have refused.
    pub(super) bounds: Option<(u64, Option<u64>)>,
}

impl Alternatives {
    /// Alternatives to `limit`.
    pub(super) fn new(limit: &Limit) -> Option<Self> {
        let (kind, count, period) = (Kind::of(limit)?, limit.count(), limit.period()?);
        let mut limits = Vec::new();
        let mut words = 0..WITH_WORDS;
        let mut logs = [Place::Log, Place::SecondLog].into_iter();
        let mut add = |limit: Limit| {
            let place = match Kind::of(&limit) {
                Some(Kind::Log) => logs.next(),
                _ => words.next().map(Place::Words),
            };
            let place = place.expect("no limit has more alternatives");
            limits.push(Alternative { limit, place, refused: 0 });
            limits.len() - 1
        };
        let mut algorithms = Vec::new();
        for other in [Kind::Bucket, Kind::Fixed, Kind::Sliding, Kind::Log] {
            let limit = other.limit(count, period, limit.capacity()).filter(|_| other != kind);
            if let Some(limit) = limit.filter(|limit| limit.check_length().is_ok()) {
                add(limit);
                algorithms.push(other.in_words());
            }
        }
        let bounds = kind.bounds(limit, period).map(|bounds| bounds.map(|it| it.map(&mut add)));
        Some(Self {
            rows: ByHash::default(),
            room: FIRST_ROOM,
            most: MOST_KEYS,
            times: 0,
            most_times: MOST_TIMES,
            limits,
            algorithms,
            bounds,
            is_comparable: true,
            is_bounded: true,
            is_full: None,
            kind,
        })
    }

    /// Asks all of them about a request at the time `at` of the key with this hash. `is_alone`: no other limit was asked.
    /// `is_coarse`: the log has whole seconds. Returns whether the key may be new.
    pub(super) fn ask(
        &mut self,
        hash: u64,
        cost: u64,
        at: u64,
        is_alone: bool,
        is_coarse: bool,
    ) -> bool {
        // A start that was computed from the end may be in another window than the second of the log.
        let is_in_window = self.kind != Kind::Fixed || at.is_multiple_of(1_000_000);
        self.is_bounded &= is_alone && is_coarse && cost == 1 && is_in_window;
        if self.rows.len() >= self.room {
            self.let_go(at);
        }
        if !self.is_comparable {
            return true;
        }
        let asked = if self.is_bounded { self.limits.len() } else { self.algorithms.len() };
        let mut is_new = false;
        let row = self.rows.entry(hash).or_insert_with(|| {
            is_new = true;
            Row::default()
        });
        let before = row.times();
        self.limits[..asked].iter_mut().for_each(|limit| limit.ask(row, at, cost));
        self.times += row.times() - before;
        // Those of keys that have recovered are counted too, as long as nobody looks for them.
        if self.times > self.most_times && self.forget_recovered(at) > self.most_times / 2 {
            self.times = 0;
            self.is_full = Some(format!("logs keep more than {} times", self.most_times));
            self.give_up();
        }
        is_new
    }

    /// Another limit has refused a request. By its true time, it might not have.
    pub(super) fn not_alone(&mut self) {
        self.is_bounded = false;
    }

    /// Returns how many times the others keep.
    fn forget_recovered(&mut self, at: u64) -> usize {
        let Self { rows, limits, .. } = self;
        rows.retain(|_, row| !limits.iter().all(|limit| limit.is_fresh(row, at)));
        self.times = rows.values().map(Row::times).sum();
        self.times
    }

    /// Lets go of keys that have recovered. If few have, there has to be more room.
    #[cold]
    fn let_go(&mut self, at: u64) {
        self.forget_recovered(at);
        if self.rows.len() <= self.room / 2 {
            return;
        }
        if self.room < self.most {
            self.room = self.most.min(self.room * 2);
        } else {
            if self.is_comparable {
                let half = self.most / 2;
                self.is_full = Some(format!("more than {half} keys have spent and not recovered"));
            }
            self.give_up();
        }
    }

    /// What there was too much of, if so.
    pub(super) fn too_many(&self) -> Option<&str> {
        self.is_full.as_deref()
    }

    /// Responses change what is charged, which the alternatives do not follow.
    pub(super) fn give_up(&mut self) {
        self.is_comparable = false;
        self.rows = ByHash::default();
    }

    pub(super) fn compared(&self) -> Option<Compared> {
        let refused = |at: usize| self.limits[at].refused;
        let algorithms = (0..).zip(&self.algorithms).map(|(at, words)| (*words, refused(at)));
        let bounds = self.bounds.filter(|_| self.is_bounded);
        let bounds = bounds.map(|[least, most]| (least.map_or(0, refused), most.map(refused)));
        let compared = || Compared { algorithms: algorithms.collect(), bounds };
        self.is_comparable.then(compared)
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

#[cfg(test)]
mod tests {
    use sluicegate_core::adapter::{Answer, Charge};
    use sluicegate_core::key::KeyBuf;
    use sluicegate_core::store::Store as _;
    use sluicegate_core::{ManualClock, Memory};

    use super::*;

    /// Requests in order of time, some of them in bursts and some after long pauses: the time, the key and the cost.
    fn requests(seed: u64, costs: u64) -> Vec<(u64, u64, u64)> {
        let mut state = seed;
        let mut next = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % below
        };
        let mut at = 1_764_000_000_000_000;
        let one = |_| {
            at += [0, next(200_000), next(3_000_000), next(90_000_000)]
                [next(4).min(next(4)) as usize];
            (at, next(6) * next(6), 1 + next(costs))
        };
        // Whole seconds, with which bounds are asked too.
        (0..4_000).map(one).map(|(at, key, cost)| (at / 1_000_000 * 1_000_000, key, cost)).collect()
    }

    #[test]
    fn each_alternative_decides_as_a_store_does() {
        let limits = [
            "3/second burst 5",
            "10/minute burst 3",
            "fixed 4/second",
            "sliding 7/minute",
            "log 5 per 10 seconds",
        ];
        for (text, costs) in limits.into_iter().flat_map(|text| [(text, 1), (text, 3)]) {
            let limit: Limit = text.parse().expect("a limit");
            let mut alternatives = Alternatives::new(&limit).expect("an algorithm");
            // Keys that have recovered are let go all the time.
            alternatives.room = 8;
            let clock = ManualClock::new();
            let mut stores: Vec<_> = alternatives
                .limits
                .iter()
                .map(|alternative| {
                    (alternative.limit, Memory::builder().clock(&clock).capacity(1_000).build(), 0)
                })
                .collect();
            for (at, key, cost) in requests(costs, costs) {
                alternatives.ask(key, cost, at, true, true);
                clock.set(Duration::from_micros(at));
                for (limit, store, refused) in &mut stores {
                    let charge = Charge::of(*limit, KeyBuf::of(key), cost);
                    let Answer::Now(Ok(outcome)) = store.take(&charge) else { panic!("no answer") };
                    *refused += u64::from(!outcome.is_admitted());
                }
            }
            let expected: Vec<_> = stores.iter().map(|(.., refused)| *refused).collect();
            let found: Vec<_> = alternatives.limits.iter().map(|it| it.refused).collect();
            let asked = if costs == 1 { found.len() } else { alternatives.algorithms.len() };
            assert_eq!(found[..asked], expected[..asked], "{text}, costs up to {costs}");
            assert!(found[..2].iter().all(|refused| (20..3_900).contains(refused)), "{found:?}");
            assert!(alternatives.is_comparable && alternatives.rows.len() < 32);
        }
    }

    #[test]
    fn more_keys_than_fit_are_not_compared() {
        let limit = "10/hour".parse().expect("a limit");
        let mut alternatives = Alternatives::new(&limit).expect("an algorithm");
        (alternatives.room, alternatives.most) = (8, 16);
        for key in 0..16 {
            assert!(alternatives.ask(key, 1, 1_000_000, true, true));
        }
        assert!(alternatives.compared().is_some() && alternatives.too_many().is_none());
        alternatives.ask(16, 1, 1_000_000, true, true);
        assert!(alternatives.compared().is_none() && alternatives.rows.capacity() == 0);
        assert_eq!(alternatives.too_many(), Some("more than 8 keys have spent and not recovered"));
    }

    #[test]
    fn more_times_than_fit_are_not_compared() {
        let limit = "1000/hour".parse().expect("a limit");
        let mut alternatives = Alternatives::new(&limit).expect("an algorithm");
        alternatives.most_times = 1_024;
        for at in 0..60 {
            // Few of each of ten keys, so that no key has many.
            for key in 0..10 {
                alternatives.ask(key, 1, at, true, true);
            }
            let room: usize = alternatives.rows.values().map(Row::times).sum();
            assert!(room == alternatives.times && room <= 1_024, "{room}");
        }
        for (at, key) in (60..200).flat_map(|at| (0..10).map(move |key| (at, key))) {
            alternatives.ask(key, 1, at, true, true);
        }
        assert!(alternatives.compared().is_none() && alternatives.rows.capacity() == 0);
        assert_eq!(alternatives.too_many(), Some("logs keep more than 1024 times"));
    }
}
