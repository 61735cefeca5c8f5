//! error[E0277]: `&str` is not a condition on these requests
//! = note: keys make conditions: `Path.matches("/login")`, `Method.is("POST")`, `Header("x").equals("y")`

use axum::Router;
use sluicegate_axum::{Ip, Limit, RateLimitLayer};

fn main() {
    let limit = Limit::per_minute(1).by(Ip::peer()).when("/login");
    let _: Router = Router::new().layer(RateLimitLayer::new(limit));
}
