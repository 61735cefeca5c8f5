//! Stores: where counts are kept.
//!
//! [`Memory`] keeps them in this process and is the default. `sluicegate-redis` and `sluicegate-governor` have
//! stores of their own. [`Fallback`] asks a second store when the first one fails, [`Share`] takes a part of every
//! limit. [`Store`] is the trait behind them.
//!
//! ```
//! use sluicegate::{Limit, Limiter, Memory};
//!
//! let limiter = Limiter::new(Limit::per_minute(100)).store(Memory::with_capacity(50_000));
//! # let _ = limiter;
//! ```

pub(crate) mod blocks;
pub(crate) mod charge;
pub(crate) mod fallback;
pub(crate) mod memory;
pub(crate) mod on_error;
pub(crate) mod set_spent;
pub(crate) mod share;
pub(crate) mod ticket;

pub use self::blocks::{Blocks, BlocksFuture};
pub use self::fallback::{Fallback, FallbackFuture};
pub use self::memory::{Memory, MemoryBuilder};
pub use self::on_error::OnStoreError;
pub use self::share::{Share, ShareFuture};
pub use self::ticket::Ticket;
use std::error::Error;
use std::fmt;
use std::future::Ready;
use std::rc::Rc;
use std::sync::Arc;

use crate::clock::Clock;
use crate::limit::{Limit, LimitError, LimitStatus, Outcome, Receipt};
use crate::store::charge::{Charge, Debit};

/// Where counts are kept, and decisions made.
///
/// A store charges all that a [`Charge`] owes, or nothing, under any concurrency. It owns the clock:
/// what it answers holds durations only.
///
/// A store in this process answers [`Answer::Now`]; a remote one answers [`Answer::Later`], and keeps
/// its own deadline.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a store",
    label = "not a store",
    note = "a store is `Memory::new()`, `sluicegate_redis::Redis::connect(\"redis://..\")?` or `Fallback(first, second)`"
)]
pub trait Store {
    /// What resolves to an outcome that is not there yet.
    type Future: Future<Output = Result<Outcome, StoreError>>;

    /// Charges what is owed, if every limit admits it; books a place ahead where the charge is
    /// patient.
    ///
    /// A future that is dropped before it resolves leaves nobody to settle the charge: a store that may
    /// have charged by then gives it back itself.
    fn take(&self, charge: &Charge) -> Answer<Self::Future>;

    /// What [`take`](Self::take) would answer to the same charge with the same patience, without charging
    /// anything or recording a refusal. Nothing is written: a row that a limit of other numbers has left
    /// behind, where what was spent is [carried](Limit::carried) over, is told as `take` would find it, and
    /// stays as it is.
    fn peek(&self, charge: &Charge) -> Answer<Self::Future>;

    /// Forgets what was spent on the keys and limits of the charge. What is held stays held. Charges
    /// from before that are settled afterwards are taken for later ones: settle first.
    fn reset(&self, charge: &Charge) -> Answer<Self::Future>;

    /// Makes the charge of `debit.cost` that `receipt` stands for into one of `spent`: gives back what was
    /// too much, without ever minting credit, or charges more, beyond the limit if need be.
    ///
    /// Returns at once: it is called when futures are dropped. A remote store sends it in the
    /// background.
    fn settle(&self, debit: &Debit, receipt: &Receipt, spent: u64);

    /// Counts what another store has decided, without refusing it: it made a charge of `charged` to the limit and
    /// the key of `debit` into one of `spent`, and a new charge out of 0. [`Fallback`] tells its
    /// second store so, that it does not begin as if nothing had been spent.
    ///
    /// A store in this process does so at once, and may count less than that; one that is elsewhere need not,
    /// and by default nothing is counted.
    fn follow(&self, debit: &Debit, charged: u64, spent: u64) {
        let _ = (debit, charged, spent);
    }

    /// Counts no less than another store says that all processes together have spent of a limit: `status` is the
    /// answer to a charge of `debit`. [`Fallback`] tells its second store so after each decision of the first.
    ///
    /// Only a store in this process needs to. By default nothing is counted.
    fn follow_status(&self, debit: &Debit, status: &LimitStatus) {
        let _ = (debit, status);
    }

    /// The clock that waiting goes by.
    fn clock(&self) -> Clock {
        Clock::machine()
    }

    /// Says whether this store can keep `limit`; asked when a layer or limiter is made.
    ///
    /// # Errors
    ///
    /// When it cannot.
    fn check(&self, limit: &Limit) -> Result<(), LimitError> {
        let _ = limit;
        Ok(())
    }
}

/// An outcome that is there, or one that has to be awaited.
#[derive(Debug)]
#[must_use]
pub enum Answer<F> {
    /// The store is in this process: no future is made, boxed or polled.
    Now(Result<Outcome, StoreError>),
    /// The store is somewhere else.
    Later(F),
}

impl<F> Answer<F> {
    /// The outcome, where the request may go ahead without having to wait, and there is nothing to report
    /// of it.
    #[inline]
    pub fn at_once(&self) -> Option<&Outcome> {
        match self {
            Self::Now(Ok(outcome)) if outcome.is_at_once() => Some(outcome),
            _ => None,
        }
    }
}

