//! How the process ends.

use std::process::Command;
use std::time::{Duration, Instant};

use sluicegate_tests::servers::{self, Directory};

use super::client::{Client, Sent};
use super::sluicegate::{PATIENCE, Sluicegate, program, serve};

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_is_asked_to_stop_loses_no_request_and_ends_by_itself() {
    let mut server = serve(&["--drain-delay", "3", "--drain", "10"]);
    let mut clients = Vec::new();
    let (first, mut answers) = tokio::sync::mpsc::unbounded_channel();
    for _ in 0..4 {
        for mut client in Client::all(server.http, server.grpc).await {
            let first = first.clone();
            clients.push(tokio::spawn(async move {
                let mut answered = 0_u32;
                loop {
                    match client.send().await {
                        Sent::Answered => answered += 1,
                        Sent::Last | Sent::NotTaken => return Ok(answered),
                        Sent::Refused | Sent::Lost => return Err(answered),
                    }
                    if answered == 1 {
                        let _ = first.send(());
                    }
                }
            }));
        }
    }
    for _ in &clients {
        let answer = tokio::time::timeout(PATIENCE, answers.recv()).await;
        answer.expect("an answer for each client");
    }
    server.signal("TERM");
    server.says("stopping");
    // Load balancers notice before anything changes for clients.
    let ready = ready(&server).await;
    assert!(ready.starts_with("HTTP/1.1 503"), "{ready}");
    for client in clients {
        let answered = tokio::time::timeout(PATIENCE, client).await;
        let answered = answered.expect("an end").expect("no panic");
        assert!(answered.is_ok_and(|answered| answered > 0), "{answered:?}");
    }
    assert_eq!(server.ended().code(), Some(0));
}

/// What `/readyz` answers.
async fn ready(server: &Sluicegate) -> String {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    let mut stream = tokio::net::TcpStream::connect(server.http).await.expect("a connection");
    stream.write_all(b"GET /readyz HTTP/1.1\r\nhost: x\r\n\r\n").await.expect("a request");
    let mut answer = String::new();
    let _ = stream.read_to_string(&mut answer).await;
    answer
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_under_way_and_requests_on_their_way_are_answered() {
    let redis = servers::Server::start();
    let url = redis.url();
    let options = ["--redis", &url, "--deadline-ms", "20000", "--drain", "20"];
    let mut server = serve(&options);
    for mut client in Client::all(server.http, server.grpc).await {
        assert_eq!(client.send().await, Sent::Answered);
    }
    // These connections are there and have no request yet.
    let idle = Client::all(server.http, server.grpc).await;
    redis.pause();
    let busy = Client::all(server.http, server.grpc)
        .await
        .map(|mut client| tokio::spawn(async move { client.send().await }));
    // A request is under way when Redis would have to answer it.
    tokio::time::sleep(Duration::from_millis(300)).await;
    server.signal("TERM");
    server.says("stopping");
    let [mut http_1, ..] = idle;
    let on_its_way = tokio::spawn(async move { http_1.send().await });
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(busy.iter().all(|call| !call.is_finished()), "a request did not wait");
    redis.resume();
    for call in busy {
        let sent = call.await.expect("no panic");
        assert!(matches!(sent, Sent::Answered | Sent::Last), "{sent:?}");
    }
    assert_eq!(on_its_way.await.expect("no panic"), Sent::Last);
    assert_eq!(server.ended().code(), Some(0));
}

/// A server with a request under way that nobody answers.
async fn stuck(drain: &str) -> (servers::Server, Sluicegate) {
    let redis = servers::Server::start();
    let url = redis.url();
    let options = ["--redis", &url, "--deadline-ms", "60000", "--drain", drain];
    let server = serve(&options);
    let mut client = Client::http_1(server.http).await;
    assert_eq!(client.send().await, Sent::Answered);
    // Unlike a process that is stopped, it tells that a call has come.
    redis.cli(["CLIENT", "PAUSE", "3600000", "WRITE"]).expect("it waits");
    tokio::spawn(async move { client.send().await });
    tokio::task::block_in_place(|| {
        servers::until("the request to come", || {
            let clients = redis.cli(["INFO", "clients"]).text();
            clients.contains("blocked_clients:1").then_some(())
        });
    });
    (redis, server)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_takes_too_long_is_waited_for_as_long_as_was_said() {
    let (_redis, mut server) = stuck("1").await;
    let since = Instant::now();
    server.signal("TERM");
    assert_eq!(server.ended().code(), Some(0));
    assert!(since.elapsed() >= Duration::from_secs(1), "it did not wait");
    server.says("before every request was answered");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_is_asked_twice_ends_at_once() {
    for [first, second] in [["TERM", "TERM"], ["TERM", "INT"], ["INT", "INT"]] {
        let (_redis, mut server) = stuck("3600").await;
        server.signal(first);
        server.says("stopping");
        server.signal(second);
        assert_eq!(server.ended().code(), Some(1), "{first}, then {second}");
    }
}

#[test]
fn a_process_that_waits_for_its_first_policies_stops_when_it_is_asked_to() {
    // Nobody answers there: the system takes connections, and the test does not.
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let management = format!("http://{}", nobody.local_addr().expect("an address"));
    let mut command = Command::new(program());
    command.args(["serve", "--log", "json", "--admin", "off", "--grpc", "127.0.0.1:0"]);
    command.args(["--http", "127.0.0.1:0", "--xds", &management, "--xds-node", "test"]);
    let directory = Directory::make();
    let file = directory.path().to_owned();
    let mut server = Sluicegate::spawn(command, directory, file);
    server.says("waiting for the policies");
    // There is nothing to read again, and no reason to end.
    server.signal("HUP");
    server.signal("TERM");
    server.says("stopped");
    assert_eq!(server.ended().code(), Some(0));
}
