//! error[E0277]: `&str` is not a key of these requests
//! = note: a header is `Header("name")`, a constant `Const(value)`, a closure `from_fn(..)`

use axum::Router;
use sluicegate_axum::{Limit, RateLimitLayer};

fn main() {
    let limit = Limit::per_minute(1).by("x-api-key");
    let _: Router = Router::new().layer(RateLimitLayer::new(limit));
}
