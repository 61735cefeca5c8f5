//! actix-web uses an older version of the `http` crate than the rest of the workspace.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use actix_web::body::{BodySize, EitherBody, MessageBody};
use actix_web::dev::{Service, ServiceRequest, ServiceResponse};
use actix_web::http::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use actix_web::http::{Method, StatusCode};
use actix_web::{Error, HttpMessage, HttpRequest, HttpResponse};
use http::request::Parts;
use pin_project_lite::pin_project;
use sluicegate_actix::response::Body;
use sluicegate_core::Cost;
use sluicegate_core::adapter::{BodyGuard, Refused, note_unserved};
use sluicegate_core::cost::RunningCost;
use sluicegate_core::response::Degraded;

use crate::announce::FIELD;
use crate::layer::dispatch::Dispatch;
use crate::layer::in_service::{GRPC_STATUS, Head, InService, status};
use crate::layer::shared::Shared;
use crate::layer::throttle_layer::ThrottleLayer;
use crate::scheduler::Shed;

pin_project! {
    /// The response of an [`ActixService`](super::ActixService).
    ///
    /// Dropped while the request waits, it frees the request's place, and rate limits further out give their charges
    /// back.
    pub struct ActixFuture<I, R>
    where
        I: Service<ServiceRequest>,
    {
        inside: Rc<Inside<I, R>>,
        #[pin]
        state: State<I::Future>,
    }

    impl<I, R> PinnedDrop for ActixFuture<I, R>
    where
        I: Service<ServiceRequest>,
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
    enum State<F> {
        // The future is dropped before its place is free.
        Running { #[pin] future: F, in_service: InService },
        // Boxed, because it is large and rare: the future of every request is moved a few times.
        Queued { queued: Box<Queued> },
    }
}

/// What running and waiting requests need: the layer, and the service, which a queued request calls after its wait.
#[derive(Debug)]
pub(super) struct Inside<I, R> {
    pub(super) service: I,
    pub(super) layer: ThrottleLayer<R>,
}

/// A request that does not go ahead at once.
struct Queued {
    dispatch: Dispatch,
    request: Option<ServiceRequest>,
    /// Whether no handler has seen the request. Limits further out then give their charges back.
    is_unserved: bool,
}

impl<I, R> ActixFuture<I, R>
where
    I: Service<ServiceRequest>,
{
    /// The service is called at once if the request starts at once. The service is not asked whether it is ready: in
    /// actix-web a worker asks before it takes connections, not for each request, and asking here would take its waker
    /// away.
    pub(super) fn new(
        dispatch: Dispatch,
        request: ServiceRequest,
        inside: Rc<Inside<I, R>>,
    ) -> Self {
        let state = match dispatch {
            Dispatch::Start(in_service) => State::running(in_service, request, &inside),
            dispatch => {
                let request = Some(request);
                State::Queued { queued: Box::new(Queued { dispatch, request, is_unserved: true }) }
            }
        };
        Self { inside, state }
    }
}

impl<F> State<F> {
    fn running<I, R>(
        mut in_service: InService,
        request: ServiceRequest,
        inside: &Inside<I, R>,
    ) -> Self
    where
        I: Service<ServiceRequest, Future = F>,
    {
        let started = in_service.started(|| request.extensions().get().copied());
        if let Some(started) = started {
            request.extensions_mut().insert(started);
        }
        if in_service.is_degraded() {
            request.extensions_mut().insert(Degraded);
        }
        let passing = in_service.passing();
        in_service.resume();
        let future = inside.service.call(request);
        in_service.pause();
        drop(passing);
        Self::Running { future, in_service }
    }
}

impl<I, R, B> Future for ActixFuture<I, R>
where
    I: Service<ServiceRequest, Response = ServiceResponse<B>, Error = Error>,
    B: MessageBody,
{
    type Output = Result<ServiceResponse<EitherBody<Body<B>>>, Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let (inside, mut state) = (&**this.inside, this.state);
        loop {
            let next = match state.as_mut().project() {
                StateProj::Running { future, in_service } => {
                    let _passing = in_service.passing();
                    in_service.resume();
                    let result = future.poll(cx);
                    in_service.pause();
                    let response = answered(ready!(result), in_service.take(), inside);
                    return Poll::Ready(response.map(ServiceResponse::map_into_left_body));
                }
                StateProj::Queued { queued } => {
                    if let Dispatch::Wait(place) = &mut queued.dispatch {
                        queued.dispatch = inside.layer.waited(ready!(place.poll(cx)));
                    }
                    let request = queued.request.take().expect(POLLED_AGAIN);
                    match &mut queued.dispatch {
                        Dispatch::Start(in_service) => {
                            queued.is_unserved = false;
                            State::running(in_service.take(), request, inside)
                        }
                        // The operator's function may panic. Limits that have charged the request then have to learn
                        // that it was not served: they listen while this future is dropped.
                        Dispatch::Refuse(shed) => {
                            let mut response = response(&inside.layer, shed, request.request());
                            response.extensions_mut().insert(Refused::default());
                            let response = request.into_response(response);
                            queued.is_unserved = false;
                            return Poll::Ready(Ok(response.map_into_right_body()));
                        }
                        Dispatch::Wait(_) => unreachable!("its wait is over"),
                    }
                }
            };
            state.set(next);
        }
    }
}

