//! A share of every limit, for processes that decide on their own.
//!
//! A request is decided by a limit whose requests weigh more, not by one that holds less: with 96 members, a request
//! costs 96. Rates stay as they are, so rows need not be rewritten when members come and go, and a bucket's share of
//! ten a second among 96 is exactly five in 48 seconds.

use std::time::Duration;

use crate::clock::Clock;
use crate::limit::remote::{self, LimitOutcome};
use crate::limit::{
    CountedIn, Limit, LimitError, LimitInternals as _, LimitStatus, Outcome, OutcomeInternals as _,
    Part, Receipt, Step, Verdict,
};
use crate::store::blocks::Blocks;
use crate::store::charge::{Charge, Debit};
use crate::store::contract::delegate;
use crate::store::fleet::Fleet;
use crate::store::memory::Memory;
use crate::store::{Answer, AtOnce, Never, Store, StoreError};

/// A store that admits this process' part of every limit. No request needs a round trip.
///
/// [`Fleet`] says how large the part is, and whether it may change. All processes together stay within the limit, with
/// what each bound is worth:
///
/// | limit | its part among `n` |
/// | --- | --- |
/// | token bucket, leaky bucket | the rate is divided exactly: 10 a second among 96 is 5 in 48 s. A burst is divided too, and is at least one request, so that together they may hold `n` at once if that is more than the burst |
/// | fixed window, sliding window, log, stepped refill | the count, rounded down: 1,000 among 96 is 10 each, 960 together. Below one, nothing is admitted, or one if the part is [fixed](Fleet::fixed) |
/// | concurrency | the count, rounded down; below one, nothing is admitted, or one if the part is fixed |
///
/// Use buckets unless you need another algorithm. Their part may change at any time: a bucket that was spent is spent
/// in every part, and so is a fixed window, unless the limit is [carried](Limit::carried), as those of policy files are:
/// then another part takes over the number of requests. When a member leaves, the others grow into its part after the
/// [bound](Fleet#the-bound); if a bucket takes longer to fill than that, they add at most the burst that the member had
/// left. The same holds for a member that joins.
///
/// A cost that is more than the part holds is refused. A [shadow](Limit::shadow) whose part is nothing is not counted, and
/// keeps nobody out. Remaining amounts are those of the part. Names and policies are those of the whole limit.
///
/// It is for limits that all members share, such as [`Global`](crate::Global) ones. A limit by a key whose requests all
/// go to the same process, because they are routed by a hash of the key, must not be divided: it would admit one
/// `n`-th.
///
/// ```
/// use std::time::Duration;
/// use sluicegate::{Limit, Limiter, Memory};
/// use sluicegate::store::{Fleet, Share};
///
/// let fleet = Fleet::assigned(4, Duration::from_secs(2));
/// let limiter = Limiter::new(Limit::per_minute(100)).store(Share::new(Memory::new(), &fleet));
/// assert_eq!(limiter.take("api").now()?.remaining(), Some(24));
///
/// // A fifth process starts. Its source tells this one.
/// fleet.see(5);
/// assert_eq!(limiter.peek("api").now()?.remaining(), Some(19));
/// # Ok::<(), sluicegate::store::StoreError>(())
/// ```
///
/// Four processes share their limits in another store. While that store fails, they admit together no more than the
/// whole limits, as long as each limit is at least 4. [`Fallback`](crate::store::Fallback) says how this adds to what
/// was admitted before:
///
/// ```
/// use sluicegate::Memory;
/// use sluicegate::store::{Fallback, Fleet, Share};
///
/// # let shared = Memory::new();
/// let store = Fallback(shared, Share::new(Memory::new(), &Fleet::fixed(1, 4)));
/// # let _ = store;
/// ```
#[derive(Debug, Clone)]
pub struct Share<S = Memory> {
    store: S,
    fleet: Fleet,
    floor: Option<Part>,
    /// Microseconds at each end of a window of the wall clock in which nothing is admitted.
    guard: u64,
    counts_wanted: bool,
}

