//! The dearest request that each port accepts, found by search.
//!
//! A client chooses paths, queries, fields, cookies, claims, descriptors, the ids of buckets and the shape of JSON, within
//! the bounds of the port. What it chooses must not make others wait, so the server bounds the work for a request: at most
//! a millisecond without letting others go on. This looks for requests that take longer. It begins with bodies and heads
//! that repeat one dear piece for as long as the port accepts, and changes the dearest of them at random.
//!
//! `cargo run --release -p sluicegate-server --no-default-features --example dearest` prints a row for each port. Run it
//! on a quiet machine. A seed of your own, as an argument, searches elsewhere.

use std::error::Error;
use std::fmt::Write as _;
use std::future::{Future, poll_fn};
use std::net::SocketAddr;
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, HttpBody as _};
use axum::extract::{ConnectInfo, State};
use axum::http::{Request, Response, StatusCode};
use axum::routing::{get, post as on_post};
use sluicegate::RateLimitLayer;
use sluicegate::adapter::Peer;
use sluicegate_config::{Environment, Live};
use sluicegate_lease::Pool;
use sluicegate_server::admin::{Token, guarded};
use sluicegate_server::capacity::{BucketId, Capacities};
use sluicegate_server::rlqs::{BUCKETS_AT_ONCE, BucketUsage, MAX_BUCKETS, Quotas};
use sluicegate_server::{Policies, Service, api, auth, rls};
use tonic::service::RoutesBuilder;
use tower::{Layer as _, service_fn};
use tower_service::Service as _;

/// Rules of each kind. Each reads what a client has written.
const OF_EACH_KIND: usize = 50;

/// Requests that are tried from each begin.
const TRIES: usize = 150;

/// How often a request is timed. The least time counts, because other programs run beside this.
const TIMES: usize = 3;

/// What requests are made of.
const PIECES: [&str; 26] = [
    "/",
    "//",
    "/..",
    "/.",
    "/%2e%2e",
    "%2F",
    "%25",
    "/a",
    "login",
    "?",
    "&",
    "=",
    "key=",
    "&key=a",
    "%6b",
    "+",
    ";",
    "; ",
    "; key=\\\"b\\\"",
    ",",
    "a",
    " ",
    "\\t",
    "\\u0000",
    "ż",
    "{}[]",
];

/// A place for pieces in the requests of a port, and the most bytes that it takes there.
struct Port {
    name: &'static str,
    longest: usize,
    request: fn(&str) -> Request<Body>,
}

