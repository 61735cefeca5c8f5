//! axum, with a layer whose rule is chosen when the service starts, held by a struct.
//!
//!     cargo run --example boxed
//!     PER_CLIENT=1 cargo run --example boxed

use std::net::SocketAddr;

use axum::Router;
use axum::routing::get;
use sluicegate_axum::service::BoxRateLimitLayer;
use sluicegate_axum::{Fields, Global, Ip, Limit, RateLimitLayer};

/// The settings of this service. Their type says nothing of rules, stores and responders.
struct Settings {
    limit: BoxRateLimitLayer,
}

impl Settings {
    fn new(per_client: bool) -> Self {
        let limit = Limit::per_minute(10);
        // Two rules of different types make layers of one type.
        let limit = match per_client {
            true => RateLimitLayer::new(limit.by(Ip::peer())).boxed(),
            false => RateLimitLayer::new(limit.by(Global)).boxed(),
        };
        // What is the same for both is set afterwards.
        Self { limit: limit.fields(Fields::X_RATE_LIMIT) }
    }

    fn app(&self) -> Router {
        Router::new().route("/", get(async || "Hello!\n")).layer(self.limit.clone())
    }
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let per_client = std::env::var_os("PER_CLIENT").is_some();
    let settings = Settings::new(per_client);
    let (listener, url) = sluicegate_examples::listen().await;
    let whose = if per_client { "each client address" } else { "all clients together" };
    println!(
        "Ten requests at once, then one every six seconds, for {whose}:

    curl -s -o /dev/null -w '%{{http_code}}\\n' '{url}/?[1-12]'

Ctrl-C ends this."
    );
    let app = settings.app().into_make_service_with_connect_info::<SocketAddr>();
    axum::serve(listener, app).await
}
