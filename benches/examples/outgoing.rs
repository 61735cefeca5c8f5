//! Eight clients that want 400 requests a second of a server of ours that allows 100, over TCP on this machine: how much they
//! use of it, and how often they are refused.
//!
//!     cargo run --release -p sluicegate-benches --example outgoing
//!
//! The first two seconds are left out, and eight more are measured.

use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use axum::Router;
use axum::http::StatusCode;
use axum::middleware::{self, Next};
use axum::routing::get;
use reqwest::{Client, Method, Request, retry};
use reqwest_middleware::ClientBuilder;
use reqwest_retry::RetryTransientMiddleware;
use reqwest_retry::policies::ExponentialBackoff;
use sluicegate::Global;
use sluicegate_axum::{Limit, RateLimitLayer};
use sluicegate_client::Outgoing;
use tower::{Service, ServiceBuilder, ServiceExt};

const CLIENTS: u32 = 8;
const WANTED: u32 = 400;

/// Requests of one client that are under way or wait.
const WORKERS: u32 = 8;

const FROM: Duration = Duration::from_secs(2);
const TO: Duration = Duration::from_secs(10);

/// Sends one request, with its retries.
type Call = Box<dyn FnMut() -> Pin<Box<dyn Future<Output = ()> + Send>> + Send>;

/// A client, which its workers share.
type Shared = Box<dyn Fn() -> Call + Send>;

/// Makes a client of the server at this URL.
type Make = fn(String) -> Shared;

#[tokio::main]
async fn main() {
    let contenders: [(&str, Make); 5] = [
        ("no retries", plain),
        ("exponential back-off, full jitter, by hand", naive),
        ("reqwest's own retry", reqwest_own),
        ("reqwest-retry 0.9", reqwest_retry_middleware),
        ("sluicegate-client, `Outgoing::new()`", ours),
    ];
    println!("| client | served a second | refused | requests a second |");
    println!("| --- | --- | --- | --- |");
    for (name, client) in contenders {
        let (served, refused) = run(client).await;
        let seconds = (TO - FROM).as_secs_f64();
        println!(
            "| {name} | {:.1} | {:.1} % | {:.0} |",
            served as f64 / seconds,
            100.0 * refused as f64 / (served + refused) as f64,
            (served + refused) as f64 / seconds,
        );
    }
}

async fn run(client: Make) -> (u64, u64) {
    let (served, refused) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let started = Instant::now();
    let (yes, no) = (served.clone(), refused.clone());
    let count = middleware::from_fn(move |request: axum::extract::Request, next: Next| {
        let (yes, no) = (yes.clone(), no.clone());
        async move {
            let response = next.run(request).await;
            let is_refused = response.status() == StatusCode::TOO_MANY_REQUESTS;
            if started.elapsed() >= FROM {
                if is_refused { &no } else { &yes }.fetch_add(1, Relaxed);
            }
            response
        }
    });
    let app = Router::new()
        .route("/", get(|| async { "hello" }))
        .layer(RateLimitLayer::new(Limit::per_second(100).by(Global)))
        .layer(count)
        .into_make_service_with_connect_info::<SocketAddr>();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let server = tokio::spawn(async move { axum::serve(listener, app).await });

    let period = Duration::from_secs(1) * WORKERS * CLIENTS / WANTED;
    let mut workers = Vec::new();
    for number in 0..CLIENTS {
        let client = client(url.clone());
        for worker in 0..WORKERS {
            let mut send = client();
            let first = period * (worker * CLIENTS + number) / (WORKERS * CLIENTS);
            workers.push(tokio::spawn(async move {
                tokio::time::sleep(first).await;
                loop {
                    let next = tokio::time::Instant::now() + period;
                    send().await;
                    tokio::time::sleep_until(next).await;
                }
            }));
        }
    }
    tokio::time::sleep(TO.saturating_sub(started.elapsed())).await;
    let counted = (served.load(Relaxed), refused.load(Relaxed));
    workers.iter().for_each(|worker| worker.abort());
    server.abort();
    counted
}

fn request(url: &str) -> Request {
    Request::new(Method::GET, url.parse().expect("a URL"))
}

fn plain(url: String) -> Shared {
    of_reqwest(Client::new(), url)
}

/// At most two retries, at once: it has no back-off. A fifth of the requests may be retried.
fn reqwest_own(url: String) -> Shared {
    let policy =
        retry::for_host("127.0.0.1").max_retries_per_request(2).classify_fn(
            |outcome| match outcome.status() {
                Some(StatusCode::TOO_MANY_REQUESTS) => outcome.retryable(),
                _ => outcome.success(),
            },
        );
    of_reqwest(Client::builder().retry(policy).build().expect("a client"), url)
}

fn of_reqwest(client: Client, url: String) -> Shared {
    Box::new(move || {
        let (client, url) = (client.clone(), url.clone());
        Box::new(move || {
            let (client, request) = (client.clone(), request(&url));
            Box::pin(async move { drop(client.execute(request).await) })
        })
    })
}

/// Up to two retries after random waits of up to 100 and 200 ms.
fn naive(url: String) -> Shared {
    let client = Client::new();
    Box::new(move || {
        let (client, url) = (client.clone(), url.clone());
        Box::new(move || {
            let (client, url) = (client.clone(), url.clone());
            Box::pin(async move {
                for attempt in 0..3 {
                    let response = client.execute(request(&url)).await;
                    if response.is_ok_and(|response| response.status() == StatusCode::OK) {
                        return;
                    }
                    let most = Duration::from_millis(100 << attempt);
                    tokio::time::sleep(most.mul_f64(fastrand::f64())).await;
                }
            })
        })
    })
}

/// Up to two retries with its exponential back-off, from 100 ms on.
fn reqwest_retry_middleware(url: String) -> Shared {
    let (least, most) = (Duration::from_millis(100), Duration::from_secs(10));
    let policy = ExponentialBackoff::builder().retry_bounds(least, most).build_with_max_retries(2);
    let retrying = RetryTransientMiddleware::new_with_policy(policy);
    let client = ClientBuilder::new(Client::new()).with(retrying).build();
    Box::new(move || {
        let (client, url) = (client.clone(), url.clone());
        Box::new(move || {
            let (client, request) = (client.clone(), request(&url));
            Box::pin(async move { drop(client.execute(request).await) })
        })
    })
}

fn ours(url: String) -> Shared {
    let client = ServiceBuilder::new().layer(Outgoing::new()).service(Client::new());
    Box::new(move || {
        let (client, url) = (client.clone(), url.clone());
        Box::new(move || {
            let (mut client, request) = (client.clone(), request(&url));
            Box::pin(async move {
                let Ok(client) = client.ready().await else { return };
                drop(client.call(request).await);
            })
        })
    })
}
