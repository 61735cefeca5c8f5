use std::rc::Rc;
use std::sync::Arc;

use super::answer::Answer;
use super::charge::{Charge, Debit};
use super::error::StoreError;
use crate::clock::Clock;
use crate::limit::{Limit, LimitError, LimitStatus, Outcome, Receipt};

/// Keeps counts and decides requests.
///
/// A store charges all limits of a [`Charge`] or none of them, under any concurrency. The store owns the clock:
/// its answers hold durations only.
///
/// A store in this process answers [`Answer::Now`]. A remote store answers [`Answer::Later`], and keeps a deadline
/// of its own.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a store",
    label = "not a store",
    note = "a store is `Memory::new()`, `sluicegate_redis::Redis::connect(\"redis://..\")?` or `Fallback(first, second)`"
)]
pub trait Store {
    /// The future of an outcome that is not there yet.
    type Future: Future<Output = Result<Outcome, StoreError>>;

    /// Charges every limit, if all of them admit the request. A patient charge may book a place ahead.
    ///
    /// If the future is dropped before it resolves, nobody is left to settle the charge. A store that may have
    /// charged by then gives the charge back itself.
    fn take(&self, charge: &Charge) -> Answer<Self::Future>;

    /// What [`take`](Self::take) would answer to the same charge with the same patience, without charging
    /// anything or recording a refusal. Nothing is written. A row that the limit wrote with other numbers, and
    /// from which spending is [carried](Limit::carried) over, is reported as `take` would find it, and stays as
    /// it is.
    fn peek(&self, charge: &Charge) -> Answer<Self::Future>;

    /// Forgets what was spent on the keys and limits of the charge. What is held stays held. Settle earlier
    /// charges first: a charge that is settled after a reset is taken for a later one.
    fn reset(&self, charge: &Charge) -> Answer<Self::Future>;

    /// Changes the charge of `debit.cost` that `receipt` belongs to into a charge of `spent`. Gives back the
    /// difference, without ever minting credit, or charges more, beyond the limit if necessary.
    ///
    /// Returns at once, because it is called when futures are dropped. A remote store settles in the background.
    fn settle(&self, debit: &Debit, receipt: &Receipt, spent: u64);

    /// Counts a charge that another store has decided, without refusing it. The other store changed a charge of
    /// `charged` to the limit and the key of `debit` into one of `spent`; `charged` is 0 for a new charge.
    /// [`Fallback`](crate::store::Fallback) calls this on its second store, so that the second store does not start
    /// as if nothing had been spent.
    ///
    /// A store in this process counts at once, and may count less. A remote store need not count. The default
    /// counts nothing.
    fn follow(&self, debit: &Debit, charged: u64, spent: u64) {
        let _ = (debit, charged, spent);
    }

    /// Counts at least as much as another store reports for all processes together: `status` is its answer to a
    /// charge of `debit`. [`Fallback`](crate::store::Fallback) calls this on its second store after each decision of
    /// the first.
    ///
    /// Only a store in this process needs this. The default counts nothing.
    fn follow_status(&self, debit: &Debit, status: &LimitStatus) {
        let _ = (debit, status);
    }

    /// The clock that waits are measured by.
    fn clock(&self) -> Clock {
        Clock::machine()
    }

    /// Checks whether this store can keep `limit`. Called when a layer or limiter is made.
    ///
    /// # Errors
    ///
    /// If the store cannot keep the limit.
    fn check(&self, limit: &Limit) -> Result<(), LimitError> {
        let _ = limit;
        Ok(())
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
