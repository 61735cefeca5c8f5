//! axum behind the throttle, and behind tower's own layers, while nothing waits.

use std::time::Duration;

use axum::Router;
use axum::error_handling::HandleErrorLayer;
use http::StatusCode;
use sluicegate_throttle::Throttle;
use sluicegate_throttle::layer::ThrottleBuilder;
use tower::limit::ConcurrencyLimitLayer;
use tower::load_shed::LoadShedLayer;
use tower::{BoxError, ServiceBuilder};

use super::axum::{app, hello, identity};
use super::{App, Budget};

/// Where the baseline stands among [`served`].
pub const IDENTITY: usize = 1;

const ONE: u32 = 1;

/// Services whose every request is let through.
///
/// # Panics
///
/// Never: the settings work.
pub fn served() -> Vec<App> {
    let app = |name, router| app(name, Budget::Plenty, ONE, router);
    let answer = async |_: BoxError| StatusCode::SERVICE_UNAVAILABLE;
    let shed = ServiceBuilder::new()
        .layer(HandleErrorLayer::new(answer))
        .layer(LoadShedLayer::new())
        .layer(ConcurrencyLimitLayer::new(100));
    vec![
        app("axum, no layer", hello()),
        app("axum, a layer that does nothing", hello().layer(identity())),
        app("sluicegate-throttle, in flight", behind(Throttle::builder().in_flight(100))),
        app("tower, `ConcurrencyLimit`", hello().layer(ConcurrencyLimitLayer::new(100))),
        app("tower, `LoadShed` around that", hello().layer(shed)),
    ]
}

fn behind(throttle: ThrottleBuilder) -> Router {
    let throttle = throttle.queue(Duration::from_secs(1)).build().expect("it works");
    hello().layer(throttle.layer())
}
