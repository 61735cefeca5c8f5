//! Plain requests are answered without the routes, and every client gets what the routes answer.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::http::send;
use super::server::{Running, start, start_rules};

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
    // What a page of another site can have a browser send is not read.
    for (fields, status) in [
        ("content-type: text/plain\r\n", "415"),
        ("content-type: text/plain\r\norigin: http://evil.example\r\n", "415"),
        ("content-type: application/x-www-form-urlencoded\r\n", "415"),
        ("content-type: multipart/form-data\r\n", "415"),
        ("content-type: application/jsonp\r\n", "415"),
        ("content-type: \r\n", "415"),
        ("content-type: text/json+json\r\n", "415"),
        ("origin: http://evil.example\r\n", "415"),
        ("content-type: application/json\r\norigin: http://evil.example\r\n", "415"),
        ("content-type: application/json\r\norigin: null\r\n", "415"),
        ("content-type: application/json\r\nsec-fetch-site: cross-site\r\n", "415"),
        ("content-type: application/json\r\norigin: http://x\r\n", "429"),
        ("content-type: Application/JSON; charset=utf-8\r\n", "429"),
        ("content-type: application/x+json\r\n", "429"),
    ] {
        let answer = same(&server, "/json", fields, body).await;
        assert!(answer.starts_with(&format!("http/1.1 {status}")), "{fields:?}: {answer}");
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
async fn an_answer_after_which_the_connection_ends_says_so() {
    let server = start_rules(RULES).await;
    let long = "x".repeat(300 * 1024);
    let chunked = "transfer-encoding: chunked\r\n\r\n1\r\n{\r\n";
    for (target, rest) in [
        ("POST /v1/take", format!("{JSON}content-length: 1000000\r\n\r\n{long}")),
        ("POST /json", format!("{JSON}content-length: 1000000\r\n\r\n{long}")),
        // The body has not come when the answer is written.
        ("POST /v1/settle", "content-type: text/plain\r\ncontent-length: 9\r\n\r\n".to_owned()),
        ("POST /nowhere", "content-length: 9\r\n\r\n{".to_owned()),
        ("PUT /json", "expect: 100-continue\r\ncontent-length: 9\r\n\r\n".to_owned()),
        ("GET /check", "content-length: 9\r\n\r\n".to_owned()),
        ("POST /nowhere", chunked.to_owned()),
        ("POST /healthz", "transfer-encoding: chunked\r\n\r\n0\r\nx: 1\n\n".to_owned()),
    ] {
        let mut stream = TcpStream::connect(&server.http).await.expect("a connection");
        let request = format!("{target} HTTP/1.1\r\nhost: x\r\n{rest}");
        let _ = stream.write_all(request.as_bytes()).await;
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer).await;
        let answer = String::from_utf8_lossy(&answer).to_lowercase();
        assert!(answer.starts_with("http/1.1 4"), "{target} {rest:.60}: {answer}");
        assert!(answer.contains("connection: close\r\n"), "{target} {rest:.60}: {answer}");
    }
}

#[tokio::test]
async fn an_answer_after_which_the_connection_goes_on_is_followed_by_others() {
    let server = start_rules(RULES).await;
    let mut stream = TcpStream::connect(&server.http).await.expect("a connection");
    for request in [
        "POST /nowhere HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\n{\"a\": \"\"}",
        "POST /v1/take HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\n\r\n{}",
        "POST /json HTTP/1.1\r\nhost: x\r\ncontent-type: text/plain\r\ncontent-length: 2\r\n\r\n{}",
        "POST /nowhere HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n1\r\n{\r\n0\r\n\r\n",
        "GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n",
    ] {
        stream.write_all(request.as_bytes()).await.expect("an open connection");
        let mut answer = [0; 4096];
        let length = stream.read(&mut answer).await.expect("an answer");
        let answer = String::from_utf8_lossy(&answer[..length]).to_lowercase();
        assert!(
            answer.starts_with("http/1.1 ") && !answer.contains("connection: close"),
            "{answer}"
        );
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
