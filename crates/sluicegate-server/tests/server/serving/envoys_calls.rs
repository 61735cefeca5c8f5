//! What Envoy asks about a request of these bytes, and what must be true of the answers: for a test, and for the fuzzer.

use std::future::{Future, poll_fn};
use std::net::SocketAddr;
use std::path::Path;
use std::pin::pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes, HttpBody as _};
use axum::extract::ConnectInfo;
use axum::http::Request;
use envoy_types::pb::envoy::service::auth::v3::CheckResponse;
use envoy_types::pb::envoy::service::auth::v3::check_response::HttpResponse;
use envoy_types::pb::envoy::service::ratelimit::v3::RateLimitResponse;
use prost::Message;
use sluicegate_core::adapter::steps;
use sluicegate_core::{ManualClock, Memory};
use sluicegate_server::{Policies, Service, auth, rls};
use tonic::service::RoutesBuilder;
use tower_service::Service as _;

const RATE_LIMIT: &str = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit";
const CHECK: &str = "/envoy.service.auth.v3.Authorization/Check";

/// Rules of each kind that read what a client has written.
const OF_EACH_KIND: usize = 50;

/// The most steps for a byte of a message. Rules that each read a query or a field again would take more.
const STEPS_OF_A_BYTE: usize = 8;

/// The most steps besides: for the longest path, which is parsed in six ways, and for each rule.
const STEPS_OF_A_PATH: usize = 200_000;
const STEPS_OF_A_RULE: usize = 100;

const FILE: &str = "domain: edge\ndescriptors:\n  \
    - key: remote_address\n    rate_limit: {unit: hour, requests_per_unit: 1}\n  \
    - key: path\n    value: \"/login*\"\n    rate_limit: {unit: hour, requests_per_unit: 1000000}\n  \
    - key: x-api-key\n    rate_limit: {unit: hour, requests_per_unit: 1000000}\n";

/// One an hour by address, and many that hardly ever hold.
fn rules() -> String {
    let mut rules = vec!["key = \"ip\"\nlimits = [\"1/hour\"]".to_owned()];
    for key in [
        "\"path\"",
        "{ optional = { header = \"x-api-key\" } }",
        "{ optional = { query = \"key\" } }",
        "{ optional = { cookie = \"key\" } }",
    ] {
        rules.push(format!("key = {key}\nlimits = [\"1000000/hour\"]"));
    }
    for number in 0..OF_EACH_KIND {
        for when in [
            format!("path = \"/{number}/{{id}}\""),
            format!("not = {{ not = {{ path = \"/{number}/*\" }} }}"),
            format!("query = {{ key = \"{number}\" }}"),
            format!("cookie = {{ key = \"{number}\" }}"),
            format!("header = {{ x-api-key = \"{number}\" }}"),
            format!("claim = {{ x-api-key = \"{number}\" }}"),
        ] {
            rules.push(format!("key = \"ip\"\nlimits = [\"1/hour\"]\nwhen = {{ {when} }}"));
        }
    }
    let rules = rules.iter().enumerate();
    rules.map(|(number, rule)| format!("[[rules]]\nname = \"r{number}\"\n{rule}\n")).collect()
}

/// A server that Envoy asks about each request, by its rate limit filter and by ext_authz.
pub(crate) struct Asked {
    routes: Router,
    clock: ManualClock,
    requests: AtomicU32,
}

impl Asked {
    pub(crate) fn new(directory: &Path) -> Self {
        let (file, envoy) = (directory.join("rules.toml"), directory.join("edge.yaml"));
        std::fs::write(&file, rules()).expect("a file");
        std::fs::write(&envoy, FILE).expect("a file");
        let policies = Policies::new().rules(&file).and_then(|policies| policies.envoy(&envoy));
        let policies = policies.unwrap_or_else(|error| panic!("{error}"));
        let clock = ManualClock::new();
        let store = Memory::builder().clock(&clock).build();
        let service = Service::builder(policies).store(store).build().expect("a service");
        let mut routes = RoutesBuilder::default();
        rls::add(&service, &mut routes);
        auth::add(service.authorizer().expect("rules"), &mut routes);
        let routes = routes.routes().into_axum_router();
        Self { routes, clock, requests: AtomicU32::new(0) }
    }

    /// A request of a fresh client: its target in the first line, and a field in each other one, `name:value`.
    ///
    /// Each call about it is answered, within steps that its length bounds, and the second request is over the limit.
    pub(crate) fn about(&self, head: &[u8]) {
        // Everything is forgotten in between.
        self.clock.advance(Duration::from_secs(86_400));
        let number = self.requests.fetch_add(1, Ordering::Relaxed);
        let address = format!("10.{}.{}.{}", number >> 16 & 255, number >> 8 & 255, number & 255);
        // Envoy refuses what ends a line, and zero.
        let mut lines = head.split(|byte| matches!(byte, b'\n' | b'\r' | 0));
        let target = [b"/", lines.next().unwrap_or_default()].concat();
        // Envoy accepts a hundred fields by default.
        let fields: Vec<_> = lines.take(100).map(field).collect();
        for domain in ["edge", "rules"] {
            let message = descriptors(domain, address.as_bytes(), &target, &fields);
            let is_over = || {
                let answer: RateLimitResponse = self.called(RATE_LIMIT, &message);
                answer.overall_code == 2
            };
            let _ = is_over();
            assert!(is_over(), "{domain} lets {head:?} pass");
            // What rules count is the same client to both.
            self.clock.advance(Duration::from_secs(7_200));
        }
        let message = question(address.as_bytes(), &target, &fields);
        let is_denied = || {
            let answer: CheckResponse = self.called(CHECK, &message);
            matches!(answer.http_response, Some(HttpResponse::DeniedResponse(_)))
        };
        let _ = is_denied();
        assert!(is_denied(), "ext_authz lets {head:?} pass");
    }

