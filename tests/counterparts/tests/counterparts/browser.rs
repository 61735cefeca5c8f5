//! What a web page can read of the answers of a limited API on another origin.

use std::net::SocketAddr;
use std::process::Stdio;
use std::time::Duration;

use axum::Router;
use axum::http::{HeaderName, Method};
use axum::response::Html;
use axum::routing::get;
use sluicegate_axum::{Ip, Limit, ManualClock, Memory, RateLimitLayer};
use tokio::net::TcpListener;
use tokio::process::Command;
use tokio::time::timeout;
use tower_http::cors::{Any, CorsLayer};

/// One request an hour.
const ONE: Limit = Limit::fixed_window(1, Duration::from_secs(3600)).named("one");

/// The fields that pages may read.
const EXPOSED: [&str; 3] = ["ratelimit", "ratelimit-policy", "retry-after"];

/// How long the browser may take.
const PATIENCE: Duration = Duration::from_secs(60);

#[tokio::test]
async fn a_page_reads_a_429_through_cors_and_preflights_are_free() {
    let cors = CorsLayer::new()
        .allow_origin(Any)
        .allow_methods([Method::GET])
        .allow_headers(Any)
        .expose_headers(EXPOSED.map(HeaderName::from_static));
    let api = Router::new()
        .route("/", get(async || "hello"))
        .layer(RateLimitLayer::new(ONE.by(Ip::peer())).store(store()))
        .layer(cors); // outside of the limit
    let read = read_by_a_page(serve(api).await).await;
    assert_eq!(read, EXPECTED);
}

#[actix_web::test]
async fn a_page_reads_a_429_of_actix_through_cors_and_preflights_are_free() {
    use actix_web::{App, HttpServer, web};

    let limit =
        sluicegate_actix::RateLimit::new(ONE.by(sluicegate_actix::Ip::peer())).store(store());
    let server = HttpServer::new(move || {
        let cors = actix_cors::Cors::default()
            .allow_any_origin()
            .allowed_methods(["GET"])
            .allow_any_header()
            .expose_headers(EXPOSED);
        App::new().route("/", web::get().to(async || "hello")).wrap(limit.clone()).wrap(cors) // outside of the limit
    });
    let server = server.workers(1).disable_signals().bind("127.0.0.1:0").unwrap();
    let address = server.addrs()[0];
    actix_web::rt::spawn(server.run());
    assert_eq!(read_by_a_page(address).await, EXPECTED);
}

/// Without `expose_headers` the fields are sent, but a page cannot read them.
#[tokio::test]
async fn fields_that_are_not_exposed_cannot_be_read() {
    let cors = CorsLayer::new().allow_origin(Any).allow_methods([Method::GET]).allow_headers(Any);
    let limit = RateLimitLayer::new(ONE.by(Ip::peer())).store(store());
    let api = Router::new().route("/", get(async || "hello")).layer(limit).layer(cors);
    let read = read_by_a_page(serve(api).await).await;
    assert_eq!(read, "200 null null; 429 null null");
}

/// Counts by a clock that stands still.
fn store() -> Memory {
    Memory::builder().clock(ManualClock::new()).build()
}

const EXPECTED: &str = "200 \"one\";r=0;t=3600 null; 429 \"one\";r=0;t=3600 3600";

async fn serve(app: Router) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let service = app.into_make_service_with_connect_info::<SocketAddr>();
    tokio::spawn(async move { axum::serve(listener, service).await });
    address
}

/// Calls the API twice from a page of another origin, with a header that makes the browser send a preflight request.
/// Returns the status, `RateLimit` and `Retry-After` of each answer, as the page reads them.
async fn read_by_a_page(api: SocketAddr) -> String {
    let script = format!(
        "const read = [];
         for (let i = 0; i < 2; i++) {{
             const request = new XMLHttpRequest();
             request.open('GET', 'http://{api}/', false);
             request.setRequestHeader('x-asks-first', '1');
             request.send();
             const field = (name) => String(request.getResponseHeader(name));
             read.push([request.status, field('ratelimit'), field('retry-after')].join(' '));
         }}
         document.title = read.join('; ');"
    );
    let page = format!("<!doctype html><title>nothing</title><script>{script}</script>");
    let app = Router::new().route("/", get(move || std::future::ready(Html(page.clone()))));
    let document = browse(serve(app).await).await;
    let title = document.split("<title>").nth(1).and_then(|rest| rest.split("</title>").next());
    title.unwrap_or(&document).replace("&quot;", "\"")
}

/// The document at this address after its scripts have run.
async fn browse(address: SocketAddr) -> String {
    let profile = std::env::temp_dir().join(format!("browser-{}", address.port()));
    let mut command = Command::new(sluicegate_counterparts::chromium());
    command.args([
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--dump-dom",
    ]);
    command.arg(format!("--user-data-dir={}", profile.display())).arg(format!("http://{address}/"));
    command.stdin(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    let output =
        timeout(PATIENCE, command.output()).await.expect("the browser ends").expect("it starts");
    let _ = std::fs::remove_dir_all(profile);
    String::from_utf8_lossy(&output.stdout).into_owned()
}
