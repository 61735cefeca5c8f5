//! Forward auth, as each proxy asks.

use std::time::Duration;

use axum::body::Body;
use axum::http::{Method, Request};
use hyper_util::rt::{TokioExecutor, TokioIo};
use sluicegate_redis::Redis;
use tokio::net::TcpStream;

use super::RULES;
use super::server::{forwarded, start, start_until, start_with};

#[tokio::test]
async fn a_request_is_let_through_until_its_client_has_spent_its_limit() {
    let server = start(RULES).await;
    for left in [1, 0] {
        let answer = server.forwarded("/users?page=2", "192.0.2.7").await;
        assert_eq!((answer.status, answer.body.as_str()), (200, ""));
        assert_eq!(answer.field("ratelimit"), format!("\"api\";r={left};t=30"));
    }
    let refused = server.forwarded("/users?page=2", "192.0.2.7").await;
    assert_eq!((refused.status, refused.field("retry-after")), (429, "30"));
    assert_eq!(refused.field("content-type"), "application/problem+json");
    assert!(refused.body.contains("quota-exceeded"), "{}", refused.body);
    // Another client is another key.
    assert_eq!(server.forwarded("/users", "192.0.2.8").await.status, 200);
    server.clock.advance(Duration::from_secs(30));
    assert_eq!(server.forwarded("/users", "192.0.2.7").await.status, 200);
}

#[tokio::test]
async fn fields_and_refusals_are_in_the_dialect_of_the_rules() {
    let rules = format!("{RULES}\n[dialect]\napi = \"openai\"\nrequests = \"api\"\n");
    let server = start(&rules).await;
    for left in ["1", "0"] {
        let answer = server.forwarded("/users", "192.0.2.7").await;
        assert_eq!(answer.field("x-ratelimit-remaining-requests"), left);
    }
    let refused = server.forwarded("/users", "192.0.2.7").await;
    assert_eq!((refused.status, refused.field("retry-after-ms")), (429, "30000"));
    assert_eq!(refused.field("content-type"), "application/json");
    assert!(
        refused.body.starts_with("{\"error\":{\"message\":\"Rate limit reached"),
        "{}",
        refused.body
    );
}

#[tokio::test]
async fn rules_see_the_method_path_host_and_fields_of_the_client() {
    let rules = r#"
        [[rules]]
        name = "login"
        key = { header = "x-api-key" }
        limits = ["1/minute"]
        when = { method = "POST", path = "/login", host = "api.example" }
    "#;
    let server = start(rules).await;
    let ask = async |method: &str, uri: &str| {
        let mut fields = forwarded(method, uri, "192.0.2.7").to_vec();
        fields.push(("x-api-key", "k1"));
        server.ask("/check", &fields).await.status
    };
    assert_eq!(ask("POST", "/login").await, 200);
    // Every spelling of the path is the same path.
    for uri in
        ["/login", "/%6cogin", "//login", "/./login", "/login?a=b", "http://api.example/login"]
    {
        assert_eq!(ask("POST", uri).await, 429, "{uri}");
    }
    assert_eq!(ask("GET", "/login").await, 200);
    assert_eq!(ask("POST", "/logout").await, 200);
}

#[tokio::test]
async fn the_method_of_the_question_does_not_matter_and_its_body_is_not_read() {
    let server = start(RULES).await;
    for method in [Method::POST, Method::PUT, Method::DELETE, Method::HEAD] {
        let mut request = Request::builder().method(&method).uri(server.url("/check"));
        for (name, value) in forwarded("GET", "/", &format!("192.0.2.{}", method.as_str().len())) {
            request = request.header(name, value);
        }
        let answer = server.send(request.body(Body::from("body")).expect("a request")).await;
        assert_eq!(answer.status, 200, "{method}");
    }
}

const ORIGINAL: [(&str, &str); 4] = [
    ("x-original-method", "GET"),
    ("x-original-uri", "/users"),
    ("x-original-host", "api.example"),
    ("x-forwarded-for", "192.0.2.7"),
];

#[tokio::test]
async fn nginx_gets_403_and_the_status_in_a_field() {
    let server = start(RULES).await;
    for _ in 0..2 {
        let answer = server.ask("/check/nginx", &ORIGINAL).await;
        assert_eq!((answer.status, answer.field("sluicegate-status")), (200, ""));
    }
    let refused = server.ask("/check/nginx", &ORIGINAL).await;
    assert_eq!((refused.status, refused.field("sluicegate-status")), (403, "429"));
    assert_eq!(refused.field("retry-after"), "30");
    assert_eq!(refused.field("ratelimit"), "\"api\";r=0;t=30");
}

