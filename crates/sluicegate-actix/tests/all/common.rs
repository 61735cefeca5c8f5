//! Shared code of the middleware's tests: an app, requests, and a store with a manual clock.

use std::time::Duration;

use actix_http::Request;
use actix_web::body::{EitherBody, MessageBody};
use actix_web::dev::{Service, ServiceResponse};
use actix_web::test::{self, TestRequest};
use actix_web::{App, Error, HttpMessage, HttpRequest, HttpResponse, web};
use sluicegate_actix::adapter::RequestView;
use sluicegate_actix::response::{Body, Degraded};
use sluicegate_actix::rule::Rule;
use sluicegate_actix::store::Store;
use sluicegate_actix::{Header, ManualClock, Memory, RateLimit};

pub(crate) const CLIENT: Header = Header("x-client");

pub(crate) type Answer = ServiceResponse<EitherBody<Body<actix_web::body::BoxBody>>>;

/// A store on a clock that the test turns.
pub(crate) fn store() -> (Memory, ManualClock) {
    let clock = ManualClock::new();
    (Memory::builder().capacity(1_000).clock(&clock).build(), clock)
}

/// `limit` around an app whose every path is answered by [`handler`].
pub(crate) async fn app<R, S>(
    limit: RateLimit<R, S>,
) -> impl Service<Request, Response = Answer, Error = Error>
where
    R: for<'a> Rule<RequestView<'a>> + Clone + 'static,
    S: Store + Clone + 'static,
{
    test::init_service(App::new().wrap(limit).default_service(web::to(handler))).await
}

/// Answers 200, or the status that the path names; the body says how the request was marked.
pub(crate) async fn handler(request: HttpRequest) -> HttpResponse {
    let status = request.path().trim_start_matches('/').parse().unwrap_or(200_u16);
    let degraded = request.extensions().contains::<Degraded>();
    HttpResponse::build(status.try_into().unwrap()).body(if degraded { "less" } else { "all" })
}

/// A request of `client`.
pub(crate) fn get(path: &str, client: &str) -> Request {
    TestRequest::get().uri(path).insert_header(("x-client", client)).to_request()
}

/// Sends a request and waits for the response.
pub(crate) async fn send<A, B>(app: &A, path: &str, client: &str) -> ServiceResponse<B>
where
    A: Service<Request, Response = ServiceResponse<B>, Error = Error>,
{
    test::call_service(app, get(path, client)).await
}

/// The statuses that `count` requests in a row are answered with.
pub(crate) async fn statuses<A, B>(app: &A, path: &str, count: usize) -> Vec<u16>
where
    A: Service<Request, Response = ServiceResponse<B>, Error = Error>,
{
    let mut statuses = Vec::new();
    for _ in 0..count {
        statuses.push(send(app, path, "alice").await.status().as_u16());
    }
    statuses
}

/// The header field `name`, as text.
pub(crate) fn header<'a, B>(response: &'a ServiceResponse<B>, name: &str) -> &'a str {
    response.headers().get(name).map_or("", |value| value.to_str().unwrap())
}

pub(crate) async fn body<B: MessageBody>(response: ServiceResponse<B>) -> String {
    String::from_utf8(test::read_body(response).await.to_vec()).unwrap()
}

pub(crate) const fn secs(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}
