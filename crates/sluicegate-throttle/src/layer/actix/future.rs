use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use actix_web::body::{BodySize, EitherBody, MessageBody};
use actix_web::dev::{Service, ServiceRequest, ServiceResponse};
use actix_web::http::header::CONTENT_LENGTH;
use actix_web::http::{Method, StatusCode};
use actix_web::{Error, HttpMessage};
use pin_project_lite::pin_project;
use sluicegate_core::Cost;
use sluicegate_core::adapter::{Refused, note_unserved};
use sluicegate_core::cost::RunningCost;
use sluicegate_core::response::Degraded;
use sluicegate_core::response::LazyDecision;

use super::body::{ActixBody, is_empty};
use super::inside::Inside;
use super::refusal::{announce, response};
use crate::layer::in_service::InService;
use crate::layer::served::Head;
use crate::layer::settings::Turn;

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

/// A request that does not go ahead at once.
struct Queued {
    turn: Turn,
    request: Option<ServiceRequest>,
    /// Whether limits further out have charged the request, and no handler has seen it.
    is_unserved: bool,
}

impl<I, R> ActixFuture<I, R>
where
    I: Service<ServiceRequest>,
{
    /// The service is called at once if the request starts at once. The service is not asked whether it is ready: in
    /// actix-web a worker asks before it takes connections, not for each request, and asking here would take its waker
    /// away.
    pub(super) fn new(turn: Turn, request: ServiceRequest, inside: Rc<Inside<I, R>>) -> Self {
        let state = match turn {
            Turn::Start(in_service) => State::running(in_service, request, &inside),
            turn => {
                // Limits that the request has passed have left their decision in it.
                let is_unserved = request.extensions().contains::<LazyDecision>();
                State::Queued {
                    queued: Box::new(Queued { turn, request: Some(request), is_unserved }),
                }
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
        if in_service.is_less() {
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
    type Output = Result<ServiceResponse<EitherBody<ActixBody<B>>>, Error>;

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
                    if let Turn::Wait(place) = &mut queued.turn {
                        queued.turn = inside.settings.told(ready!(place.poll(cx)));
                    }
                    let request = queued.request.take().expect(POLLED_AGAIN);
                    match &mut queued.turn {
                        Turn::Start(in_service) => {
                            queued.is_unserved = false;
                            State::running(in_service.take(), request, inside)
                        }
                        // The operator's function may panic. Limits that have charged the request then have to learn
                        // that it was not served: they listen while this future is dropped.
                        Turn::Refuse(shed) => {
                            let mut response = response(&inside.settings, shed, request.request());
                            response.extensions_mut().insert(Refused);
                            let response = request.into_response(response);
                            queued.is_unserved = false;
                            return Poll::Ready(Ok(response.map_into_right_body()));
                        }
                        Turn::Wait(_) => unreachable!("it has been told"),
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
) -> Result<ServiceResponse<ActixBody<B>>, Error> {
    let mut response = result.inspect_err(|error| {
        // In actix-web an error is a response that has not been written yet.
        let status = error.as_response_error().status_code().as_u16();
        in_service.failed(matches!(status, 429 | 503 | 504));
    })?;
    announce(&inside.settings.announcing(), response.headers_mut());
    let held = in_service.answered(|| head(&response), inside.settings.hold_until);
    Ok(response.map_body(|_, body| ActixBody::new(body, held)))
}

fn head<B: MessageBody>(response: &ServiceResponse<B>) -> Head {
    let extensions = response.response().extensions();
    let size = response.response().body().size();
    Head {
        status: response.status().as_u16(),
        reported: left(response).or_else(|| left(response).map(|Cost(cost)| RunningCost::of(cost))),
        is_refusal: extensions.contains::<Refused>(),
        hold_until: extensions.get().copied(),
        is_end: is_empty(size) || response.request().method() == Method::HEAD,
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
            State::Queued { queued } => match &queued.turn {
                Turn::Start(_) => "ActixFuture(starting)",
                Turn::Wait(_) => "ActixFuture(waiting)",
                Turn::Refuse(_) => "ActixFuture(refused)",
            },
        })
    }
}
