//! Requests of clients that send what is no text, or too much of it: no call of Envoy fails, because Envoy lets requests pass
//! whose calls fail.

use std::future::poll_fn;
use std::pin::Pin;

use axum::body::{Body, HttpBody as _};
use axum::http;
use axum::http::uri::PathAndQuery;
use envoy_types::pb::envoy::config::core::v3::{Address, SocketAddress, address};
use envoy_types::pb::envoy::service::auth::v3::attribute_context::{self, HttpRequest, Peer};
use envoy_types::pb::envoy::service::auth::v3::check_response::HttpResponse;
use envoy_types::pb::envoy::service::auth::v3::{AttributeContext, CheckRequest, CheckResponse};
use envoy_types::pb::envoy::service::ratelimit::v3::{RateLimitRequest, RateLimitResponse};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use prost::Message;
use serde_json::json;
use sluicegate_server::Policies;
use tokio_stream::StreamExt as _;
use tonic::Request;
use tonic::client::Grpc;
use tonic::transport::Channel;
use tonic_prost::ProstCodec;

use super::http::post;
use super::server::{Running, descriptor, is_over, serve, start, start_rules};

const RATE_LIMIT: &str = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";
const CHECK: &str = "/envoy.service.auth.v3.Authorization/Check";
const QUOTAS: &str =
    "/envoy.service.rate_limit_quota.v3.RateLimitQuotaService/StreamRateLimitQuotas";

/// As long as `\xff\xfe` in a message, and nowhere else in it.
const MARK: &str = "@@";

/// The message in the answer to a call. In the message sent, each [`MARK`] is replaced by these bytes.
async fn called<M: Message + Default>(
    server: &Running,
    path: &str,
    message: &impl Message,
    bytes: [u8; 2],
) -> M {
    let mut message = message.encode_to_vec();
    for at in 0..message.len().saturating_sub(1) {
        if message[at..at + 2] == *MARK.as_bytes() {
            message[at..at + 2].copy_from_slice(&bytes);
        }
    }
    let length = u32::try_from(message.len()).expect("a length").to_be_bytes();
    let body = [&[0][..], &length, &message].concat();
    let call = http::Request::post(format!("{}{path}", server.grpc)).header("te", "trailers");
    let call = call.header("content-type", "application/grpc").body(Body::from(body));
    let client = Client::builder(TokioExecutor::new()).http2_only(true).build_http();
    let answer = client.request(call.expect("a call")).await.expect("an answer");
    assert_eq!(answer.headers().get("grpc-status"), None, "{:?}", answer.headers());
    let (mut body, mut data) = (answer.into_body(), Vec::new());
    while let Some(frame) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
        match frame.expect("a frame").into_data() {
            Ok(more) => data.extend_from_slice(&more),
            Err(trailers) => {
                let trailers = trailers.into_trailers().expect("trailers");
                assert_eq!(trailers["grpc-status"], "0", "{trailers:?}");
            }
        }
    }
    M::decode(&data[5..]).expect("a message")
}

async fn asked(server: &Running, descriptors: &[&[(&str, &str)]], bytes: [u8; 2]) -> bool {
    let descriptors = descriptors.iter().map(|entries| descriptor(entries)).collect();
    let request = RateLimitRequest { domain: "edge".to_owned(), descriptors, hits_addend: 0 };
    is_over(&called::<RateLimitResponse>(server, RATE_LIMIT, &request, bytes).await)
}

const FILE: &str = "domain: edge
descriptors:
- key: remote_address
  rate_limit: { unit: hour, requests_per_unit: 2 }
- key: api_key
  rate_limit: { unit: hour, requests_per_unit: 1 }
- key: path
  value: \"/login*\"
  rate_limit: { unit: hour, requests_per_unit: 1 }
  share_threshold: true
";

const RULES: &str = r#"
[[rules]]
name = "address"
key = "ip"
limits = ["2/hour"]

[[rules]]
name = "key"
key = { optional = { claim = "api_key" } }
limits = ["1/hour"]

[[rules]]
name = "login"
key = "global"
limits = ["1/hour"]
when = { path = "/login/*" }
"#;

#[tokio::test]
async fn a_value_that_is_no_text_is_a_key_like_others() {
    for server in [start(FILE).await, start_rules(RULES).await] {
        let by = async |address: &str, key: &str, bytes| {
            asked(&server, &[&[("remote_address", address)], &[("api_key", key)]], bytes).await
        };
        let (one, other) = ([0xff, 0xfe], [0xff, 0xff]);
        assert!(!by("192.0.2.1", MARK, one).await);
        assert!(by("192.0.2.2", MARK, one).await, "the key is spent");
        // Other bytes are other keys, and so is the text that replaces them elsewhere.
        for (client, key, bytes) in
            [(3, MARK, other), (4, "\u{fffd}\u{fffd}", one), (5, "@@@@", [0xc5, 0xc5])]
        {
            let address = format!("192.0.2.{client}");
            assert!(!by(&address, key, bytes).await, "{key:?} {bytes:?}");
            assert!(by(&address, key, bytes).await, "{key:?} {bytes:?}");
        }
        // An address that is spent stays spent, whatever the client sends.
        assert!(!by("192.0.2.9", "a", one).await && !by("192.0.2.9", "b", one).await);
        for number in 0..20 {
            assert!(by("192.0.2.9", &format!("{MARK}{number}"), [0xff, 0x80 + number]).await);
        }
    }
}

