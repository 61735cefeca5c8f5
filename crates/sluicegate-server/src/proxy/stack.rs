//! The estimate of tokens where a rule counts them, the limits, then the throttle, then the application.

use std::convert::Infallible;
use std::future::ready;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use crate::run::Upload;
use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use http_body_util::{BodyExt, Either};
use sluicegate::RateLimitLayer;
use sluicegate::adapter::HttpView;
use sluicegate::key::KeyBuf;
use sluicegate::observe::Watch;
use sluicegate::service::RateLimit;
use sluicegate::store::BoxStore;
use sluicegate_config::proxy::Listen;
use sluicegate_config::{FileThrottleLayer, Live};
use sluicegate_llm::tower::ReadBody;
use sluicegate_llm::{Dialect, Estimate, EstimateLayer};
use tower::{Layer, Service, ServiceExt};

use crate::proxy::forward::Forward;
use crate::proxy::problem::no_room;
use crate::proxy::request_body::{BufferedBody, ComingBody, RequestBody};
use crate::proxy::response_body::{BoxError, StackBody};
use crate::proxy::room::{BodyPermit, Room};

type Limited<I> = RateLimit<I, Live, BoxStore, Option<Dialect>>;
type Throttled = <FileThrottleLayer as Layer<Forward>>::Service;

/// What a request passes. Clones share all of it.
#[derive(Clone)]
pub(crate) struct Stack {
    limits: Limits,
    estimate: EstimateLayer,
    room: Room,
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
        let room = Room::new(listen.body);
        Self { limits, estimate, room, read_timeout: listen.read_timeout, live: live.clone() }
    }

    pub(crate) async fn call(
        self,
        request: Request<Upload>,
    ) -> Result<Response<StackBody>, Infallible> {
        let Self { limits, estimate, room, read_timeout, live } = self;
        let policies = live.policies();
        let view = HttpView::<_>::new(&request);
        let counts_tokens = policies.counts_tokens_of(&view);
        let kept = counts_tokens.then(|| {
            // The proxy knows the peer of each request.
            room.begin(KeyBuf::from_view(policies.ip(), &view).unwrap_or_default())
        });
        let mut request = request.map(|body| ComingBody::new(body, read_timeout, live));
        if let Some(kept) = kept {
            request.extensions_mut().insert(Arc::clone(&kept));
            request = request.map(|body| body.kept(kept));
        }
        match (limits, counts_tokens) {
            (Limits::Limited(service), false) => boxed(service, request.map(Either::Left)).await,
            (Limits::Throttled(service), false) => boxed(service, request.map(Either::Left)).await,
            (Limits::Limited(service), true) => boxed(estimate.layer(Read(service)), request).await,
            (Limits::Throttled(service), true) => {
                boxed(estimate.layer(Read(service)), request).await
            }
        }
    }
}

/// The limits, for requests whose bodies were read.
#[derive(Clone)]
struct Read<I>(I);

impl<I, B> Service<Request<ReadBody<ComingBody>>> for Read<I>
where
    I: Service<Request<RequestBody>, Response = Response<B>, Error = Infallible, Future: Send>
        + Clone
        + Send
        + 'static,
    B: Body<Data = Bytes, Error = BoxError> + Send + 'static,
{
    type Response = Response<StackBody>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<StackBody>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        // Asked when it is called.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<ReadBody<ComingBody>>) -> Self::Future {
        let kept = request.extensions_mut().remove::<Arc<BodyPermit>>();
        match kept.filter(|kept| !kept.is_refused()) {
            Some(kept) => {
                let request = request.map(|body| Either::Right(BufferedBody { body, kept }));
                Box::pin(boxed(self.0.clone(), request))
            }
            // A part of it has come. Neither the limits nor the application see that.
            None => {
                let answer = no_room().map(|body| body.map_err(|no| match no {}).boxed_unsync());
                Box::pin(ready(Ok(answer)))
            }
        }
    }
}

async fn boxed<I, Q, B>(service: I, request: Q) -> Result<Response<StackBody>, Infallible>
where
    I: Service<Q, Response = Response<B>, Error = Infallible>,
    B: Body<Data = Bytes, Error = BoxError> + Send + 'static,
{
    service.oneshot(request).await.map(|response| response.map(BodyExt::boxed_unsync))
}
