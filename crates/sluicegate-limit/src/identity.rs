//! The number that tells a limit's state from that of every other limit on the same key.

use super::algorithm::Algorithm;
use super::definition::{AlgorithmSpec, Limit};

impl Limit {
    /// Tells the states of algorithms apart. Windows from first use are those of others where what was
    /// spent is carried over.
    const fn algorithm_code(&self) -> u64 {
        let code = match self.spec {
            AlgorithmSpec::TokenBucket { .. } => 1,
            AlgorithmSpec::LeakyBucket { .. } => 2,
            AlgorithmSpec::SteppedBucket { .. } => 3,
            AlgorithmSpec::FixedWindow { from_first } if from_first && !self.carried => 5,
            AlgorithmSpec::FixedWindow { .. } => 4,
            AlgorithmSpec::SlidingLog { .. } => 6,
            AlgorithmSpec::SlidingWindow => 7,
            AlgorithmSpec::Concurrent => 8,
        };
        if self.carried { CARRIED + code } else { code }
    }

    /// FNV-1a over what gives a state its meaning: the same in every process and every version.
    pub(super) const fn identity(&self) -> u64 {
        let name = self.name.as_bytes();
        if name.is_empty() { self.identity_by_numbers() } else { self.identity_as(name) }
    }

    /// Of a limit without a name: two that differ in anything but what a client is warned of are two, and so
    /// is one that is on trial the one that it becomes.
    const fn identity_by_numbers(&self) -> u64 {
        let (more, further) = match self.spec {
            AlgorithmSpec::TokenBucket { burst } | AlgorithmSpec::SteppedBucket { burst } => {
                (burst, 0)
            }
            AlgorithmSpec::LeakyBucket { queue, delay_after } => (queue, delay_after),
            AlgorithmSpec::FixedWindow { .. }
            | AlgorithmSpec::SlidingLog { .. }
            | AlgorithmSpec::SlidingWindow
            | AlgorithmSpec::Concurrent => (0, 0),
        };
        let numbers =
            [self.count, self.period, more, further, self.gap, self.ban, self.after, self.within];
        let hash = fnv_numbers(self.meaning(), &numbers);
        fnv(hash, &[self.count_refused as u8])
    }

    /// The identity of a limit of that name.
    pub(super) const fn identity_as(&self, name: &[u8]) -> u64 {
        fnv(self.meaning(), name)
    }

    /// The numbers that give a state its meaning, and the table that it is kept in.
    const fn meaning(&self) -> u64 {
        let numbers = match self.algorithm {
            // Stamps that were rounded up mean other moments where they are finer, and a shorter period would
            // drop those that a longer one still counts.
            Algorithm::SlidingLog(log) if self.carried => [log.resolution, self.period, 0],
            _ if self.carried => [0; 3],
            Algorithm::TokenBucket(bucket) => bucket.scale(),
            Algorithm::SteppedBucket(_) => [self.count, self.period, 0],
            // A number beyond the count means places booked in later windows, so the count gives the number its
            // meaning.
            Algorithm::FixedWindow(_) => [self.period, self.count, 0],
            Algorithm::SlidingLog(log) => [self.period, log.resolution, 0],
            Algorithm::SlidingWindow(sliding) => [self.period, sliding.tick(), 0],
            Algorithm::Concurrency(_) => [0; 3],
        };
        let [a, b, c] = numbers;
        let hash = fnv_numbers(0xcbf2_9ce4_8422_2325, &[self.algorithm_code(), a, b, c]);
        // States of different make are kept in different tables.
        let counts_refusals = self.after > 0 && !self.carried;
        fnv(hash, &[self.has_extra_state() as u8 + 2 * counts_refusals as u8])
    }
}

/// Apart from those that numbers belong to, and from rows in which what was spent had one account.
const CARRIED: u64 = 32;

const fn fnv_numbers(mut hash: u64, numbers: &[u64]) -> u64 {
    let mut i = 0;
    while i < numbers.len() {
        hash = fnv(hash, &numbers[i].to_le_bytes());
        i += 1;
    }
    hash
}

const fn fnv(mut hash: u64, bytes: &[u8]) -> u64 {
    let mut i = 0;
    while i < bytes.len() {
        hash = (hash ^ bytes[i] as u64).wrapping_mul(0x0100_0000_01b3);
        i += 1;
    }
    hash
}
