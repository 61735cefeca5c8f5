//! Real servers: all workers share one limiter without further set-up.

use std::collections::HashSet;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread;

use actix_web::dev::Server;
use actix_web::rt::System;
use actix_web::{App, HttpServer, web};
use sluicegate_actix::key::{Extension, KeyBuf, Part};
use sluicegate_actix::{Ip, Limit, Memory, RateLimit};

const WORKERS: usize = 4;
/// So few a day that none is refilled while a test runs.
const ALLOWED: usize = 37;
const REQUESTS: usize = 120;

/// A server with a limit that is made anew for each worker, bound to two addresses.
fn serve() -> ([SocketAddr; 2], Server) {
    let server = HttpServer::new(|| {
        App::new()
            .wrap(RateLimit::new(Limit::per_day(ALLOWED as u64).by(Ip::peer())))
            .route("/", web::get().to(async || format!("{:?}", thread::current().id())))
    })
    .workers(WORKERS)
    .disable_signals()
    .bind(("127.0.0.1", 0))
    .unwrap()
    .bind(("127.0.0.1", 0))
    .unwrap();
    let addresses = [server.addrs()[0], server.addrs()[1]];
    (addresses, server.run())
}

/// The status and the body of a request on its own connection.
fn request(address: SocketAddr) -> (u16, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET / HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    let (_, body) = response.split_once("\r\n\r\n").unwrap();
    (response[9..12].parse().unwrap(), body.to_owned())
}

/// How many of many requests, sent from several threads to both addresses, were admitted, and by how
/// many workers.
fn admitted(addresses: [SocketAddr; 2]) -> (usize, usize) {
    let clients: Vec<_> = (0..6)
        .map(|_| {
            let ask = move |i: usize| request(addresses[i % 2]);
            thread::spawn(move || (0..REQUESTS / 6).map(ask).collect::<Vec<_>>())
        })
        .collect();
    let answers: Vec<_> = clients.into_iter().flat_map(|client| client.join().unwrap()).collect();
    assert_eq!(answers.len(), REQUESTS);
    assert!(answers.iter().all(|(status, _)| matches!(status, 200 | 429)));
    let served: Vec<_> = answers.iter().filter(|(status, _)| *status == 200).collect();
    let workers: HashSet<_> = served.iter().map(|(_, worker)| worker).collect();
    (served.len(), workers.len())
}

async fn run_and_ask() -> (usize, usize) {
    let (addresses, server) = serve();
    let handle = server.handle();
    let server = actix_web::rt::spawn(server);
    let admitted = web::block(move || admitted(addresses)).await.unwrap();
    handle.stop(false).await;
    server.await.unwrap().unwrap();
    admitted
}

#[test]
fn four_workers_admit_as_many_as_one() {
    // Two servers, each under its own `System`: the second one has its own budget.
    for _ in 0..2 {
        let (admitted, workers) = System::new().block_on(run_and_ask());
        assert_eq!(admitted, ALLOWED);
        assert!(workers > 1, "one worker served them all: this shows nothing");
    }
}

#[test]
fn workers_on_plain_tokio_admit_as_many_as_one() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let local = tokio::task::LocalSet::new();
    let (admitted, workers) = runtime.block_on(local.run_until(run_and_ask()));
    assert_eq!(admitted, ALLOWED);
    assert!(workers > 1, "one worker served them all: this shows nothing");
}

#[actix_web::test]
async fn a_limit_made_outside_of_the_closure_counts_for_all_workers() {
    let limit = RateLimit::new(Limit::per_day(ALLOWED as u64).by(Ip::peer()))
        .store(Memory::with_capacity(100));
    let handle = limit.clone();
    let server = HttpServer::new(move || {
        App::new().wrap(limit.clone()).route("/", web::get().to(async || ""))
    })
    .workers(WORKERS)
    .disable_signals()
    .bind(("127.0.0.1", 0))
    .unwrap();
    let addresses = [server.addrs()[0]; 2];
    let server = server.run();
    let stop = server.handle();
    let server = actix_web::rt::spawn(server);
    let (admitted, _) = web::block(move || admitted(addresses)).await.unwrap();
    stop.stop(false).await;
    server.await.unwrap().unwrap();
    assert_eq!(admitted, ALLOWED);
    assert_eq!(handle.counts().refused, (REQUESTS - ALLOWED) as u64);
}

/// The framework that the listener is for, found out when a connection is accepted.
struct Tenant(u16);

impl Part for Tenant {
    fn write(&self, key: &mut KeyBuf) {
        self.0.write(key);
    }
}

#[actix_web::test]
async fn what_on_connect_left_is_a_key() {
    let server = HttpServer::new(|| {
        App::new()
            .wrap(RateLimit::new(Limit::per_day(2).by(Extension::<Tenant>::new())))
            .route("/", web::get().to(async || ""))
    })
    .on_connect(|connection, data| {
        let stream = connection.downcast_ref::<actix_web::rt::net::TcpStream>().unwrap();
        data.insert(Tenant(stream.local_addr().unwrap().port()));
    })
    .workers(WORKERS)
    .disable_signals()
    .bind(("127.0.0.1", 0))
    .unwrap()
    .bind(("127.0.0.1", 0))
    .unwrap();
    let addresses = [server.addrs()[0], server.addrs()[1]];
    let server = server.run();
    let stop = server.handle();
    let server = actix_web::rt::spawn(server);
    let ask = move || addresses.map(|address| [(); 3].map(|()| request(address).0));
    let answers = web::block(ask).await.unwrap();
    stop.stop(false).await;
    server.await.unwrap().unwrap();
    assert_eq!(answers, [[200, 200, 429]; 2]);
}
