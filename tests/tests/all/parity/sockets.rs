//! Hazard: a peer without an address (a Unix socket) causes a panic, or all such peers share one budget. Here the
//! answer is 500, and the server continues.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;

use sluicegate_core::{Ip, Limit};

fn socket(name: &str) -> PathBuf {
    let file = format!("sluicegate-{}-{name}.sock", std::process::id());
    std::env::temp_dir().join(file)
}

fn status(socket: &Path) -> u16 {
    let mut stream = UnixStream::connect(socket).unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nhost: test\r\nconnection: close\r\n\r\n").unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    response.split(' ').nth(1).unwrap().parse().unwrap()
}

fn answers_500_twice(socket: &Path) {
    assert_eq!([status(socket), status(socket)], [500, 500]);
    std::fs::remove_file(socket).unwrap();
}

#[test]
fn panic_without_a_peer_address_in_axum() {
    let path = socket("axum");
    let (send, receive) = mpsc::channel();
    let at = path.clone();
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let layer = sluicegate_axum::RateLimitLayer::new(Limit::per_hour(9).by(Ip::peer()));
            let app = axum::Router::new().route("/", axum::routing::get(async || {})).layer(layer);
            let listener = tokio::net::UnixListener::bind(at).unwrap();
            send.send(()).unwrap();
            axum::serve(listener, app).await.unwrap();
        });
    });
    receive.recv().unwrap();
    answers_500_twice(&path);
}

#[test]
fn panic_without_a_peer_address_in_actix() {
    use actix_web::{App, HttpServer, web};

    let path = socket("actix");
    let (send, receive) = mpsc::channel();
    let at = path.clone();
    thread::spawn(move || {
        actix_web::rt::System::new().block_on(async {
            let limit = sluicegate_actix::RateLimit::new(Limit::per_hour(9).by(Ip::peer()));
            let app = move || App::new().wrap(limit.clone()).route("/", web::get().to(async || ""));
            let server = HttpServer::new(app).workers(1).disable_signals().bind_uds(at).unwrap();
            send.send(()).unwrap();
            server.run().await.unwrap();
        });
    });
    receive.recv().unwrap();
    answers_500_twice(&path);
}
