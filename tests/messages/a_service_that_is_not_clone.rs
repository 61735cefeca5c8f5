//! `NotClone: Clone`
//! help: consider annotating `NotClone` with `#[derive(Clone)]`

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::task::{Context, Poll};

use axum::http::{Request, Response};
use sluicegate_axum::{Global, Limit, RateLimitLayer};
use tower::{Layer, Service};

struct NotClone;

impl Service<Request<String>> for NotClone {
    type Response = Response<String>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<String>) -> Self::Future {
        ready(Ok(Response::new(String::new())))
    }
}

fn main() {
    let layer = RateLimitLayer::new(Limit::per_minute(1).by(Global));
    let _ = layer.layer(NotClone).call(Request::new(String::new()));
}