/// A store whose rows mean the same in every part: [`Memory`], or [`Blocks`] in it. Other stores read the numbers of a
/// limit, and not the weight of its requests.
pub trait PartStore: Store<Future: AtOnce> {
    /// Takes the part `part` of one bucket, where that is quick, and says when that was by the [clock](Store::clock).
    /// `None`, and nothing is charged, everywhere else.
    #[doc(hidden)]
    fn take_part(&self, charge: &Charge, part: Part) -> Option<(Step, u64)>;
}

impl PartStore for Memory {
    #[inline(always)]
    fn take_part(&self, charge: &Charge, part: Part) -> Option<(Step, u64)> {
        self.take_part(charge, part)
    }
}

impl<S: PartStore + Clone> PartStore for Blocks<S> {
    fn take_part(&self, _: &Charge, _: Part) -> Option<(Step, u64)> {
        None
    }
}

impl<S: PartStore> Share<S> {
    /// A store that admits the part of every limit that `fleet` gives to this process, counted in `store`.
    ///
    /// That store must not be used for anything else: its counts belong to the parts, and not to the whole limits.
    pub fn new(store: S, fleet: &Fleet) -> Self {
        Self { store, fleet: fleet.clone(), floor: None, guard: 0, counts_wanted: false }
    }

    /// Admits at least the part `parts / of`, even while this process is not a member or has just joined.
    ///
    /// That keeps a process going that cannot reach its source. It costs the promise: with more than `of / parts`
    /// members, all together admit members × parts / of times the limit. One in a thousand, with 1,200 members, is 1.2
    /// times the limit.
    ///
    /// # Panics
    ///
    /// When the part is zero, or more than the whole.
    #[must_use]
    #[track_caller]
    pub fn at_least(mut self, parts: u64, of: u64) -> Self {
        assert!(parts > 0, "a share of nothing would admit nothing");
        assert!(parts <= of, "a share is not more than the whole");
        self.floor = Part::of(parts, of);
        self
    }

    /// Admits nothing in the first and the last `guard` of each [fixed window](Limit::fixed_window), for clocks that
    /// differ by as much. Without it, a window of one process begins while that of another has not ended, and the
    /// server that is called sees parts of both in one of its own.
    ///
    /// It costs 2 × guard of every window. Buckets need no agreement between clocks.
    ///
    /// # Errors
    ///
    /// A window of twice the guard or less is refused by [`check`](Store::check), when a limiter is made.
    #[must_use]
    pub fn guard(mut self, guard: Duration) -> Self {
        self.guard = u64::try_from(guard.as_micros()).unwrap_or(u64::MAX);
        self
    }

    /// Counts what is [wanted](Fleet::wanted), for members whose parts follow their demand. Takes 5 ns with each
    /// request.
    #[must_use]
    pub const fn count_wanted(mut self) -> Self {
        self.counts_wanted = true;
        self
    }

    /// The part that the fleet gives to this process, or the floor if that is larger.
    #[inline]
    fn floored(&self, part: Option<Part>) -> Option<Part> {
        match self.floor {
            None => part,
            floor => part.max(floor),
        }
    }

    /// The present part, if the clock is needed to find it.
    fn part_now(&self) -> Option<Part> {
        let (part, due) = self.fleet.view();
        if !self.fleet.is_due(self.clock().now(), due) {
            return self.floored(part);
        }
        self.fleet.refresh();
        self.floored(self.fleet.view().0)
    }

