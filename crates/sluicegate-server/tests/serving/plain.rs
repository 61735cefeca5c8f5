//! Plain requests are answered without the routes, and every client gets what the routes answer.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::http::send;
use crate::server::{Running, start, start_rules};

const FILE: &str = "domain: edge
descriptors:
- key: user
  rate_limit: { unit: hour, requests_per_unit: 2 }
";

const RULES: &str = r#"
[[rules]]
name = "take"
key = { claim = "user" }
limits = ["2/h"]
"#;

/// How a body can be sent.
#[derive(Debug, Clone, Copy)]
enum Way {
    /// With its length: the plain way.
    Whole,
    /// In chunks, which only the routes take.
    Chunked,
}

async fn answer(server: &Running, path: &str, kind: &str, way: Way, body: &str) -> String {
    let framing = match way {
        Way::Whole => format!("content-length: {}\r\n\r\n{body}", body.len()),
        Way::Chunked => {
            let chunks = body.as_bytes().chunks(7).map(|chunk| {
                let chunk = std::str::from_utf8(chunk).expect("ASCII");
                format!("{:x}\r\n{chunk}\r\n", chunk.len())
            });
            let chunks: String = chunks.collect();
            format!("transfer-encoding: chunked\r\n\r\n{chunks}0\r\n\r\n")
        }
    };
    let head = format!("POST {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n{kind}");
    let (_, head, body) = send(&server.http, &(head + &framing)).await;
    let mut head: Vec<_> = head.lines().filter(|line| !line.starts_with("date:")).collect();
    head[1..].sort_unstable();
    format!("{}\n\n{body}", head.join("\n"))
}

/// Both ways, each with a user of its own, who is `USER` in the body.
async fn same(server: &Running, path: &str, kind: &str, body: &str) -> String {
    let plain = answer(server, path, kind, Way::Whole, &body.replace("USER", "anna")).await;
    let routed = answer(server, path, kind, Way::Chunked, &body.replace("USER", "bert")).await;
    assert_eq!(plain, routed, "{body}");
    plain
}

const JSON: &str = "content-type: application/json\r\n";

#[tokio::test]
async fn plain_requests_of_json_are_answered_as_the_routes_answer() {
    let server = start(FILE).await;
    let body = r#"{"domain":"edge","descriptors":[{"entries":[{"key":"user","value":"USER"}]}]}"#;
    for status in ["200", "200", "429", "429"] {
        let answer = same(&server, "/json", JSON, body).await;
        assert!(answer.starts_with(&format!("http/1.1 {status}")), "{answer}");
    }
    for body in ["", "{", "[]", "{}", r#"{"domain":"edge","x":1}"#, &format!("{body} {{}}")] {
        let answer = same(&server, "/json", "", body).await;
        assert!(answer.starts_with("http/1.1 400"), "{answer}");
    }
}

#[tokio::test]
async fn plain_requests_of_take_are_answered_as_the_routes_answer() {
    let server = start_rules(RULES).await;
    let body = r#"{"path":"/x?a=b","headers":{"a":"b"},"claims":{"user":"USER"}}"#;
    for status in ["200", "200", "429", "429"] {
        let answer = same(&server, "/v1/take", JSON, body).await;
        assert!(answer.starts_with(&format!("http/1.1 {status}")), "{answer}");
    }
    for (body, status) in [
        ("", "400"),
        ("{", "400"),
        ("[]", "400"),
        ("{}", "400"),
        (r#"{"claims":{"user":1}}"#, "400"),
        (r#"{"path":"/?a","query":"b","claims":{"user":"USER"}}"#, "400"),
        (r#"{"claims":{"user":"USER"},"cost":3}"#, "422"),
        (r#"{"claims":{"user":"USER"}} {}"#, "400"),
    ] {
        let answer = same(&server, "/v1/take", JSON, body).await;
        assert!(answer.starts_with(&format!("http/1.1 {status}")), "{answer}");
    }
    for (kind, status) in [
        ("", "415"),
        ("content-type: text/plain\r\n", "415"),
        ("content-type: Application/JSON; charset=utf-8\r\n", "429"),
        ("content-type: application/x+json\r\n", "429"),
    ] {
        let answer = same(&server, "/v1/take", kind, body).await;
        assert!(answer.starts_with(&format!("http/1.1 {status}")), "{answer}");
    }
}

#[tokio::test]
async fn other_methods_and_longer_bodies_are_refused_at_the_paths_of_plain_requests() {
    let server = start_rules(RULES).await;
    for path in ["/json", "/v1/take"] {
        let get = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
        let (status, head, _) = send(&server.http, &get).await;
        assert!(status == 405 && head.contains("allow: post"), "{head}");
        let long = " ".repeat(300_000);
        let answer = answer(&server, path, JSON, Way::Whole, &long).await;
        assert!(answer.starts_with("http/1.1 413"), "{answer}");
        let above = format!("POST {path}/ HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
        assert_eq!(send(&server.http, &above).await.0, 404);
    }
}

#[tokio::test]
async fn a_plain_body_that_comes_in_pieces_is_read_whole() {
    let server = start_rules(RULES).await;
    // More than hyper reads at a time.
    let long = "x".repeat(200_000);
    let body = format!(r#"{{"headers":{{"x":"{long}"}},"claims":{{"user":"anna"}}}}"#);
    let answer = answer(&server, "/v1/take", JSON, Way::Whole, &body).await;
    assert!(answer.starts_with("http/1.1 200"), "{answer}");
}

#[tokio::test(start_paused = true)]
async fn a_plain_body_that_does_not_come_is_not_waited_for() {
    let server = start_rules(RULES).await;
    for path in ["/json", "/v1/take"] {
        let head = format!("POST {path} HTTP/1.1\r\nhost: x\r\n{JSON}content-length: 9\r\n\r\n{{");
        let mut stream = TcpStream::connect(&server.http).await.expect("a connection");
        stream.write_all(head.as_bytes()).await.expect("sent");
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        assert!(answer.starts_with(b"HTTP/1.1 408"), "{}", String::from_utf8_lossy(&answer));
    }
}
