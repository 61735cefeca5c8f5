//! Marks requests that a retry layer has taken charge of, so that layers further in do not multiply the attempts.
//!
//! The mark is in the extensions of the request, where it survives buffers and tasks. reqwest does not show the extensions
//! of its requests, so there it is noted for the time in which the thread is inside of the outer layer.

use std::cell::Cell;

use crate::outgoing::OutgoingRequest;

/// In the extensions of a request: a retry layer further out repeats it if need be.
#[derive(Debug, Clone, Copy)]
struct InCharge;

thread_local! {
    static INSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Marks the request. True if it was marked already.
pub(super) fn mark(request: &mut impl OutgoingRequest) -> bool {
    match request.extensions_mut() {
        Some(extensions) => extensions.insert(InCharge).is_some(),
        None => INSIDE.get(),
    }
}

/// Runs `inner` inside of a retry layer.
pub(super) fn inside<T>(inner: impl FnOnce() -> T) -> T {
    struct Leave(bool);
    impl Drop for Leave {
        fn drop(&mut self) {
            INSIDE.set(self.0);
        }
    }
    let _leave = Leave(INSIDE.replace(true));
    inner()
}
