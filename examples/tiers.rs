//! Tiers: an API key belongs to a customer, and a table that changes while the service runs says which limits
//! the customer has. All other requests are limited by address.
//!
//!     cargo run --example tiers

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use axum::routing::{get, put};
use sluicegate_axum::key::Claims;
use sluicegate_axum::{Claim, CurrentDecision, First, Ip, Limit, RateLimitLayer, Tiers};

type Keys = Arc<HashMap<&'static str, &'static str>>;

/// The only way from a header to a tier. A made-up API key belongs to no customer. If the header itself were
/// the key of the budget, a new value in each request would be a new budget for each request.
async fn identify(State(keys): State<Keys>, mut request: Request, next: Next) -> Response {
    let key = request.headers().get("x-api-key").and_then(|key| key.to_str().ok());
    let claims = match key.and_then(|key| keys.get(key)) {
        Some(&customer) => Claims::new().with("customer", customer),
        None => Claims::new(),
    };
    request.extensions_mut().insert(claims);
    next.run(request).await
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let keys = Keys::new(HashMap::from([
        ("key-of-fern", "fern"),
        ("key-of-paula", "paula"),
        ("another-key-of-paula", "paula"),
    ]));

    let tiers = Tiers::new("api")
        .tier("anybody", Limit::per_minute(3))
        .tier("free", Limit::per_minute(10))
        .tier("paid", Limit::per_second(50).burst(100))
        .otherwise("anybody");
    tiers.assign_all([("fern", "free"), ("paula", "paid")])?;

    // The name of the customer is the key of the budget, so a second API key makes no second budget.
    let customer = Claim("customer");
    let rule = tiers.by_customer(customer).by(First((customer, Ip::peer())));

    let app = Router::new()
        .route("/", get(hello))
        .layer(RateLimitLayer::new(rule))
        // Added later, so it is further out and runs first.
        .layer(from_fn_with_state(keys, identify))
        // In production, only the operator may do this.
        .route("/customers/{customer}/{tier}", put(assign).with_state(tiers));

    let (listener, url) = sluicegate_examples::listen().await;
    println!(
        "Three a minute for anybody, ten in the free tier, fifty a second and a hundred at once when paid:

    curl -s '{url}/?[1-4]'
    curl -s '{url}/?[1-11]' -H 'x-api-key: key-of-fern'
    curl -s '{url}/?[1-100]' -H 'x-api-key: key-of-paula'

A key that is in no table makes nobody a customer:

    curl -i {url}/ -H 'x-api-key: made-up'

Fern pays from now on:

    curl -X PUT {url}/customers/fern/paid"
    );
    axum::serve(listener, app.into_make_service_with_connect_info::<SocketAddr>()).await?;
    Ok(())
}

async fn hello(
    axum::Extension(claims): axum::Extension<Claims>,
    CurrentDecision(decision): CurrentDecision,
) -> String {
    let who = claims.get("customer").unwrap_or("stranger");
    format!("Hello, {who}! You have {} left.\n", decision.remaining().unwrap_or_default())
}

/// In force from the next request on.
async fn assign(
    State(tiers): State<Tiers>,
    Path((customer, tier)): Path<(String, String)>,
) -> Result<String, (StatusCode, String)> {
    match tiers.assign(&customer, &tier) {
        Ok(()) => Ok(format!("{customer} is in the tier {tier} now.\n")),
        Err(error) => Err((StatusCode::NOT_FOUND, format!("{error}\n"))),
    }
}
