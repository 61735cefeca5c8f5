//! What scripts are told, packed into one argument: doubles, little-endian.

use std::time::Duration;

use sluicegate_core::Limit;
use sluicegate_core::adapter::remote::{self, Algorithm, EXACT, LimitParameters};
use sluicegate_core::adapter::{Debit, Keys, Receipt};

/// What a script needs to know about the process that calls it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Caller {
    /// In tests, the clock to use instead of the server's.
    pub(crate) now: Option<u64>,
    /// The number of this process among all holders of places.
    pub(crate) holder: u64,
    /// How long its places last without being renewed, in microseconds.
    pub(crate) lease: u64,
    /// Grows with each request for places.
    pub(crate) turn: u64,
}

/// A single process, in its first turn.
#[cfg(test)]
impl From<Option<u64>> for Caller {
    fn from(now: Option<u64>) -> Self {
        Self { now, holder: 1, lease: 3_600_000_000, turn: 1 }
    }
}

/// What a charge asks the store to do. The numbers are the codes that `take.lua` knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
    Take = 1,
    Peek = 2,
    Reset = 3,
}

/// A debit and the Redis key of its row.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row<'a> {
    /// The Redis key.
    pub(crate) key: &'a [u8],
    pub(crate) debit: &'a Debit,
}

impl Row<'_> {
    /// The key beside a bucket's row that records what the bucket owed at its last lease.
    pub(super) fn lease_key(&self) -> Option<Vec<u8>> {
        let parameters = LimitParameters::of(&self.debit.limit);
        let is_leased = matches!(parameters.algorithm, Algorithm::TokenBucket { .. })
            && (parameters.carried || !parameters.extra_state);
        is_leased.then(|| [self.key, b":leased"].concat())
    }
}

/// Means "none": use the server's clock, or do not wait.
const NONE: f64 = -1.0;

/// The latest time that scripts accept, in the year 2112. Sums of it and any period are exact in a double.
const LATEST: u64 = EXACT / 2 - 1;

pub(super) fn is_plain(row: &Row<'_>) -> bool {
    LimitParameters::of(&row.debit.limit).plain
}

pub(super) fn has_log(row: &Row<'_>) -> bool {
    matches!(LimitParameters::of(&row.debit.limit).algorithm, Algorithm::SlidingLog { .. })
}

pub(super) fn spend(row: &Row<'_>, by: Caller) -> Vec<u8> {
    let mut packed = Packed::new(8);
    let (code, [a, b, c, d, _]) =
        algorithm_of(&LimitParameters::of(&row.debit.limit).algorithm, by);
    packed.now(by.now).code(1).number(row.debit.cost).code(code).numbers([a, b, c, d]);
    packed.0
}

