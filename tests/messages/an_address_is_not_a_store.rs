//! error[E0277]: `str` is not a store
//! = note: a store is `Memory::new()`, `sluicegate_redis::Redis::connect("redis://..")?` or `Fallback(first, second)`

use axum::Router;
use sluicegate_axum::{Ip, Limit, RateLimitLayer};

fn main() {
    let limit = Limit::per_minute(1).by(Ip::peer());
    let _: Router = Router::new().layer(RateLimitLayer::new(limit).store("redis://localhost"));
}
