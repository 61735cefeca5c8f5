//! The messages of a call, as its cost.

mod body;
mod frames;
mod text;

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use http::{Request, Response};
use pin_project_lite::pin_project;
use sluicegate::adapter::{HttpReply, Reply as _, note_spent};
use sluicegate::cost::RunningCost;
use tower_layer::Layer;
use tower_service::Service;

pub use self::body::CountedBody;

/// A tower layer that counts the messages of a call, so that a limit can charge for them when the call has ended.
///
/// Put it inside of a [`RateLimitLayer`](crate::RateLimitLayer) whose rule settles by the
/// [`Reply::cost`](crate::adapter::Reply::cost). The call is charged its estimate when it begins, and what it has used
/// when it has ended, also if the client leaves before. If it leaves before the head of the response, such as during an
/// upload, that is no less than the estimate. Messages are not held back: a stream that is running goes on, and its
/// client waits before the next one.
///
/// A call without a message, such as one that fails, counts as one message: a limit bounds these too.
///
/// It counts messages of gRPC and of gRPC-Web, so it may be around a layer that translates between them, or inside of it.
///
/// A handler that leaves a [`RunningCost`] or a [`Cost`](crate::Cost) in its response counts by itself.
///
/// ```
/// use sluicegate_tonic::{CountMessages, Ip, Limit, RateLimitLayer};
/// use tower::ServiceBuilder;
///
/// let rule = Limit::per_minute(1_000).by(Ip::peer()).settle_cost(|reply| reply.cost());
/// let layers = ServiceBuilder::new()
///     .layer(RateLimitLayer::new(rule))
///     .layer(CountMessages::sent());
/// # let _ = layers;
/// ```
#[derive(Debug, Clone, Copy)]
#[must_use]
pub struct CountMessages {
    sent: bool,
    received: bool,
}

impl CountMessages {
    /// Counts the messages that the server sends.
    pub const fn sent() -> Self {
        Self { sent: true, received: false }
    }

    /// Counts the messages that the server receives.
    pub const fn received() -> Self {
        Self { sent: false, received: true }
    }

    /// Counts the messages in both directions. A unary call has two.
    pub const fn both() -> Self {
        Self { sent: true, received: true }
    }
}

impl<I> Layer<I> for CountMessages {
    type Service = CountMessagesService<I>;

    fn layer(&self, inner: I) -> Self::Service {
        CountMessagesService { inner, count: *self }
    }
}

/// A service whose messages are counted by [`CountMessages`].
#[derive(Debug, Clone)]
pub struct CountMessagesService<I> {
    inner: I,
    count: CountMessages,
}

impl<I, B, ResBody> Service<Request<B>> for CountMessagesService<I>
where
    I: Service<Request<CountedBody<B>>, Response = Response<ResBody>>,
{
    type Response = Response<CountedBody<ResBody>>;
    type Error = I::Error;
    type Future = CountMessagesFuture<I::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), I::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let count = Count::new();
        let CountMessages { sent, received } = self.count;
        let (head, body) = request.into_parts();
        let body = CountedBody::new(body, received.then(|| count.clone()), &head.headers);
        let request = Request::from_parts(head, body);
        CountMessagesFuture { future: self.inner.call(request), count, sent }
    }
}

pin_project! {
    /// The response of a [`CountMessagesService`].
    pub struct CountMessagesFuture<F> {
        #[pin]
        future: F,
        count: Count,
        sent: bool,
    }

    impl<F> PinnedDrop for CountMessagesFuture<F> {
        // A client may leave before there is a response to leave the cost in.
        fn drop(this: Pin<&mut Self>) {
            note_spent(this.count.messages());
        }
    }
}

impl<F, ResBody, E> Future for CountMessagesFuture<F>
where
    F: Future<Output = Result<Response<ResBody>, E>>,
{
    type Output = Result<Response<CountedBody<ResBody>>, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let mut response = ready!(this.future.poll(cx))?;
        if !HttpReply(&response).has_cost() {
            response.extensions_mut().insert(this.count.cost().clone());
        }
        let counts = this.sent.then(|| this.count.clone());
        let (head, body) = response.into_parts();
        let body = CountedBody::new(body, counts, &head.headers);
        Poll::Ready(Ok(Response::from_parts(head, body)))
    }
}

impl<F> fmt::Debug for CountMessagesFuture<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CountMessagesFuture").field("count", &self.count).finish_non_exhaustive()
    }
}

/// The messages of a call so far. Clones count together.
#[derive(Debug, Clone)]
struct Count {
    /// At least 1: a call without a message, such as one that fails, is charged as one, or a client could fail without
    /// end.
    cost: RunningCost,
    has_messages: Arc<AtomicBool>,
}

impl Count {
    fn new() -> Self {
        Self { cost: RunningCost::of(1), has_messages: Arc::default() }
    }

    fn add(&self, messages: u64) {
        // The first message is the one that the call itself was charged for.
        let is_first = messages > 0 && !self.has_messages.swap(true, Ordering::Relaxed);
        self.cost.add(messages - u64::from(is_first));
    }

    const fn cost(&self) -> &RunningCost {
        &self.cost
    }

    /// The messages themselves.
    fn messages(&self) -> u64 {
        if self.has_messages.load(Ordering::Relaxed) { self.cost.total() } else { 0 }
    }
}
