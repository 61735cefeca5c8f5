//! A crawler of a limited API that is never refused.
//!
//! It starts a small API that allows 25 requests a second, reads 150 pages of it with 16 requests at a time, and ends.
//! The layers of `sluicegate-client` read what the API says in its `RateLimit` fields, and slow down before it refuses.
//!
//!     cargo run --example client

use std::io::Write;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Instant;

use axum::Router;
use axum::extract::Path;
use axum::routing::get;
use reqwest::{Client, Method, Request};
use sluicegate::{Ip, Limit};
use sluicegate_axum::RateLimitLayer;
use sluicegate_client::{BoxError, Outgoing};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tower::{Service, ServiceBuilder, ServiceExt};

const PAGES: usize = 150;

/// Requests under way or waiting at a time.
const WORKERS: usize = 16;

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let api = start_api().await?;
    // The whole of it: retries within a budget, an adaptive throttle, and waiting while the API asks for that.
    let client = ServiceBuilder::new().layer(Outgoing::new()).service(Client::new());

    let progress = Arc::new(Progress::default());
    let started = Instant::now();
    let mut workers = JoinSet::new();
    for worker in 0..WORKERS {
        let (api, mut client, progress) = (api.clone(), client.clone(), progress.clone());
        workers.spawn(async move {
            for page in (worker..PAGES).step_by(WORKERS) {
                let request = Request::new(Method::GET, format!("{api}/pages/{page}").parse()?);
                let response = client.ready().await?.call(request).await?;
                progress.note(response.status().as_u16(), started);
            }
            Ok::<_, BoxError>(())
        });
    }
    while let Some(worker) = workers.join_next().await {
        worker??;
    }
    println!(
        "\n{PAGES} pages in {:.1} s, refused {} times",
        started.elapsed().as_secs_f64(),
        progress.refused.load(Relaxed)
    );
    Ok(())
}

#[derive(Default)]
struct Progress {
    read: AtomicUsize,
    refused: AtomicUsize,
}

impl Progress {
    /// Counts a response, and draws the bar.
    fn note(&self, status: u16, started: Instant) {
        match status {
            429 => self.refused.fetch_add(1, Relaxed),
            _ => self.read.fetch_add(1, Relaxed),
        };
        const WIDTH: usize = 40;
        let read = self.read.load(Relaxed);
        let bar = "█".repeat(read * WIDTH / PAGES);
        let rate = read as f64 / started.elapsed().as_secs_f64();
        print!(
            "\r{bar:░<WIDTH$} {read:>3}/{PAGES}  {rate:>5.1} a second  429: {}",
            self.refused.load(Relaxed)
        );
        // A bar that cannot be drawn is no reason to stop.
        let _ = std::io::stdout().flush();
    }
}

/// Serves the API until this process ends.
async fn start_api() -> std::io::Result<String> {
    let page = |Path(number): Path<usize>| async move { format!("page {number}\n") };
    let app = Router::new()
        .route("/pages/{number}", get(page))
        .layer(RateLimitLayer::new(Limit::per_second(25).by(Ip::peer())))
        .into_make_service_with_connect_info::<SocketAddr>();

    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}", listener.local_addr()?);
    tokio::spawn(async move { axum::serve(listener, app).await });
    Ok(url)
}
