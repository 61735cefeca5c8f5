//! Tiers: what a customer may do follows from the API key, looked up in a table; everybody else is
//! limited by address.
//!
//!     cargo run --example tiers

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use axum::routing::get;
use tollgate_axum::{
    CurrentDecision, Extension, First, Ip, KeyBuf, Limit, Part, RateLimitLayer, choose,
};

const ANYBODY: Limit = Limit::per_minute(3).named("anybody");
const FREE: Limit = Limit::per_minute(10).named("free");
const PAID: Limit = Limit::per_second(50).burst(100).named("paid");

#[derive(Clone, Copy)]
struct Customer {
    id: u64,
    tier: Limit,
}

/// A customer's budget goes by its number: a second API key does not make a second budget.
impl Part for Customer {
    fn write(&self, key: &mut KeyBuf) {
        self.id.write(key);
    }
}

type Table = Arc<HashMap<&'static str, Customer>>;

/// The only way from a header to a tier. A key that is made up is nobody's: were the header itself
/// the budget's key, a new value for each request would be a new budget for each request.
async fn identify(State(customers): State<Table>, mut request: Request, next: Next) -> Response {
    let key = request.headers().get("x-api-key").and_then(|key| key.to_str().ok());
    if let Some(&customer) = key.and_then(|key| customers.get(key)) {
        request.extensions_mut().insert(customer);
    }
    next.run(request).await
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let customers = Table::new(HashMap::from([
        ("key-of-fern", Customer { id: 1, tier: FREE }),
        ("key-of-paula", Customer { id: 2, tier: PAID }),
        ("another-key-of-paula", Customer { id: 2, tier: PAID }),
    ]));

    let tier = |request: &Request| match request.extensions().get::<Customer>() {
        Some(customer) => customer.tier,
        None => ANYBODY,
    };
    let rule = choose(tier).by(First((Extension::<Customer>::new(), Ip::peer())));

    let app = Router::new()
        .route("/", get(hello))
        .layer(RateLimitLayer::new(rule))
        // Added last, so it is the outermost and runs first.
        .layer(from_fn_with_state(customers, identify));

    let (listener, url) = tollgate_examples::listen().await;
    println!(
        "Three a minute for anybody, ten in the free tier, fifty a second and a hundred at once when paid:

    curl -s '{url}/?[1-4]'
    curl -s '{url}/?[1-11]' -H 'x-api-key: key-of-fern'
    curl -s '{url}/?[1-100]' -H 'x-api-key: key-of-paula'

A key that is in no table makes nobody a customer:

    curl -i {url}/ -H 'x-api-key: made-up'"
    );
    axum::serve(listener, app.into_make_service_with_connect_info::<SocketAddr>()).await
}

async fn hello(
    customer: Option<axum::Extension<Customer>>,
    CurrentDecision(decision): CurrentDecision,
) -> String {
    let who = match customer {
        Some(customer) => format!("customer {}", customer.id),
        None => String::from("stranger"),
    };
    format!("Hello, {who}! You have {} left.\n", decision.remaining().unwrap_or_default())
}
