//! What one connection is doing. Its stream, its service and its idle timer share this.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use tokio::time::{Instant, sleep};

/// How often an idle connection is looked at within its idle time. Requests then need neither a timer nor a clock.
const LOOKS: u32 = 8;

/// The state of one connection.
#[derive(Debug, Default)]
pub(crate) struct Activity {
    /// Heads of which the first byte has come.
    begun: AtomicU64,
    /// Requests whose head has come.
    heads: AtomicU64,
    /// Requests whose response has not ended.
    in_flight: AtomicUsize,
    is_http_2: AtomicBool,
    is_upgraded: AtomicBool,
    leaves_body: AtomicBool,
}

impl Activity {
    /// A connection that is new: its first head is awaited from now on.
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self { begun: AtomicU64::new(1), ..Self::default() })
    }

    /// Notes that a request has come. It is in flight until the returned value is dropped.
    pub(crate) fn begin(self: &Arc<Self>) -> InFlight {
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        self.heads.fetch_add(1, Ordering::Relaxed);
        InFlight(Arc::clone(self))
    }

    /// Whether the client speaks HTTP/2: all of its preface has come.
    pub(crate) fn is_http_2(&self) -> bool {
        self.is_http_2.load(Ordering::Relaxed)
    }

    /// Notes that the connection now speaks another protocol, so no head is awaited any more.
    pub(crate) fn upgrade(&self) {
        self.is_upgraded.store(true, Ordering::Relaxed);
    }

    /// Notes that the connection ends with an answer to a request whose body is not read to its end.
    pub(super) fn leave_body(&self) {
        self.leaves_body.store(true, Ordering::Relaxed);
    }

    /// Whether the client may still be sending a body that nobody reads. HTTP/2 ends the stream of such a request.
    pub(super) fn leaves_body(&self) -> bool {
        self.leaves_body.load(Ordering::Relaxed) && !self.is_http_2()
    }

    /// Ready once the connection has been idle for `time`, or an eighth of it later.
    pub(crate) async fn idle(&self, time: Duration) {
        let mut idle: Option<(u64, Instant)> = None;
        loop {
            // Requests only count, and this looks at the count a few times: a request that sets a timer and clears it
            // again costs more than all that the count needs. The price is that a connection may stay open for an
            // eighth longer.
            let (heads, now) = (self.heads.load(Ordering::Relaxed), Instant::now());
            idle = match idle {
                // A head that is on its way has a time of its own, in `TimedStream`.
                _ if self.is_busy() || self.awaits_head() => None,
                Some((seen, since)) if seen == heads => Some((seen, since)),
                _ => Some((heads, now)),
            };
            if idle.is_some_and(|(_, since)| now - since >= time) {
                return;
            }
            sleep(time / LOOKS).await;
        }
    }

    pub(super) fn speaks_http_2(&self) {
        self.is_http_2.store(true, Ordering::Relaxed);
    }

    /// Notes that bytes have come. Returns whether they are the first ones of a head.
    pub(super) fn came(&self) -> bool {
        let heads = self.heads.load(Ordering::Relaxed);
        // While a request is in flight, what comes is its body, or a request sent ahead of its turn that hyper has not
        // asked for. So a new head begins only when as many heads have ended as have begun.
        let is_new = !self.is_busy() && self.begun.load(Ordering::Relaxed) <= heads;
        if is_new {
            self.begun.store(heads + 1, Ordering::Relaxed);
        }
        is_new
    }

    /// Whether a head has begun to come, and has not ended. In HTTP/2, only the preface counts: pings find out later
    /// whether the client is there.
    pub(super) fn awaits_head(&self) -> bool {
        !self.is_http_2()
            && !self.is_upgraded.load(Ordering::Relaxed)
            && !self.is_busy()
            && self.begun.load(Ordering::Relaxed) > self.heads.load(Ordering::Relaxed)
    }

    fn is_busy(&self) -> bool {
        self.in_flight.load(Ordering::Relaxed) > 0
    }
}

/// A request in flight: see [`Activity::begin`].
#[derive(Debug)]
#[must_use = "the request is in flight until this is dropped"]
pub(crate) struct InFlight(Arc<Activity>);

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

pin_project! {
    /// The body of a response, and what it holds until it has ended or is dropped.
    #[derive(Debug)]
    pub(crate) struct HoldingBody<B, T> {
        #[pin]
        pub(crate) body: B,
        pub(crate) held: Option<T>,
    }
}

impl<B: Body, T> Body for HoldingBody<B, T> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        let this = self.project();
        let frame = this.body.poll_frame(cx);
        if matches!(frame, Poll::Ready(None | Some(Err(_)))) {
            *this.held = None;
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
