//! What the servers are asked: about one descriptor of one key, which has many values.

use std::env;

use envoy_types::pb::envoy::extensions::common::ratelimit::v3::RateLimitDescriptor;
use envoy_types::pb::envoy::extensions::common::ratelimit::v3::rate_limit_descriptor::Entry;
use envoy_types::pb::envoy::service::ratelimit::v3::RateLimitRequest;
use prost::Message;

use super::serve::Kind;
use crate::load::{Requests, request};

/// Values of the key.
const USERS: usize = 10_000;

/// The same question for `/json`.
const HTTP_BODY: &str =
    r#"{"domain":"edge","descriptors":[{"entries":[{"key":"user","value":"USER"}]}]}"#;

/// A question of `/v1/take`.
const TAKE_BODY: &str = r#"{"path":"/api/x","claims":{"user":"USER"}}"#;

const ENVOY: &str = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";
const THROTTLECRAB: &str = "/throttlecrab.RateLimiter/Throttle";

/// What a server of this kind is asked.
pub fn requests(kind: Kind) -> Requests {
    let http = |requests: Vec<Vec<u8>>| Requests::Http { requests, expected: 200 };
    let filled = |path: &str, body: &str| {
        http(users().map(|user| request("POST", path, &[], &body.replace("USER", &user))).collect())
    };
    match kind {
        Kind::Tonic
        | Kind::Sluicegate
        | Kind::SluicegateRedis
        | Kind::Like
        | Kind::LikeRedis
        | Kind::Limitador => envoy(users().map(message).collect(), 1),
        Kind::Throttlecrab => {
            let messages = throttlecrab_messages();
            Requests::Grpc { path: THROTTLECRAB.to_owned(), messages, expected: vec![0x08, 0x01] }
        }
        // The bare handler gets the same fields.
        Kind::AxumGet => http(users().map(|user| forwarded("/", &user)).collect()),
        Kind::AxumPost => filled("/", HTTP_BODY),
        Kind::Json | Kind::JsonLike => filled("/json", HTTP_BODY),
        Kind::Take => filled("/v1/take", TAKE_BODY),
        Kind::Check => http(users().map(|user| forwarded("/check", &user)).collect()),
    }
}

/// A request as Traefik and Caddy send it.
fn forwarded(path: &str, user: &str) -> Vec<u8> {
    let fields = [
        ("x-forwarded-method", "GET"),
        ("x-forwarded-uri", "/api/x"),
        ("x-forwarded-host", "example.org"),
        ("x-forwarded-proto", "https"),
        ("x-forwarded-for", "203.0.113.7"),
        ("x-user", user),
    ];
    request("GET", path, &fields, "")
}

/// Questions of Envoy about this user, where the right answer has this code.
pub(super) fn asking(user: &str, code: u8) -> Requests {
    envoy(vec![message(user.to_owned())], code)
}

fn envoy(messages: Vec<Vec<u8>>, code: u8) -> Requests {
    // `overall_code` is the first field of every answer.
    Requests::Grpc { path: ENVOY.to_owned(), messages, expected: vec![0x08, code] }
}

/// A message of Envoy's protocol.
fn message(user: String) -> Vec<u8> {
    let entries = vec![Entry { key: "user".to_owned(), value: user }];
    RateLimitRequest {
        domain: "edge".to_owned(),
        descriptors: vec![RateLimitDescriptor { entries, ..RateLimitDescriptor::default() }],
        ..RateLimitRequest::default()
    }
    .encode_to_vec()
}

/// The same question for throttlecrab: the key, a burst, a count, a period, one.
fn throttlecrab_messages() -> Vec<Vec<u8>> {
    let message = |user: String| {
        let mut message = vec![0x0a, user.len() as u8];
        message.extend_from_slice(user.as_bytes());
        for (field, value) in [(2, 1_000_000_000), (3, 1_000_000_000), (4, 86_400), (5, 1)] {
            message.push(field << 3);
            prost::encoding::encode_varint(value, &mut message);
        }
        message
    };
    users().map(message).collect()
}

fn users() -> impl Iterator<Item = String> {
    // One user is enough to see that it works.
    let count = if env::args().any(|argument| argument == "--bench") { USERS } else { 1 };
    (0..count).map(|number| format!("user-{number:06}"))
}
