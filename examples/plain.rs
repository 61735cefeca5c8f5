//! hyper and tower without a framework: the server tells the layer the address of the client.
//!
//!     cargo run --example plain

use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use sluicegate::adapter::Peer;
use sluicegate::response::LazyDecision;
use sluicegate::{Ip, Limit, RateLimitLayer};
use tower::ServiceBuilder;

#[tokio::main]
async fn main() -> std::io::Result<()> {
    // Made once. Its clones, one for each connection, share one count.
    let limit = RateLimitLayer::new(Limit::sliding_log(5, Duration::from_secs(10)).by(Ip::peer()));

    let (listener, url) = sluicegate_examples::listen().await;
    println!(
        "Five requests in ten seconds for each address:

    curl -i {url}/
    curl -s -o /dev/null -w '%{{http_code}}\\n' '{url}/?[1-6]'"
    );

    loop {
        let (stream, address) = listener.accept().await?;
        let service = ServiceBuilder::new()
            .map_request(move |mut request: Request<Incoming>| {
                request.extensions_mut().insert(Peer(address.ip()));
                request
            })
            .layer(limit.clone())
            .service_fn(hello);

        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .serve_connection(TokioIo::new(stream), TowerToHyperService::new(service));
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                eprintln!("{address}: {error}");
            }
        });
    }
}

async fn hello(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let left = request.extensions().get().map(LazyDecision::decision);
    let left = left.and_then(|decision| decision.remaining()).unwrap_or_default();
    Ok(Response::new(Full::from(format!("Hello! You have {left} left.\n"))))
}
