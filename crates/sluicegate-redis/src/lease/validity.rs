//! How long a token that was taken out is good.
//!
//! **Never more than the limit.** Let `debt` be what the server's bucket holds. It drains from below: what was
//! charged first drains first. A lease stands on top of what was there, from `before` to `before + taken`, and a
//! token of it is good until its own place has drained: the tokens of all leases have places of their own, so
//! their sum, `good`, is never more than `debt`. What is given back would let the places above drain early. So the
//! server gives back nothing of what was there at the last lease, but to whoever took that one: see `settle.lua`.
//! `debt − good = used` grows by one with each token that is admitted, whether by the server, which adds to `debt`,
//! or here, which takes from `good`; a lease does not change it, and it falls no faster than the drain. So in any
//! interval `admitted ≤ used at its end − used at its beginning + rate × length`, which is
//! `≤ burst + rate × length`, since `debt ≤ burst` and `used ≥ 0`.
//!
//! A token that is given back, here or to the server, undoes its admission, if its part of the debt has not
//! drained: tokens are spent in the order in which they drain, so its place among them tells.
//!
//! In a fixed window nothing drains, and a token is good until the window ends: it was counted there.
//!
//! Time is this process's own, from before the lease was asked for, so the server's is never further on:
//! not even if the two clocks differ in rate by one part in a thousand, which is more than a clock is ever
//! corrected by.
//! A server whose clock is set forward lets its buckets drain at once, leased or not.
//!
//! Without that rule, a refund would break the bound. So the debt at the last lease is kept beside the row
//! (`:leased`), and `settle.lua` gives back nothing from below it, except to the process that took that
//! lease. Plain charges from before a lease cannot be given back to a bucket that is leased from; they
//! drain. In a fixed window a token is good until the window ends. For other algorithms no such moment can
//! be told for one token alone, so their requests are passed on, as is a request that is charged to several
//! limits. The process measures time by its own clock, which is taken to run as fast as the server's to one
//! part in a thousand.

use std::time::Duration;

use sluicegate_core::Limit;
use sluicegate_core::adapter::remote::{Algorithm, LimitParameters};

use crate::script::lease::{Lease, can_lease};

/// The rates of two clocks differ by no more than one part in this.
const DRIFT: u64 = 1 << 10;

/// Where a process needs fewer tokens of a bucket than this, it takes them one by one.
pub(super) const SOME: u64 = 2;

/// In a small bucket, the half that is kept for sudden needs is too little for many processes that take a few
/// tokens each: at 80 % of 10 a second, eight of them had 7 % refused, and 0.3 % where they take one by one. So
/// a process takes tokens ahead if what it needs, times what the bucket holds, is no less than this.
const SMALL: u64 = 200;

/// What makes a token of a limit good, or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Validity {
    /// Microseconds in a tick, what drains in one, what a token weighs, and the most debt.
    Bucket { unit: u64, drain: u64, tick: u64, cap: u64 },
    /// Microseconds in a window, and how much fits into it.
    Window { count: u64, period: u64 },
}

/// What the clock shows, in microseconds since the Unix epoch.
#[derive(Debug, Clone, Copy)]
pub(super) struct Moment {
    pub(super) now: u64,
    /// How much less than has passed it can show.
    pub(super) slack: u64,
    /// Whether a test turns it by hand. Any other that is behind was read before it was waited for a lock.
    pub(super) is_manual: bool,
}

/// Tokens of one lease.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct LeasedTokens {
    pub(super) taken: u64,
    /// Those that are there to be spent.
    pub(super) unspent: u64,
    /// When they were asked for, by this process's clock.
    pub(super) asked: u64,
    /// When they were taken, by the server's.
    pub(super) at: u64,
    /// The server's words with all of them taken.
    pub(super) words: [u64; 2],
}

impl Validity {
    /// None, where no shares of the limit can be taken out.
    pub(super) fn of(limit: &Limit) -> Option<Self> {
        if !can_lease(limit) {
            return None;
        }
        match LimitParameters::of(limit).algorithm {
            Algorithm::TokenBucket { unit, drain, tick, cap, .. } => {
                Some(Self::Bucket { unit, drain, tick, cap })
            }
            Algorithm::FixedWindow { count, period, .. } => Some(Self::Window { count, period }),
            _ => None,
        }
    }