#[tokio::test]
async fn a_target_that_is_not_valid_is_a_400_for_the_client_of_nginx_and_no_error_of_nginx() {
    let server = start(RULES).await;
    let mut fields = ORIGINAL;
    fields[1].1 = "users";
    let answer = server.ask("/check/nginx", &fields).await;
    assert_eq!((answer.status, answer.field("sluicegate-status")), (403, "400"));
    // nginx does not say what it asks about.
    let answer = server.ask("/check/nginx", &ORIGINAL[1..]).await;
    assert_eq!((answer.status, answer.field("sluicegate-status")), (400, ""));
}

#[tokio::test]
async fn envoy_asks_with_the_method_and_path_of_the_request() {
    let server =
        start(&RULES.replace("\"2/minute\"]", "\"1/minute\"]\nwhen = { path = \"/users\" }")).await;
    let host = ("host", "api.example");
    let fields = [host, ("x-forwarded-for", "192.0.2.7")];
    assert_eq!(server.ask("/check/envoy/users?page=2", &fields).await.status, 200);
    assert_eq!(server.ask("/check/envoy/users", &fields).await.status, 429);
    assert_eq!(server.ask("/check/envoy/%75sers", &fields).await.status, 429);
    assert_eq!(server.ask("/check/envoy//users", &fields).await.status, 429);
    for path in ["/check/envoy/", "/check/envoy/nginx", "/check/envoy/others"] {
        assert_eq!(server.ask(path, &fields).await.status, 200, "{path}");
    }
}

#[tokio::test]
async fn the_host_of_a_question_in_http_2_is_that_of_the_request() {
    let rules = RULES.replace("\"2/minute\"]", "\"1/minute\"]\nwhen = { host = \"api.example\" }");
    let server = start(&rules).await;
    let ask = async |host: &str, address: &str| {
        let stream = TcpStream::connect(server.address()).await.expect("a connection");
        let (mut client, connection) =
            hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
                .await
                .expect("HTTP/2");
        tokio::spawn(connection);
        let request = Request::get(format!("http://{host}/check/envoy/users"));
        let request = request.header("x-forwarded-for", address).body(Body::empty());
        client.send_request(request.expect("a request")).await.expect("an answer").status().as_u16()
    };
    assert_eq!(ask("api.example", "192.0.2.7").await, 200);
    assert_eq!(ask("API.example:80", "192.0.2.7").await, 429);
    assert_eq!(ask("api.example", "192.0.2.8").await, 200);
    assert_eq!(ask("other.example", "192.0.2.7").await, 200);
}

#[tokio::test]
async fn a_store_that_is_away_is_503_and_never_429() {
    // Nobody listens there.
    let away = || Redis::builder().url("redis://127.0.0.1:1").build().expect("a URL");
    let server = start_with(RULES, |service| service.store(away())).await;
    assert_eq!(server.forwarded("/", "192.0.2.7").await.status, 503);
    let answer = server.ask("/check/nginx", &ORIGINAL).await;
    assert_eq!((answer.status, answer.field("sluicegate-status")), (403, "503"));

    let admit = sluicegate_core::store::OnStoreError::Admit;
    let server = start_with(RULES, |service| service.store(away()).on_store_error(admit)).await;
    assert_eq!(server.forwarded("/", "192.0.2.7").await.status, 200);
}

#[tokio::test]
async fn a_degraded_request_is_let_through_and_marked() {
    let rules = format!("{RULES}reject = \"degrade\"\n");
    let server = start(&rules).await;
    for mark in ["", "", "?1"] {
        let answer = server.forwarded("/", "192.0.2.7").await;
        assert_eq!((answer.status, answer.field("sluicegate-degraded")), (200, mark));
    }
}

