//! For stores that decide somewhere else: a limit's arithmetic in plain numbers, and an outcome made of
//! the numbers that come back.
//!
//! [`decide`](crate::decide) is the specification. A store that repeats it elsewhere finds here all that it
//! reads of a limit, and returns what it would have written:
//!
//! ```
//! use sluicegate_limit::Limit;
//! use sluicegate_limit::remote::{LimitParameters, Algorithm};
//!
//! let parameters = LimitParameters::of(&Limit::per_second(3).burst(2));
//! let Algorithm::TokenBucket { unit, drain, tick, cap, .. } = parameters.algorithm else { unreachable!() };
//! // A token weighs as much as drains in a third of a second.
//! assert_eq!((unit, drain, tick, cap), (1_000_000, 3, 1, 2_000_000));
//! ```

use alloc::vec::Vec;
use core::time::Duration;

use crate::algorithm;
use crate::decision::{LimitStatus, Verdict};
use crate::exact::{self, micros, time_left};
use crate::limit::{AlgorithmSpec, Limit};
use crate::outcome::Outcome;
use crate::state::{Account as OwnAccount, Receipt, State, WrittenBy};

pub use crate::bytes::{read_state, write_state};
pub use crate::outcome::LimitOutcome;
pub use crate::state::Role;

/// Every number of the arithmetic is below this, so that a double holds it exactly.
pub const EXACT: u64 = exact::EXACT;

/// What the arithmetic of a limit reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct LimitParameters {
    /// The algorithm and its numbers.
    pub algorithm: Algorithm,
    /// Microseconds between two that are admitted; 0 for none.
    pub gap: u64,
    /// Microseconds that a ban lasts; 0 for none.
    pub ban: u64,
    /// Refusals after which the ban begins; 0 for at once.
    pub after: u64,
    /// Microseconds in which they count, from the first of them.
    pub within: u64,
    /// Whether refused attempts are recorded.
    pub count_refused: bool,
    /// Whether what was spent is carried over when the numbers change.
    pub carried: bool,
    /// Whether it only tells what it would refuse.
    pub shadow: bool,
    /// Whether one look at two words tells all.
    pub plain: bool,
    /// Whether the state is more than two words.
    pub extra_state: bool,
}

/// An algorithm and its numbers. Times are in microseconds. Those of a bucket and a sliding window are in ticks,
/// and `tick` is the number of microseconds in a tick.
///
/// Exhaustive: a store that decides elsewhere must know every algorithm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Algorithm {
    /// A debt that drains. The words are the tick of the last write, and the debt then.
    TokenBucket {
        /// What one token weighs.
        unit: u64,
        /// What drains in one tick.
        drain: u64,
        /// Microseconds in a tick.
        tick: u64,
        /// The most debt that admits.
        cap: u64,
        /// The most debt that leaves at once.
        free: u64,
        /// Whether it has a queue of its own, which may have length 0.
        queues: bool,
    },
    /// Refilled in steps. The words are the time of the refill that was counted last, and the tokens
    /// spent.
    SteppedBucket {
        /// Tokens that drop in at a step.
        amount: u64,
        /// The time from one step to the next.
        every: u64,
        /// The most that can be spent.
        cap: u64,
    },
    /// The words are the start of the window, and what was spent since.
    FixedWindow {
        /// How much fits into one window.
        count: u64,
        /// How long a window is.
        period: u64,
        /// Whether a window begins with the first request in it.
        from_first: bool,
    },
    /// The words are the window's index, and two counts: the previous window's in the upper 32 bits. Above
    /// 4,227,858,432, the upper bits are that number and how many windows are full, and the lower ones the count of the
    /// window after them.
    SlidingWindow {
        /// How much fits.
        count: u64,
        /// Ticks in a window.
        period: u64,
        /// Microseconds in a tick.
        tick: u64,
    },
    /// A stamp for each request; no words.
    SlidingLog {
        /// How much fits into any interval of one period.
        count: u64,
        /// How long that is.
        period: u64,
        /// Stamps are rounded up to a multiple of this, and merged.
        resolution: u64,
    },
    /// The words are what is held, and 0.
    Concurrency {
        /// How much can be held.
        count: u64,
    },
}

impl LimitParameters {
    /// The numbers of `limit`.
    pub fn of(limit: &Limit) -> Self {
        Self {
            algorithm: Algorithm::of(limit),
            gap: limit.gap,
            ban: limit.ban,
            after: limit.after,
            within: limit.within,
            count_refused: limit.count_refused,
            carried: limit.carried,
            shadow: limit.shadow,
            plain: limit.plain,
            extra_state: limit.has_extra_state(),
        }
    }
}

