use std::fmt;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use http::{Request, Response};
use pin_project_lite::pin_project;
use sluicegate_core::adapter::{self, is_charged, listen_unserved, note_unserved};
use sluicegate_core::store::Store;
use tower::Service;

use crate::body::Body;
use crate::headers::HttpExtensions;
use crate::http_limit::{HttpLimit, Paid};
use crate::respond::Respond;
use crate::sleep::TokioTimer;
use crate::upgrade::Upgrade;
use crate::view::{FrameworkBody, Plain};

pin_project! {
    /// The response of a [`RateLimit`](crate::service::RateLimit).
    ///
    /// If it is dropped while the request waits, it gives the request's place back, and outer layers give their
    /// charges back.
    pub struct ResponseFuture<I, B, S, P, W = Plain>
    where
        I: HttpService<B>,
        S: Store,
    {
        #[pin]
        state: State<I, B, S, P>,
        framework: PhantomData<fn() -> W>,
    }

    impl<I, B, S, P, W> PinnedDrop for ResponseFuture<I, B, S, P, W>
    where
        I: HttpService<B>,
        S: Store,
    {
        fn drop(this: Pin<&mut Self>) {
            let mut state = this.project().state;
            match state.as_mut().project() {
                StateProj::Running { paid, .. } if paid.is_open() => drop_open(state),
                StateProj::Pending { forward: Some(forward), .. } => forward.note_unserved(),
                _ => {}
            }
        }
    }
}

/// An HTTP service: what a [`ResponseFuture`] needs to know about the inner one. Every service with requests and
/// responses of the `http` crate is one.
pub trait HttpService<B>: Service<Request<B>, Response = Response<Self::ResBody>> {
    /// The body of its responses.
    type ResBody;
}

impl<I, B, ResBody> HttpService<B> for I
where
    I: Service<Request<B>, Response = Response<ResBody>>,
{
    type ResBody = ResBody;
}

pin_project! {
    #[project = StateProj]
    pub(crate) enum State<I, B, S, P>
    where
        I: HttpService<B>,
        S: Store,
    {
        Refused { response: Option<Response<Body<I::ResBody>>> },
        // The future is dropped first: it says whether a handler was running.
        Running {
            #[pin]
            future: I::Future,
            upgrade: Option<Upgrade>,
            paid: Paid<S, P>,
        },
        Pending {
            pending: Pending<S, P>,
            // Boxed, because it is large and rare: the future of every request is moved a few times.
            forward: Option<Box<Forward<I, B, S, P>>>,
        },
    }
}

/// Drops a request that is being served.
#[cold]
fn drop_open<I: HttpService<B>, B, S: Store, P>(mut state: Pin<&mut State<I, B, S, P>>) {
    listen_unserved(|| state.set(State::Refused { response: None }));
}

/// A request that waits for a layer's store, or for its turn.
type Pending<S, P> = adapter::Pending<Arc<HttpLimit<S, P>>, TokioTimer>;

/// A request, and the service that was made ready for it.
pub(crate) struct Forward<I, B, S, P> {
    service: I,
    request: Request<B>,
    limit: Arc<HttpLimit<S, P>>,
}

impl<I, B, S, P> Forward<I, B, S, P> {
    pub(crate) fn new(service: I, request: Request<B>, limit: Arc<HttpLimit<S, P>>) -> Self {
        Self { service, request, limit }
    }
}

impl<I, B, S, P> Forward<I, B, S, P> {
    /// The request is dropped while it waits. Layers that have charged it are told. Layers around a handler that makes
    /// this request as a client are not.
    fn note_unserved(&mut self) {
        if is_charged(&HttpExtensions(self.request.extensions_mut())) {
            note_unserved();
        }
    }
}

impl<I, B, S, P, W> ResponseFuture<I, B, S, P, W>
where
    I: HttpService<B>,
    S: Store,
{
    #[inline(always)]
    pub(crate) fn at(state: State<I, B, S, P>) -> Self {
        Self { state, framework: PhantomData }
    }
}

impl<I, B, S, P, W> Future for ResponseFuture<I, B, S, P, W>
where
    I: HttpService<B>,
    S: Store + Send + Sync + 'static,
    W: FrameworkBody<I::ResBody>,
    P: Respond<B, I::ResBody> + Send + Sync + 'static,
{
    type Output = Result<Response<W::Body>, I::Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = self.project().state;
        if !matches!(&*state, State::Running { .. }) {
            if let Some(response) = ready!(poll_refused(state.as_mut(), cx)) {
                return Poll::Ready(Ok(response.map(W::body)));
            }
        }
        let StateProj::Running { future, upgrade, paid } = state.project() else {
            unreachable!("a request that is not refused runs");
        };
        let mut result = future.poll(cx);
        let guard = match &mut result {
            Poll::Ready(Ok(response)) => HttpLimit::close(paid, upgrade, response),
            Poll::Ready(Err(_)) | Poll::Pending => None,
        };
        match guard {
            None => result.map_ok(|response| response.map(W::inner)),
            guard => {
                result.map_ok(|response| response.map(|body| W::body(Body::guarded(body, guard))))
            }
        }
    }
}

/// Waits for a request's turn. Returns the response if it is refused; otherwise it runs from now on.
#[inline(never)]
fn poll_refused<I, B, S, P>(
    mut state: Pin<&mut State<I, B, S, P>>,
    cx: &mut Context<'_>,
) -> Poll<Option<Response<Body<I::ResBody>>>>
where
    I: HttpService<B>,
    S: Store,
    P: Respond<B, I::ResBody>,
{
    let (pending, forward) = match state.as_mut().project() {
        StateProj::Refused { response } => {
            return Poll::Ready(Some(response.take().expect(POLLED_AGAIN)));
        }
        StateProj::Running { .. } => return Poll::Ready(None),
        StateProj::Pending { pending, forward } => (pending, forward),
    };
    let result = ready!(Pin::new(pending).poll(cx));
    let Forward { mut service, mut request, limit } = *forward.take().expect(POLLED_AGAIN);
    match result {
        Ok(paid) => {
            let upgrade = limit.mark(&paid, &mut request);
            state.set(State::Running { future: service.call(request), upgrade, paid });
            Poll::Ready(None)
        }
        Err(refusal) => {
            let response = limit.answer(refusal, &request);
            state.set(State::Refused { response: None });
            Poll::Ready(Some(response))
        }
    }
}

const POLLED_AGAIN: &str = "a future is not polled again once it is ready";

impl<I, B, S, P, W> fmt::Debug for ResponseFuture<I, B, S, P, W>
where
    I: HttpService<B>,
    S: Store,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &self.state {
            State::Refused { .. } => "ResponseFuture(refused)",
            State::Running { .. } => "ResponseFuture(running)",
            State::Pending { .. } => "ResponseFuture(pending)",
        })
    }
}
