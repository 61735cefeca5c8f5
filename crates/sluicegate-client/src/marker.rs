//! Marks requests that a layer has taken charge of, so that the same layer further in does not multiply them.
//!
//! The mark is in the extensions of the request, where it survives buffers and tasks. reqwest does not show the extensions
//! of its requests, so there it is noted for the time in which the thread is inside of the outer layer.

use std::cell::Cell;
use std::thread::LocalKey;

use crate::outgoing::OutgoingRequest;

/// A mark in the extensions of a request.
pub(crate) trait Mark: Clone + Send + Sync + 'static {
    /// Whether the thread is inside of the layer.
    fn is_inside() -> &'static LocalKey<Cell<bool>>;
}

/// A retry layer further out repeats the request if need be.
#[derive(Clone)]
pub(crate) struct Retried {
    /// The request may be repeated.
    pub(crate) may_repeat: bool,
}

/// A hedging layer further out sends a copy of the request if need be.
#[derive(Clone)]
pub(crate) struct Hedged;

thread_local! {
    static IN_RETRY: Cell<bool> = const { Cell::new(false) };
    static IN_HEDGE: Cell<bool> = const { Cell::new(false) };
}

impl Mark for Retried {
    fn is_inside() -> &'static LocalKey<Cell<bool>> {
        &IN_RETRY
    }
}

impl Mark for Hedged {
    fn is_inside() -> &'static LocalKey<Cell<bool>> {
        &IN_HEDGE
    }
}

/// Marks the request. True if it was marked already.
pub(crate) fn mark<M: Mark>(request: &mut impl OutgoingRequest, mark: M) -> bool {
    let Some(extensions) = request.extensions_mut() else { return M::is_inside().get() };
    if extensions.get::<M>().is_some() {
        return true;
    }
    extensions.insert(mark);
    false
}

/// Runs `inner` inside of the layer.
pub(crate) fn inside<M: Mark, T>(inner: impl FnOnce() -> T) -> T {
    struct Leave<M: Mark>(bool, std::marker::PhantomData<M>);
    impl<M: Mark> Drop for Leave<M> {
        fn drop(&mut self) {
            M::is_inside().set(self.0);
        }
    }
    let _leave = Leave::<M>(M::is_inside().replace(true), std::marker::PhantomData);
    inner()
}
