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
///
/// No method has a default, because a store that wraps another and forgets a method would behave differently from the
/// one that it wraps.
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
    /// A store in this process counts at once, and may count less. A remote store need not count.
    fn follow(&self, debit: &Debit, charged: u64, spent: u64);

    /// Counts at least as much as another store reports for all processes together: `status` is its answer to a
    /// charge of `debit`. [`Fallback`](crate::store::Fallback) calls this on its second store after each decision of
    /// the first.
    ///
    /// Only a store in this process needs this. A remote store counts nothing here.
    fn follow_status(&self, debit: &Debit, status: &LimitStatus);

    /// The clock that waits are measured by: [`Clock::machine`], unless the store was given another.
    fn clock(&self) -> Clock;

    /// Checks whether this store can keep `limit`. Called when a layer or limiter is made.
    ///
    /// # Errors
    ///
    /// If the store cannot keep the limit.
    fn check(&self, limit: &Limit) -> Result<(), LimitError>;
}

/// Writes the named methods of a [`Store`] that passes them on to another store as they are: `delegate!(self =>
/// self.0; settle, clock)`. Every store that wraps another one uses it.
macro_rules! delegate {
    ($self:ident => $store:expr; $($method:ident),*) => {
        $($crate::store::contract::delegate! { @$method $self $store })*
    };
    (@take $self:ident $store:expr) => {
        #[inline]
        fn take(&$self, charge: &Charge) -> Answer<Self::Future> {
            $store.take(charge)
        }
    };
    (@peek $self:ident $store:expr) => {
        fn peek(&$self, charge: &Charge) -> Answer<Self::Future> {
            $store.peek(charge)
        }
    };
    (@reset $self:ident $store:expr) => {
        fn reset(&$self, charge: &Charge) -> Answer<Self::Future> {
            $store.reset(charge)
        }
    };
    (@settle $self:ident $store:expr) => {
        fn settle(&$self, debit: &Debit, receipt: &Receipt, spent: u64) {
            $store.settle(debit, receipt, spent);
        }
    };
    (@follow $self:ident $store:expr) => {
        #[inline]
        fn follow(&$self, debit: &Debit, charged: u64, spent: u64) {
            $store.follow(debit, charged, spent);
        }
    };
    (@follow_status $self:ident $store:expr) => {
        #[inline]
        fn follow_status(&$self, debit: &Debit, status: &LimitStatus) {
            $store.follow_status(debit, status);
        }
    };
    (@clock $self:ident $store:expr) => {
        fn clock(&$self) -> Clock {
            $store.clock()
        }
    };
    (@check $self:ident $store:expr) => {
        fn check(&$self, limit: &Limit) -> Result<(), LimitError> {
            $store.check(limit)
        }
    };
}

pub(crate) use delegate;

macro_rules! pointers {
    ($($pointer:ty),*) => {$(
        impl<S: Store + ?Sized> Store for $pointer {
            type Future = S::Future;

            delegate!(self => (**self);
                take, peek, reset, settle, follow, follow_status, clock, check);
        }
    )*};
}

pointers!(&S, Box<S>, Rc<S>, Arc<S>);
