use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use pin_project_lite::pin_project;
use sluicegate::adapter::{HttpExtensions, Upgrade};
use sluicegate::response::Body;
use sluicegate::service::HttpService;
use sluicegate_core::Cost;
use sluicegate_core::adapter::{Refused, is_charged, note_unserved};
use sluicegate_core::cost::RunningCost;
use sluicegate_core::response::Degraded;
use tower_service::Service;

use super::dispatch::Dispatch;
use super::in_service::{GRPC_STATUS, Head, HoldUntil, InService, status};
use super::refusal::announce;
use super::shared::Shared;
use super::throttle_layer::ThrottleLayer;
use crate::scheduler::Shed;

pin_project! {
    /// The response of a [`ThrottleService`](super::ThrottleService).
    ///
    /// Dropped while the request waits, it frees the request's place, and rate limits further out give their charges
    /// back.
    pub struct ResponseFuture<I, B, R>
    where
        I: HttpService<B>,
    {
        #[pin]
        state: State<I, B, R, I::Future, I::ResBody, I::Error>,
    }

    impl<I, B, R> PinnedDrop for ResponseFuture<I, B, R>
    where
        I: HttpService<B>,
    {
        fn drop(this: Pin<&mut Self>) {
            if let StateProj::Queued { queued } = this.project().state.project() {
                if queued.is_unserved {
                    note_unserved();
                }
            }
        }
    }
}

pin_project! {
    #[project = StateProj]
    enum State<I, B, R, F, ResBody, E> {
        // The future is dropped before its place is free.
        Running {
            #[pin]
            future: F,
            upgrade: Option<Upgrade>,
            in_service: InService,
            hold_until: HoldUntil,
            announcing: Option<Arc<Shared>>,
        },
        // Boxed, because it is large and rare: the future of every request is moved a few times.
        Queued { queued: Box<Queued<I, B, R>> },
        Done { result: Option<Result<Response<Body<ResBody>>, E>> },
    }
}

/// A request that does not go ahead at once.
struct Queued<I, B, R> {
    /// Once it is `Start`, the request waits for the service to be ready.
    dispatch: Dispatch,
    forward: Option<Forward<I, B, R>>,
    /// Whether layers further out have charged the request, and no handler has seen it.
    is_unserved: bool,
}

/// A request, and the service to call with it.
struct Forward<I, B, R> {
    service: I,
    request: Request<B>,
    layer: Arc<ThrottleLayer<R>>,
}

impl<I, B, R, ResBody> ResponseFuture<I, B, R>
where
    I: Service<Request<B>, Response = Response<ResBody>>,
{
    /// The service is called at once if the request starts at once and the service is ready.
    #[inline(always)]
    pub(super) fn new(
        dispatch: Dispatch,
        service: &mut I,
        mut request: Request<B>,
        layer: &Arc<ThrottleLayer<R>>,
    ) -> Self
    where
        I: Clone,
    {
        let mut in_service = match dispatch {
            Dispatch::Start(in_service) => in_service,
            // The operator's function may panic. Layers that have charged the request then have to learn that it was
            // not served: they listen while a queued future is dropped.
            Dispatch::Refuse(shed) if layer.respond.is_none() => {
                let result = Some(Ok(refused(layer, &shed, request)));
                return Self { state: State::Done { result } };
            }
            dispatch => return Self::queued(dispatch, service.clone(), request, layer),
        };
        let passing = in_service.passing();
        match service.poll_ready(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Ok(())) => {}
            Poll::Ready(Err(error)) => {
                return Self { state: State::Done { result: Some(Err(error)) } };
            }
            Poll::Pending => {
                in_service.pause();
                drop(passing);
                // The one that was asked may have reserved something, and is asked again.
                // `poll_ready` and `call` have to meet the same service, so the clone stays behind and the one that was
                // asked goes along.
                let next = service.clone();
                let service = std::mem::replace(service, next);
                return Self::queued(Dispatch::Start(in_service), service, request, layer);
            }
        }
        let (hold_until, upgrade) = prepared(&mut request, &in_service, layer);
        let future = service.call(request);
        in_service.pause();
        let announcing = layer.announcing();
        Self { state: State::Running { future, upgrade, in_service, hold_until, announcing } }
    }

    #[cold]
    fn queued(
        dispatch: Dispatch,
        service: I,
        mut request: Request<B>,
        layer: &Arc<ThrottleLayer<R>>,
    ) -> Self {
        let is_unserved = is_charged(&HttpExtensions(request.extensions_mut()));
        let forward = Some(Forward { service, request, layer: Arc::clone(layer) });
        let queued = Box::new(Queued { dispatch, forward, is_unserved });
        Self { state: State::Queued { queued } }
    }
}

impl<I, B, R, ResBody> Future for ResponseFuture<I, B, R>
where
    I: Service<Request<B>, Response = Response<ResBody>>,
    ResBody: http_body::Body,
{
    type Output = Result<Response<Body<ResBody>>, I::Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = self.project().state;
        loop {
            let next = match state.as_mut().project() {
                StateProj::Running { future, upgrade, in_service, hold_until, announcing } => {
                    let _passing = in_service.passing();
                    in_service.resume();
                    let result = future.poll(cx);
                    // Before `ready!`: the time between two polls is not the handler's.
                    in_service.pause();
                    let mut result = ready!(result);
                    let mut in_service = in_service.take();
                    match &mut result {
                        Ok(response) => {
                            in_service = answered(in_service, upgrade, response, *hold_until);
                            if let Some(shared) = announcing {
                                announce(shared, response.headers_mut());
                            }
                        }
                        Err(_) => in_service.failed(false),
                    }
                    // An error drops it here.
                    let response = result?;
                    return Poll::Ready(Ok(
                        response.map(|body| Body::guarded(body, in_service.into_guard()))
                    ));
                }
                StateProj::Queued { queued } => ready!(queued.poll(cx)),
                StateProj::Done { result } => {
                    return Poll::Ready(result.take().expect(POLLED_AGAIN));
                }
            };
            state.set(next);
        }
    }
}

