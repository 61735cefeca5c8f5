//! Budgets of tokens: the proxy reads requests and answers itself.

use super::support::{Running, Upstream};

/// 10,000 tokens, which do not come back within a test.
const BUDGET: &str = "[[rules]]\nname = \"tokens\"\nkey = \"global\"\nlimits = [\"fixed 10000/day\"]\n\
    when = { path = \"/v1/*\" }\ncost = { tokens = \"all\" }\nsettle = { tokens = \"all\" }\n\
    [dialect]\napi = \"openai\"\ntokens = \"tokens\"\n";

const STREAM: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n\
    4d\r\ndata: {\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":12,\"total_tokens\":21}}\n\r\n\
    1\r\n\n\r\ne\r\ndata: [DONE]\n\n\r\n";

const WHOLE: &str = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: 31\r\n\r\n\
    {\"usage\": {\"total_tokens\": 21}}";

fn post(path: &str, fields: &str, body: &str) -> String {
    let length = body.len();
    format!("POST {path} HTTP/1.1\r\nhost: a\r\n{fields}content-length: {length}\r\n\r\n{body}")
}

fn remaining(answer: &str) -> &str {
    let lines = answer.lines();
    let mut field = lines.filter_map(|line| line.strip_prefix("x-ratelimit-remaining-tokens: "));
    field.next().unwrap_or_else(|| panic!("{answer}"))
}

#[tokio::test]
async fn what_a_request_asks_for_is_reserved_and_what_its_answer_used_is_charged() {
    let body = r#"{"prompt": "12345678", "max_tokens": 998, "stream": true}"#;
    for (answer, end) in [(STREAM, "[DONE]\n\n\r\n"), (WHOLE, "21}}")] {
        let upstream = Upstream::start(answer).await;
        let proxy = Running::start(upstream.address, "", BUDGET).await;
        for spent in [0, 21] {
            // The answer of the application may never end.
            let mut client = proxy.connect().await;
            client.send(post("/v1/chat/completions", "accept-encoding: gzip\r\n", body)).await;
            let answer = client.until(end).await;
            assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
            assert_eq!(remaining(&answer), (9_000 - spent).to_string());
        }
        let seen = upstream.seen().concat();
        assert_eq!(seen.matches(body).count(), 2, "{seen}");
        assert_eq!(seen.matches("accept-encoding: identity\r\n").count(), 2, "{seen}");
        assert!(!seen.contains("gzip"), "{seen}");
    }
}

#[tokio::test]
async fn requests_that_no_rule_counts_by_tokens_are_passed_on_as_they_come() {
    let upstream = Upstream::start(WHOLE).await;
    let proxy = Running::start(upstream.address, "body = 1024", BUDGET).await;
    let mut client = proxy.connect().await;
    let long = "a".repeat(100_000);
    client.send(post("/upload", "accept-encoding: gzip\r\n", &long)).await;
    let answer = client.until("21}}").await;
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    assert!(!answer.contains("x-ratelimit"), "{answer}");
    assert!(upstream.head().contains("accept-encoding: gzip\r\n"));
}

#[tokio::test]
async fn a_body_beyond_the_bound_is_refused_in_the_words_of_the_api() {
    let upstream = Upstream::start(WHOLE).await;
    let proxy = Running::start(upstream.address, "body = 1024", BUDGET).await;
    let mut client = proxy.connect().await;
    client.send(post("/v1/chat/completions", "connection: close\r\n", &"a".repeat(2_000))).await;
    let answer = client.rest().await;
    assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
    assert!(answer.contains("invalid_request_error"), "{answer}");
    assert_eq!(upstream.seen(), [""; 0]);
}

#[tokio::test]
async fn a_request_that_asks_for_more_than_the_budget_never_reaches_the_application() {
    let upstream = Upstream::start(WHOLE).await;
    let proxy = Running::start(upstream.address, "", BUDGET).await;
    let mut client = proxy.connect().await;
    client.send(post("/v1/chat/completions", "", r#"{"max_tokens": 10001}"#)).await;
    let answer = client.until("\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 422 "), "{answer}");
    assert_eq!(upstream.seen(), [""; 0]);
}

#[tokio::test]
async fn a_client_that_never_sends_the_body_of_a_counted_request_is_answered() {
    let upstream = Upstream::start(WHOLE).await;
    let proxy = Running::start(upstream.address, "read_timeout = \"50 ms\"", BUDGET).await;
    let head = b"POST /v1/a HTTP/1.1\r\nhost: a\r\ncontent-length: 10\r\n\r\n{";
    let answer = proxy.answer(head).await;
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
}