pub(super) fn take(
    operation: Operation,
    rows: &[Row<'_>],
    patience: Option<Duration>,
    keys: Keys,
    by: Caller,
) -> Vec<u8> {
    let mut packed = Packed::new(4 + 11 * rows.len());
    packed
        .now(by.now)
        .code(operation as u8)
        .patience(patience)
        .code(u8::from(keys == Keys::Several));
    for row in rows {
        packed.number(row.debit.cost).limit_of(
            &row.debit.limit,
            by,
            never_fits(row.debit, patience),
        );
    }
    packed.0
}

pub(super) fn settle(row: &Row<'_>, receipt: &Receipt, spent: u64, by: Caller) -> Vec<u8> {
    let mut packed = Packed::new(20);
    let (words, gap, banned) = remote::receipt_words(receipt);
    let remote::Carried { at, since, by_all } = remote::carried(receipt);
    let is_sliding =
        matches!(LimitParameters::of(&row.debit.limit).algorithm, Algorithm::SlidingWindow { .. });
    // The two counts of a sliding window are one word here, and two there.
    // In Lua, a word of 64 bits would lose its lower ones, so both counts are sent by themselves.
    let second = if is_sliding { words[1] & u64::from(u32::MAX) } else { words[1] };
    let third = if is_sliding { words[1] >> 32 } else { 0 };
    packed
        .now(by.now)
        .numbers([row.debit.cost, spent, words[0], second, third])
        .numbers(gap)
        .code(u8::from(banned) + 2 * u8::from(by_all))
        .number(since)
        .number(at)
        .limit(&row.debit.limit, by);
    packed.0
}

/// Whether the limit can never admit this debit. A limit on trial never waits.
fn never_fits(debit: &Debit, patience: Option<Duration>) -> bool {
    remote::never_fits(&debit.limit, debit.cost, patience.filter(|_| !debit.limit.is_shadow()))
}

/// The code by which the scripts know the algorithm, and its numbers in the order in which they read them.
pub(super) fn algorithm_of(algorithm: &Algorithm, by: Caller) -> (u8, [u64; 5]) {
    match *algorithm {
        Algorithm::TokenBucket { unit, drain, tick, cap, free, .. } => {
            (1, [unit, drain, tick, cap, free])
        }
        Algorithm::SteppedBucket { amount, every, cap } => (2, [amount, every, cap, 0, 0]),
        Algorithm::FixedWindow { count, period, from_first } => {
            (3, [count, period, u64::from(from_first), 0, 0])
        }
        Algorithm::SlidingWindow { count, period, tick } => (4, [count, period, tick, 0, 0]),
        Algorithm::SlidingLog { count, period, resolution } => {
            (5, [count, period, resolution, 0, 0])
        }
        Algorithm::Concurrency { count } => (6, [count, by.lease, by.holder, by.turn, 0]),
    }
}

/// The argument, as far as it is written.
pub(super) struct Packed(pub(super) Vec<u8>);

impl Packed {
    pub(super) fn new(doubles: usize) -> Self {
        Self(Vec::with_capacity(8 * doubles))
    }

    fn double(&mut self, number: f64) -> &mut Self {
        self.0.extend_from_slice(&number.to_le_bytes());
        self
    }

    /// Numbers that a double cannot hold exactly are written as the largest that it can. No limit admits that much.
    pub(super) fn number(&mut self, number: u64) -> &mut Self {
        // Lua has doubles only. Below 2^53 they are exact integers, and all state of limits stays below that.
        self.double(number.min(EXACT - 1) as f64)
    }

    pub(super) fn numbers<const N: usize>(&mut self, numbers: [u64; N]) -> &mut Self {
        for number in numbers {
            self.number(number);
        }
        self
    }

    #[cfg(any(feature = "mastership", test))]
    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    pub(super) fn none(&mut self) -> &mut Self {
        self.double(NONE)
    }

    pub(super) fn code(&mut self, code: u8) -> &mut Self {
        self.double(f64::from(code))
    }

    pub(super) fn now(&mut self, now: Option<u64>) -> &mut Self {
        self.double(now.map_or(NONE, |now| now.min(LATEST) as f64))
    }

    fn patience(&mut self, patience: Option<Duration>) -> &mut Self {
        let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        self.double(patience.map_or(NONE, |patience| micros(patience).min(EXACT - 1) as f64))
    }

    pub(super) fn limit(&mut self, limit: &Limit, by: Caller) -> &mut Self {
        self.limit_of(limit, by, false)
    }

    /// The limit, and whether it can never admit its debit.
    fn limit_of(&mut self, limit: &Limit, by: Caller, never_fits: bool) -> &mut Self {
        let numbers = LimitParameters::of(limit);
        let (code, parameters) = algorithm_of(&numbers.algorithm, by);
        let queues = matches!(numbers.algorithm, Algorithm::TokenBucket { queues: true, .. });
        // A sum of powers of two: Lua 5.1 has no operators for bits, and takes it apart by remainders.
        let option = u8::from(queues)
            + 2 * u8::from(numbers.count_refused)
            + 4 * u8::from(numbers.carried)
            + 8 * u8::from(numbers.shadow)
            + 16 * u8::from(numbers.after > 0)
            + 32 * u8::from(never_fits);
        self.code(code).numbers(parameters).numbers([numbers.gap, numbers.ban]).code(option);
        // Few limits have these, so the scripts of the others need not read them.
        if numbers.after > 0 { self.numbers([numbers.after, numbers.within]) } else { self }
    }
}