fn answered<I, R, B: MessageBody>(
    result: Result<ServiceResponse<B>, Error>,
    mut in_service: InService,
    inside: &Inside<I, R>,
) -> Result<ServiceResponse<Body<B>>, Error> {
    let mut response = result.inspect_err(|error| {
        // In actix-web an error is a response that has not been written yet.
        let status = error.as_response_error().status_code().as_u16();
        in_service.failed(matches!(status, 503 | 504));
    })?;
    if let Some(shared) = inside.layer.announcing() {
        announce(&shared, response.headers_mut());
    }
    let held = in_service.answered(|| head(&response), inside.layer.hold_until);
    let guard = held.into_guard().map(|guard| guard as Box<dyn BodyGuard>);
    Ok(response.map_body(|_, body| Body::guarded(body, guard)))
}

fn head<B: MessageBody>(response: &ServiceResponse<B>) -> Head {
    let extensions = response.response().extensions();
    let size = response.response().body().size();
    Head {
        status: status(response.status().as_u16(), || {
            response.headers().get(GRPC_STATUS).map(HeaderValue::as_bytes)
        }),
        reported: left(response).or_else(|| left(response).map(|Cost(cost)| RunningCost::of(cost))),
        is_refusal: extensions.contains::<Refused>(),
        hold_until: extensions.get().copied(),
        is_end: matches!(size, BodySize::None | BodySize::Sized(0))
            || response.request().method() == Method::HEAD,
        length: match size {
            BodySize::Sized(length) => length,
            BodySize::None | BodySize::Stream => content_length(response).unwrap_or(u64::MAX),
        },
        // The connection is the body of its response.
        is_upgrade: response.status() == StatusCode::SWITCHING_PROTOCOLS,
    }
}

fn content_length<B>(response: &ServiceResponse<B>) -> Option<u64> {
    response.headers().get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// From the response's extensions, else from the request's, which extractors and middleware reach more easily.
fn left<T: Clone + 'static>(response: &ServiceResponse<impl MessageBody>) -> Option<T> {
    let in_response = response.response().extensions().get().cloned();
    in_response.or_else(|| response.request().extensions().get().cloned())
}

const POLLED_AGAIN: &str = "a future is not polled again once it is ready";

impl<I, R> fmt::Debug for ActixFuture<I, R>
where
    I: Service<ServiceRequest>,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &self.state {
            State::Running { .. } => "ActixFuture(running)",
            State::Queued { .. } => "ActixFuture(queued)",
        })
    }
}

/// The response of a request that is refused.
fn response<R>(layer: &ThrottleLayer<R>, shed: &Shed, request: &HttpRequest) -> HttpResponse {
    let content_type = request.headers().get(CONTENT_TYPE).map(HeaderValue::as_bytes);
    let (head, body) = layer.response(shed, content_type, || parts(request)).into_parts();
    let status = StatusCode::from_u16(head.status.as_u16());
    let mut response = HttpResponse::new(status.unwrap_or(StatusCode::SERVICE_UNAVAILABLE));
    for (name, value) in &head.headers {
        let name = HeaderName::from_bytes(name.as_str().as_bytes());
        if let (Ok(name), Ok(value)) = (name, HeaderValue::from_bytes(value.as_bytes())) {
            response.headers_mut().append(name, value);
        }
    }
    response.set_body(actix_web::body::BoxBody::new(body))
}

/// Adds the level of admission to a response.
fn announce(shared: &Shared, headers: &mut HeaderMap) {
    let lines = |name: &str, see: &mut dyn FnMut(&[u8])| {
        headers.get_all(name).for_each(|line| see(line.as_bytes()));
    };
    if let Some(Ok(value)) = shared.announcement(lines).map(HeaderValue::try_from) {
        headers.insert(HeaderName::from_static(FIELD), value);
    }
}

/// Method, URI and header fields of a request. What cannot be converted is left out.
fn parts(request: &HttpRequest) -> Parts {
    let (mut parts, ()) = http::Request::new(()).into_parts();
    parts.method = request.method().as_str().parse().unwrap_or_default();
    parts.uri = request.uri().to_string().parse().unwrap_or_default();
    for (name, value) in request.headers() {
        let name = http::HeaderName::from_bytes(name.as_str().as_bytes());
        if let (Ok(name), Ok(value)) = (name, http::HeaderValue::from_bytes(value.as_bytes())) {
            parts.headers.append(name, value);
        }
    }
    parts
}