#[tokio::test]
async fn a_path_that_is_no_text_still_matches() {
    for server in [start(FILE).await, start_rules(RULES).await] {
        let login = async |address: &str, path: &str| {
            let entries = [("remote_address", address), ("path", path)];
            asked(&server, &[&entries[..1], &entries[1..]], [0xff, 0xfe]).await
        };
        assert!(!login("192.0.2.1", "/login/@@").await);
        assert!(login("192.0.2.2", "/login/@@x").await);
        assert!(login("192.0.2.3", "/login/x").await);
        assert!(!login("192.0.2.4", "/@@/login").await);
    }
}

/// A client of a proxy chooses what it leaves out, how long its path is, and how many descriptors match it.
#[tokio::test]
async fn what_the_client_has_to_change_is_over_its_limit_and_no_failed_call() {
    let by_header =
        "[[rules]]\nname = \"key\"\nkey = { header = \"x-api-key\" }\nlimits = [\"9/hour\"]\n";
    let server = start_rules(by_header).await;
    assert!(!asked(&server, &[&[("x-api-key", "a")]], [0; 2]).await);
    assert!(asked(&server, &[&[("path", "/")]], [0; 2]).await, "without its key");
    assert!(
        asked(&server, &[&[("x-api-key", "a")], &[("x-api-key", "b")]], [0; 2]).await,
        "with two"
    );

    let server = start_rules(RULES).await;
    let long = format!("/{}", "a".repeat(8_001));
    assert!(asked(&server, &[&[("remote_address", "192.0.2.1"), ("path", &long)]], [0; 2]).await);
    assert!(asked(&server, &[&[("remote_address", MARK), ("path", "/")]], [0; 2]).await);

    let server = start(FILE).await;
    assert!(asked(&server, &[&[("other", "a")][..]; 65], [0; 2]).await);
}

#[tokio::test]
async fn what_envoy_can_send_is_decided() {
    let value = |bytes: usize, number: usize| format!("{}{number}", "a".repeat(bytes));
    for server in [start(FILE).await, start_rules(RULES).await] {
        let mut number = 0;
        for (bytes, descriptors) in [(33_500, 2), (60 * 1024, 1), (60 * 1024, 15), (96 * 1024, 5)] {
            number += 1;
            let (address, key) = (format!("192.0.2.{number}"), value(bytes, number));
            let entries = [("remote_address", address.as_str()), ("api_key", key.as_str())];
            // A header that several descriptors have.
            let mut all = vec![&entries[..1], &entries[1..]];
            let other = [("other", key.as_str())];
            all.resize(descriptors + 1, &other[..]);
            assert!(!asked(&server, &all, [0; 2]).await, "{bytes} in {descriptors}");
            assert!(asked(&server, &all, [0; 2]).await, "{bytes} in {descriptors}");
        }
    }
}

#[tokio::test]
async fn more_than_the_server_reads_is_over_its_limit() {
    let long = "a".repeat(400_000);
    for server in [start(FILE).await, start_rules(RULES).await] {
        let entries = [("remote_address", "192.0.2.1"), ("api_key", long.as_str())];
        for _ in 0..20 {
            assert!(asked(&server, &[&entries, &entries, &entries], [0; 2]).await);
        }
        assert!(!asked(&server, &[&entries[..1]], [0; 2]).await, "nothing was charged");
    }
}

fn question(path: &str, address: &str, fields: &[(&str, &str)]) -> CheckRequest {
    let socket = SocketAddress { address: address.to_owned(), ..SocketAddress::default() };
    let address = Address { address: Some(address::Address::SocketAddress(socket)) };
    let fields = fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let http = HttpRequest {
        method: "GET".to_owned(),
        path: path.to_owned(),
        host: "api.example".to_owned(),
        headers: fields.collect(),
        ..HttpRequest::default()
    };
    let source = Some(Peer { address: Some(address), ..Peer::default() });
    let request = attribute_context::Request { http: Some(http), ..Default::default() };
    let attributes = AttributeContext { source, request: Some(request), ..Default::default() };
    CheckRequest { attributes: Some(attributes) }
}

/// The status that the client gets.
async fn authorized(server: &Running, question: &CheckRequest, bytes: [u8; 2]) -> u32 {
    let answer: CheckResponse = called(server, CHECK, question, bytes).await;
    match answer.http_response.expect("an answer") {
        HttpResponse::DeniedResponse(denied) => {
            u32::try_from(denied.status.expect("a status").code).expect("a status")
        }
        _ => 200,
    }
}

