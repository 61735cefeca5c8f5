use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use sluicegate::adapter::Sleep;
use sluicegate::clock::Clock;

/// What `future` yields within `time`.
pub(crate) async fn within<F: Future>(
    clock: &Clock,
    time: Duration,
    future: F,
) -> Option<F::Output> {
    let mut sleep = Sleep::new(clock, time, tokio::time::sleep);
    let mut future = pin!(future);
    poll_fn(|cx| match future.as_mut().poll(cx) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => Pin::new(&mut sleep).poll(cx).map(|()| None),
    })
    .await
}
