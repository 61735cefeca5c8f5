//! The limits, then the throttle, then the application.

use std::convert::Infallible;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::Incoming;
use sluicegate::RateLimitLayer;
use sluicegate::response::Dialect;
use sluicegate::service::RateLimit;
use sluicegate::store::BoxStore;
use sluicegate_config::{FileThrottleLayer, Live};
use tower::{Layer, ServiceExt};

use crate::forward::Forward;

/// The body of a response that has passed everything.
pub(crate) type StackBody = UnsyncBoxBody<Bytes, hyper::Error>;

type Limited<I> = RateLimit<I, Live, BoxStore, Option<Dialect>>;
type Throttled = <FileThrottleLayer as Layer<Forward>>::Service;

/// What a request passes. Clones share all of it.
#[derive(Clone)]
pub(crate) enum Stack {
    Limited(Limited<Forward>),
    Throttled(Limited<Throttled>),
}

impl Stack {
    pub(crate) fn new(live: &Live, store: BoxStore, forward: Forward) -> Self {
        let limits = RateLimitLayer::new(live.clone())
            .store(store)
            .rejection(live.rejection())
            .hold_until(live.hold_until())
            .dialect(live.dialect())
            .respond(live.dialect());
        match live.throttle() {
            None => Self::Limited(limits.layer(forward)),
            Some(throttle) => Self::Throttled(limits.layer(throttle.layer().layer(forward))),
        }
    }

    pub(crate) async fn call(
        self,
        request: Request<Incoming>,
    ) -> Result<Response<StackBody>, Infallible> {
        match self {
            Self::Limited(service) => {
                service.oneshot(request).await.map(|response| response.map(BodyExt::boxed_unsync))
            }
            Self::Throttled(service) => {
                service.oneshot(request).await.map(|response| response.map(BodyExt::boxed_unsync))
            }
        }
    }
}