    /// The answer to a call.
    fn called<M: Message + Default>(&self, path: &str, message: &[u8]) -> M {
        let length = u32::try_from(message.len()).expect("a message").to_be_bytes();
        let framed = [&[0], &length[..], message].concat();
        let mut request = Request::post(path)
            .header("content-type", "application/grpc")
            .body(Body::from(framed))
            .expect("a request");
        let envoy = SocketAddr::from(([127, 0, 0, 1], 1));
        request.extensions_mut().insert(ConnectInfo(envoy));
        let before = steps();
        let response = at_once(self.routes.clone().call(request));
        let response = response.unwrap_or_else(|never| match never {});
        let code = response.headers().get("grpc-status").map(|code| code.to_str().unwrap_or("?"));
        assert!(matches!(code, None | Some("0")), "a call fails: {:?}", response.headers());
        let mut answer = Vec::new();
        let mut body = pin!(response.into_body());
        while let Some(frame) = at_once(poll_fn(|cx| body.as_mut().poll_frame(cx))) {
            let data = frame.expect("a frame").into_data();
            answer.extend_from_slice(&data.unwrap_or_else(|_| Bytes::new()));
        }
        let taken = steps() - before;
        let rules = 6 * OF_EACH_KIND + 5;
        let most = STEPS_OF_A_BYTE * message.len() + STEPS_OF_A_PATH + STEPS_OF_A_RULE * rules;
        assert!(taken <= most, "{taken} steps for {} bytes, {most} at most", message.len());
        M::decode(&answer[5..]).expect("an answer")
    }
}

/// What is decided in memory is ready at once.
fn at_once<F: Future>(future: F) -> F::Output {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("not at once"),
    }
}

/// The name, in the letters that Envoy writes it in, and the value.
fn field(line: &[u8]) -> (Vec<u8>, &[u8]) {
    let colon = line.iter().position(|byte| *byte == b':').unwrap_or(line.len());
    (line[..colon].to_ascii_lowercase(), line.get(colon + 1..).unwrap_or_default())
}

/// The lines of one field, as Envoy joins them. `None` if there is none.
fn value(fields: &[(Vec<u8>, &[u8])], name: &str) -> Option<Vec<u8>> {
    let lines = fields.iter().filter(|(own, _)| own == name.as_bytes());
    let lines: Vec<_> = lines.map(|(_, value)| *value).collect();
    (!lines.is_empty()).then(|| lines.join(&b','))
}

/// The message of the rate limit filter: a descriptor for each limit, without those whose fields are not there.
fn descriptors(
    domain: &str,
    address: &[u8],
    target: &[u8],
    fields: &[(Vec<u8>, &[u8])],
) -> Vec<u8> {
    let mut all = part(1, domain.as_bytes());
    let entry = |key: &str, value: &[u8]| part(1, &pair(key.as_bytes(), value));
    let address = entry("remote_address", address);
    all.extend(part(2, &address));
    all.extend(part(2, &entry("path", target)));
    for name in ["x-api-key", "cookie", "user-agent"] {
        if let Some(value) = value(fields, name) {
            let own = entry(name, &value);
            all.extend(part(2, &own));
            all.extend(part(2, &[&address[..], &own, &entry("path", target)].concat()));
        }
    }
    all
}

/// The message of ext_authz: all fields.
fn question(address: &[u8], target: &[u8], fields: &[(Vec<u8>, &[u8])]) -> Vec<u8> {
    let mut http = [part(2, b"GET"), part(4, target), part(5, b"api.example")].concat();
    let is_name = |name: &[u8]| {
        let tchar = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
        !name.is_empty() && name.iter().all(tchar)
    };
    for (at, (name, _)) in fields.iter().enumerate() {
        let is_first = !fields[..at].iter().any(|(other, _)| other == name);
        // Envoy refuses other names.
        if let (true, true, Some(value)) = (
            is_first,
            is_name(name),
            str::from_utf8(name).ok().and_then(|name| value(fields, name)),
        ) {
            http.extend(part(3, &pair(name, &value)));
        }
    }
    let peer = part(1, &part(1, &part(2, address)));
    part(1, &[part(1, &peer), part(4, &part(2, &http))].concat())
}

/// A part of a message.
fn part(tag: u8, bytes: &[u8]) -> Vec<u8> {
    let mut all = vec![tag << 3 | 2];
    let mut length = bytes.len();
    while length >= 0x80 {
        all.push(length as u8 | 0x80);
        length >>= 7;
    }
    all.push(length as u8);
    all.extend_from_slice(bytes);
    all
}

fn pair(key: &[u8], value: &[u8]) -> Vec<u8> {
    [part(1, key), part(2, value)].concat()
}
