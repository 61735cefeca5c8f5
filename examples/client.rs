//! A client that keeps to the rate of a service, so that it is not refused.
//!
//! It starts a small service, makes twelve calls at once, and ends.
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

// The service allows five calls a second.
const ALLOWED: Limit = Limit::per_second(5);

// The same rate, one by one. The five calls at once that the service would also admit are left as a
// margin, because the network does not keep the distance between two calls.
const PACE: Limit = ALLOWED.burst(1);

// The longest wait for a call.
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
        // Books a place at once, so the calls keep their order. One limiter serves many services: the
        // name of the service is the key.
        let turn = limiter.acquire("the small service", PATIENCE);
        let (http, url) = (http.clone(), url.clone());
        calls.spawn(async move {
            if let Err(error) = turn.await {
                // Known at once, and not after two seconds in vain.
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

/// Serves calls within the limit until this process ends.
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