    #[inline(never)]
    fn ask(
        &self,
        whole: &Charge,
        ask: impl FnOnce(&S, &Charge) -> Answer<S::Future>,
    ) -> Result<Outcome, StoreError> {
        // No part: a member that has just joined, or has lost its source. It refuses, for the others have the whole.
        let Some(part) = self.part_now() else {
            return Ok(nothing(whole, self.fleet.changes_in()));
        };
        if let Some(wait) = self.guarded(whole) {
            return Ok(nothing(whole, Some(wait)));
        }
        // All limits first, and then the store: a limit whose part is below one must not leave others charged.
        let mut fits = true;
        let charge = whole.with_each(|debit| {
            let is_shadow = debit.limit.is_shadow();
            let limit = match self.portion(&debit.limit, part) {
                Err(_) if is_shadow => None,
                portion => portion?,
            };
            // A shadow keeps nobody out, and is left out where its part counts nothing.
            fits &= limit.is_some() || is_shadow;
            Ok(limit.map(|limit| Debit { limit, ..debit.clone() }))
        });
        let charge = charge.map_err(|reason: LimitError| StoreError::unsupported(reason))?;
        if !fits {
            return Ok(nothing(whole, None));
        }
        let outcome = ask(&self.store, &charge).now()?;
        let outcome = self.told(outcome, &charge, part, whole.never_fits());
        Ok(if charge.len() < whole.len() { filled_in(outcome, &charge, whole) } else { outcome })
    }

    /// The part of a limit; `None` if that admits nothing.
    fn portion(&self, limit: &Limit, part: Part) -> Result<Option<Limit>, LimitError> {
        // The owner of a fixed part chose it knowing the limits, and nobody else would serve the key at all.
        limit.try_part(part, self.fleet.is_fixed().into())
    }

    /// The status of the part. A cost that is too large for it is refused only for now, because the part may grow.
    fn told(&self, outcome: Outcome, charge: &Charge, part: Part, never_fits: bool) -> Outcome {
        let too_much_for_part = outcome.never_fits() && !never_fits;
        // A fixed part of a count may be more than the part says, so its words are read here, by the limit that was charged.
        if !too_much_for_part && outcome.is_of_words() && !self.fleet.is_fixed() {
            return outcome.by_part(part);
        }
        let verdict = match outcome.verdict() {
            // When the part will grow is not known, so no moment is promised.
            Verdict::Never if !never_fits => Verdict::Refuse { retry_after: None },
            verdict => verdict,
        };
        let decision = outcome.decision(charge);
        let told = charge.debits().zip(decision.statuses()).map(|(debit, status)| {
            let mut status = status.clone();
            status.receipt.part = part.to_bits();
            // A store inside may refuse by a limit of its own, such as that of a block.
            match status.limit.id() == debit.limit.id() {
                true => LimitOutcome::of_status(status),
                false => LimitOutcome::of_other_numbers(status),
            }
        });
        remote::outcome(verdict, told)
    }

    /// How much longer a window is guarded.
    fn guarded(&self, charge: &Charge) -> Option<Duration> {
        if self.guard == 0 {
            return None;
        }
        let now = self.clock().now();
        let wait = |debit: &Debit| {
            let period = debit.limit.aligned_window()?;
            let into = now % period;
            let until = if into < self.guard { self.guard } else { period + self.guard };
            let is_guarded = into < self.guard || into + self.guard >= period;
            is_guarded.then(|| Duration::from_micros(until - into))
        };
        charge.debits().filter(|debit| !debit.limit.is_shadow()).filter_map(wait).max()
    }

    /// Gives back a charge of an earlier part.
    #[cold]
    fn undo(&self, charge: &Charge, outcome: &Outcome) {
        if !outcome.is_admitted() {
            return;
        }
        for (debit, receipt) in charge.debits().zip(outcome.receipts()) {
            Store::settle(self, debit, &receipt, 0);
        }
    }

    /// The debit as it was charged, or would be charged now.
    fn debit(&self, debit: &Debit, part: Option<Part>) -> Option<Debit> {
        let limit = self.portion(&debit.limit, part?).ok()??;
        Some(Debit { limit, ..debit.clone() })
    }
}

