//! Marks requests that a retry layer has taken charge of, so that a retry layer further in does not multiply them.
//!
//! The mark is in the extensions of the request, where it survives buffers and tasks. reqwest does not show the extensions
//! of its requests, so there it is noted for the time in which the thread is inside of the outer layer.

use std::cell::Cell;

use crate::outgoing::OutgoingRequest;

/// A retry layer further out repeats the request if need be. In the extensions of the request.
#[derive(Clone)]
pub(crate) struct Retried {
    /// The request may be repeated.
    pub(crate) may_repeat: bool,
}

thread_local! {
    static IN_RETRY: Cell<bool> = const { Cell::new(false) };
}

/// Marks the request. True if it was marked already.
pub(crate) fn mark(request: &mut impl OutgoingRequest, mark: Retried) -> bool {
    let Some(extensions) = request.extensions_mut() else { return IN_RETRY.get() };
    if extensions.get::<Retried>().is_some() {
        return true;
    }
    extensions.insert(mark);
    false
}

/// Runs `inner` inside of the retry layer.
pub(crate) fn inside<T>(inner: impl FnOnce() -> T) -> T {
    struct Leave(bool);
    impl Drop for Leave {
        fn drop(&mut self) {
            IN_RETRY.set(self.0);
        }
    }
    let _leave = Leave(IN_RETRY.replace(true));
    inner()
}
