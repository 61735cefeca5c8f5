//! A client that keeps to the rate which a service allows, rather than being refused.
//!
//! It starts a small service to call, wants to make twelve calls at once, and ends.
//!
//!     cargo run --example client

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use axum::Router;
use axum::routing::get;
use bytes::Bytes;
use http_body_util::Empty;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use sluicegate::{Ip, Limit, Limiter};
use sluicegate_axum::RateLimitLayer;
use tokio::net::TcpListener;
use tokio::task::JoinSet;

// What the service allows: five a second.
const ALLOWED: Limit = Limit::per_second(5);

// The same rate, one by one: the five at once that the service would take as well are left as a
// margin, for the network does not keep the distance between two calls.
const PACE: Limit = ALLOWED.burst(1);

// Longer than this no call is worth waiting for.
const PATIENCE: Duration = Duration::from_secs(2);

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let url = start_service().await?;
    let limiter = Limiter::new(PACE);
    let http = Client::builder(TokioExecutor::new()).build_http::<Empty<Bytes>>();

    let started = Instant::now();
    let since = move || format!("{:>4} ms", started.elapsed().as_millis());

    let mut calls = JoinSet::new();
    for number in 1..=12 {
        // Books a place at once, so the calls go in this order. One limiter serves many services,
        // each with a budget of its own: its name is the key.
        let turn = limiter.acquire("the small service", PATIENCE);
        let (http, url) = (http.clone(), url.clone());
        calls.spawn(async move {
            if let Err(error) = turn.await {
                // Said at once, not after two seconds in vain.
                return println!("{}  call {number:2}: {error}", since());
            }
            let sent = since();
            match http.get(url).await {
                Ok(response) => println!("{sent}  call {number:2}: {}", response.status()),
                Err(error) => println!("{sent}  call {number:2}: {error}"),
            }
        });
    }
    calls.join_all().await;
    Ok(())
}

/// Serves, for as long as this process lives, whoever does not exceed what is allowed.
async fn start_service() -> std::io::Result<hyper::Uri> {
    let app = Router::new()
        .route("/", get(|| async { "at your service\n" }))
        .layer(RateLimitLayer::new(ALLOWED.by(Ip::peer())))
        .into_make_service_with_connect_info::<SocketAddr>();

    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}/", listener.local_addr()?);
    tokio::spawn(async move { axum::serve(listener, app).await });
    Ok(url.parse().expect("an address makes a URL"))
}