#[tokio::test]
async fn questions_about_requests_that_are_no_text_are_decided() {
    let rules =
        "[[rules]]\nname = \"key\"\nkey = { header = \"x-api-key\" }\nlimits = [\"1/hour\"]\n";
    let server = start_rules(rules).await;
    let by = |key: &str| question("/", "192.0.2.1", &[("x-api-key", key)]);
    for bytes in [[0xff, 0xfe], [0xff, 0xff]] {
        assert_eq!(authorized(&server, &by(MARK), bytes).await, 200);
        assert_eq!(authorized(&server, &by(MARK), bytes).await, 429);
    }
    let path = question("/@@", "192.0.2.1", &[("x-api-key", "a")]);
    assert_eq!(authorized(&server, &path, [0xff, 0xfe]).await, 200);
    assert_eq!(authorized(&server, &by(&"a".repeat(300_000)), [0; 2]).await, 200);
    assert_eq!(authorized(&server, &by(&"a".repeat(2_000_000)), [0; 2]).await, 431);
    assert_eq!(authorized(&server, &by("a\0"), [0; 2]).await, 400);
}

#[tokio::test]
async fn buckets_that_are_no_text_are_assigned_by_their_bytes() {
    let capacity = "[[capacity]]\nname = \"db\"\nlimit = \"1000/second\"\n\
        [[capacity.envoy]]\ndomain = \"edge\"\nbucket = { key = \"*\" }\n";
    let read = |file: &std::path::Path| Policies::new().capacity(file);
    let server = serve("capacity.toml", capacity, read, |set| set.nothing_leased(true)).await;
    let buckets = [&b"\xff\xfe"[..], b"a"];
    let usages = buckets.map(|value| {
        let entry = Entry { key: b"key".into(), value: value.into() };
        Reported { bucket: Some(Bucket { entries: vec![entry] }), allowed: 10 }
    });
    let report = Reports { domain: "edge".to_owned(), usages: usages.into() };
    let channel = Channel::from_shared(server.grpc.clone()).expect("an address");
    let mut client = Grpc::new(channel.connect().await.expect("a connection"));
    client.ready().await.expect("a connection");
    // An Envoy leaves its stream open.
    let reports = tokio_stream::once(report).chain(tokio_stream::pending());
    let codec = ProstCodec::<Reports, Assigned>::default();
    let path = PathAndQuery::from_static(QUOTAS);
    let answer = client.streaming(Request::new(reports), path, codec).await.expect("a stream");
    let assigned = answer.into_inner().message().await.expect("a message").expect("an order");
    let of = |action: &Action| action.bucket.clone().expect("an id").entries[0].value.clone();
    let mut assigned: Vec<_> = assigned.actions.iter().map(of).collect();
    assigned.sort();
    assert_eq!(assigned, [&b"a"[..], b"\xff\xfe"]);
}

/// The messages of the protocol, with texts as bytes, which are the same on the wire.
#[derive(Clone, PartialEq, Message)]
struct Reports {
    #[prost(string, tag = "1")]
    domain: String,
    #[prost(message, repeated, tag = "2")]
    usages: Vec<Reported>,
}

#[derive(Clone, PartialEq, Message)]
struct Reported {
    #[prost(message, optional, tag = "1")]
    bucket: Option<Bucket>,
    #[prost(uint64, tag = "3")]
    allowed: u64,
}

#[derive(Clone, PartialEq, Message)]
struct Bucket {
    #[prost(message, repeated, tag = "1")]
    entries: Vec<Entry>,
}

#[derive(Clone, PartialEq, Message)]
struct Entry {
    #[prost(bytes = "vec", tag = "1")]
    key: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    value: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
struct Assigned {
    #[prost(message, repeated, tag = "1")]
    actions: Vec<Action>,
}

#[derive(Clone, PartialEq, Message)]
struct Action {
    #[prost(message, optional, tag = "1")]
    bucket: Option<Bucket>,
}

#[tokio::test]
async fn json_that_holds_what_is_no_text_is_decided() {
    let server = start_rules(RULES).await;
    let taken = async |ip: u8, claim: &str| {
        let body = format!(r#"{{"ip":"192.0.2.{ip}","claims":{{"api_key":"{claim}"}}}}"#);
        post(&server.http, "/v1/take", &body).await.0
    };
    // Halves of surrogates, as Python writes bytes that are not UTF-8.
    assert_eq!(taken(1, "\\udcff").await, 200);
    assert_eq!(taken(2, "\\udcff").await, 429);
    assert_eq!(taken(3, "\\udcfe").await, 200);
    assert_eq!(taken(4, "\u{fffd}").await, 200);
    let server = start(FILE).await;
    let entry = json!({ "key": "api_key", "value": "MARK" });
    let body = json!({ "domain": "edge", "descriptors": [{ "entries": [entry] }] }).to_string();
    for (text, status) in [("\\udcff", 200), ("\\udcff", 429), ("\\udcfe", 200)] {
        assert_eq!(post(&server.http, "/json", &body.replace("MARK", text)).await.0, status);
    }
}