impl LimitParameters {
    /// Those that give the words their meaning and say how much it holds, by which the accounts of a row are told
    /// from each other where it is carried over; zeros where there is but one. A sliding window's account is
    /// the same for every count.
    pub fn written(&self) -> [u64; 4] {
        match self.algorithm {
            Algorithm::TokenBucket { unit, drain, tick, cap, .. } => [unit, drain, tick, cap],
            Algorithm::SteppedBucket { amount, every, cap } => [amount, every, 0, cap],
            Algorithm::FixedWindow { count, period, from_first } => {
                [count, period, u64::from(from_first), 0]
            }
            Algorithm::SlidingWindow { period, tick, .. } => [0, period, tick, 0],
            Algorithm::SlidingLog { .. } | Algorithm::Concurrency { .. } => [0; 4],
        }
    }
}

impl Algorithm {
    fn of(limit: &Limit) -> Self {
        let (count, period) = (limit.count, limit.period);
        match limit.algorithm {
            algorithm::Algorithm::TokenBucket(bucket) => {
                let [unit, drain, tick] = bucket.scale();
                let cap = limit.capacity() * unit;
                let free = bucket.leave_at_once() * unit;
                let queues = matches!(limit.spec, AlgorithmSpec::LeakyBucket { .. });
                Self::TokenBucket { unit, drain, tick, cap, free, queues }
            }
            algorithm::Algorithm::SteppedBucket(_) => {
                Self::SteppedBucket { amount: count, every: period, cap: limit.capacity() }
            }
            algorithm::Algorithm::FixedWindow(_) => {
                let from_first =
                    matches!(limit.spec, AlgorithmSpec::FixedWindow { from_first: true });
                Self::FixedWindow { count, period, from_first }
            }
            algorithm::Algorithm::SlidingWindow(sliding) => {
                let tick = sliding.tick();
                Self::SlidingWindow { count, period: period / tick, tick }
            }
            algorithm::Algorithm::SlidingLog(log) => {
                Self::SlidingLog { count, period, resolution: log.resolution }
            }
            algorithm::Algorithm::Concurrency(_) => Self::Concurrency { count },
        }
    }
}

/// What a [`State`] holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StateFields {
    /// The shape's two words.
    pub words: [u64; 2],
    /// The two words of a bucket of one, for the gap.
    pub gap: [u64; 2],
    /// Since when and for how long the key is banned.
    pub ban: [u64; 2],
    /// What has been refused since the ban began, or refusals are counted towards one.
    pub refused: u64,
    /// Since when refusals are counted towards a ban, and how many there were.
    pub strikes: [u64; 2],
    /// What is spent by each set of numbers, where they can change; the words are that of one of them.
    pub accounts: Vec<Account>,
    /// Since when and for how long an account that begins has at least `owed` spent.
    pub shut: [u64; 2],
    /// The most that was spent in an account that made room, and all that was charged since.
    pub owed: u64,
    /// The clock at the last write of a log.
    pub seen: u64,
    /// Each stamp of a log, oldest first, and what was spent then.
    pub entries: Vec<[u64; 2]>,
}

/// What is spent of a row by one set of numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Account {
    /// See [`LimitParameters::written`].
    pub parameters: [u64; 4],
    /// The shape's two words.
    pub words: [u64; 2],
    /// Since when it is there.
    pub since: u64,
}

impl From<OwnAccount> for Account {
    fn from(OwnAccount { words, written: WrittenBy { parameters, since } }: OwnAccount) -> Self {
        Self { parameters, words, since }
    }
}

impl From<&State> for StateFields {
    fn from(state: &State) -> Self {
        let (seen, entries) = state.log.as_deref().map(|log| log.numbers()).unwrap_or_default();
        let State { words, gap, ban, refused, strikes, .. } = *state;
        let own = OwnAccount { words, written: state.written };
        let own = Some(own).filter(|own| own.written != WrittenBy::default());
        let others = state.others.as_deref();
        let accounts = own
            .into_iter()
            .chain(others.into_iter().flat_map(|others| others.accounts.iter().copied()));
        let accounts = accounts.map(Account::from).collect();
        let (shut, owed) = others.map(|others| (others.shut, others.owed)).unwrap_or_default();
        Self { words, gap, ban, refused, strikes, accounts, shut, owed, seen, entries }
    }
}

/// A mark, of the words and the gap that were written, and whether a ban was in force.
pub fn receipt(words: [u64; 2], gap: [u64; 2], banned: bool) -> Receipt {
    Receipt { gap, banned, ..Receipt::from_words(words) }
}

/// The mark of a shadow that was not charged, though the request was admitted.
pub fn void() -> Receipt {
    Receipt { void: true, ..Receipt::default() }
}

/// How a limit that is [carried](Limit::carried) over was charged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Carried {
    /// When it was charged.
    pub at: u64,
    /// Orders the charge among the accounts of the row: later than `at` where an account began in the same
    /// microsecond.
    pub since: u64,
    /// Whether every account took all of the charge.
    pub by_all: bool,
}

