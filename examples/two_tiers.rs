//! Two tiers of limits: a limit by the second in this process, and a quota by the hour over all processes,
//! through Redis, which is asked once in many requests.
//!
//!     cargo run --example two_tiers
//!
//! It uses the Redis at $REDIS_URL or at 127.0.0.1:6379, and starts `redis-server` if none answers there. It
//! prints the command for a second process.

use std::error::Error;
use std::net::SocketAddr;
use std::process::ExitCode;

use axum::Router;
use axum::routing::get;
use sluicegate_axum::{CurrentDecision, Ip, Limit, RateLimitLayer};
use sluicegate_examples::RedisServer;
use sluicegate_redis::{Leased, Redis};

/// In each process.
const AT_ONCE: Limit = Limit::per_second(5).named("at once");
/// In all processes.
const QUOTA: Limit = Limit::per_hour(50).named("quota");

#[tokio::main]
async fn main() -> ExitCode {
    match serve().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

async fn serve() -> Result<(), Box<dyn Error>> {
    let server = RedisServer::find_or_start().await?;
    let redis = server.url();
    // At most ten tokens of the quota at a time, for an address that sends many requests.
    let quotas = Leased::new(Redis::connect(redis)?, 1..=10);
    let app = Router::new()
        .route("/", get(hello))
        .layer(RateLimitLayer::new(QUOTA.by(Ip::peer())).store(quotas.clone()))
        // Added last, so it runs first: a flood ends here and takes nothing from the quota. If the quota refuses,
        // this layer gives back what it charged.
        .layer(RateLimitLayer::new(AT_ONCE.by(Ip::peer())));

    let (listener, url) = sluicegate_examples::listen().await;
    println!(
        "Five a second, and fifty an hour in all processes. Another one:

    PORT=3001 REDIS_URL={redis} cargo run --example two_tiers

Then ask them:

    curl -s '{url}/?[1-6]'
    for i in 1 2 3 4 5 6 7 8 9 10 11; do curl -s '{url}/?[1-5]'; sleep 1; done"
    );
    let service = app.into_make_service_with_connect_info::<SocketAddr>();
    axum::serve(listener, service).with_graceful_shutdown(sluicegate_examples::ended()).await?;
    // Gives back the tokens that were taken out and not spent.
    quotas.flush().await;
    println!("{:?}", quotas.counts());
    Ok(())
}

async fn hello(CurrentDecision(decision): CurrentDecision) -> String {
    format!("Hello! You have {} left.\n", decision.remaining().unwrap_or_default())
}
