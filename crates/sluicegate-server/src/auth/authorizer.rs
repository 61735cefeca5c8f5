use std::convert::Infallible;
use std::future::{Ready, ready};
use std::net::{IpAddr, SocketAddr};
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use axum::extract::ConnectInfo;
use axum::http::{Extensions, HeaderName, HeaderValue, Request, Response};
use sluicegate::adapter::{Enforcer, Framework, FrameworkBody, LayerSettings, Peer};
use sluicegate::key::Proxies;
use sluicegate::response::{Body as Limited, Degraded, Problem};
use sluicegate::service::RateLimitFor;
use sluicegate::store::BoxStore;
use tower_service::Service as _;

use crate::charge::Rules;

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
    limited: RateLimitFor<Allow, Rules, BoxStore, Asked, Problem>,
    proxies: Proxies,
}

impl Authorizer {
    /// Decides by `rules`, with the rest of how a service decides from `set`.
    pub(crate) fn new(
        rules: Rules,
        store: &BoxStore,
        proxies: Proxies,
        set: impl FnOnce(&mut Enforcer<BoxStore>),
    ) -> Self {
        let rejection = rules.live().rejection();
        let settings = LayerSettings::new(rules, Problem).store(store.clone());
        let settings = settings.with(|enforcer| {
            enforcer.gate = enforcer.gate.with(rejection);
            set(enforcer);
        });
        Self { limited: settings.service(Allow), proxies }
    }

    /// Decides about a request that a client has sent to a proxy. [`Peer`] in its extensions is the client's address as
    /// the proxy sees it.
    ///
    /// The answer is 200, or what the client gets instead.
    pub async fn decide(&self, request: Request<()>) -> Response<Body> {
        let mut limited = self.limited.clone();
        match limited.call(request).await {
            Ok(response) => response.map(Body::new),
            Err(never) => match never {},
        }
    }

    /// Whether a connection is one of a named proxy.
    pub(super) fn believes(&self, extensions: &Extensions) -> bool {
        let peer = extensions.get::<ConnectInfo<SocketAddr>>();
        peer.is_some_and(|ConnectInfo(peer)| self.proxies.contains(peer.ip()))
    }
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
pub(super) struct Asked;

impl Framework for Asked {
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

impl<B> FrameworkBody<B> for Asked
where
    B: axum::body::HttpBody<Data = Bytes> + Send + 'static,
{
    type Body = Limited<B>;

    fn body(body: Limited<B>) -> Limited<B> {
        body
    }
}
