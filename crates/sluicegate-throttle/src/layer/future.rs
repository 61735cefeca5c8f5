use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use http::header::CONTENT_LENGTH;
use http::{Method, Request, Response, StatusCode};
use pin_project_lite::pin_project;
use sluicegate::adapter::Upgrade;
use sluicegate_core::adapter::{Refused, note_unserved};
use sluicegate_core::cost::RunningCost;
use sluicegate_core::response::Degraded;
use sluicegate_core::{Cost, Decision};
use tower_service::Service;

use super::admission::Place;
use super::announcing::Announcing;
use super::body::Body;
use super::hold_until::HoldUntil;
use super::in_service::{Head, InService};
use super::refusal::announce;
use super::settings::{Settings, Turn};
use crate::scheduler::Shed;

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
        Starting { in_service: Option<Box<InService>>, forward: Option<Forward<I, B, R>> },
        // The future is dropped before its place is free.
        Running {
            #[pin]
            future: F,
            upgrade: Option<Upgrade>,
            in_service: Option<Box<InService>>,
            hold_until: HoldUntil,
            announcing: Announcing,
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
    #[inline(always)]
    pub(super) fn new(
        turn: Turn,
        service: I,
        request: Request<B>,
        settings: Arc<Settings<R>>,
    ) -> Self {
        Self { state: State::at(turn, Forward { service, request, settings }) }
    }
}

impl<I, B, R, F, ResBody> State<I, B, R, F, ResBody> {
    #[inline(always)]
    fn at(turn: Turn, mut forward: Forward<I, B, R>) -> Self {
        match turn {
            Turn::Start(in_service) => {
                if in_service.as_ref().is_some_and(|it| it.is_less()) {
                    forward.request.extensions_mut().insert(Degraded);
                }
                Self::Starting { in_service, forward: Some(forward) }
            }
            Turn::Wait(place) => Self::Waiting { place, forward: Some(forward) },
            Turn::Refuse(shed) => Self::Shed { response: Some(forward.refused(&shed)) },
        }
    }
}

impl<I, B, R> Forward<I, B, R> {
    #[cold]
    fn refused<ResBody>(self, shed: &Shed) -> Response<Body<ResBody>> {
        let Self { request, settings, .. } = self;
        let mut response = settings.response(shed, || request.into_parts().0);
        response.extensions_mut().insert(Refused);
        response.map(Body::from_bytes)
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
                    State::at(forward.settings.told(told), forward)
                }
                StateProj::Starting { in_service, forward } => {
                    let service = &mut forward.as_mut().expect(POLLED_AGAIN).service;
                    let _passing = in_service.as_deref().map(InService::passing);
                    in_service.iter_mut().for_each(|it| it.resume());
                    let is_ready = service.poll_ready(cx);
                    if !matches!(is_ready, Poll::Ready(Ok(()))) {
                        in_service.iter_mut().for_each(|it| it.pause());
                    }
                    ready!(is_ready)?;
                    let Forward { mut service, mut request, settings } =
                        forward.take().expect(POLLED_AGAIN);
                    // No body is sent in answer to HEAD: servers drop it as it is.
                    let is_head = request.method() == Method::HEAD;
                    let hold_until = if is_head { HoldUntil::Head } else { settings.hold_until };
                    let keeps = hold_until == HoldUntil::Close && in_service.is_some();
                    let upgrade = if keeps { Upgrade::of(&mut request) } else { None };
                    let future = service.call(request);
                    let (in_service, announcing) = (in_service.take(), settings.announcing());
                    State::Running { future, upgrade, in_service, hold_until, announcing }
                }
                StateProj::Running { future, upgrade, in_service, hold_until, announcing } => {
                    let _passing = in_service.as_deref().map(InService::passing);
                    in_service.iter_mut().for_each(|it| it.resume());
                    let result = future.poll(cx);
                    in_service.iter_mut().for_each(|it| it.pause());
                    let result = ready!(result);
                    let in_service = in_service.take();
                    let mut result = result_of(result, in_service, upgrade.take(), *hold_until);
                    if let Ok(response) = &mut result {
                        announce(announcing, response.headers_mut());
                    }
                    return Poll::Ready(result);
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
    in_service: Option<Box<InService>>,
    upgrade: Option<Upgrade>,
    hold_until: HoldUntil,
) -> Result<Response<Body<B>>, E> {
    let Some(mut in_service) = in_service else {
        return result.map(|response| response.map(|body| Body::new(body, None)));
    };
    let response = result.inspect_err(|_| in_service.failed(false))?;
    let upgrade = upgrade.filter(|upgrade| upgrade.is_accepted(response.status()));
    let is_upgrade = upgrade.is_some() || response.status() == StatusCode::SWITCHING_PROTOCOLS;
    let held = in_service.answered(head(&response, is_upgrade), hold_until);
    let held = match upgrade {
        Some(upgrade) => {
            upgrade.keep(held);
            None
        }
        None => held,
    };
    Ok(response.map(|body| Body::new(body, held)))
}

fn head<B: http_body::Body>(response: &Response<B>, is_upgrade: bool) -> Head {
    let extensions = response.extensions();
    let cost = || extensions.get().map(|Cost(cost)| RunningCost::of(*cost));
    Head {
        status: response.status().as_u16(),
        reported: extensions.get().cloned().or_else(cost),
        is_refusal: extensions.get::<Refused>().is_some(),
        hold_until: extensions.get().copied(),
        is_end: response.body().is_end_stream(),
        length: response.body().size_hint().exact().or_else(|| content_length(response)),
        is_upgrade,
    }
}

fn content_length<B>(response: &Response<B>) -> Option<u64> {
    response.headers().get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
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
