//! What files of the service mean, whichever Redis counts. Each call goes to the other one of two servers, so all counts are in
//! Redis.

use envoy_types::pb::envoy::extensions::common::ratelimit::v3::RateLimitDescriptor;
use envoy_types::pb::envoy::extensions::common::ratelimit::v3::rate_limit_descriptor::{
    Entry, RateLimitOverride,
};
use envoy_types::pb::envoy::service::ratelimit::v3::rate_limit_response::Code;
use envoy_types::pb::envoy::service::ratelimit::v3::rate_limit_service_client::RateLimitServiceClient;
use envoy_types::pb::envoy::service::ratelimit::v3::{RateLimitRequest, RateLimitResponse};
use envoy_types::pb::envoy::r#type::v3::RateLimitUnit;
use envoy_types::pb::google::protobuf::UInt64Value;
use sluicegate_tests::certificates::Authority;
use sluicegate_tests::servers::{Cluster, Replica, Sentinel, Server};
use tonic::transport::Channel;

use super::started_with;

const FILE: &str = "domain: edge
descriptors:
- key: user
  rate_limit: { unit: year, requests_per_unit: 3 }
- key: user
  value: free
  rate_limit: { unlimited: true }
- key: path
  value: /own/*
  rate_limit: { unit: year, requests_per_unit: 1 }
- key: path
  value: /shared/*
  share_threshold: true
  rate_limit: { unit: year, requests_per_unit: 1 }
- key: plan
  rate_limit: { name: usual, unit: year, requests_per_unit: 1 }
- key: partner
  rate_limit: { unit: year, requests_per_unit: 2, replaces: [{ name: usual }] }
- key: watched
  shadow_mode: true
  rate_limit: { unit: year, requests_per_unit: 1 }
- key: morning
  quota_mode: true
  rate_limit: { unit: year, requests_per_unit: 1 }
- key: evening
  quota_mode: true
  rate_limit: { unit: year, requests_per_unit: 2 }
- key: tenant
  descriptors:
  - key: path
    rate_limit: { unit: year, requests_per_unit: 1 }
  - key: path
    value: /open
    rate_limit: { unit: year, requests_per_unit: 2 }
";

/// A descriptor, with its hits, which are given back if they are negative.
struct CallDescriptor(&'static [(&'static str, &'static str)], Option<i64>);

const OK: Code = Code::Ok;
const OVER: Code = Code::OverLimit;

/// The descriptors, the overall code, and the code of each status with what is left.
type Call = (&'static [CallDescriptor], Code, &'static [(Code, u32)]);

/// Calls one after the other.
#[rustfmt::skip]
const CALLS: &[Call] = &[
    // What is counted, up to the limit and beyond.
    (&[CallDescriptor(&[("user", "a")], None)], OK, &[(OK, 2)]),
    (&[CallDescriptor(&[("user", "a")], None)], OK, &[(OK, 1)]),
    (&[CallDescriptor(&[("user", "a")], None), CallDescriptor(&[("user", "b")], None)], OK, &[(OK, 0), (OK, 2)]),
    (&[CallDescriptor(&[("user", "a")], None), CallDescriptor(&[("user", "b")], None)], OVER, &[(OVER, 0), (OK, 1)]),
    (&[CallDescriptor(&[("user", "a"), ("path", "/")], None), CallDescriptor(&[("host", "a")], None)], OK, &[(OK, 0), (OK, 0)]),
    (&[CallDescriptor(&[("user", "free")], None)], OK, &[(OK, u32::MAX)]),
    // Hits of one descriptor: several, none, and some that are given back.
    (&[CallDescriptor(&[("user", "c")], Some(2))], OK, &[(OK, 1)]),
    (&[CallDescriptor(&[("user", "c")], Some(0))], OK, &[(OK, 1)]),
    (&[CallDescriptor(&[("user", "c")], Some(-2))], OK, &[(OK, 3)]),
    (&[CallDescriptor(&[("user", "c")], Some(3))], OK, &[(OK, 0)]),
    (&[CallDescriptor(&[("user", "c")], Some(1))], OVER, &[(OVER, 0)]),
    // Values with a star have counts of their own, unless they share the threshold.
    (&[CallDescriptor(&[("path", "/own/a")], None)], OK, &[(OK, 0)]),
    (&[CallDescriptor(&[("path", "/own/b")], None)], OK, &[(OK, 0)]),
    (&[CallDescriptor(&[("path", "/own/a")], None)], OVER, &[(OVER, 0)]),
    (&[CallDescriptor(&[("path", "/shared/a")], None)], OK, &[(OK, 0)]),
    (&[CallDescriptor(&[("path", "/shared/b")], None)], OVER, &[(OVER, 0)]),
    // A limit that replaces another one, and that one alone.
    (&[CallDescriptor(&[("plan", "x")], None), CallDescriptor(&[("partner", "p")], None)], OK, &[(OK, 0), (OK, 1)]),
    (&[CallDescriptor(&[("plan", "x")], None), CallDescriptor(&[("partner", "p")], None)], OK, &[(OK, 0), (OK, 0)]),
    (&[CallDescriptor(&[("plan", "x")], None), CallDescriptor(&[("partner", "p")], None)], OVER, &[(OK, 0), (OVER, 0)]),
    (&[CallDescriptor(&[("plan", "x")], None)], OK, &[(OK, 0)]),
    (&[CallDescriptor(&[("plan", "x")], None)], OVER, &[(OVER, 0)]),
    // A shadow counts, and refuses nothing.
    (&[CallDescriptor(&[("watched", "x")], None)], OK, &[(OK, 0)]),
    (&[CallDescriptor(&[("watched", "x")], None)], OK, &[(OK, 0)]),
    (&[CallDescriptor(&[("watched", "x")], None), CallDescriptor(&[("user", "a")], None)], OVER, &[(OK, 0), (OVER, 0)]),
    // Quotas refuse once all of them are spent.
    (&[CallDescriptor(&[("morning", "x")], None), CallDescriptor(&[("evening", "x")], None)], OK, &[(OK, 0), (OK, 1)]),
    (&[CallDescriptor(&[("morning", "x")], None), CallDescriptor(&[("evening", "x")], None)], OK, &[(OVER, 0), (OK, 0)]),
    (&[CallDescriptor(&[("morning", "x")], None), CallDescriptor(&[("evening", "x")], None)], OVER, &[(OVER, 0), (OVER, 0)]),
    // Nested descriptors, with a value that has another limit.
    (&[CallDescriptor(&[("tenant", "t"), ("path", "/")], None)], OK, &[(OK, 0)]),
    (&[CallDescriptor(&[("tenant", "t"), ("path", "/")], None)], OVER, &[(OVER, 0)]),
    (&[CallDescriptor(&[("tenant", "u"), ("path", "/")], None)], OK, &[(OK, 0)]),
    (&[CallDescriptor(&[("tenant", "t"), ("path", "/open")], None)], OK, &[(OK, 1)]),
    (&[CallDescriptor(&[("tenant", "t")], None)], OK, &[(OK, 0)]),
];

/// Asks both servers in turns.
async fn mean_what_they_mean_there(redis: &[(&str, &str)]) {
    let fields = [
        ("LIMIT_RESPONSE_HEADERS_ENABLED", "true"),
        ("LIMIT_LIMIT_HEADER", "X-Limit"),
        ("LIMIT_REMAINING_HEADER", "X-Left"),
    ];
    // A server that waits for the processor is no server that is away.
    let all = [redis, &fields, &[("REDIS_TIMEOUT", "60s")]].concat();
    let servers = [started_with(FILE, &all), started_with(FILE, &all)];
    let mut clients = Vec::new();
    for server in &servers {
        let address = format!("http://{}", server.grpc);
        clients.push(RateLimitServiceClient::connect(address).await.expect("a connection"));
    }
    for (at, (asked, overall, expected)) in CALLS.iter().enumerate() {
        let descriptors: Vec<_> = asked.iter().map(descriptor).collect();
        let answer = ask(&mut clients[at % 2], "edge", descriptors, 0).await;
        let statuses = answer.statuses.iter();
        let statuses: Vec<_> =
            statuses.map(|status| (status.code(), status.limit_remaining)).collect();
        assert_eq!((answer.overall_code(), &*statuses), (*overall, *expected), "call {at}");
    }

    // The fields tell of the limit that is nearest.
    let both = vec![descriptor(&CallDescriptor(&[("user", "d")], None))];
    let answer = ask(&mut clients[0], "edge", both, 2).await;
    let fields = answer.response_headers_to_add.iter().map(|field| (&*field.key, &*field.value));
    let fields: Vec<_> = fields.collect();
    assert_eq!(fields[..2], [("X-Limit", "3"), ("X-Left", "1")]);
    assert!(fields[2].0 == "RateLimit-Reset" && fields[2].1.parse::<u32>().is_ok());

    // A limit that the message brings along, which takes the place of that of the file.
    let mut own = descriptor(&CallDescriptor(&[("user", "e")], None));
    let unit = RateLimitUnit::Year as i32;
    own.limit = Some(RateLimitOverride { requests_per_unit: 1, unit });
    for (at, expected) in [(0, OK), (1, OVER)] {
        let answer = ask(&mut clients[at], "edge", vec![own.clone()], 0).await;
        assert_eq!(answer.overall_code(), expected);
    }
    // A domain that no file has is not limited.
    let unknown = vec![descriptor(&CallDescriptor(&[("user", "a")], None))];
    assert_eq!(ask(&mut clients[1], "other", unknown, 0).await.overall_code(), OK);
}

async fn ask(
    client: &mut RateLimitServiceClient<Channel>,
    domain: &str,
    descriptors: Vec<RateLimitDescriptor>,
    hits_addend: u32,
) -> RateLimitResponse {
    let request = RateLimitRequest { domain: domain.to_owned(), descriptors, hits_addend };
    client.should_rate_limit(request).await.expect("an answer").into_inner()
}

fn descriptor(CallDescriptor(entries, hits): &CallDescriptor) -> RateLimitDescriptor {
    let entry =
        |(key, value): &(&str, &str)| Entry { key: (*key).to_owned(), value: (*value).to_owned() };
    RateLimitDescriptor {
        entries: entries.iter().map(entry).collect(),
        hits_addend: hits.map(|hits| UInt64Value { value: hits.unsigned_abs() }),
        is_negative_hits: hits.is_some_and(i64::is_negative),
        ..RateLimitDescriptor::default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn files_mean_the_same_in_a_redis_of_its_own() {
    let redis = Server::start();
    let address = redis.address().to_string();
    mean_what_they_mean_there(&[("REDIS_SOCKET_TYPE", "tcp"), ("REDIS_URL", &address)]).await;
    let socket = redis.socket_url();
    let socket = socket.strip_prefix("redis+unix://").expect("a path");
    let own = [("REDIS_URL", socket), ("CACHE_KEY_PREFIX", "another_")];
    mean_what_they_mean_there(&own).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn files_mean_the_same_in_a_redis_with_tls_and_a_password() {
    let authority = Authority::new("an authority");
    let (certificate, key) = authority.sign("localhost");
    let redis = Server::tls(&certificate, &key, Some(authority.pem()));
    redis.cli(["CONFIG", "SET", "requirepass", "a secret"]).expect("it is set");
    let files = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| {
        let file = files.path().join(name);
        std::fs::write(&file, text).expect("a file");
        file.to_str().expect("a path").to_owned()
    };
    let (certificate, key) = authority.sign("a client");
    let url = redis.tls_url();
    let address = url.strip_prefix("rediss://").and_then(|url| url.strip_suffix('/'));
    mean_what_they_mean_there(&[
        ("REDIS_SOCKET_TYPE", "tcp"),
        ("REDIS_URL", address.expect("a URL")),
        ("REDIS_AUTH", "a secret"),
        ("REDIS_TLS", "true"),
        ("REDIS_TLS_CACERT", &write("authority.pem", authority.pem())),
        ("REDIS_TLS_CLIENT_CERT", &write("certificate.pem", &certificate)),
        ("REDIS_TLS_CLIENT_KEY", &write("key.pem", &key)),
    ])
    .await;
}

/// How many scripts a Redis has run.
fn scripts(redis: &Server) -> u64 {
    let stats = redis.cli(["INFO", "commandstats"]).text();
    let line = stats.lines().find_map(|line| line.strip_prefix("cmdstat_evalsha:calls="));
    let calls = line.and_then(|line| line.split(',').next());
    calls.map_or(0, |calls| calls.parse().expect("a number"))
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_of_a_second_are_counted_in_a_redis_of_their_own() {
    let (redis, other) = (Server::start(), Server::start());
    let file = "domain: edge
descriptors:
- key: user
  rate_limit: { unit: year, requests_per_unit: 3 }
- key: host
  rate_limit: { unit: second, requests_per_unit: 4000000000 }
- key: never
  rate_limit: { unit: second, requests_per_unit: 0 }
";
    let (address, second) = (redis.address().to_string(), other.address().to_string());
    let server = started_with(
        file,
        &[
            ("REDIS_SOCKET_TYPE", "tcp"),
            ("REDIS_URL", &address),
            ("REDIS_PERSECOND", "true"),
            ("REDIS_PERSECOND_SOCKET_TYPE", "tcp"),
            ("REDIS_PERSECOND_URL", &second),
            ("REDIS_TIMEOUT", "60s"),
        ],
    );
    let mut client =
        RateLimitServiceClient::connect(format!("http://{}", server.grpc)).await.expect("a port");
    let (user, host, never) = (
        descriptor(&CallDescriptor(&[("user", "a")], None)),
        descriptor(&CallDescriptor(&[("host", "a")], None)),
        descriptor(&CallDescriptor(&[("never", "a")], None)),
    );
    for (descriptors, overall, left, (of_years, of_seconds)) in [
        (vec![user.clone()], OK, 2, (1, 0)),
        (vec![host.clone()], OK, 3_999_999_999, (1, 1)),
        // Both are asked, and each is counted by itself.
        (vec![user.clone(), host.clone()], OK, 1, (2, 2)),
        (vec![user.clone(), never.clone()], OVER, 0, (3, 3)),
        (vec![user, never, host], OVER, 0, (4, 4)),
    ] {
        let answer = ask(&mut client, "edge", descriptors, 0).await;
        assert_eq!((answer.overall_code(), answer.statuses[0].limit_remaining), (overall, left));
        assert_eq!((scripts(&redis), scripts(&other)), (of_years, of_seconds));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_of_another_host_is_accepted_if_told_so_and_one_of_a_stranger_is_not() {
    let (authority, stranger) = (Authority::new("an authority"), Authority::new("a stranger"));
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(file.path(), authority.pem()).expect("a file");
    let trusted = file.path().to_str().expect("a path");
    for (signed_by, skip, expected) in
        [(&authority, "true", true), (&authority, "false", false), (&stranger, "true", false)]
    {
        let (certificate, key) = signed_by.sign("another.host");
        let redis = Server::tls(&certificate, &key, None);
        let url = redis.tls_url();
        let address = url.strip_prefix("rediss://").and_then(|url| url.strip_suffix('/'));
        let server = started_with(
            FILE,
            &[
                ("REDIS_SOCKET_TYPE", "tcp"),
                ("REDIS_URL", address.expect("a URL")),
                ("REDIS_TLS", "true"),
                ("REDIS_TLS_CACERT", trusted),
                ("REDIS_TLS_SKIP_HOSTNAME_VERIFICATION", skip),
                // No connection is ever made to the others.
                ("REDIS_TIMEOUT", if expected { "60s" } else { "200ms" }),
            ],
        );
        let address = format!("http://{}", server.grpc);
        let mut client = RateLimitServiceClient::connect(address).await.expect("a connection");
        let descriptors = vec![descriptor(&CallDescriptor(&[("user", "a")], None))];
        let request = RateLimitRequest { domain: "edge".to_owned(), descriptors, hits_addend: 0 };
        assert_eq!(client.should_rate_limit(request).await.is_ok(), expected, "{skip}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn files_mean_the_same_behind_sentinels() {
    let master = Server::start();
    let replica = Replica::of(&master);
    let sentinel = Sentinel::watch(&master, &replica);
    let known = format!("main,{}", sentinel.server().address());
    mean_what_they_mean_there(&[("REDIS_TYPE", "SENTINEL"), ("REDIS_URL", &known)]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn files_mean_the_same_in_a_cluster() {
    let cluster = Cluster::start(3);
    let nodes: Vec<_> = cluster.masters().iter().map(|node| node.address().to_string()).collect();
    let nodes = nodes.join(",");
    mean_what_they_mean_there(&[("REDIS_TYPE", "CLUSTER"), ("REDIS_URL", &nodes)]).await;
    // Every node has some of the counts.
    for node in cluster.masters() {
        assert!(node.cli(["DBSIZE"]).number() > 0, "{:?}", node.address());
    }
}
