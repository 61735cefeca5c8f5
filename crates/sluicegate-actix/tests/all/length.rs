//! The declared length of a body, on a real connection.

use std::io::{Read, Write};
use std::net::TcpStream;

use actix_web::{App, HttpServer, web};
use sluicegate_actix::cost::content_length;
use sluicegate_actix::{Ip, Limit, RateLimit};

#[actix_web::test]
async fn a_length_that_the_chunks_override_buys_nothing() {
    let server = HttpServer::new(|| {
        let limit = Limit::per_hour(10).by(Ip::peer()).cost(content_length().per(10));
        App::new()
            .wrap(RateLimit::new(limit))
            .route("/", web::post().to(async |body: web::Bytes| body.len().to_string()))
    });
    let server = server.workers(1).bind(("127.0.0.1", 0)).expect("a port");
    let address = server.addrs()[0];
    let server = server.run();
    let handle = server.handle();
    actix_web::rt::spawn(server);
    let answer = web::block(move || {
        let mut stream = TcpStream::connect(address).expect("a connection");
        let body = format!("3e8\r\n{}\r\n0\r\n\r\n", "x".repeat(1_000));
        let head = "POST / HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-length: 1\r\n\
                    transfer-encoding: chunked\r\n\r\n";
        stream.write_all(format!("{head}{body}").as_bytes()).expect("a request");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        answer
    });
    let answer = answer.await.expect("no panic");
    assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
    handle.stop(false).await;
}