#[tokio::test]
async fn characters_that_clients_should_have_encoded_are_let_through_as_proxies_do() {
    let rules = RULES.replace("\"2/minute\"]", "\"1/minute\"]\nwhen = { path = \"/users|x\" }");
    let server = start(&rules).await;
    assert_eq!(server.forwarded("/users%7Cx", "192.0.2.7").await.status, 200);
    for uri in ["/users|x", "/users|x?a={\"b\":<1>}", "/users%7cx?^`\\"] {
        assert_eq!(server.forwarded(uri, "192.0.2.7").await.status, 429, "{uri}");
        assert_eq!(server.forwarded(uri, &format!("192.0.2.{}", uri.len())).await.status, 200);
    }
}

#[tokio::test]
async fn a_service_in_shadow_mode_lets_every_request_through() {
    let server = start_with(RULES, |service| service.shadow(true)).await;
    for _ in 0..4 {
        assert_eq!(server.forwarded("/", "192.0.2.7").await.status, 200);
    }
    let rules =
        "[[rules]]\nname = \"api\"\nkey = { header = \"x-api-key\" }\nlimits = [\"1/hour\"]\n";
    for (shadow, status) in [(false, 400), (true, 200)] {
        let server = start_with(rules, |service| service.shadow(shadow)).await;
        let answer = server.forwarded("/", "192.0.2.7").await;
        assert_eq!(answer.status, status, "without a key, shadow: {shadow}");
    }
}

/// The application's response comes after the decision.
#[tokio::test]
async fn a_rule_by_the_response_counts_every_request_of_a_proxy_that_asks_before() {
    let rules = "[[rules]]\nname = \"login\"\nkey = \"ip\"\nlimits = [\"log 2/minute\", \"concurrent 1\"]\n\
        count_if = [401]\n";
    let server = start(rules).await;
    for status in [200, 200, 429] {
        assert_eq!(server.forwarded("/login", "192.0.2.7").await.status, status);
    }
}

#[tokio::test]
async fn a_get_which_takes_a_shortcut_is_answered_like_a_post_which_takes_the_routes() {
    let server = start(RULES).await;
    let ask = async |method: Method, path: &str, fields: &[(&str, &str)]| {
        let mut request = Request::builder().method(method).uri(server.url(path));
        for (name, value) in fields {
            request = request.header(*name, *value);
        }
        let mut answer = server.send(request.body(Body::empty()).expect("a request")).await;
        answer.headers.remove("date");
        answer
    };
    let mut invalid = ORIGINAL;
    invalid[1].1 = "users";
    let twice = [&ORIGINAL[..], &ORIGINAL[..1]].concat();
    let spent = forwarded("GET", "/users", "192.0.2.7");
    for _ in 0..2 {
        assert_eq!(ask(Method::GET, "/check", &spent).await.status, 200);
    }
    for (path, fields, status) in [
        ("/check", &spent[..], 429),
        ("/check?a=b", &spent, 429),
        ("/check/nginx", &ORIGINAL, 403),
        ("/check/nginx", &invalid, 403),
        ("/check/nginx", &twice, 400),
        ("/check/nginx", &[], 400),
        ("/check", &spent[1..], 400),
        ("/check/", &spent, 404),
        ("/check/other", &spent, 404),
    ] {
        let answer = ask(Method::GET, path, fields).await;
        assert_eq!(answer.status, status, "{path} {fields:?}");
        assert_eq!(answer, ask(Method::POST, path, fields).await, "{path} {fields:?}");
    }
    let allowed = async |method| ask(method, "/check", &forwarded("GET", "/", "192.0.2.8")).await;
    let (get, mut post) = (allowed(Method::GET).await, allowed(Method::POST).await);
    assert_eq!(get.field("ratelimit"), "\"api\";r=1;t=30");
    post.headers.insert("ratelimit", get.headers["ratelimit"].clone());
    assert_eq!(get, post);
}

#[tokio::test]
async fn a_server_that_stops_says_that_an_answer_is_the_last_on_its_connection() {
    let stopping = start_until(RULES, |service| service, std::future::ready(())).await;
    let going_on = start(RULES).await;
    for (path, fields) in [
        ("/check", &forwarded("GET", "/", "192.0.2.7")),
        ("/check/nginx", &ORIGINAL),
        ("/check/envoy/users", &forwarded("GET", "/", "192.0.2.8")),
    ] {
        let answer = stopping.ask(path, fields).await;
        assert_eq!((answer.status, answer.field("connection")), (200, "close"), "{path}");
        assert_eq!(going_on.ask(path, fields).await.field("connection"), "", "{path}");
    }
}
