//! The layer with its defaults wraps a service with any type of response body, and refuses with the same text.

use std::convert::Infallible;

use axum::body::{Body, Bytes};
use http::{Request, Response};
use http_body_util::combinators::{BoxBody, UnsyncBoxBody};
use http_body_util::{BodyExt, Either, Empty, Full};
use sluicegate_core::{Global, Limit, Memory};
use tower::{Layer, ServiceExt, service_fn};

/// Sends two requests to a service with a body type. The second is refused, and its answer is checked.
macro_rules! refuses {
    ($($layer:path, $body:expr;)*) => {$({
        let store = Memory::builder().capacity(100).build();
        let layer = <$layer>::new(Limit::per_hour(1).by(Global)).store(store);
        let service = layer.layer(service_fn(|_: Request<Body>| async {
            Ok::<_, Infallible>(Response::new($body))
        }));
        let served = service.clone().oneshot(Request::new(Body::empty())).await.unwrap();
        assert_eq!(served.status(), 200, "{}", stringify!($body));
        let refused = service.oneshot(Request::new(Body::empty())).await.unwrap();
        assert_eq!(refused.status(), 429, "{}", stringify!($body));
        assert_eq!(refused.headers()["content-type"], "application/problem+json");
        let bytes = refused.into_body().collect().await.ok().unwrap().to_bytes();
        let problem = String::from_utf8(bytes.to_vec()).unwrap();
        assert!(problem.contains("quota-exceeded"), "{}: {problem}", stringify!($body));
    })*};
}

type Tower = sluicegate::RateLimitLayer<sluicegate::rule::By<Global>>;
type Axum = sluicegate_axum::RateLimitLayer<sluicegate::rule::By<Global>>;

fn full() -> Full<Bytes> {
    Full::new(Bytes::from("served"))
}

#[tokio::test]
async fn the_default_refusal_fits_any_body() {
    refuses! {
        Tower, String::from("served");
        Tower, full();
        Tower, Empty::<Bytes>::new();
        Tower, BoxBody::new(full());
        Tower, UnsyncBoxBody::new(full());
        Tower, Either::<Full<Bytes>, Empty<Bytes>>::Left(full());
        Tower, Body::from("served");
        Tower, tonic::body::Body::new(full());
        Tower, sluicegate::response::Body::new(full());
        Axum, String::from("served");
        Axum, full();
        Axum, BoxBody::new(full());
        Axum, Body::from("served");
        Axum, tonic::body::Body::new(full());
        Axum, sluicegate::response::Body::new(full());
    }
}
