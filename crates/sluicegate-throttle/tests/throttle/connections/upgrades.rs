//! Upgraded connections, in axum and actix-web.

use std::net::SocketAddr;

use actix_web::body::BodyStream;
use actix_web::{App, HttpResponse, HttpServer, web};
use axum::Router;
use axum::extract::Request;
use axum::routing::any;
use http::{Response, StatusCode, header};
use hyper_util::rt::TokioIo;
use sluicegate_throttle::layer::{HoldUntil, ThrottleLayer};
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy, split};
use tokio::net::{TcpListener, TcpStream};

use super::{one_at_a_time, until};

/// Echoes what the upgraded connection says.
async fn echo(mut request: Request) -> Response<axum::body::Body> {
    let on_upgrade = hyper::upgrade::on(&mut request);
    tokio::spawn(async move {
        let (mut reader, mut writer) = split(TokioIo::new(on_upgrade.await.unwrap()));
        let _ = copy(&mut reader, &mut writer).await;
    });
    let response = Response::builder().status(StatusCode::SWITCHING_PROTOCOLS);
    let response =
        response.header(header::CONNECTION, "upgrade").header(header::UPGRADE, "websocket");
    response.body(axum::body::Body::empty()).unwrap()
}

async fn axum(layer: ThrottleLayer) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let app = Router::new().route("/echo", any(echo)).layer(layer);
    tokio::spawn(async { axum::serve(listener, app).await.unwrap() });
    address
}

async fn actix(layer: ThrottleLayer) -> SocketAddr {
    let echo = async |payload: web::Payload| {
        HttpResponse::SwitchingProtocols().upgrade("websocket").body(BodyStream::new(payload))
    };
    let app = move || App::new().route("/echo", web::get().to(echo)).wrap(layer.clone());
    let server = HttpServer::new(app).workers(1).disable_signals().bind("127.0.0.1:0").unwrap();
    let address = server.addrs()[0];
    actix_web::rt::spawn(server.run());
    address
}

async fn upgrade(address: SocketAddr) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = "GET /echo HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n";
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    assert!(head.starts_with(b"HTTP/1.1 101"));
    stream
}

async fn echoes(stream: &mut TcpStream) {
    stream.write_all(b"ping").await.unwrap();
    let mut echo = [0; 4];
    stream.read_exact(&mut echo).await.unwrap();
    assert_eq!(&echo, b"ping");
}

async fn counts_until_it_has_closed(serve: impl AsyncFn(ThrottleLayer) -> SocketAddr) {
    let throttle = one_at_a_time();
    let address = serve(throttle.layer().hold_until(HoldUntil::Close)).await;
    let mut stream = upgrade(address).await;
    for _ in 0..3 {
        echoes(&mut stream).await;
        assert_eq!(throttle.snapshot().running, 1);
    }
    drop(stream);
    until(&throttle, |snapshot| snapshot.running == 0).await;
    echoes(&mut upgrade(address).await).await;
}

async fn counts_until_its_head(serve: impl AsyncFn(ThrottleLayer) -> SocketAddr) {
    let throttle = one_at_a_time();
    let address = serve(throttle.layer()).await;
    let mut streams = [upgrade(address).await, upgrade(address).await, upgrade(address).await];
    for stream in &mut streams {
        echoes(stream).await;
    }
    assert_eq!(throttle.snapshot().running, 0);
}

#[tokio::test]
async fn an_upgraded_connection_counts_until_it_has_closed_if_told_so() {
    counts_until_it_has_closed(axum).await;
}

#[tokio::test]
async fn an_upgraded_connection_counts_until_its_head() {
    counts_until_its_head(axum).await;
}

#[actix_web::test]
async fn an_upgraded_connection_of_actix_counts_until_it_has_closed_if_told_so() {
    counts_until_it_has_closed(actix).await;
}

#[actix_web::test]
async fn an_upgraded_connection_of_actix_counts_until_its_head() {
    counts_until_its_head(actix).await;
}
