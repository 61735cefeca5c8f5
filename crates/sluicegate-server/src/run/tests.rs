//! How long connections are waited for. Streams are in memory, so that the clock only moves when nobody has anything to do.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::routing::get;
use sluicegate_core::clock::Clock;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

use super::connection::{Age, Connections};
use crate::health::Health;

const GET: &[u8] = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n";

struct Client {
    stream: DuplexStream,
    since: Instant,
    running: watch::Sender<bool>,
}

impl Client {
    fn connect() -> Self {
        Self::connect_to(|port| port)
    }

    /// A connection that becomes this old.
    fn connect_for(age: Age) -> Self {
        Self::connect_to(|port| Connections { age: Some(age), ..port })
    }

    /// A connection to a port that is set up like this.
    fn connect_to(set: impl FnOnce(Connections) -> Connections) -> Self {
        let health = Arc::new(Health::new(Clock::default()));
        let slowly = get(async || {
            sleep(Duration::from_secs(100)).await;
            "late"
        });
        let routes = Router::new().route("/", get(async || "ok")).route("/slowly", slowly);
        let connections = set(Connections::new(&health, routes, None));
        let (stream, server) = duplex(64 * 1024);
        let (running, stopping) = watch::channel(false);
        tokio::spawn(connections.speak(server, "192.0.2.1:1".parse().expect("one"), stopping));
        Self { stream, since: Instant::now(), running }
    }