    /// The most that can be taken at once.
    pub(super) const fn most(&self) -> u64 {
        match *self {
            Self::Bucket { unit, cap, .. } => cap / unit,
            Self::Window { count, .. } => count,
        }
    }

    /// How much is left in the server's words, no sooner than when it was written.
    pub(super) const fn left(&self, [_, second]: [u64; 2]) -> u64 {
        match *self {
            Self::Bucket { unit, cap, .. } => cap.saturating_sub(second) / unit,
            Self::Window { count, .. } => count.saturating_sub(second),
        }
    }

    /// How many tokens of a part are good when so many microseconds have passed.
    pub(super) fn good(&self, part: &LeasedTokens, elapsed: u64) -> u64 {
        let elapsed = elapsed.saturating_add(elapsed / DRIFT);
        match *self {
            Self::Bucket { unit, drain, tick, .. } => {
                let drained = elapsed.div_ceil(tick).saturating_mul(drain);
                (part.words[1].saturating_sub(drained) / unit).min(part.taken)
            }
            Self::Window { .. } if elapsed < self.until_end(part) => part.taken,
            Self::Window { .. } => 0,
        }
    }

    /// How many tokens that are owed by a words have not drained when the server's clock shows that; none of a
    /// window.
    pub(super) const fn undrained(&self, [first, second]: [u64; 2], now: u64) -> u64 {
        match *self {
            Self::Bucket { unit, drain, tick, .. } => {
                let elapsed = now.saturating_sub(first.saturating_mul(tick));
                let elapsed = elapsed.saturating_add(elapsed / DRIFT);
                second.saturating_sub(elapsed.div_ceil(tick).saturating_mul(drain)) / unit
            }
            Self::Window { .. } => 0,
        }
    }

    /// For how long is planned ahead: until half of a bucket has drained. None for a window.
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

    /// Half of a bucket, as a debt.
    pub(super) const fn half(&self) -> u64 {
        match *self {
            Self::Bucket { cap, .. } => cap / 2,
            Self::Window { .. } => 0,
        }
    }

    /// The time over which it is counted what a process asks for.
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

    /// What so many tokens add to the second word of a words.
    const fn weight(&self, tokens: u64) -> u64 {
        match *self {
            Self::Bucket { unit, .. } => tokens.saturating_mul(unit),
            Self::Window { .. } => tokens,
        }
    }
}

impl Moment {
    /// What has passed since `asked`, at the most.
    pub(super) const fn since(&self, asked: u64) -> u64 {
        self.now.saturating_sub(asked).saturating_add(self.slack)
    }
}

impl LeasedTokens {
    pub(super) fn new(lease: &Lease, asked: u64) -> Self {
        let Lease { taken, words, now, .. } = *lease;
        Self { taken, unspent: taken, asked, at: now, words }
    }

    /// The server's words, had only what is not unspent been taken: it stands for the tokens spent last.
    pub(super) const fn words(&self, validity: &Validity) -> [u64; 2] {
        [self.words[0], self.words[1].saturating_sub(validity.weight(self.unspent))]
    }

    /// What the server's clock shows, as far as that is known.
    pub(super) fn server_time(&self, validity: &Validity, now: u64) -> u64 {
        let passed = now.saturating_sub(self.asked);
        self.at + passed.min(validity.until_end(self).saturating_sub(1))
    }

    /// How many of the part's first tokens have been spent, or have expired, once the charge of this mark
    /// was made; none, if it was made from elsewhere.
    pub(super) fn position(&self, validity: &Validity, receipt: [u64; 2]) -> Option<u64> {
        let before = self.words[1].saturating_sub(validity.weight(self.taken));
        let is_own =
            receipt[0] == self.words[0] && receipt[1] > before && receipt[1] <= self.words[1];
        is_own.then(|| (receipt[1] - before) / validity.weight(1))
    }
}

/// Microseconds, as long as they can be counted.
pub(super) fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
