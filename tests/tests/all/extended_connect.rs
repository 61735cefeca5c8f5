//! WebSockets over HTTP/2 (RFC 8441): an extended CONNECT holds its place until its stream is closed.

use std::convert::Infallible;

use axum::body::Body;
use http::{Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::ext::Protocol;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::service::TowerToHyperService;
use sluicegate::{Global, Limit, Memory, RateLimitLayer};
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy, duplex, split};
use tokio::task::yield_now;
use tower::{Layer, service_fn};

async fn handler(mut request: Request<Incoming>) -> Result<Response<Body>, Infallible> {
    if request.method() == Method::CONNECT {
        let on_upgrade = hyper::upgrade::on(&mut request);
        tokio::spawn(async move {
            let (mut reader, mut writer) = split(TokioIo::new(on_upgrade.await.unwrap()));
            let _ = copy(&mut reader, &mut writer).await;
        });
    }
    Ok(Response::new(Body::empty()))
}

#[tokio::test]
async fn a_websocket_over_http_2_holds_its_place_until_it_is_closed() {
    let (client, server) = duplex(1 << 16);
    let store = Memory::builder().capacity(100).build();
    let layer = RateLimitLayer::new(Limit::concurrent(1).by(Global)).store(store);
    let service = TowerToHyperService::new(layer.layer(service_fn(handler)));
    tokio::spawn(async move {
        let mut http2 = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
        http2.enable_connect_protocol();
        http2.serve_connection(TokioIo::new(server), service).await.unwrap();
    });
    let http2 = hyper::client::conn::http2::Builder::new(TokioExecutor::new());
    let (mut sender, connection) = http2.handshake(TokioIo::new(client)).await.unwrap();
    tokio::spawn(connection);

    let get = || Request::get("http://localhost/").body(Body::empty()).unwrap();
    assert_eq!(sender.send_request(get()).await.unwrap().status(), 200);
    let connect = Request::connect("http://localhost/ws")
        .extension(Protocol::from_static("websocket"))
        .body(Body::empty())
        .unwrap();
    let mut response = sender.send_request(connect).await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    let mut upgraded = TokioIo::new(hyper::upgrade::on(&mut response).await.unwrap());
    for _ in 0..3 {
        upgraded.write_all(b"ping").await.unwrap();
        let mut echo = [0; 4];
        upgraded.read_exact(&mut echo).await.unwrap();
        assert_eq!(&echo, b"ping");
        assert_eq!(sender.send_request(get()).await.unwrap().status(), 429);
    }
    drop(upgraded);
    drop(response);
    while sender.send_request(get()).await.unwrap().status() == 429 {
        yield_now().await;
    }
}
