//! A server of each framework, all with the same handlers.

use std::fmt::Debug;
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use actix_web::body::MessageBody;
use actix_web::dev::Service as _;
use actix_web::test::TestRequest;
use actix_web::{App, HttpMessage, HttpRequest, HttpResponse, web};
use axum::extract::ConnectInfo;
use bytes::Bytes;
use http::{Request, Response};
use sluicegate::Memory;
use sluicegate::adapter::{HttpView, LeaveDecision, MatchedRoute, Peer, Plain, Refused};
use sluicegate::response::Degraded;
use sluicegate::rule::Rule;
use sluicegate_actix::adapter::RequestView;
use sluicegate_throttle::ThrottleLayer;
use sluicegate_throttle::layer::{Describe, Guard, Servers};
use tower::{Layer, Service};

use crate::parity::client::{Answer, Asked, Client};
use crate::parity::handlers::Handlers;

/// What a layer of every framework can be made of.
pub(crate) trait Anywhere:
    for<'a> Describe<HttpView<'a, axum::body::Body, Servers>>
    + for<'a> Describe<RequestView<'a>>
    + Clone
    + Send
    + Sync
    + 'static
{
}

impl<R> Anywhere for R where
    R: for<'a> Describe<HttpView<'a, axum::body::Body, Servers>>
        + for<'a> Describe<RequestView<'a>>
        + Clone
        + Send
        + Sync
        + 'static
{
}

/// A rule for limits of every framework.
pub(crate) trait Rules:
    for<'a> Rule<HttpView<'a, axum::body::Body, Plain>>
    + for<'a> Rule<HttpView<'a, axum::body::Body, sluicegate_axum::adapter::Axum>>
    + for<'a> Rule<RequestView<'a>>
    + Clone
    + Send
    + Sync
    + 'static
{
}

impl<R> Rules for R where
    R: for<'a> Rule<HttpView<'a, axum::body::Body, Plain>>
        + for<'a> Rule<HttpView<'a, axum::body::Body, sluicegate_axum::adapter::Axum>>
        + for<'a> Rule<RequestView<'a>>
        + Clone
        + Send
        + Sync
        + 'static
{
}

pub(crate) trait Server {
    /// Serves `/{page}` behind a throttle.
    async fn serve(&self, layer: ThrottleLayer<impl Anywhere>, handlers: &Handlers) -> Client;

    /// Serves `/{page}` behind limits and a throttle.
    async fn guard(
        &self,
        rule: impl Rules,
        leave: LeaveDecision,
        store: Memory,
        layer: ThrottleLayer<impl Anywhere>,
        handlers: &Handlers,
    ) -> Client;
}

pub(crate) struct Tower;
pub(crate) struct Axum;
pub(crate) struct Actix;

async fn respond(
    handlers: Handlers,
    request: Request<axum::body::Body>,
) -> Response<axum::body::Body> {
    let is_less = request.extensions().get::<Degraded>().is_some();
    let path = request.uri().path().to_owned();
    let (reply, frames) = handlers.handle(path, is_less).await;
    let mut response = Response::new(axum::body::Body::new(frames));
    *response.status_mut() = reply.status.try_into().unwrap();
    reply.cost.map(|cost| response.extensions_mut().insert(cost));
    reply.hold_until.map(|hold| response.extensions_mut().insert(hold));
    let cache_control = reply.cache_control.map(http::HeaderValue::from_static);
    cache_control.map(|value| response.headers_mut().insert("cache-control", value));
    let grpc_status = reply.grpc_status.map(http::HeaderValue::from_static);
    grpc_status.map(|value| response.headers_mut().insert("grpc-status", value));
    response
}

/// A client of a service of tower. `mark` leaves in requests what a server would.
fn client<S, B>(
    service: S,
    mark: impl Fn(&mut Request<axum::body::Body>, &Asked) + 'static,
) -> Client
where
    S: Service<Request<axum::body::Body>, Response = Response<B>> + Clone + 'static,
    S::Error: Debug,
    B: http_body::Body<Data = Bytes, Error: Debug> + 'static,
{
    Client::new(move |asked| {
        let mut service = service.clone();
        let mut request = Request::get(asked.path).body(axum::body::Body::empty()).unwrap();
        for (name, value) in &asked.headers {
            let value = http::HeaderValue::from_bytes(value).unwrap();
            request.headers_mut().append(*name, value);
        }
        mark(&mut request, &asked);
        Box::pin(async move {
            std::future::poll_fn(|cx| service.poll_ready(cx)).await.unwrap();
            answer_of(service.call(request).await.unwrap())
        })
    })
}

fn answer_of<B>(response: Response<B>) -> Answer
where
    B: http_body::Body<Data = Bytes, Error: Debug> + 'static,
{
    let header = |(name, value): (&http::HeaderName, &http::HeaderValue)| {
        (name.to_string(), value.to_str().unwrap().to_owned())
    };
    let headers = response.headers().iter().map(header).collect();
    let is_refused = response.extensions().get::<Refused>().is_some();
    let status = response.status().as_u16();
    let mut body = Box::pin(response.into_body());
    let body = move || {
        let mut cx = Context::from_waker(Waker::noop());
        match body.as_mut().poll_frame(&mut cx) {
            Poll::Ready(frame) => frame.map(|frame| frame.unwrap().into_data().unwrap()),
            Poll::Pending => panic!("the body waits"),
        }
    };
    Answer { status, headers, is_refused, body: Box::new(body) }
}

fn plain(request: &mut Request<axum::body::Body>, asked: &Asked) {
    request.extensions_mut().insert(Peer(asked.peer));
    request.extensions_mut().insert(MatchedRoute("/{page}".into()));
}

