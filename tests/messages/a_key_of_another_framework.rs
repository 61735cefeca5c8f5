//! error[E0631]: type mismatch in closure arguments
//! expected closure signature `for<'a> fn(&'a axum::http::Request<axum::body::Body>) -> _`

use axum::Router;
use sluicegate_axum::key::from_fn;
use sluicegate_axum::{Limit, RateLimitLayer};

fn main() {
    let path = from_fn(|request: &actix_web::HttpRequest| Some(request.path().to_owned()));
    let limit = Limit::per_minute(1).by(path);
    let _: Router = Router::new().layer(RateLimitLayer::new(limit));
}