/// The receipt of a charge to a limit that is carried over.
pub fn receipt_carried(receipt: Receipt, Carried { at, since, by_all }: Carried) -> Receipt {
    Receipt { at, since, by_all, ..receipt }
}

/// What [`receipt_carried`] was given.
pub fn carried(receipt: &Receipt) -> Carried {
    let Receipt { at, since, by_all, .. } = *receipt;
    Carried { at, since, by_all }
}

/// What [`receipt`] was given.
pub fn receipt_words(receipt: &Receipt) -> ([u64; 2], [u64; 2], bool) {
    (receipt.words, receipt.gap, receipt.banned)
}

/// The state of which [`StateFields`] shows the words, and nothing else.
///
/// ```
/// use sluicegate_limit::Limit;
/// use sluicegate_limit::remote::{StateFields, state};
///
/// let limit = Limit::per_second(3);
/// let mut written = limit.fresh();
/// limit.take(&mut written, 0, 2);
/// assert_eq!(state(StateFields::from(&written).words), written);
/// ```
pub fn state(words: [u64; 2]) -> State {
    State::of(words)
}

impl LimitOutcome {
    /// Of a limit that remembers more, but no stamps, by its two words, those of its gap, of its ban,
    /// and of the refusals that are counted towards one; and how it was charged, where it is carried over: see
    /// [`receipt_carried`].
    pub fn of_extra_state(
        limit: &Limit,
        cost: u64,
        words: [[u64; 2]; 4],
        carried: Carried,
        now: u64,
        role: Role,
    ) -> Self {
        let [words, gap, ban, strikes] = words;
        let state = State { words, gap, ban, strikes, ..State::default() };
        let mut status = LimitStatus::of(limit, limit, &state, now, Receipt::default(), role, cost);
        if status.shadowed {
            status.receipt = void();
        }
        if role == Role::Charged {
            // Limits that share the row may ban where this one does not.
            let is_banned = time_left(ban, now) > 0 || limit.struck_for(&state, now) > 0;
            status.receipt = receipt_carried(receipt(words, gap, is_banned), carried);
        }
        Self::Status(status)
    }

    /// Of a limit of which all was worked out elsewhere.
    pub fn of_status(status: LimitStatus) -> Self {
        Self::Status(status)
    }

    /// Like [`of_status`](Self::of_status), by other numbers than those of the limit that was charged: decisions and
    /// header fields show the limit of the status.
    pub fn of_other_numbers(status: LimitStatus) -> Self {
        Self::OtherNumbers(status)
    }
}

/// Whether a limit can never admit `cost` to a request that waits for no longer than `patience`: then the
/// verdict is [`Verdict::Never`], and nothing is recorded.
pub fn never_fits(limit: &Limit, cost: u64, patience: Option<Duration>) -> bool {
    limit.never_admits(cost, patience.map(micros))
}

/// The outcome of a charge, with a fact for each limit that it owes to, in that order.
pub fn outcome(verdict: Verdict, facts: impl IntoIterator<Item = LimitOutcome>) -> Outcome {
    Outcome::new(verdict, facts.into_iter().collect())
}

/// The verdict on a charge that is decided in parts, each by itself. Refused if any part is refused, for the longest time
/// of all; else admitted when the last part is.
pub fn joined(verdicts: impl Iterator<Item = Verdict>) -> Verdict {
    verdicts.fold(Verdict::Admit { wait: Duration::ZERO }, |all, one| match (all, one) {
        (Verdict::Never, _) | (_, Verdict::Never) => Verdict::Never,
        (Verdict::Refuse { retry_after: all }, Verdict::Refuse { retry_after: one }) => {
            Verdict::Refuse { retry_after: all.zip(one).map(|(all, one)| all.max(one)) }
        }
        (refused @ Verdict::Refuse { .. }, _) | (_, refused @ Verdict::Refuse { .. }) => refused,
        (Verdict::Admit { wait: all }, Verdict::Admit { wait: one }) => {
            Verdict::Admit { wait: all.max(one) }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn admit(seconds: u64) -> Verdict {
        Verdict::Admit { wait: Duration::from_secs(seconds) }
    }

    const fn refuse(seconds: u64) -> Verdict {
        Verdict::Refuse { retry_after: Some(Duration::from_secs(seconds)) }
    }

    #[test]
    fn one_refusal_refuses_all_for_as_long_as_the_longest() {
        let unknown = Verdict::Refuse { retry_after: None };
        for (verdicts, expected) in [
            (vec![admit(0), admit(0)], admit(0)),
            (vec![admit(2), admit(1)], admit(2)),
            (vec![admit(0), refuse(1), admit(5)], refuse(1)),
            (vec![refuse(3), refuse(7)], refuse(7)),
            (vec![refuse(3), unknown], unknown),
            (vec![unknown, Verdict::Never, admit(0)], Verdict::Never),
        ] {
            assert_eq!(joined(verdicts.into_iter()), expected);
        }
    }
}