/// The future of a store that always answers at once: there is none.
pub(crate) type Never = Ready<Result<Outcome, StoreError>>;

/// The future of a store in this process, which always answers at once: there is nothing to be awaited.
///
/// [`Memory`]'s is one, and so is that of a [`Fallback`] of two such stores or
/// of a [`Share`] of one.
pub trait AtOnce: Future<Output = Result<Outcome, StoreError>> + Unpin {
    /// The outcome.
    ///
    /// # Errors
    ///
    /// What the store reports.
    fn outcome(self) -> Result<Outcome, StoreError>;
}

impl AtOnce for Never {
    #[inline]
    fn outcome(self) -> Result<Outcome, StoreError> {
        self.into_inner()
    }
}

impl<F: AtOnce> Answer<F> {
    /// The outcome from a store that always answers at once.
    ///
    /// # Errors
    ///
    /// What the store reports.
    #[inline]
    pub fn now(self) -> Result<Outcome, StoreError> {
        match self {
            Self::Now(outcome) => outcome,
            Self::Later(future) => future.outcome(),
        }
    }
}

macro_rules! pointers {
    ($($pointer:ident),*) => {$(
        impl<S: Store + ?Sized> Store for $pointer<S> {
            type Future = S::Future;

            #[inline]
            fn take(&self, charge: &Charge) -> Answer<S::Future> {
                (**self).take(charge)
            }

            fn peek(&self, charge: &Charge) -> Answer<S::Future> {
                (**self).peek(charge)
            }

            fn reset(&self, charge: &Charge) -> Answer<S::Future> {
                (**self).reset(charge)
            }

            fn settle(&self, debit: &Debit, receipt: &Receipt, spent: u64) {
                (**self).settle(debit, receipt, spent);
            }

            #[inline]
            fn follow(&self, debit: &Debit, charged: u64, spent: u64) {
                (**self).follow(debit, charged, spent);
            }

            #[inline]
            fn follow_status(&self, debit: &Debit, status: &LimitStatus) {
                (**self).follow_status(debit, status);
            }

            fn clock(&self) -> Clock {
                (**self).clock()
            }

            fn check(&self, limit: &Limit) -> Result<(), LimitError> {
                (**self).check(limit)
            }
        }
    )*};
}

pointers!(Arc, Rc);

/// Why a store could not decide. Never an answer about the client: a store that fails is not "too
/// many requests".
#[derive(Debug, Clone)]
pub struct StoreError {
    kind: Kind,
    /// Whether a layer refuses the request, though it admits when its store fails.
    must_refuse: bool,
    source: Option<Arc<dyn Error + Send + Sync>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Full,
    Unavailable,
    TooSlow,
    Unsupported,
}

impl StoreError {
    /// The store is bounded, and every row that could hold the key is in use.
    pub fn full() -> Self {
        Self { kind: Kind::Full, must_refuse: false, source: None }
    }

    /// The same for a request that must not pass uncounted: a layer answers it with 503, even where it
    /// [admits](crate::store::OnStoreError::Admit) requests when its store fails.
    pub fn full_and_refusing() -> Self {
        Self { must_refuse: true, ..Self::full() }
    }

    /// The store cannot be reached, or failed.
    pub fn unavailable(source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { kind: Kind::Unavailable, must_refuse: false, source: Some(Arc::from(source.into())) }
    }

    /// The store did not answer within its deadline.
    pub fn too_slow() -> Self {
        Self { kind: Kind::TooSlow, must_refuse: false, source: None }
    }

    /// The store cannot keep the limit that was asked of it.
    pub fn unsupported(reason: LimitError) -> Self {
        Self { kind: Kind::Unsupported, must_refuse: false, source: Some(Arc::new(reason)) }
    }

    /// What metrics call the kinds.
    #[cfg(feature = "metrics")]
    pub(crate) const KINDS: [&'static str; 4] = ["full", "unavailable", "too_slow", "unsupported"];

    /// Where the kind stands among [`KINDS`](Self::KINDS).
    #[cfg(feature = "metrics")]
    pub(crate) fn kind_index(&self) -> usize {
        self.kind as usize
    }

    /// Whether the store had no room for the key.
    pub fn is_full(&self) -> bool {
        self.kind == Kind::Full
    }

    /// Whether the request must not pass uncounted: a limit says so that the store had no room for
    /// ([`WhenFull::Refuse`](crate::limit::WhenFull::Refuse)). Layers then answer with 503, whatever they do when a
    /// store fails.
    pub fn must_refuse(&self) -> bool {
        self.must_refuse
    }

    /// Whether the store did not answer in time.
    pub fn is_too_slow(&self) -> bool {
        self.kind == Kind::TooSlow
    }

    /// Whether the store cannot keep the limit that was asked of it.
    pub fn is_unsupported(&self) -> bool {
        self.kind == Kind::Unsupported
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.kind {
            Kind::Full => "the store has no room for another key",
            Kind::Unavailable => "the store is not available",
            Kind::TooSlow => "the store did not answer in time",
            Kind::Unsupported => "the store cannot keep this limit",
        })
    }
}

impl Error for StoreError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}
