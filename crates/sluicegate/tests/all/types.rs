//! Types can be named, any body works, and errors are the inner service's.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::{Request, Response};
use sluicegate::adapter::{HttpView, Plain, Refusal};
use sluicegate::limit::Limits;
use sluicegate::response::{Bare, Body, RespondFn};
use sluicegate::rule::{By, Rule};
use sluicegate::service::{BoxRateLimitLayer, RateLimit, ResponseFuture};
use sluicegate::{Global, Header, Ip, Limit, Memory, RateLimitLayer};
use tower::{Layer, Service, ServiceExt};

type Key = (Header, Ip);

/// Everything that the layer makes has a name that a struct can hold.
struct Named<I: Service<Request<String>, Response = Response<String>>> {
    layer: RateLimitLayer<By<Key>>,
    service: RateLimit<I, By<Key>>,
    future: Option<ResponseFuture<I, String, Memory, sluicegate::response::Problem>>,
}

#[derive(Clone, Copy)]
struct Inner;

impl Service<Request<String>> for Inner {
    type Response = Response<String>;
    type Error = Infallible;
    type Future = std::future::Ready<Result<Response<String>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<String>) -> Self::Future {
        std::future::ready(Ok(Response::new(String::new())))
    }
}

#[tokio::test]
async fn layer_service_and_future_can_be_named() {
    let limits = Limits::from(Limit::per_minute(1));
    let layer: RateLimitLayer<By<Key>> =
        RateLimitLayer::new(limits.by((Header("x-client"), Ip::peer())));
    let service = layer.layer(Inner);
    let mut named = Named { layer, service, future: None };
    let request = Request::get("/").body(String::new()).unwrap();
    named.future = Some(named.service.ready().await.unwrap().call(request));
    let response = named.future.take().unwrap().await.unwrap();
    assert_eq!(response.status(), 400);
    assert_eq!(named.layer.counts().keyless, 1);
}

