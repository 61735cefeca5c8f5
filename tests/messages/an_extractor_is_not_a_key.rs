//! is not a key of these requests
//! = note: `Path`, `Query`, `Host` and `Extension` of axum are extractors: import those of `key`

use axum::Router;
use axum::extract::Path;
use sluicegate_axum::{Limit, RateLimitLayer};

fn main() {
    let limit = Limit::per_minute(1).by(Path::<String>);
    let _: Router = Router::new().layer(RateLimitLayer::new(limit));
}
