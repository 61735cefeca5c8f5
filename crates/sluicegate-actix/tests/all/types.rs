//! Types can be named, any body works, and what has to cross threads can.

use actix_web::body::{EitherBody, MessageBody};
use actix_web::dev::{Service, ServiceRequest, ServiceResponse, Transform};
use actix_web::test::TestRequest;
use actix_web::{Error, HttpResponse, web};
use sluicegate_actix::response::Body;
use sluicegate_actix::rule::By;
use sluicegate_actix::service::{BoxRateLimit, RateLimitService, ResponseFuture};
use sluicegate_actix::{Global, Header, Ip, Limit, Memory, RateLimit};

type Key = (Header, Ip);

/// Everything that the middleware makes has a name that a struct can hold.
struct Named<I: Service<ServiceRequest>> {
    limit: RateLimit<By<Key>>,
    service: RateLimitService<I, By<Key>>,
    future: Option<ResponseFuture<I, Memory>>,
}

#[derive(Debug)]
struct Inner;

/// A body type of the test.
struct Own;

impl MessageBody for Own {
    type Error = std::convert::Infallible;

    fn size(&self) -> actix_web::body::BodySize {
        actix_web::body::BodySize::None
    }

    fn poll_next(
        self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<web::Bytes, Self::Error>>> {
        std::task::Poll::Ready(None)
    }
}

impl Service<ServiceRequest> for Inner {
    type Response = ServiceResponse<Own>;
    type Error = Error;
    type Future = std::future::Ready<Result<ServiceResponse<Own>, Error>>;

    actix_web::dev::always_ready!();

    fn call(&self, request: ServiceRequest) -> Self::Future {
        let response = HttpResponse::Ok().finish().set_body(Own);
        std::future::ready(Ok(ServiceResponse::new(request.into_parts().0, response)))
    }
}

#[actix_web::test]
async fn middleware_service_and_future_can_be_named_and_any_body_passes() {
    let limit: RateLimit<By<Key>> =
        RateLimit::new(Limit::per_minute(1).by((Header("x-client"), Ip::peer())));
    let service = limit.new_transform(Inner).await.unwrap();
    let mut named = Named { limit, service, future: None };
    named.future = Some(named.service.call(TestRequest::default().to_srv_request()));
    let response: ServiceResponse<EitherBody<Body<Own>>> =
        named.future.take().unwrap().await.unwrap();
    assert_eq!(response.status(), 400);
    assert_eq!(named.limit.counts().keyless, 1);
    assert!(format!("{:?}", named.service).contains("Inner"));
}

fn assert_send<T: Send>(_: &T) {}

#[test]
fn a_value_made_outside_of_the_closure_can_go_to_every_worker() {
    let limit = RateLimit::new(Limit::per_minute(1).by(Global))
        .respond_with(|_, _| HttpResponse::TooManyRequests().finish());
    assert_send(&limit);
    assert_send(&move || actix_web::App::new().wrap(limit.clone()));
}

/// Two kinds of rule in one struct, and each of its apps counts together with the others.
#[actix_web::test]
async fn a_boxed_limit_is_one_type_for_every_rule_and_limits_alike() {
    struct Limits([BoxRateLimit; 2]);

    let limit = Limit::per_minute(1);
    let by_header = RateLimit::new(limit.by(Header("x-client"))).boxed();
    let limits = Limits([RateLimit::new(limit.by(Global)).boxed(), by_header]);
    for limit in limits.0 {
        let mut statuses = Vec::new();
        for _ in 0..2 {
            let service = limit.clone().new_transform(Inner).await.unwrap();
            let request = TestRequest::default().insert_header(("x-client", "alice"));
            let response = service.call(request.to_srv_request()).await.unwrap();
            statuses.push(response.status().as_u16());
        }
        assert_eq!(statuses, [200, 429]);
    }
}
