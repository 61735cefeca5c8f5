//! The calls of an HTTP/2 connection, each of which ends within a time.

use std::cell::Cell;
use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use hyper::rt::Executor;

/// How long a call may take, with the body that the client sends and the answer that it reads. Decisions have a deadline
/// of their own, which is shorter.
const SLOWEST: Duration = Duration::from_secs(120);

thread_local! {
    /// Whether the call that is polled at the moment is a conversation.
    static IS_LONG: Cell<bool> = const { Cell::new(false) };
}

/// Runs calls. A client that never sends the rest of its body, or never reads its answer, loses the call and not the
/// connection.
#[derive(Debug, Clone, Copy)]
pub(super) struct Streams;

/// Lets the call that begins now take as long as its client likes.
pub(super) fn this_is_long() {
    IS_LONG.set(true);
}

impl<F> Executor<F> for Streams
where
    F: Future + Send + 'static,
{
    fn execute(&self, call: F) {
        tokio::spawn(async move {
            let mut call = pin!(call);
            // Most calls are answered at once, and need no timer. The first poll hands the request to the service.
            IS_LONG.set(false);
            let at_once = poll_fn(|cx| Poll::Ready(call.as_mut().poll(cx).is_ready()));
            if at_once.await {
                return;
            }
            if IS_LONG.get() {
                call.await;
            } else if tokio::time::timeout(SLOWEST, call).await.is_err() {
                tracing::debug!("a call took too long");
            }
        });
    }
}
