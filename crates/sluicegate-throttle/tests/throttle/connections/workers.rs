//! The workers of actix-web.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use actix_web::{App, HttpServer, web};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::task::yield_now;

use super::{one_at_a_time, until};

#[actix_web::test]
async fn all_workers_of_actix_web_share_one_throttle() {
    let throttle = one_at_a_time();
    let (layer, apps) = (throttle.layer(), Arc::new(AtomicUsize::new(0)));
    let made = Arc::clone(&apps);
    let app = move || {
        made.fetch_add(1, Ordering::Relaxed);
        let endless = async || std::future::pending::<&'static str>().await;
        App::new().route("/", web::get().to(endless)).wrap(layer.clone())
    };
    let server = HttpServer::new(app).workers(4).h1_allow_half_closed(false).disable_signals();
    let server = server.bind("127.0.0.1:0").unwrap();
    let address = server.addrs()[0];
    actix_web::rt::spawn(server.run());
    while apps.load(Ordering::Relaxed) < 4 {
        yield_now().await;
    }
    // Connections are given to the workers in turn.
    let mut streams = Vec::new();
    for sent in 1..=5 {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
        until(&throttle, |snapshot| snapshot.counts.offered == sent).await;
        streams.push(stream);
    }
    let snapshot = throttle.snapshot();
    assert_eq!((snapshot.running, snapshot.queued), (1, 4));
    // The clients of one worker's requests wake those of another.
    drop(streams);
    until(&throttle, |snapshot| snapshot.running + snapshot.queued == 0).await;
}