    async fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.expect("an open connection");
    }

    /// Reads an answer with this body.
    async fn answer(&mut self, body: &str) {
        let mut answer = Vec::new();
        while !answer.ends_with(body.as_bytes()) {
            answer.push(self.stream.read_u8().await.expect("an answer"));
        }
        assert!(answer.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&answer));
        self.since = Instant::now();
    }

    /// For how long the connection has stayed open since the last answer.
    async fn end(mut self) -> Duration {
        let _ = self.stream.read_to_end(&mut Vec::new()).await;
        self.since.elapsed()
    }
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[tokio::test(start_paused = true)]
async fn a_connection_in_http_1_stays_open_for_longer_than_load_balancers_pause() {
    let mut client = Client::connect();
    for pause in [60, 74, 0] {
        client.send(GET).await;
        client.answer("ok").await;
        sleep(seconds(pause)).await;
    }
    let idle = client.end().await;
    assert!(idle >= seconds(75) && idle < seconds(90), "{idle:?}");
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_under_way_is_not_idle() {
    let mut client = Client::connect();
    client.send(b"GET /slowly HTTP/1.1\r\nhost: x\r\n\r\n").await;
    client.answer("late").await;
    client.send(GET).await;
    client.answer("ok").await;
}

#[tokio::test(start_paused = true)]
async fn a_head_that_comes_in_pieces_is_not_waited_for_after_ten_seconds() {
    for first in [true, false] {
        let mut client = Client::connect();
        if !first {
            client.send(GET).await;
            client.answer("ok").await;
            sleep(seconds(50)).await;
            client.since = Instant::now();
        }
        for byte in b"GET / H" {
            if client.stream.write_all(&[*byte]).await.is_err() {
                break;
            }
            sleep(seconds(9)).await;
            let open = client.since.elapsed();
            let is_open = timeout(Duration::ZERO, client.stream.read_u8()).await.is_err();
            assert_eq!(is_open, open < seconds(10), "{open:?}");
            if !is_open {
                break;
            }
        }
        assert_eq!(client.since.elapsed(), seconds(18));
    }
}

#[tokio::test(start_paused = true)]
async fn each_head_has_ten_seconds_of_its_own() {
    let mut client = Client::connect();
    for _ in 0..5 {
        let (begin, rest) = GET.split_at(5);
        client.send(begin).await;
        sleep(seconds(9)).await;
        client.send(rest).await;
        client.answer("ok").await;
    }
    // A head that begins with the end of another.
    client.send(&[GET, b"GET /"].concat()).await;
    client.answer("ok").await;
    let idle = client.end().await;
    assert!(idle < seconds(90), "{idle:?}");
}

#[tokio::test(start_paused = true)]
async fn a_head_that_has_begun_as_the_idle_time_ends_is_still_answered() {
    let mut client = Client::connect();
    client.send(GET).await;
    client.answer("ok").await;
    sleep(seconds(74)).await;
    let (begin, rest) = GET.split_at(5);
    client.send(begin).await;
    sleep(seconds(9)).await;
    client.send(rest).await;
    client.answer("ok").await;
}

/// A connection whose client has read that its body is not wanted.
async fn refused() -> Client {
    let mut client = Client::connect();
    client.send(b"POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 100000000\r\n\r\n").await;
    client.send(&[0; 1024 * 1024]).await;
    let mut answer = String::new();
    client.stream.read_to_string(&mut answer).await.expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 405") && answer.contains("connection: close"), "{answer}");
    client.since = Instant::now();
    client
}

#[tokio::test(start_paused = true)]
async fn a_body_that_nobody_reads_is_discarded_for_five_seconds() {
    let mut client = refused().await;
    while client.stream.write_all(&[0; 1024]).await.is_ok() {
        sleep(Duration::from_millis(100)).await;
    }
    let discarded = client.since.elapsed();
    assert!(discarded >= seconds(5) && discarded < seconds(6), "{discarded:?}");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_ends_a_body_that_nobody_reads_is_not_waited_for() {
    let mut client = refused().await;
    client.stream.shutdown().await.expect("an open connection");
    client.running.closed().await;
    assert_eq!(client.since.elapsed(), Duration::ZERO);
}

/// The frames of HTTP/2 that these tests need.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const DATA: u8 = 0;

async fn frame(client: &mut Client) -> std::io::Result<(u8, u8, Vec<u8>)> {
    let mut head = [0; 9];
    client.stream.read_exact(&mut head).await?;
    let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
    let mut payload = vec![0; length as usize];
    client.stream.read_exact(&mut payload).await?;
    Ok((head[3], head[4], payload))
}

async fn pong(client: &mut Client, payload: &[u8]) {
    // The connection may just have ended.
    let frame = [&[0, 0, 8, PING, 1, 0, 0, 0, 0][..], payload].concat();
    let _ = client.stream.write_all(&frame).await;
}

#[tokio::test(start_paused = true)]
async fn a_connection_in_http_2_stays_open_while_its_client_answers_pings() {
    let mut client = Client::connect_to(|port| Connections { keeps_http_2: true, ..port });
    client.send(PREFACE).await;
    let mut pings = 0;
    while client.since.elapsed() < seconds(3_600) {
        let (kind, flags, payload) = frame(&mut client).await.expect("an open connection");
        if kind == PING && flags == 0 {
            pings += 1;
            pong(&mut client, &payload).await;
        }
    }
    assert!(pings > 100, "{pings}");
    // From now on it does not.
    client.since = Instant::now();
    let silent = client.end().await;
    assert!(silent < seconds(60), "{silent:?}");
}

#[tokio::test(start_paused = true)]
async fn an_idle_connection_in_http_2_ends_although_its_client_answers_pings() {
    let mut client = Client::connect();
    client.send(PREFACE).await;
    let mut pings = 0;
    while let Ok((kind, flags, payload)) = frame(&mut client).await {
        if kind == PING && flags == 0 {
            pings += 1;
            assert!(pings < 100, "it never ends");
            pong(&mut client, &payload).await;
        }
    }
    let idle = client.since.elapsed();
    assert!(pings > 0 && idle >= seconds(75) && idle < seconds(90), "{idle:?}");
}

#[tokio::test(start_paused = true)]
async fn a_connection_in_http_2_is_not_idle_while_a_request_is_under_way() {
    let (goes, answered, _) = ends_of(Client::connect()).await;
    assert_eq!(answered, Some(seconds(100)));
    assert!(goes >= seconds(175) && goes < seconds(190), "{goes:?}");
}

/// When a connection with a call of 100 seconds says that it goes, answers, and ends. It becomes 60 seconds old.
async fn ends(grace: Duration) -> (Duration, Option<Duration>, Duration) {
    ends_of(Client::connect_for(Age { most: seconds(60), grace })).await
}

async fn ends_of(mut client: Client) -> (Duration, Option<Duration>, Duration) {
    client.send(PREFACE).await;
    let head = b"\x82\x86\x04\x07/slowly\x41\x01x";
    let length = u8::try_from(head.len()).expect("a short head");
    client.send(&[&[0, 0, length, 1, 5, 0, 0, 0, 1], &head[..]].concat()).await;
    let (mut goes, mut answered) = (None, None);
    while let Ok((kind, flags, payload)) = frame(&mut client).await {
        match kind {
            PING if flags == 0 => pong(&mut client, &payload).await,
            GOAWAY => goes = goes.or(Some(client.since.elapsed())),
            DATA if payload == b"late" => answered = Some(client.since.elapsed()),
            _ => {}
        }
    }
    (goes.expect("a GOAWAY"), answered, client.since.elapsed())
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_is_too_old_answers_its_calls_within_the_grace() {
    for _ in 0..20 {
        let (goes, answered, ended) = ends(seconds(600)).await;
        assert!(goes >= seconds(54) && goes <= seconds(66), "{goes:?}");
        assert_eq!(answered, Some(seconds(100)));
        assert_eq!(ended, seconds(100));
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_takes_longer_than_the_grace_is_cut_off() {
    let (goes, answered, ended) = ends(seconds(30)).await;
    assert_eq!(answered, None);
    assert!(ended - goes <= seconds(31), "{ended:?}");
}

#[tokio::test(start_paused = true)]
async fn connections_that_were_made_together_do_not_end_together() {
    let mut ages = std::collections::BTreeSet::new();
    for _ in 0..20 {
        ages.insert(ends(Duration::ZERO).await.0);
    }
    assert!(ages.len() > 10, "{ages:?}");
}

#[tokio::test(start_paused = true)]
async fn an_age_without_end_never_ends_a_connection() {
    let age = Age { most: Duration::MAX, grace: Duration::MAX };
    // Each becomes another part older or younger.
    for _ in 0..20 {
        let mut client = Client::connect_for(age);
        client.send(GET).await;
        client.answer("ok").await;
        sleep(seconds(1)).await;
        client.send(GET).await;
        client.answer("ok").await;
    }
}
