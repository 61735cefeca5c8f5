//! Tells a layer when a request that it has passed on leaves the program. Layers in between may have held it back.

use std::cell::Cell;
use std::task::{Context, Poll};

use tower_service::Service;

thread_local! {
    static DEPARTED: Cell<bool> = const { Cell::new(false) };
}

/// The request that is being worked on leaves.
pub(crate) fn note() {
    DEPARTED.set(true);
}

/// Runs `inner`, and says whether a request has left meanwhile.
pub(crate) fn watch<T>(inner: impl FnOnce() -> T) -> (T, bool) {
    struct Restore(bool);
    impl Drop for Restore {
        fn drop(&mut self) {
            // What has left, has left for a layer further out, too.
            DEPARTED.set(self.0 || DEPARTED.get());
        }
    }
    let _restore = Restore(DEPARTED.replace(false));
    let result = inner();
    (result, DEPARTED.get())
}

/// A service whose requests leave when it is called.
#[derive(Debug, Clone)]
pub(crate) struct Departing<S> {
    pub(crate) inner: S,
    /// False where a service further in tells.
    pub(crate) tells: bool,
}

impl<S: Service<R>, R> Service<R> for Departing<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: R) -> S::Future {
        if self.tells {
            note();
        }
        self.inner.call(request)
    }
}