fn connected(request: &mut Request<axum::body::Body>, asked: &Asked) {
    request.extensions_mut().insert(ConnectInfo(SocketAddr::new(asked.peer, 50_000)));
}

/// The frameworks' types differ; what is said to them does not.
macro_rules! tower {
    ($layer:expr, $handlers:expr) => {{
        let handlers = $handlers.clone();
        let handler = tower::service_fn(move |request| {
            let handlers = handlers.clone();
            async move { Ok::<_, std::convert::Infallible>(respond(handlers, request).await) }
        });
        client($layer.layer(handler), plain)
    }};
}

macro_rules! axum {
    ($layer:expr, $handlers:expr) => {{
        let handlers = $handlers.clone();
        let handler = axum::routing::any(move |request| respond(handlers.clone(), request));
        let app: axum::Router = axum::Router::new().route("/{page}", handler).layer($layer);
        client(app, connected)
    }};
}

macro_rules! actix {
    ($layer:expr, $handlers:expr) => {{
        let handlers = $handlers.clone();
        let handler = move |request: HttpRequest| respond_actix(handlers.clone(), request);
        let app = App::new().route("/{page}", web::to(handler)).wrap($layer);
        let app = Rc::new(actix_web::test::init_service(app).await);
        Client::new(move |asked| {
            let mut request =
                TestRequest::with_uri(asked.path).peer_addr(SocketAddr::new(asked.peer, 50_000));
            for (name, value) in asked.headers {
                request = request.append_header((name, &value[..]));
            }
            let (app, request) = (Rc::clone(&app), request.to_request());
            Box::pin(async move {
                let response = app.call(request).await.unwrap().into_parts().1;
                actix_answer_of(response)
            })
        })
    }};
}

async fn respond_actix(handlers: Handlers, request: HttpRequest) -> HttpResponse {
    let is_less = request.extensions().contains::<Degraded>();
    let (reply, frames) = handlers.handle(request.path().to_owned(), is_less).await;
    let mut response = HttpResponse::build(reply.status.try_into().unwrap()).body(frames);
    reply.cost.map(|cost| response.extensions_mut().insert(cost));
    reply.hold_until.map(|hold| response.extensions_mut().insert(hold));
    let cache_control = reply.cache_control.map(actix_web::http::header::HeaderValue::from_static);
    cache_control
        .map(|value| response.headers_mut().insert(actix_web::http::header::CACHE_CONTROL, value));
    let grpc_status = reply.grpc_status.map(actix_web::http::header::HeaderValue::from_static);
    let name = actix_web::http::header::HeaderName::from_static("grpc-status");
    grpc_status.map(|value| response.headers_mut().insert(name, value));
    response
}

fn actix_answer_of<B: MessageBody + 'static>(response: HttpResponse<B>) -> Answer {
    let headers = response.headers().iter();
    let header = |(name, value): (
        &actix_web::http::header::HeaderName,
        &actix_web::http::header::HeaderValue,
    )| { (name.to_string(), value.to_str().unwrap().to_owned()) };
    let headers = headers.map(header).collect();
    let is_refused = response.extensions().contains::<Refused>();
    let status = response.status().as_u16();
    let mut body: Pin<Box<dyn MessageBody<Error = _>>> = Box::pin(response.into_body());
    let body = move || {
        let mut cx = Context::from_waker(Waker::noop());
        match body.as_mut().poll_next(&mut cx) {
            Poll::Ready(chunk) => chunk.map(|chunk| chunk.ok().expect("the body failed")),
            Poll::Pending => panic!("the body waits"),
        }
    };
    Answer { status, headers, is_refused, body: Box::new(body) }
}

impl Server for Tower {
    async fn serve(&self, layer: ThrottleLayer<impl Anywhere>, handlers: &Handlers) -> Client {
        tower!(layer, handlers)
    }

    async fn guard(
        &self,
        rule: impl Rules,
        leave: LeaveDecision,
        store: Memory,
        layer: ThrottleLayer<impl Anywhere>,
        handlers: &Handlers,
    ) -> Client {
        let limits = sluicegate::RateLimitLayer::new(rule).store(store);
        let limits = limits.with(|enforcer| enforcer.extensions = leave);
        tower!(Guard::new(limits, layer), handlers)
    }
}

impl Server for Axum {
    async fn serve(&self, layer: ThrottleLayer<impl Anywhere>, handlers: &Handlers) -> Client {
        axum!(layer, handlers)
    }

    async fn guard(
        &self,
        rule: impl Rules,
        leave: LeaveDecision,
        store: Memory,
        layer: ThrottleLayer<impl Anywhere>,
        handlers: &Handlers,
    ) -> Client {
        let limits = sluicegate_axum::RateLimitLayer::new(rule).store(store);
        let limits = limits.with(|enforcer| enforcer.extensions = leave);
        axum!(Guard::new(limits, layer), handlers)
    }
}

impl Server for Actix {
    async fn serve(&self, layer: ThrottleLayer<impl Anywhere>, handlers: &Handlers) -> Client {
        actix!(layer, handlers)
    }

    async fn guard(
        &self,
        rule: impl Rules,
        leave: LeaveDecision,
        store: Memory,
        layer: ThrottleLayer<impl Anywhere>,
        handlers: &Handlers,
    ) -> Client {
        let limits = sluicegate_actix::RateLimit::new(rule).store(store);
        let limits = limits.with(|enforcer| enforcer.extensions = leave);
        actix!(Guard::new(limits, layer), handlers)
    }
}
