//! The estimate of tokens where a rule counts them, the limits, then the throttle, then the application.

use std::convert::Infallible;
use std::time::Duration;

use crate::run::Upload;
use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use http_body_util::{BodyExt, Either};
use sluicegate::RateLimitLayer;
use sluicegate::adapter::HttpView;
use sluicegate::observe::Watch;
use sluicegate::service::RateLimit;
use sluicegate::store::BoxStore;
use sluicegate_config::proxy::Listen;
use sluicegate_config::{FileThrottleLayer, Live};
use sluicegate_llm::tower::ReadBody;
use sluicegate_llm::{Dialect, Estimate, EstimateLayer};
use tower::util::MapRequest;
use tower::{Layer, Service, ServiceExt};

use crate::proxy::forward::Forward;
use crate::proxy::request_body::{ComingBody, RequestBody};
use crate::proxy::response_body::{BoxError, StackBody};

type Limited<I> = RateLimit<I, Live, BoxStore, Option<Dialect>>;
type Throttled = <FileThrottleLayer as Layer<Forward>>::Service;

/// What a request passes. Clones share all of it.
#[derive(Clone)]
pub(crate) struct Stack {
    limits: Limits,
    estimate: EstimateLayer,
    read_timeout: Duration,
    live: Live,
}

#[derive(Clone)]
enum Limits {
    Limited(Limited<Forward>),
    Throttled(Limited<Throttled>),
}

impl Stack {
    pub(crate) fn new(
        live: &Live,
        store: BoxStore,
        watch: Option<&Watch>,
        listen: &Listen,
        forward: Forward,
    ) -> Self {
        let layer = RateLimitLayer::new(live.clone())
            .store(store)
            .rejection(live.rejection())
            .hold_until(live.hold_until())
            .dialect(live.dialect())
            .respond(live.dialect());
        let layer = match watch {
            Some(watch) => layer.watch(watch),
            None => layer,
        };
        let limits = match live.throttle() {
            None => Limits::Limited(layer.layer(forward)),
            Some(throttle) => Limits::Throttled(layer.layer(throttle.layer().layer(forward))),
        };
        let estimate = EstimateLayer::new(Estimate::new());
        let estimate = estimate.at_most(listen.body).dialect(live.dialect().as_ref());
        Self { limits, estimate, read_timeout: listen.read_timeout, live: live.clone() }
    }

    pub(crate) async fn call(
        self,
        request: Request<Upload>,
    ) -> Result<Response<StackBody>, Infallible> {
        let Self { limits, estimate, read_timeout, live } = self;
        let counts_tokens = live.policies().counts_tokens_of(&HttpView::<_>::new(&request));
        let request = request.map(|body| ComingBody::new(body, read_timeout, live));
        match (limits, counts_tokens) {
            (Limits::Limited(service), false) => boxed(service, request.map(Either::Left)).await,
            (Limits::Throttled(service), false) => boxed(service, request.map(Either::Left)).await,
            (Limits::Limited(service), true) => boxed(estimate.layer(read(service)), request).await,
            (Limits::Throttled(service), true) => {
                boxed(estimate.layer(read(service)), request).await
            }
        }
    }
}

type WithReadBody = fn(Request<ReadBody<ComingBody>>) -> Request<RequestBody>;

/// The service for requests whose bodies were read.
fn read<I>(service: I) -> MapRequest<I, WithReadBody>
where
    I: Service<Request<RequestBody>>,
{
    MapRequest::new(service, |request| request.map(Either::Right))
}

async fn boxed<I, Q, B>(service: I, request: Q) -> Result<Response<StackBody>, Infallible>
where
    I: Service<Q, Response = Response<B>, Error = Infallible>,
    B: Body<Data = Bytes, Error = BoxError> + Send + 'static,
{
    service.oneshot(request).await.map(|response| response.map(BodyExt::boxed_unsync))
}
