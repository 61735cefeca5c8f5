//! error[E0277]: `Limit` is not a rule
//! = note: a limit becomes a rule by a key: `limit.by(Ip::peer())`, `limit.by(Header("x-api-key"))`

use axum::Router;
use sluicegate_axum::{Limit, RateLimitLayer};

fn main() {
    let _: Router = Router::new().layer(RateLimitLayer::new(Limit::per_minute(1)));
}
