use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use http::{Request, Response};
use pin_project_lite::pin_project;
use sluicegate::Decision;
use sluicegate_core::Cost;
use sluicegate_core::adapter::{Refused, note_unserved};
use sluicegate_core::cost::RunningCost;
use tower_service::Service;

use super::body::Body;
use super::settings::{HoldUntil, Settings};
use super::shared::{InService, Place};
use crate::scheduler::Outcome;

pin_project! {
    /// The response of a [`ThrottleService`](super::ThrottleService).
    ///
    /// Dropped while the request waits, it frees the request's place, and rate limits further out give their charges
    /// back.
    pub struct ResponseFuture<I, B, R>
    where
        I: Service<Request<B>>,
        I::Response: HttpResponse,
    {
        #[pin]
        state: State<I, B, R, I::Future, <I::Response as HttpResponse>::Body>,
    }

    impl<I, B, R> PinnedDrop for ResponseFuture<I, B, R>
    where
        I: Service<Request<B>>,
        I::Response: HttpResponse,
    {
        fn drop(this: Pin<&mut Self>) {
            let forward = match this.project().state.project() {
                StateProj::Waiting { forward, .. } | StateProj::Starting { forward, .. } => forward,
                StateProj::Running { .. } | StateProj::Shed { .. } => return,
            };
            // Layers that the request has passed have left their decision in it.
            let request = forward.as_ref().map(|forward| &forward.request);
            if request.is_some_and(|request| request.extensions().get::<Decision>().is_some()) {
                note_unserved();
            }
        }
    }
}

/// A response of the `http` crate.
pub trait HttpResponse {
    /// Its body.
    type Body;
}

impl<B> HttpResponse for Response<B> {
    type Body = B;
}

pin_project! {
    #[project = StateProj]
    enum State<I, B, R, F, ResBody> {
        Waiting { place: Place, forward: Option<Forward<I, B, R>> },
        Starting { in_service: Option<InService>, forward: Option<Forward<I, B, R>> },
        // The future is dropped before its place is free.
        Running {
            #[pin]
            future: F,
            in_service: Option<InService>,
            hold_until: HoldUntil,
        },
        Shed { response: Option<Response<Body<ResBody>>> },
    }
}

/// A request, and a service that has not been made ready for it.
struct Forward<I, B, R> {
    service: I,
    request: Request<B>,
    settings: Arc<Settings<R>>,
}

impl<I, B, R, ResBody> ResponseFuture<I, B, R>
where
    I: Service<Request<B>, Response = Response<ResBody>>,
{
    pub(super) fn start(
        service: I,
        request: Request<B>,
        settings: Arc<Settings<R>>,
        in_service: Option<InService>,
    ) -> Self {
        let forward = Some(Forward { service, request, settings });
        Self { state: State::Starting { in_service, forward } }
    }

    pub(super) fn wait(
        service: I,
        request: Request<B>,
        settings: Arc<Settings<R>>,
        place: Place,
    ) -> Self {
        let forward = Some(Forward { service, request, settings });
        Self { state: State::Waiting { place, forward } }
    }

    pub(super) fn shed(response: Response<Body<ResBody>>) -> Self {
        Self { state: State::Shed { response: Some(response) } }
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
                StateProj::Waiting { place, forward } => {
                    let told = ready!(place.poll(cx));
                    let forward = forward.take().expect(POLLED_AGAIN);
                    match told {
                        Ok(in_service) => {
                            State::Starting { in_service: Some(in_service), forward: Some(forward) }
                        }
                        Err(shed) => {
                            let Forward { request, settings, .. } = forward;
                            let (head, _) = request.into_parts();
                            let response = settings.respond.response(&shed, &head);
                            State::Shed { response: Some(response) }
                        }
                    }
                }
                StateProj::Starting { in_service, forward } => {
                    let service = &mut forward.as_mut().expect(POLLED_AGAIN).service;
                    in_service.iter_mut().for_each(InService::resume);
                    let is_ready = service.poll_ready(cx);
                    if !matches!(is_ready, Poll::Ready(Ok(()))) {
                        in_service.iter_mut().for_each(InService::pause);
                    }
                    ready!(is_ready)?;
                    let Forward { mut service, request, settings } =
                        forward.take().expect(POLLED_AGAIN);
                    let future = service.call(request);
                    let hold_until = settings.hold_until;
                    State::Running { future, in_service: in_service.take(), hold_until }
                }
                StateProj::Running { future, in_service, hold_until } => {
                    in_service.iter_mut().for_each(InService::resume);
                    let result = future.poll(cx);
                    in_service.iter_mut().for_each(InService::pause);
                    let result = ready!(result);
                    let in_service = in_service.take();
                    return Poll::Ready(result_of(result, in_service, *hold_until));
                }
                StateProj::Shed { response } => {
                    return Poll::Ready(Ok(response.take().expect(POLLED_AGAIN)));
                }
            };
            state.set(next);
        }
    }
}

fn result_of<B: http_body::Body, E>(
    result: Result<Response<B>, E>,
    in_service: Option<InService>,
    hold_until: HoldUntil,
) -> Result<Response<Body<B>>, E> {
    let Some(mut in_service) = in_service else {
        return result.map(|response| response.map(|body| Body::new(body, None)));
    };
    let response = match result {
        Ok(response) => response,
        Err(error) => {
            in_service.outcome = Outcome::Error;
            return Err(error);
        }
    };
    in_service.head(&response);
    let is_at_end = hold_until == HoldUntil::Head || response.body().is_end_stream();
    let in_service = if is_at_end {
        in_service.end(true);
        None
    } else {
        Some(in_service)
    };
    Ok(response.map(|body| Body::new(body, in_service)))
}

impl InService {
    /// The head of the response is there: what the handler says that the request cost, and how it went. The request
    /// still counts as cancelled until its body has ended.
    fn head<B>(&mut self, response: &Response<B>) {
        let extensions = response.extensions();
        let cost = extensions.get().map(|Cost(cost)| RunningCost::of(*cost));
        self.reported = extensions.get::<RunningCost>().cloned().or(cost);
        let refused_inside = extensions.get::<Refused>().is_some();
        self.at_end = match response.status().as_u16() {
            _ if refused_inside => Outcome::Error,
            429 | 503 | 504 => Outcome::Overload,
            500.. => Outcome::Error,
            _ => Outcome::Success,
        };
    }

    /// The body has ended.
    pub(super) fn end(&mut self, is_whole: bool) {
        self.outcome = if is_whole { self.at_end } else { Outcome::Error };
    }
}

const POLLED_AGAIN: &str = "a future is not polled again once it is ready";

impl<I, B, R> fmt::Debug for ResponseFuture<I, B, R>
where
    I: Service<Request<B>>,
    I::Response: HttpResponse,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match &self.state {
            State::Waiting { .. } => "ResponseFuture(waiting)",
            State::Starting { .. } => "ResponseFuture(starting)",
            State::Running { .. } => "ResponseFuture(running)",
            State::Shed { .. } => "ResponseFuture(shed)",
        })
    }
}
