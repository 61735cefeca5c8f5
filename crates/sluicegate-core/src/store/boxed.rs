use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use crate::clock::Clock;
use crate::limit::{Limit, LimitError, LimitStatus, Outcome, Receipt};
use crate::store::charge::{Charge, Debit};
use crate::store::contract::delegate;
use crate::store::{Answer, Store, StoreError};

/// A store of any type: for a layer that is stored in a struct, or whose store is chosen when the service starts.
///
/// Clones share one store. A store in this process still answers at once. The futures of other stores are boxed.
///
/// ```
/// use sluicegate::Memory;
/// use sluicegate::store::BoxStore;
///
/// let store = BoxStore::new(Memory::with_capacity(10_000));
/// # let _ = store;
/// ```
#[derive(Clone)]
pub struct BoxStore(Arc<dyn AnyStore>);

/// The future of a [`BoxStore`].
pub type BoxStoreFuture = Pin<Box<dyn Future<Output = Result<Outcome, StoreError>> + Send>>;

impl BoxStore {
    /// `store`, without its type.
    pub fn new<S>(store: S) -> Self
    where
        S: Store<Future: Send + 'static> + Send + Sync + 'static,
    {
        Self(Arc::new(ErasedStore(store)))
    }
}

/// A [`Store`] whose futures are boxed, so that it can be a trait object.
trait AnyStore: Store<Future = BoxStoreFuture> + Send + Sync {}

struct ErasedStore<S>(S);

impl<S: Store<Future: Send + 'static> + Send + Sync> AnyStore for ErasedStore<S> {}

fn boxed<F>(answer: Answer<F>) -> Answer<BoxStoreFuture>
where
    F: Future<Output = Result<Outcome, StoreError>> + Send + 'static,
{
    match answer {
        Answer::Now(outcome) => Answer::Now(outcome),
        Answer::Later(future) => Answer::Later(Box::pin(future)),
    }
}

impl<S: Store<Future: Send + 'static>> Store for ErasedStore<S> {
    type Future = BoxStoreFuture;

    fn take(&self, charge: &Charge) -> Answer<BoxStoreFuture> {
        boxed(self.0.take(charge))
    }

    fn peek(&self, charge: &Charge) -> Answer<BoxStoreFuture> {
        boxed(self.0.peek(charge))
    }

    fn reset(&self, charge: &Charge) -> Answer<BoxStoreFuture> {
        boxed(self.0.reset(charge))
    }

    delegate!(self => self.0; settle, follow, follow_status, clock, check);
}

impl Store for BoxStore {
    type Future = BoxStoreFuture;

    delegate!(self => self.0; take, peek, reset, settle, follow, follow_status, clock, check);
}

impl fmt::Debug for BoxStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BoxStore")
    }
}
