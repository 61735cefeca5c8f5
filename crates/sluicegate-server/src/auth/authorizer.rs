use std::convert::Infallible;
use std::future::{Ready, ready};
use std::net::{IpAddr, SocketAddr};
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody as _};
use axum::extract::ConnectInfo;
use axum::http::{Extensions, HeaderName, HeaderValue, Request, Response};
use sluicegate::adapter::{Framework, FrameworkBody, Peer};
use sluicegate::key::Proxies;
use sluicegate::response::{Body as Limited, Degraded};
use sluicegate::service::{RateLimitFor, RateLimitLayerFor};
use sluicegate::store::BoxStore;
use sluicegate_llm::Dialect;
use tower_layer::Layer as _;
use tower_service::Service as _;

use crate::rules::{Enforcer, Rules, StandingRules};
use crate::status::{Latency, RequestOutcome};

/// The field of an answer that says that the request goes ahead although it exceeds a limit, and that the application
/// should serve less. Proxies can be told to pass it on.
pub static DEGRADED: HeaderName = HeaderName::from_static("sluicegate-degraded");

/// The answer to everybody else.
pub(super) const NOT_NAMED: &str =
    "this address is not one of the proxies that are believed: name it in `--proxies`";

/// Decides about requests that proxies ask about, by the rules of a service: see
/// [`Service::authorizer`](crate::Service::authorizer). Clones are the same
/// authorizer.
#[derive(Clone)]
pub struct Authorizer {
    limited: RateLimitFor<Allow, StandingRules, BoxStore, ProxiedRequest, Option<Dialect>>,
    proxies: Proxies,
    latency: Latency,
}

impl Authorizer {
    /// Decides by `rules`, and otherwise as the service does.
    pub(crate) fn new(
        rules: Rules,
        proxies: Proxies,
        latency: &Latency,
        service: &Enforcer,
    ) -> Self {
        let rejection = rules.live().rejection();
        let dialect = rules.live().dialect();
        let layer = RateLimitLayerFor::<_, _, _, ProxiedRequest>::new(StandingRules(rules))
            .store(service.store.clone())
            .respond(dialect.clone())
            .rejection(rejection)
            .dialect(dialect)
            .with(|enforcer| {
                enforcer.on_store_error = service.on_store_error;
                enforcer.deadline = service.deadline;
                enforcer.observer = service.observer.clone();
            });
        Self { limited: layer.layer(Allow), proxies, latency: latency.clone() }
    }

    /// Decides about a request that a client has sent to a proxy. [`Peer`] in its extensions is the client's address as
    /// the proxy sees it.
    ///
    /// The answer is 200, or what the client gets instead.
    pub(super) async fn decide(&self, request: Request<()>) -> Response<Body> {
        let mut limited = self.limited.clone();
        let begun = self.latency.begin();
        let answered = limited.call(request).await;
        let ended = match &answered {
            Ok(response) => RequestOutcome::of(response.status().as_u16()),
            Err(never) => match *never {},
        };
        self.latency.end(begun, ended);
        match answered {
            // A box is only for a body that is more than its end.
            Ok(response) => response.map(|body| match body.is_end_stream() {
                true => Body::empty(),
                false => Body::new(body),
            }),
            Err(never) => match never {},
        }
    }

    /// Whether this is the address of a named proxy.
    pub(super) fn believes(&self, peer: IpAddr) -> bool {
        self.proxies.contains(peer)
    }
}

/// The address at the other end of the connection that a question came from.
pub(super) fn peer(extensions: &Extensions) -> Option<IpAddr> {
    extensions.get::<ConnectInfo<SocketAddr>>().map(|ConnectInfo(peer)| peer.ip())
}

impl std::fmt::Debug for Authorizer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Authorizer").field("proxies", &self.proxies).finish_non_exhaustive()
    }
}

/// The proxy, which serves what it was told to let through.
#[derive(Debug, Clone, Copy)]
struct Allow;

impl tower_service::Service<Request<()>> for Allow {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Ready<Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<()>) -> Self::Future {
        let mut response = Response::new(Body::empty());
        if request.extensions().get::<Degraded>().is_some() {
            response.headers_mut().insert(&DEGRADED, HeaderValue::from_static("?1"));
        }
        ready(Ok(response))
    }
}

/// What rules see of a request that is asked about.
#[derive(Debug, Clone, Copy)]
pub(super) struct ProxiedRequest;

impl Framework for ProxiedRequest {
    type Respond = Option<Dialect>;

    fn peer(extensions: &Extensions) -> Option<IpAddr> {
        extensions.get::<Peer>().map(|peer| peer.0)
    }

    fn route(_: &Extensions) -> Option<&str> {
        None
    }

    const PEER_HINT: &'static str = "a proxy that asks has to say who its client is: in `X-Forwarded-For`, or in the source of an ext_authz request";

    const ROUTE_HINT: &'static str =
        "a proxy that asks does not tell the routes of the application: use `path` instead";
}

impl<B> FrameworkBody<B> for ProxiedRequest
where
    B: axum::body::HttpBody<Data = Bytes> + Send + 'static,
{
    type Body = Limited<B>;

    fn body(body: Limited<B>) -> Limited<B> {
        body
    }
}