const PORTS: [Port; 20] = [
    Port { name: "HTTP, `/check`: path", longest: 28_000, request: |text| check(text, "a", "b") },
    Port {
        name: "HTTP, `/check`: cookie",
        longest: 28_000,
        request: |text| check("", "cookie", text),
    },
    Port {
        name: "HTTP, `/check`: addresses",
        longest: 28_000,
        request: |text| check("", "x-forwarded-for", text),
    },
    Port {
        name: "HTTP, `/v1/take`: path",
        longest: 240_000,
        request: |text| take(&format!(r#""path":"/{text}""#)),
    },
    Port {
        name: "HTTP, `/v1/take`: query",
        longest: 240_000,
        request: |text| take(&format!(r#""query":"{text}""#)),
    },
    Port {
        name: "HTTP, `/v1/take`: cookie",
        longest: 240_000,
        request: |text| take(&format!(r#""headers":{{"cookie":"{text}"}}"#)),
    },
    Port {
        name: "HTTP, `/v1/take`: claims",
        longest: 200_000,
        request: |text| take(&format!(r#""claims":{{{}}}"#, names(text, 1_000, ":\"\""))),
    },
    Port {
        name: "HTTP, `/v1/take`: fields",
        longest: 200_000,
        request: |text| take(&format!(r#""headers":{{{}}}"#, names(text, 1_000, ":\"a\""))),
    },
    Port {
        name: "HTTP, `/v1/batch`: 100 paths",
        longest: 2_400,
        request: |text| batch(100, &format!(r#""path":"/{text}""#)),
    },
    Port {
        name: "HTTP, `/v1/batch`: one path",
        longest: 240_000,
        request: |text| batch(1, &format!(r#""path":"/{text}""#)),
    },
    Port {
        name: "HTTP, `/json`: entries",
        longest: 60_000,
        request: |text| {
            let entries = names(text, 1_000, "}").replace("\"n", "{\"key\":\"n");
            post(
                "/json",
                &format!(r#"{{"domain":"edge","descriptors":[{{"entries":[{entries}]}}]}}"#),
            )
        },
    },
    Port {
        name: "gRPC, rate limits: one value",
        longest: 1_000_000,
        request: |text| {
            call(rls::NAME, "ShouldRateLimit", &descriptors("edge", &[("path", text)], 1))
        },
    },
    Port {
        name: "gRPC, rate limits: 16 descriptors",
        longest: 60_000,
        request: |text| {
            call(rls::NAME, "ShouldRateLimit", &descriptors("edge", &[("path", text)], 16))
        },
    },
    Port {
        name: "gRPC, rate limits by rules",
        longest: 60_000,
        request: |text| {
            let entries = [("remote_address", "192.0.2.7"), ("path", text), ("cookie", text)];
            call(rls::NAME, "ShouldRateLimit", &descriptors("rules", &entries, 1))
        },
    },
    Port { name: "gRPC, ext_authz: path", longest: 1_000_000, request: |text| question(text, "") },
    Port {
        name: "gRPC, ext_authz: cookie",
        longest: 1_000_000,
        request: |text| question("", text),
    },
    Port {
        name: "RLQS: a report of 1,000 buckets",
        longest: 2_000,
        request: |text| post("/report", text),
    },
    Port { name: "admin: cookie", longest: 28_000, request: admin },
    Port { name: "proxy: path", longest: 28_000, request: |text| proxied(text, "a", "b") },
    Port { name: "proxy: cookie", longest: 28_000, request: |text| proxied("", "cookie", text) },
];

fn main() -> Result<(), Box<dyn Error>> {
    let seed = std::env::args().nth(1).map_or(Ok(1), |seed| seed.parse())?;
    let mut random = Random(seed);
    let routes = routes()?;
    println!("| port | the dearest request | bytes | answer |\n| --- | ---: | ---: | --- |");
    for port in &PORTS {
        let mut dearest = Found::default();
        for piece in PIECES {
            dearest.keep(&routes, port, piece.repeat(port.longest / piece.len()));
        }
        for _ in 0..TRIES {
            let text = changed(&dearest.text, port.longest, &mut random);
            dearest.keep(&routes, port, text);
        }
        let Found { time, text, status } = dearest;
        println!(
            "| {} | {:.2} ms | {} | {} |",
            port.name,
            time.as_secs_f64() * 1e3,
            text.len(),
            status
        );
    }
    Ok(())
}

/// The dearest request so far.
#[derive(Default)]
struct Found {
    time: Duration,
    text: String,
    status: StatusCode,
}

impl Found {
    fn keep(&mut self, routes: &Router, port: &Port, text: String) {
        let mut least = Duration::MAX;
        let mut answer = StatusCode::OK;
        for _ in 0..TIMES {
            let request = (port.request)(&text);
            let (response, mut longest) = answered(routes.clone().call(request));
            let mut response = match response {
                Ok(response) => response,
                Err(never) => match never {},
            };
            answer = response.status();
            loop {
                let body = poll_fn(|cx| pin!(response.body_mut()).poll_frame(cx));
                let (frame, time) = answered(body);
                longest = longest.max(time);
                if frame.is_none() {
                    break;
                }
            }
            least = least.min(longest);
        }
        if least > self.time {
            *self = Self { time: least, text, status: answer };
        }
    }
}

/// The text with a part of it replaced by other pieces.
fn changed(text: &str, longest: usize, random: &mut Random) -> String {
    let mut chars: Vec<char> = text.chars().collect();
    let begin = random.below(chars.len().max(1));
    let end = (begin + 1 + random.below(chars.len().max(1))).min(chars.len());
    let piece = PIECES[random.below(PIECES.len())];
    let other = PIECES[random.below(PIECES.len())];
    let length = end.saturating_sub(begin);
    let new = format!("{piece}{other}");
    drop(chars.splice(begin.min(end)..end, new.chars().cycle().take(length)));
    let mut text: String = chars.into_iter().collect();
    while text.len() > longest {
        text.pop();
    }
    text
}

/// Everything that answers, over a file of each kind.
fn routes() -> Result<Router, Box<dyn Error>> {
    let directory = tempfile::tempdir()?;
    let (file, envoy) = (directory.path().join("rules.toml"), directory.path().join("edge.yaml"));
    std::fs::write(&file, rules())?;
    std::fs::write(&envoy, domain())?;
    let service = Service::builder(Policies::new().rules(&file)?.envoy(&envoy)?).build()?;
    let authorizer = service.authorizer().ok_or("no rules")?;
    let mut grpc = RoutesBuilder::default();
    rls::add(&service, &mut grpc);
    auth::add(authorizer, &mut grpc);
    let http = api::json::routes(&service)
        .merge(api::v1::routes(&service))
        .merge(auth::routes(authorizer));
    let token = Token::new("a token of the admin").ok_or("no token")?;
    Ok(http
        .merge(grpc.routes().into_axum_router())
        .merge(reports()?)
        .nest("/admin", guarded(Router::new().route("/metrics", get(async || "")), Some(token)))
        .fallback_service(proxy(&file)?))
}

/// What the proxy asks before it passes a request on.
fn proxy(
    file: &Path,
) -> Result<
    impl tower_service::Service<
        Request<Body>,
        Response = Response<Body>,
        Error = std::convert::Infallible,
        Future: Send,
    > + Clone
    + Send
    + Sync
    + 'static,
    Box<dyn Error>,
> {
    let application = service_fn(|_: Request<Body>| async { Ok(Response::new(Body::empty())) });
    let limits = RateLimitLayer::new(Live::open(file, Environment::new())?).layer(application);
    Ok(tower::ServiceExt::map_response(limits, |response: Response<_>| response.map(Body::new)))
}

/// A stand-in for the stream of an Envoy, whose first report names as many buckets as one may have. Each has a capacity of
/// its own.
fn reports() -> Result<Router, Box<dyn Error>> {
    let capacities = Arc::new(Capacities::read(
        "[[capacity]]\nname = \"each\"\nlimit = \"1000/second burst 100\"\n\
         [[capacity.envoy]]\ndomain = \"edge\"\nbucket = { path = \"*\" }\n",
    )?);
    let report = |State(capacities): State<Arc<Capacities>>, text: String| async move {
        let mut pool = Pool::new(capacities.templates().clone());
        pool.lead(0, 1, Some(Vec::new()));
        let mut quotas = Quotas::new(capacities);
        let used = BucketUsage { allowed: 1, denied: 1, elapsed: Duration::from_secs(5) };
        let mut buckets = (0..MAX_BUCKETS).map(|number| {
            (BucketId::from([("path".into(), format!("{number:04}{text}").into())]), used)
        });
        let stream = quotas.open(None).expect("a stream");
        for _ in 0..MAX_BUCKETS.div_ceil(BUCKETS_AT_ONCE) {
            let some = buckets.by_ref().take(BUCKETS_AT_ONCE);
            quotas.report(0, stream, "edge", some, &mut pool).expect("a report");
            tokio::task::yield_now().await;
        }
        quotas.orders().map(|(_, orders)| orders.len()).sum::<usize>().to_string()
    };
    Ok(Router::new().route("/report", on_post(report)).with_state(capacities))
}

/// Rules that hardly ever hold, and keys of each kind.
fn rules() -> String {
    let mut rules = vec!["key = \"ip\"".to_owned()];
    for key in
        ["\"path\"", "{ optional = { query = \"key\" } }", "{ optional = { cookie = \"key\" } }"]
    {
        rules.push(format!("key = {key}"));
    }
    for number in 0..OF_EACH_KIND {
        for when in [
            format!("path = \"/{number}/{{id}}\""),
            format!("query = {{ key = \"{number}\" }}"),
            format!("cookie = {{ key = \"{number}\" }}"),
            format!("header = {{ x-api-key = \"{number}\" }}"),
            format!("claim = {{ plan = \"{number}\" }}"),
        ] {
            rules.push(format!("key = \"ip\"\nwhen = {{ {when} }}"));
        }
    }
    let rules = rules.iter().enumerate();
    rules
        .map(|(number, rule)| {
            format!("[[rules]]\nname = \"r{number}\"\nlimits = [\"1000000/second\"]\n{rule}\n")
        })
        .collect()
}

/// Limits by any value, by one, and by patterns.
fn domain() -> String {
    let mut text = "domain: edge\ndescriptors:\n".to_owned();
    let rate = "rate_limit: {unit: second, requests_per_unit: 1000000}";
    let _ = writeln!(text, "- key: path\n  {rate}");
    for number in 0..OF_EACH_KIND {
        let _ = writeln!(text, "- key: path\n  value: \"/{number}*\"\n  {rate}");
        let _ = writeln!(text, "- key: n{number}\n  value: \"{number}\"\n  {rate}");
    }
    text
}

fn check(path: &str, name: &str, value: &str) -> Request<Body> {
    let chain = if name == "x-forwarded-for" {
        format!("{}, 192.0.2.7", sent(value))
    } else {
        "192.0.2.7".to_owned()
    };
    let target = format!("/{}", sent(path).replace(' ', ""));
    let mut request =
        Request::get("/check").header("x-forwarded-method", "GET").header("x-forwarded-host", "a");
    request = request.header("x-forwarded-uri", target).header("x-forwarded-for", chain);
    if name != "x-forwarded-for" {
        request = request.header(name, sent(value));
    }
    by_proxy(request.body(Body::empty()).expect("a request"))
}

fn take(part: &str) -> Request<Body> {
    post("/v1/take", &format!(r#"{{"ip":"192.0.2.7",{part}}}"#))
}

fn batch(count: usize, part: &str) -> Request<Body> {
    let requests = vec![format!(r#"{{"ip":"192.0.2.7",{part}}}"#); count].join(",");
    post("/v1/batch", &format!(r#"{{"requests":[{requests}]}}"#))
}

fn admin(text: &str) -> Request<Body> {
    let cookie = sent(text);
    let request = Request::get("/admin/metrics").header("cookie", cookie);
    by_proxy(request.body(Body::empty()).expect("a request"))
}

fn proxied(path: &str, name: &str, value: &str) -> Request<Body> {
    // HTTP has no other characters in a target.
    let is_sent = |char: &char| char.is_ascii_alphanumeric() || "/.%-_?&=+;,".contains(*char);
    let target = format!("/proxied/{}", path.chars().filter(is_sent).collect::<String>());
    let request = Request::get(target).header(name, sent(value));
    let mut request = request.body(Body::empty()).expect("a request");
    request.extensions_mut().insert(Peer([192, 0, 2, 7].into()));
    request
}

/// Without characters that no field may have.
fn sent(text: &str) -> String {
    text.chars().filter(|char| char.is_ascii_graphic() || *char == ' ').collect()
}

fn post(path: &str, body: &str) -> Request<Body> {
    let request = Request::post(path).header("content-type", "application/json");
    by_proxy(request.body(Body::from(body.to_owned())).expect("a request"))
}

/// Different names for parts of the text, as members of an object.
fn names(text: &str, most: usize, value: &str) -> String {
    let chars: Vec<char> = text.chars().filter(|char| !matches!(char, '"' | '\\')).collect();
    let parts = chars.chunks(chars.len().div_ceil(most).max(1)).enumerate();
    let names =
        parts.map(|(at, part)| format!("\"n{at}{}\"{value}", part.iter().collect::<String>()));
    names.collect::<Vec<_>>().join(",")
}

fn descriptors(domain: &str, entries: &[(&str, &str)], count: usize) -> Vec<u8> {
    let entries =
        entries.iter().map(|(key, value)| part(1, &pair(key.as_bytes(), value.as_bytes())));
    let descriptor = part(2, &entries.collect::<Vec<_>>().concat());
    [part(1, domain.as_bytes()), descriptor.repeat(count)].concat()
}

fn question(path: &str, cookie: &str) -> Request<Body> {
    let path = path.replace(' ', "");
    let http = [
        part(2, b"GET"),
        part(3, &pair(b"cookie", cookie.as_bytes())),
        part(4, format!("/{path}").as_bytes()),
    ];
    let peer = part(1, &part(1, &part(2, b"192.0.2.7")));
    let message = part(1, &[part(1, &peer), part(4, &part(2, &http.concat()))].concat());
    call(auth::NAME, "Check", &message)
}

fn call(service: &str, method: &str, message: &[u8]) -> Request<Body> {
    let length = u32::try_from(message.len()).expect("a message").to_be_bytes();
    let framed = [&[0], &length[..], message].concat();
    let request =
        Request::post(format!("/{service}/{method}")).header("content-type", "application/grpc");
    by_proxy(request.body(Body::from(framed)).expect("a request"))
}

/// From a proxy that is believed.
fn by_proxy(mut request: Request<Body>) -> Request<Body> {
    request.extensions_mut().insert(ConnectInfo(SocketAddr::from(([127, 0, 0, 1], 1))));
    request
}

/// A part of a message of Protocol Buffers.
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

/// What the future yields, and the longest time for which it kept others waiting. Nothing that is decided in memory waits for
/// anything: it only lets others go on from time to time.
fn answered<F: Future>(future: F) -> (F::Output, Duration) {
    let (mut future, mut longest) = (pin!(future), Duration::ZERO);
    for _ in 0..1_000 {
        let began = Instant::now();
        let polled = future.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        longest = longest.max(began.elapsed());
        if let Poll::Ready(output) = polled {
            return (output, longest);
        }
    }
    panic!("it waits for something")
}

/// A stream of numbers that a seed repeats.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % bound as u64) as usize
    }
}
