use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use actix_web::body::{BodySize, BoxBody, EitherBody, MessageBody};
use actix_web::dev::{Service, ServiceRequest, ServiceResponse};
use actix_web::http::header::CONTENT_LENGTH;
use actix_web::http::{Method, StatusCode};
use actix_web::{Error, HttpMessage};
use pin_project_lite::pin_project;
use sluicegate_core::adapter::{Refused, note_unserved};
use sluicegate_core::cost::RunningCost;
use sluicegate_core::response::Degraded;
use sluicegate_core::{Cost, Decision};

use super::body::{ActixBody, is_empty};
use super::inside::Inside;
use super::refusal::{announce, response};

use crate::layer::admission::Place;
use crate::layer::in_service::{Head, InService};
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
            let request = match this.project().state.project() {
                StateProj::Waiting { request, .. } | StateProj::Starting { request, .. } => request,
                StateProj::Running { .. } | StateProj::Refused { .. } => return,
            };
            // Limits that the request has passed have left their decision in it.
            let has_passed = |request: &ServiceRequest| request.extensions().contains::<Decision>();
            if request.as_ref().is_some_and(has_passed) {
                note_unserved();
            }
        }
    }
}

pin_project! {
    #[project = StateProj]
    enum State<F> {
        Waiting { place: Place, request: Option<ServiceRequest> },
        Starting { in_service: Option<Box<InService>>, request: Option<ServiceRequest> },
        // The future is dropped before its place is free.
        Running { #[pin] future: F, in_service: Option<Box<InService>> },
        Refused { response: Option<ServiceResponse<BoxBody>> },
    }
}

impl<I, R> ActixFuture<I, R>
where
    I: Service<ServiceRequest>,
{
    pub(super) fn new(turn: Turn, request: ServiceRequest, inside: Rc<Inside<I, R>>) -> Self {
        let state = State::at(turn, request, &inside);
        Self { inside, state }
    }
}

impl<F> State<F> {
    fn at<I, R>(turn: Turn, request: ServiceRequest, inside: &Inside<I, R>) -> Self {
        match turn {
            Turn::Start(in_service) => {
                if in_service.as_ref().is_some_and(|it| it.is_less()) {
                    request.extensions_mut().insert(Degraded);
                }
                Self::Starting { in_service, request: Some(request) }
            }
            Turn::Wait(place) => Self::Waiting { place, request: Some(request) },
            Turn::Refuse(shed) => {
                let mut response = response(&inside.settings, &shed, request.request());
                response.extensions_mut().insert(Refused);
                Self::Refused { response: Some(request.into_response(response)) }
            }
        }
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
                StateProj::Waiting { place, request } => {
                    let told = ready!(place.poll(cx));
                    let request = request.take().expect(POLLED_AGAIN);
                    State::at(inside.settings.told(told), request, inside)
                }
                // The service is not asked again whether it is ready: in actix-web a worker asks before it takes
                // connections, not for each request, and asking here would take its waker away.
                StateProj::Starting { in_service, request } => {
                    let request = request.take().expect(POLLED_AGAIN);
                    let mut in_service = in_service.take();
                    let _passing = in_service.as_deref().map(InService::passing);
                    in_service.iter_mut().for_each(|it| it.resume());
                    State::Running { future: inside.service.call(request), in_service }
                }
                StateProj::Running { future, in_service } => {
                    let _passing = in_service.as_deref().map(InService::passing);
                    in_service.iter_mut().for_each(|it| it.resume());
                    let result = future.poll(cx);
                    in_service.iter_mut().for_each(|it| it.pause());
                    let result = ready!(result);
                    let in_service = in_service.take();
                    let response = answered(result, in_service, inside);
                    return Poll::Ready(response.map(ServiceResponse::map_into_left_body));
                }
                StateProj::Refused { response } => {
                    let response = response.take().expect(POLLED_AGAIN);
                    return Poll::Ready(Ok(response.map_into_right_body()));
                }
            };
            state.set(next);
        }
    }
}

fn answered<I, R, B: MessageBody>(
    result: Result<ServiceResponse<B>, Error>,
    in_service: Option<Box<InService>>,
    inside: &Inside<I, R>,
) -> Result<ServiceResponse<ActixBody<B>>, Error> {
    let announced = |mut response: ServiceResponse<B>| {
        announce(&inside.settings.announcing(), response.headers_mut());
        response
    };
    let result = result.map(announced);
    let Some(mut in_service) = in_service else {
        return result.map(|response| response.map_body(|_, body| ActixBody::new(body, None)));
    };
    let response = result.inspect_err(|error| {
        // In actix-web an error is a response that has not been written yet.
        let status = error.as_response_error().status_code().as_u16();
        in_service.failed(matches!(status, 429 | 503 | 504));
    })?;
    let held = in_service.answered(head(&response), inside.settings.hold_until);
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
            BodySize::Sized(length) => Some(length),
            BodySize::None | BodySize::Stream => content_length(response),
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
            State::Waiting { .. } => "ActixFuture(waiting)",
            State::Starting { .. } => "ActixFuture(starting)",
            State::Running { .. } => "ActixFuture(running)",
            State::Refused { .. } => "ActixFuture(refused)",
        })
    }
}
