//! Bodies pass through the proxy, and do not pile up.

#[expect(dead_code, reason = "other tests need more of it")]
#[path = "../server/proxy/support.rs"]
mod support;

use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::timeout;

use self::support::{OK, Running, Upstream};
use super::memory;

/// 1 GB in each direction.
const LENGTH: usize = 1024 * 1024 * 1024;

const PIECE: usize = 64 * 1024;

/// How much more memory the process may take, in bytes. The test's own buffers are part of it.
const MORE: usize = 8 << 20;

/// Sends a body back as it comes.
async fn echo() -> std::net::SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.expect("a connection");
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.expect("a head"));
        }
        let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {LENGTH}\r\n\r\n");
        stream.write_all(answer.as_bytes()).await.expect("a client");
        let mut piece = vec![0; PIECE];
        loop {
            let length = stream.read(&mut piece).await.expect("a body");
            if length == 0 || stream.write_all(&piece[..length]).await.is_err() {
                return;
            }
        }
    });
    address
}

#[test]
fn a_large_body_passes_in_both_directions_in_little_memory() {
    super::alone(async {
        let proxy = Running::start(echo().await, "", "").await;
        let stream = TcpStream::connect(proxy.address).await.expect("a connection");
        let (mut read, mut write) = stream.into_split();
        let head = format!("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: {LENGTH}\r\n\r\n");
        write.write_all(head.as_bytes()).await.expect("a proxy");
        let piece = Bytes::from(vec![b'x'; PIECE]);
        // What is set up once is there after the first pieces.
        write.write_all(&piece).await.expect("a proxy");
        let mut came = vec![0; PIECE];
        let mut received = 0;
        while received < PIECE {
            received += read.read(&mut came).await.expect("a body");
        }
        let before = memory();
        let mut most = before;
        let writing = tokio::spawn(async move {
            for _ in 1..LENGTH / PIECE {
                write.write_all(&piece).await.expect("a proxy");
            }
            write
        });
        while received < LENGTH {
            let length = read.read(&mut came).await.expect("a body");
            assert!(length > 0, "the body ended after {received} bytes");
            received += length;
            // Looked at with each piece, some thousand times: bodies that pile up are seen long before their end.
            most = most.max(memory());
        }
        drop(writing.await.expect("no panic"));
        let more = most - before;
        println!("{more} bytes more");
        assert!(more < MORE, "{more} bytes more");
    });
}

/// The default of `listen.body`.
const KEPT: usize = 2 * 1024 * 1024;

/// How much the proxy keeps of all bodies whose tokens are counted, in bytes. A buffer that grows may have twice as much, and
/// each connection has buffers of its own.
const ROOM: usize = 128 << 20;

/// The addresses of clients behind a proxy in front of this one.
const GREEDY: &str = "10.0.0.1";
const OTHER: &str = "10.0.0.2";

/// A client at this address that has sent `sent` bytes of a body of `length`.
async fn begun(proxy: &Running, address: &str, length: usize, sent: usize) -> TcpStream {
    let mut client = TcpStream::connect(proxy.address).await.expect("a connection");
    let head = format!(
        "POST / HTTP/1.1\r\nhost: a\r\nx-forwarded-for: {address}\r\ncontent-length: {length}\r\n\r\n"
    );
    client.write_all(head.as_bytes()).await.expect("a proxy");
    // The proxy may have answered already, and have closed the connection.
    let _ = client.write_all(&vec![b'x'; sent]).await;
    client
}

async fn answer(mut client: TcpStream) -> String {
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        answer.push(client.read_u8().await.expect("an answer"));
    }
    String::from_utf8_lossy(&answer).to_lowercase()
}

#[test]
fn bodies_whose_tokens_are_counted_do_not_pile_up() {
    super::alone(async {
        let upstream = Upstream::start(OK).await;
        let rules = "[[rules]]\nname = \"tokens\"\nkey = \"global\"\nlimits = [\"fixed 1000000000/day\"]\n\
            cost = { tokens = \"all\" }\nsettle = { tokens = \"all\" }\n\
            [proxies]\ntrusted = [\"127.0.0.1\"]\n";
        let proxy = Running::start(upstream.address, "read_timeout = \"10 minutes\"", rules).await;
        let before = memory();
        let mut waiting = Vec::new();
        for _ in 0..ROOM / KEPT * 3 {
            waiting.push(begun(&proxy, GREEDY, KEPT, KEPT - 1).await);
            let more = memory().saturating_sub(before);
            assert!(more < 3 * ROOM, "{more} bytes more");
        }
        // Bodies that were refused have left some room.
        let mut others = JoinSet::new();
        let refused = loop {
            let client = begun(&proxy, GREEDY, KEPT, PIECE).await;
            others.spawn(answer(client));
            let answered = timeout(Duration::from_millis(20), others.join_next()).await;
            if let Ok(Some(refused)) = answered {
                break refused.expect("no panic");
            }
        };
        assert!(refused.starts_with("http/1.1 503 "), "{refused}");
        assert!(refused.contains("\r\nretry-after: 1\r\n"), "{refused}");
        assert_eq!(upstream.seen(), [""; 0], "the application has seen a request");
        // The client of all these bodies has half of the room, so another one has the other half.
        let other = answer(begun(&proxy, OTHER, KEPT, KEPT).await).await;
        assert!(other.starts_with("http/1.1 200 "), "{other}");
        // Those that are gone give back what they have taken.
        drop((waiting, others));
        loop {
            let answer = answer(begun(&proxy, GREEDY, 1_000, 1_000).await).await;
            if answer.starts_with("http/1.1 200 ") {
                break;
            }
            assert!(answer.starts_with("http/1.1 503 "), "{answer}");
        }
    });
}
