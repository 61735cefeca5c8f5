//! The number that tells a limit's state from that of every other limit on the same key. It is the same in every
//! process and every version, because stores keep rows under it.

use crate::algorithm::Algorithm;
use crate::limit::{AlgorithmSpec, Limit};

/// Apart from those that numbers belong to, and from rows in which what was spent had one account.
const CARRIED: u64 = 32;

impl Limit {
    /// The identity of the limit, by its name if it has one.
    pub(crate) const fn identity(&self) -> u64 {
        let name = self.name.as_bytes();
        if name.is_empty() { identity_by_numbers(self) } else { self.identity_as(name) }
    }

    /// The identity that the limit would have if that were its name.
    pub(crate) const fn identity_as(&self, name: &[u8]) -> u64 {
        fnv(meaning(self), name)
    }
}

/// Of a limit without a name: two that differ in anything but what a client is warned of are two, and so
/// is one that is on trial the one that it becomes.
const fn identity_by_numbers(limit: &Limit) -> u64 {
    let (more, further) = match limit.spec {
        AlgorithmSpec::TokenBucket { burst } | AlgorithmSpec::SteppedBucket { burst } => (burst, 0),
        AlgorithmSpec::LeakyBucket { queue, delay_after } => (queue, delay_after),
        AlgorithmSpec::FixedWindow { .. }
        | AlgorithmSpec::SlidingLog { .. }
        | AlgorithmSpec::SlidingWindow
        | AlgorithmSpec::Concurrent => (0, 0),
    };
    let Limit { count, period, gap, ban, after, within, .. } = *limit;
    let hash =
        fnv_numbers(meaning(limit), &[count, period, more, further, gap, ban, after, within]);
    fnv(hash, &[limit.count_refused as u8])
}

/// The numbers that give a state its meaning, and the table that it is kept in.
const fn meaning(limit: &Limit) -> u64 {
    let [a, b, c] =
        if limit.carried { meaning_of_carried(limit) } else { meaning_of_numbers(limit) };
    let hash = fnv_numbers(0xcbf2_9ce4_8422_2325, &[algorithm_code(limit), a, b, c]);
    // States of different make are kept in different tables.
    let counts_refusals = limit.after > 0 && !limit.carried;
    fnv(hash, &[limit.has_extra_state() as u8 + 2 * counts_refusals as u8])
}

/// Each account of a row that is carried over says itself by which numbers it counts. Stamps do not.
const fn meaning_of_carried(limit: &Limit) -> [u64; 3] {
    match limit.algorithm {
        // Stamps that were rounded up mean other moments where they are finer, and a shorter period would
        // drop those that a longer one still counts.
        Algorithm::SlidingLog(log) => [log.resolution, limit.period, 0],
        Algorithm::TokenBucket(_)
        | Algorithm::SteppedBucket(_)
        | Algorithm::FixedWindow(_)
        | Algorithm::SlidingWindow(_)
        | Algorithm::Concurrency(_) => [0; 3],
    }
}

const fn meaning_of_numbers(limit: &Limit) -> [u64; 3] {
    match limit.algorithm {
        Algorithm::TokenBucket(bucket) => bucket.scale(),
        Algorithm::SteppedBucket(_) => [limit.count, limit.period, 0],
        // A number beyond the count means places booked in later windows, so the count gives the number its
        // meaning.
        Algorithm::FixedWindow(_) => [limit.period, limit.count, 0],
        Algorithm::SlidingLog(log) => [limit.period, log.resolution, 0],
        Algorithm::SlidingWindow(sliding) => [limit.period, sliding.tick(), 0],
        Algorithm::Concurrency(_) => [0; 3],
    }
}

/// Tells the states of algorithms apart. Windows from first use are those of others where what was
/// spent is carried over.
const fn algorithm_code(limit: &Limit) -> u64 {
    let code = match limit.spec {
        AlgorithmSpec::TokenBucket { .. } => 1,
        AlgorithmSpec::LeakyBucket { .. } => 2,
        AlgorithmSpec::SteppedBucket { .. } => 3,
        AlgorithmSpec::FixedWindow { from_first } if from_first && !limit.carried => 5,
        AlgorithmSpec::FixedWindow { .. } => 4,
        AlgorithmSpec::SlidingLog { .. } => 6,
        AlgorithmSpec::SlidingWindow => 7,
        AlgorithmSpec::Concurrent => 8,
    };
    if limit.carried { CARRIED + code } else { code }
}

const fn fnv_numbers(mut hash: u64, numbers: &[u64]) -> u64 {
    let mut i = 0;
    while i < numbers.len() {
        hash = fnv(hash, &numbers[i].to_le_bytes());
        i += 1;
    }
    hash
}

/// FNV-1a, because it can be computed in a constant.
const fn fnv(mut hash: u64, bytes: &[u8]) -> u64 {
    let mut i = 0;
    while i < bytes.len() {
        hash = (hash ^ bytes[i] as u64).wrapping_mul(0x0100_0000_01b3);
        i += 1;
    }
    hash
}
