//! How long leased tokens are valid.
//!
//! **Never more than the limit.** Let `debt` be the debt of the server's bucket. It drains from below: earlier charges
//! drain first. A lease is added on top, from `before` to `before + taken`, and each of its tokens is valid until its own
//! place in the debt has drained. Tokens of different leases have different places, so the number of valid tokens,
//! `good`, is never more than `debt`. Giving back a charge would make the places above it drain early. So the server gives
//! back no charge from before the last lease, except to the process that took that lease: see `settle.lua`.
//!
//! Let `used = debt − good`. It grows by one with each admitted token, whether the server admits it, which adds to
//! `debt`, or this process, which takes from `good`. A lease does not change it, and it falls no faster than the drain. So
//! in any interval `admitted ≤ used at the end − used at the beginning + rate × length ≤ burst + rate × length`, because
//! `debt ≤ burst` and `used ≥ 0`.
//!
//! A token that is given back, here or to the server, undoes its admission if its place in the debt has not drained.
//! Tokens are spent in the order in which they drain, so the number spent gives their places.
//!
//! In a fixed window nothing drains. A token is valid until the window ends, where it was counted.
//!
//! Times are measured from before the lease was requested, so the server's clock has not advanced further, even if the
//! rates of the two clocks differ by one part in a thousand, which is more than clocks are corrected by. If the server's
//! clock is set forward, its buckets drain at once, leased or not.
//!
//! The debt at the last lease is kept beside the row (`:leased`), for the rule about giving back. So charges from before
//! a lease cannot be given back to a bucket that is leased from; they drain.
//!
//! **Limits that are carried over** keep an account for each set of numbers. Tokens are taken out of the account of the
//! numbers that ask, and are valid as long as their place in it. So the proof holds for each account: what its numbers
//! admit never exceeds them, whatever other numbers charge to it meanwhile. The lease is charged to the other accounts at
//! once, and its tokens are spent later. So all numbers together may exceed the most generous ones, in an interval, by
//! what is leased by other numbers when it begins. The tokens of one set of numbers are never spent by another.
//!
//! For other algorithms, no single token has a
//! time until which it is valid. Their requests are passed on, as are requests that are charged to several limits.

use std::time::Duration;

use sluicegate_core::Limit;
use sluicegate_core::adapter::Receipt;
use sluicegate_core::adapter::remote::{self, Algorithm, Carried, LimitParameters};

use crate::script::lease::{Lease, can_lease};

/// The rates of two clocks differ by no more than one part in this.
const DRIFT: u64 = 1 << 10;

/// A process that needs fewer tokens of a bucket than this takes them one by one.
pub(super) const SOME: u64 = 2;

/// In a small bucket, the half that is kept for sudden needs is too little for many processes that take a few
/// tokens each: at 80 % of 10 a second, eight of them had 7 % refused, and 0.3 % where they take one by one. So
/// a process takes tokens ahead if what it needs, times what the bucket holds, is no less than this.
const SMALL: u64 = 200;

/// The numbers of a limit that decide how long its tokens are valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Validity {
    /// `tick` in microseconds, what drains in a tick, the weight of a token, and the largest debt.
    Bucket { unit: u64, drain: u64, tick: u64, cap: u64 },
    /// The count, and the length of the window in microseconds.
    Window { count: u64, period: u64 },
}

/// A time of the clock, in microseconds since the Unix epoch.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moment {
    pub(super) now: u64,
    /// By how much the clock may lag behind the time that has passed.
    pub(super) slack: u64,
    /// Whether a test turns the clock by hand. Another clock that is behind was read before waiting for a lock.
    pub(super) is_manual: bool,
}

/// The tokens of one lease.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct LeasedTokens {
    pub(super) taken: u64,
    /// Tokens in hand.
    pub(super) unspent: u64,
    /// When the lease was requested, by this process's clock.
    pub(super) asked: u64,
    /// When the tokens were taken, by the server's clock.
    pub(super) at: u64,
    /// The server's words after the lease.
    pub(super) words: [u64; 2],
    /// How the lease was charged, if the limit is carried over.
    pub(super) carried: Carried,
    /// Whether the key was banned then by another limit of the row.
    pub(super) banned: bool,
}

impl Validity {
    /// `None` if the limit cannot be leased.
    pub(super) fn of(limit: &Limit) -> Option<Self> {
        if !can_lease(limit) {
            return None;
        }
        match LimitParameters::of(limit).algorithm {
            Algorithm::TokenBucket { unit, drain, tick, cap, .. } => {
                Some(Self::Bucket { unit, drain, tick, cap })
            }
            Algorithm::FixedWindow { count, period, .. } => Some(Self::Window { count, period }),
            Algorithm::SteppedBucket { .. }
            | Algorithm::SlidingWindow { .. }
            | Algorithm::SlidingLog { .. }
            | Algorithm::Concurrency { .. } => None,
        }
    }

    /// The largest lease.
    pub(super) const fn most(&self) -> u64 {
        match *self {
            Self::Bucket { unit, cap, .. } => cap / unit,
            Self::Window { count, .. } => count,
        }
    }