/// A body that is made of nothing and turns into nothing.
struct Opaque(#[expect(dead_code, reason = "it is opaque")] Pin<Box<dyn Send>>);

fn opaque() -> Opaque {
    Opaque(Box::pin(()))
}

struct Empty;

#[tokio::test]
async fn any_request_and_response_body_passes() {
    // By default, and with every responder: none has to make a body of that type.
    let layer = RateLimitLayer::new(Limit::per_minute(1).by(Header("x-client")));
    let handler = |_: Request<Opaque>| async { Ok::<_, Infallible>(Response::new(Empty)) };
    let service = layer.clone().layer(tower::service_fn(handler));
    let own = |refusal: &Refusal, _: &Request<Opaque>| {
        Response::builder().status(refusal.status()).body(Body::from_bytes("no")).unwrap()
    };
    let own: RespondFn<_> = RespondFn::new(own);
    let bare = layer.clone().respond(Bare).layer(tower::service_fn(handler));
    assert_eq!(bare.oneshot(Request::new(opaque())).await.unwrap().status(), 400);
    let own = layer.respond(own).layer(tower::service_fn(handler));
    assert_eq!(own.oneshot(Request::new(opaque())).await.unwrap().status(), 400);
    let request = || Request::get("/").header("x-client", "alice").body(opaque()).unwrap();
    assert_eq!(service.clone().oneshot(request()).await.unwrap().status(), 200);
    assert_eq!(service.clone().oneshot(request()).await.unwrap().status(), 429);
}

#[derive(Debug, PartialEq)]
struct OwnError;

#[tokio::test]
async fn the_error_is_the_inner_services_own() {
    let layer = RateLimitLayer::new(Limit::per_minute(9).by(sluicegate::Global));
    let service = layer.layer(tower::service_fn(|_: Request<String>| async {
        Err::<Response<String>, _>(OwnError)
    }));
    let failed: Result<_, OwnError> = service.oneshot(Request::new(String::new())).await;
    assert_eq!(failed.unwrap_err(), OwnError);
}

/// A rule can be boxed into a struct by its trait bounds alone, for any body.
fn is_a_rule<B, R: for<'a> Rule<HttpView<'a, B, Plain>>>(_: &R) {}

#[test]
fn rules_do_not_depend_on_the_body() {
    let rule = (Limit::per_minute(1).by(Ip::peer()), Limit::per_day(9).by(sluicegate::key::Path));
    is_a_rule::<String, _>(&rule);
    is_a_rule::<Opaque, _>(&rule);
    let chosen = sluicegate::rule::choose(|request: &Request<String>| match request.uri().path() {
        "/dear" => Limit::per_minute(1),
        _ => Limit::per_minute(100),
    });
    is_a_rule::<String, _>(&chosen.by(sluicegate::key::from_fn(|request: &Request<String>| {
        Some(request.uri().path().len())
    })));
}

fn assert_send<T: Send>() {}
fn assert_sync<T: Sync>() {}

#[test]
fn what_has_to_cross_threads_can() {
    assert_send::<RateLimitLayer<By<Key>>>();
    assert_sync::<RateLimitLayer<By<Key>>>();
    assert_send::<RateLimit<Inner, By<Key>>>();
    assert_send::<ResponseFuture<Inner, String, Memory, sluicegate::response::Problem>>();
    assert_send::<sluicegate::service::Acquire<Memory>>();
}

/// A layer that a struct holds, that a function returns and that is chosen at run time.
struct Chosen {
    layer: BoxRateLimitLayer<String, String>,
}

fn chosen(by_key: bool) -> Chosen {
    let limit = Limit::per_minute(1);
    let layer = match by_key {
        true => RateLimitLayer::new(limit.by(Header("x-api-key"))).respond(Bare).boxed(),
        false => RateLimitLayer::new(limit.by(Global)).store(Arc::new(Memory::new())).boxed(),
    };
    Chosen { layer }
}

#[tokio::test]
async fn a_boxed_layer_has_one_type_whatever_its_rule_store_and_responder_are() {
    fn is_shared<T: Clone + Send + Sync + 'static>(_: &T) {}

    for (by_key, expected) in [(true, [200, 200, 429]), (false, [200, 429, 429])] {
        let Chosen { layer } = chosen(by_key);
        is_shared(&layer);
        let service = layer.layer(Inner);
        is_shared(&service);
        let mut statuses = Vec::new();
        for key in ["alice", "bob", "alice"] {
            let request = Request::builder().header("x-api-key", key).body(String::new());
            let response = service.clone().oneshot(request.unwrap()).await.unwrap();
            statuses.push(response.status().as_u16());
        }
        assert_eq!(statuses, expected);
    }
}

/// The compiler proves that a spawned future is `Send` for every lifetime of the name in `Header`, not only for
/// `'static`. So nothing that a future holds may ask for more.
#[tokio::test]
async fn what_is_spawned_may_hold_a_layer_by_the_name_of_a_header() {
    let rule = Limit::per_minute(1).by((Header("x-client"), sluicegate::Claim("plan")));
    let rule = rule.when(sluicegate::key::Cookie("session").is_present());
    let plain = RateLimitLayer::new(rule).layer(Inner);
    let spawned = tokio::spawn(async move {
        let service = plain.clone();
        service.oneshot(Request::new(String::new())).await.unwrap().status()
    });
    assert_eq!(spawned.await.unwrap(), 200);

    let layer = RateLimitLayer::new(Limit::per_minute(1).by(Header("x-client")));
    let service = tower::ServiceBuilder::new().buffer(8).layer(layer).buffer(8).service(Inner);
    let spawned = tokio::spawn(async move {
        let mut statuses = Vec::new();
        for _ in 0..2 {
            let request = Request::get("/").header("x-client", "alice").body(String::new());
            let response = service.clone().oneshot(request.unwrap()).await.unwrap();
            statuses.push(response.status().as_u16());
        }
        statuses
    });
    assert_eq!(spawned.await.unwrap(), [200, 429]);
}