impl<I, B, R> Queued<I, B, R> {
    #[expect(clippy::type_complexity, reason = "it is the state of the future that polls this")]
    fn poll<ResBody>(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<State<I, B, R, I::Future, ResBody, I::Error>>
    where
        I: Service<Request<B>, Response = Response<ResBody>>,
    {
        if let Dispatch::Wait(place) = &mut self.dispatch {
            let result = ready!(place.poll(cx));
            let forward = self.forward.as_ref().expect(POLLED_AGAIN);
            self.dispatch = forward.layer.waited(result);
        }
        if let Dispatch::Start(in_service) = &mut self.dispatch {
            let service = &mut self.forward.as_mut().expect(POLLED_AGAIN).service;
            let _passing = in_service.passing();
            in_service.resume();
            let is_ready = service.poll_ready(cx);
            if !matches!(is_ready, Poll::Ready(Ok(()))) {
                in_service.pause();
            }
            if let Err(error) = ready!(is_ready) {
                return Poll::Ready(State::Done { result: Some(Err(error)) });
            }
        }
        let forward = self.forward.take().expect(POLLED_AGAIN);
        let Forward { mut service, mut request, layer } = forward;
        match &mut self.dispatch {
            Dispatch::Start(in_service) => {
                self.is_unserved = false;
                let mut in_service = in_service.take();
                let _passing = in_service.passing();
                let (hold_until, upgrade) = prepared(&mut request, &in_service, &layer);
                let future = service.call(request);
                in_service.pause();
                let announcing = layer.announcing();
                let next = State::Running { future, upgrade, in_service, hold_until, announcing };
                Poll::Ready(next)
            }
            Dispatch::Refuse(shed) => {
                Poll::Ready(State::Done { result: Some(Ok(refused(&layer, shed, request))) })
            }
            Dispatch::Wait(_) => unreachable!("its wait is over"),
        }
    }
}

/// Prepares a request for the service, which is called with it next.
#[inline(always)]
fn prepared<B, R>(
    request: &mut Request<B>,
    in_service: &InService,
    layer: &ThrottleLayer<R>,
) -> (HoldUntil, Option<Upgrade>) {
    if let Some(started) = in_service.started(|| request.extensions().get().copied()) {
        request.extensions_mut().insert(started);
    }
    if in_service.is_degraded() {
        request.extensions_mut().insert(Degraded);
    }
    // No body is sent in answer to HEAD: servers drop it as it is.
    let is_head = request.method() == Method::HEAD;
    let hold_until = if is_head { HoldUntil::Head } else { layer.hold_until };
    let keeps = hold_until == HoldUntil::Close && in_service.is_counted();
    let upgrade = if keeps { Upgrade::of(request) } else { None };
    (hold_until, upgrade)
}

#[cold]
fn refused<B, R, ResBody>(
    layer: &ThrottleLayer<R>,
    shed: &Shed,
    request: Request<B>,
) -> Response<Body<ResBody>> {
    let content_type = request.headers().get(CONTENT_TYPE).cloned();
    let content_type = content_type.as_ref().map(HeaderValue::as_bytes);
    let mut response = layer.response(shed, content_type, || request.into_parts().0);
    response.extensions_mut().insert(Refused::default());
    response.map(Body::from_bytes)
}

/// The head of the response is there. Returns what its body holds.
#[inline(always)]
fn answered<B: http_body::Body>(
    in_service: InService,
    upgrade: &mut Option<Upgrade>,
    response: &Response<B>,
    hold_until: HoldUntil,
) -> InService {
    let upgrade = upgrade.take().filter(|upgrade| upgrade.is_accepted(response.status()));
    let is_upgrade = upgrade.is_some() || response.status() == StatusCode::SWITCHING_PROTOCOLS;
    let held = in_service.answered(|| head(response, is_upgrade), hold_until);
    match upgrade {
        Some(upgrade) => {
            upgrade.keep(held);
            InService::UNCOUNTED
        }
        None => held,
    }
}

#[inline(always)]
fn head<B: http_body::Body>(response: &Response<B>, is_upgrade: bool) -> Head {
    let extensions = response.extensions();
    let cost = || extensions.get().map(|Cost(cost)| RunningCost::of(*cost));
    Head {
        status: status(response.status().as_u16(), || {
            response.headers().get(GRPC_STATUS).map(HeaderValue::as_bytes)
        }),
        reported: extensions.get().cloned().or_else(cost),
        is_refusal: extensions.get::<Refused>().is_some(),
        hold_until: extensions.get().copied(),
        is_end: response.body().is_end_stream(),
        length: length(response),
        is_upgrade,
    }
}

/// At most, in bytes.
fn length<B: http_body::Body>(response: &Response<B>) -> u64 {
    let exact = response.body().size_hint().exact();
    exact.or_else(|| content_length(response)).unwrap_or(u64::MAX)
}

fn content_length<B>(response: &Response<B>) -> Option<u64> {
    response.headers().get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

const POLLED_AGAIN: &str = "a future is not polled again once it is ready";

impl<I, B, R> fmt::Debug for ResponseFuture<I, B, R>
where
    I: HttpService<B>,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &self.state {
            State::Running { .. } => "ResponseFuture(running)",
            State::Queued { .. } => "ResponseFuture(queued)",
            State::Done { .. } => "ResponseFuture(done)",
        })
    }
}