    /// The tokens that the server's words leave, at the time when they were written.
    pub(super) const fn left(&self, [_, second]: [u64; 2]) -> u64 {
        match *self {
            Self::Bucket { unit, cap, .. } => cap.saturating_sub(second) / unit,
            Self::Window { count, .. } => count.saturating_sub(second),
        }
    }

    /// How many tokens of a lease are valid after `elapsed` microseconds.
    pub(super) fn good(&self, part: &LeasedTokens, elapsed: u64) -> u64 {
        let elapsed = elapsed.saturating_add(elapsed / DRIFT);
        match *self {
            Self::Bucket { unit, drain, tick, .. } => {
                // Rounded so that tokens end too early rather than too late: the time up, and the tokens down.
                let drained = elapsed.div_ceil(tick).saturating_mul(drain);
                (part.words[1].saturating_sub(drained) / unit).min(part.taken)
            }
            Self::Window { .. } if elapsed < self.until_end(part) => part.taken,
            Self::Window { .. } => 0,
        }
    }

    /// How many tokens of the debt in these words have not drained at this time of the server. None for a window.
    pub(super) const fn undrained(&self, [first, second]: [u64; 2], now: u64) -> u64 {
        match *self {
            Self::Bucket { unit, drain, tick, .. } => {
                let elapsed = now.saturating_sub(first.saturating_mul(tick));
                let elapsed = elapsed.saturating_add(elapsed / DRIFT);
                second.saturating_sub(elapsed.div_ceil(tick).saturating_mul(drain)) / unit
            }
            // In a window, nothing gives a place free before the end.
            Self::Window { .. } => 0,
        }
    }

    /// How far ahead leases are planned: until half of a bucket has drained. `None` for a window.
    pub(super) fn span(&self) -> Option<u64> {
        match *self {
            Self::Bucket { drain, tick, cap, .. } => {
                Some((cap / 2 / drain).saturating_mul(tick).max(1))
            }
            Self::Window { .. } => None,
        }
    }

    /// How much a process needs in a [`span`](Self::span) before it takes tokens of a bucket ahead.
    pub(super) fn some(&self) -> u64 {
        (SMALL / self.most().max(1)).max(SOME)
    }

    /// The debt of a half-full bucket.
    pub(super) const fn half(&self) -> u64 {
        match *self {
            Self::Bucket { cap, .. } => cap / 2,
            Self::Window { .. } => 0,
        }
    }

    /// The time over which demand is counted.
    pub(super) fn pace(&self) -> u64 {
        match *self {
            Self::Bucket { .. } => self.span().unwrap_or(1),
            Self::Window { period, .. } => period.max(1),
        }
    }

    /// When the window of a lease ends, by this process's clock.
    pub(super) const fn ends(&self, part: &LeasedTokens) -> u64 {
        part.asked.saturating_add(self.until_end(part))
    }

    /// Microseconds from the lease to the end of its window.
    const fn until_end(&self, part: &LeasedTokens) -> u64 {
        match *self {
            Self::Bucket { .. } => u64::MAX,
            Self::Window { period, .. } => (part.words[0] + period).saturating_sub(part.at),
        }
    }

    /// What these tokens add to the second word.
    const fn weight(&self, tokens: u64) -> u64 {
        match *self {
            Self::Bucket { unit, .. } => tokens.saturating_mul(unit),
            Self::Window { .. } => tokens,
        }
    }
}

impl Moment {
    /// The most that can have passed since `asked`.
    pub(super) const fn since(&self, asked: u64) -> u64 {
        self.now.saturating_sub(asked).saturating_add(self.slack)
    }
}

impl LeasedTokens {
    pub(super) fn new(lease: &Lease, asked: u64) -> Self {
        let Lease { taken, words, now, carried, banned, .. } = *lease;
        Self { taken, unspent: taken, asked, at: now, words, carried, banned }
    }

    /// The receipt of the lease.
    pub(super) fn receipt(&self) -> Receipt {
        remote::receipt_carried(remote::receipt(self.words, [0; 2], self.banned), self.carried)
    }

    /// The server's words as if only the spent tokens had been taken.
    pub(super) const fn words(&self, validity: &Validity) -> [u64; 2] {
        [self.words[0], self.words[1].saturating_sub(validity.weight(self.unspent))]
    }

    /// The server's clock, as far as it is known.
    pub(super) fn server_time(&self, validity: &Validity, now: u64) -> u64 {
        let passed = now.saturating_sub(self.asked);
        // Not beyond the window: a receipt with a later time would belong to the next one.
        self.at + passed.min(validity.until_end(self).saturating_sub(1))
    }

    /// How many of the lease's tokens were spent or had expired after the charge of this receipt. `None` if the charge was
    /// made elsewhere.
    pub(super) fn position(&self, validity: &Validity, receipt: [u64; 2]) -> Option<u64> {
        // Each admission has a receipt with the debt as if only the tokens up to its own had been taken. So its second
        // word lies in the range of the lease, and says which token it was. Charges of other leases lie outside.
        let before = self.words[1].saturating_sub(validity.weight(self.taken));
        let is_own =
            receipt[0] == self.words[0] && receipt[1] > before && receipt[1] <= self.words[1];
        is_own.then(|| (receipt[1] - before) / validity.weight(1))
    }
}

/// A time in microseconds.
pub(super) fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