/// The outcome for all limits of a charge, of one that was decided without some shadows.
fn filled_in(outcome: Outcome, decided: &Charge, whole: &Charge) -> Outcome {
    let is_decided = |debit: &Debit| {
        let mut decided = decided.debits();
        decided.any(|other| other.limit.id() == debit.limit.id() && other.key == debit.key)
    };
    outcome.filled_in(whole.debits().map(|debit| {
        let counted = if is_decided(debit) { CountedIn::OwnRow } else { CountedIn::Nowhere };
        (&debit.limit, debit.cost, counted)
    }))
}

/// A refusal by a part that admits nothing, until `left` has passed if that is known. Shadows alone refuse nothing.
fn nothing(charge: &Charge, left: Option<Duration>) -> Outcome {
    if charge.debits().all(|debit| debit.limit.is_shadow()) {
        return filled_in(Outcome::free(), &Charge::new(), charge);
    }
    let statuses = charge.debits().map(|debit| {
        let mut status = LimitStatus::fresh(debit.limit);
        if debit.limit.is_shadow() {
            status.uncounted = true;
            return status;
        }
        (status.remaining, status.refused) = (0, true);
        (status.window, status.reset, status.retry) = (left, left, left);
        status
    });
    Outcome::from_parts(Verdict::Refuse { retry_after: left }, statuses)
}

impl<S: PartStore> Store for Share<S> {
    type Future = Never;

    #[inline]
    fn take(&self, charge: &Charge) -> Answer<Never> {
        if self.counts_wanted {
            self.fleet.want(charge.debits().map(|debit| debit.cost).max().unwrap_or(0));
        }
        let (part, due) = self.fleet.view();
        if let (Some(part), 0) = (self.floored(part), self.guard) {
            // The part is one atomic read, and the clock is not read for it: the decision says at what time it was
            // made. The charge is undone and asked again if the part may have ended by then: once when a part grows, and for
            // each request in the tick in which a view ends.
            if let Some((outcome, decided_at)) = self.store.take_part(charge, part) {
                if !self.fleet.is_due(decided_at, due) {
                    return Answer::Now(Ok(outcome.into()));
                }
                self.undo(charge, &outcome.into());
            }
        }
        Answer::Now(self.ask(charge, |store, charge| store.take(charge)))
    }

    fn peek(&self, charge: &Charge) -> Answer<Never> {
        Answer::Now(self.ask(charge, |store, charge| store.peek(charge)))
    }

    fn reset(&self, charge: &Charge) -> Answer<Never> {
        // By the whole limits, which have the same rows: it forgets also where this process has no part at the moment.
        Answer::Now(match self.store.reset(charge).now() {
            Ok(_) => self.ask(charge, |store, charge| store.peek(charge)),
            Err(error) => Err(error),
        })
    }

    fn settle(&self, debit: &Debit, receipt: &Receipt, spent: u64) {
        // Uses the part that was charged, so that the same weight is given back.
        let part = Part::from_bits(receipt.part).unwrap_or(Part::WHOLE);
        if let Some(debit) = self.debit(debit, Some(part)) {
            self.store.settle(&debit, receipt, spent);
        }
    }

    fn follow(&self, debit: &Debit, charged: u64, spent: u64) {
        if let Some(debit) = self.debit(debit, self.part_now()) {
            self.store.follow(&debit, charged, spent);
        }
    }

    fn follow_status(&self, debit: &Debit, status: &LimitStatus) {
        if let Some(debit) = self.debit(debit, self.part_now()) {
            self.store.follow_status(&debit, status);
        }
    }

    delegate!(self => self.store; clock);

    fn check(&self, limit: &Limit) -> Result<(), LimitError> {
        if limit.aligned_window().is_some_and(|window| window / 2 <= self.guard) {
            return Err(LimitError::new(
                "the window is no longer than the guard at its two ends: it would never admit",
            ));
        }
        // A part that will not change can be tried now. Others are when they decide.
        if let Some(part) = self.part_now().filter(|_| self.fleet.is_fixed()) {
            self.portion(limit, part)?;
        }
        self.store.check(limit)
    }
}

#[cfg(test)]
mod tests;
