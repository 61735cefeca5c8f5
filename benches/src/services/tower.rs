//! tower without a framework: a service that is a function, and one limit for all clients, because tower's own layer
//! has no keys.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::task::{Context, Poll, Waker};

use axum::body::Body;
use http::{Request, Response};
use sluicegate::{Fields, Global, RateLimitLayer};
use tower::layer::Layer;
use tower::limit::RateLimitLayer as TowersOwn;
use tower::util::MapRequestLayer;
use tower::{Service, service_fn};

use super::{App, Budget, now, rivals};

/// Notes for readers of the table.
pub const NOTES: &str = "\
tower's own layer and tower-resilience know no other limit than one for everybody. tower's own service
cannot be cloned: connections that share it need a `Buffer` around it, which is not in here.";

/// The index of the baseline in [`served`].
pub const IDENTITY: usize = 1;

/// Services that admit every request. tower's own layer does not refuse: it makes requests wait.
pub fn served() -> Vec<App> {
    let budget = Budget::Plenty;
    let sluicegate = || RateLimitLayer::new(budget.limit().by(Global));
    let towers_own = TowersOwn::new(budget.burst().into(), budget.period());
    vec![
        app("a function, no layer", hello()),
        app("a layer that does nothing", MapRequestLayer::new(same).layer(hello())),
        app("tower's own `RateLimit`", towers_own.layer(hello())),
        app("tower-resilience", rivals::tower_resilience(budget).layer(hello())),
        app("tower_governor", rivals::tower_governor_for_all(budget).layer(hello())),
        app(
            "sluicegate, no fields, no extensions",
            sluicegate().fields(Fields::NONE).extensions(false).layer(hello()),
        ),
        app("sluicegate, as it comes", sluicegate().layer(hello())),
    ]
}

pub(super) fn hello()
-> impl Service<Request<Body>, Response = Response<Body>, Error = Infallible, Future: Send + 'static>
+ Clone
+ Send
+ 'static {
    service_fn(async |_: Request<Body>| Ok(Response::new(Body::from("hello"))))
}

fn same(request: Request<Body>) -> Request<Body> {
    request
}

fn app<S, B>(name: &'static str, service: S) -> App
where
    S: Service<Request<Body>, Response = Response<B>> + 'static,
{
    called(name, service, || Request::new(Body::empty()))
}

/// A service that is called with the requests that `request` makes.
pub(super) fn called<S, B>(
    name: &'static str,
    mut service: S,
    request: impl Fn() -> Request<Body> + 'static,
) -> App
where
    S: Service<Request<Body>, Response = Response<B>> + 'static,
{
    App::new(name, Budget::Plenty, 1, move |_: SocketAddr| {
        let ready = service.poll_ready(&mut Context::from_waker(Waker::noop()));
        assert!(matches!(ready, Poll::Ready(Ok(()))), "{name} is not ready");
        let response = now(service.call(request()));
        response.map_or(500, |response| response.status().as_u16())
    })
}
