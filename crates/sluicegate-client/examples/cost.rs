//! What the layers cost a request, without anything being sent.
//!
//!     cargo run --release -p sluicegate-client --example cost
//!     perf stat -e instructions:u,cycles:u target/release/examples/cost 'obey, RateLimit' 2000000
//!
//! Prints nanoseconds a request, less those of the service inside alone. Requests and responses are used again, so that
//! making them is not measured. With a name, that row alone is run, for a profiler, and nothing is subtracted.

use std::cell::Cell;
use std::env;
use std::future::{Ready, ready};
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use http::{HeaderMap, HeaderValue, Request, Response};
use sluicegate::Limit;
use sluicegate_client::outgoing::Origin;
use sluicegate_client::pace::Pacer;
use sluicegate_client::{AdaptiveThrottleLayer, BoxError, ObeyLayer, Outgoing, PaceLayer};
use tower::{Layer, Service};

type Fields = &'static [(&'static str, &'static str)];

const NONE: Fields = &[];
const RATE_LIMIT: Fields = &[("ratelimit", r#""100/minute";r=99;t=1"#)];
const WITH_POLICY: Fields = &[
    ("ratelimit", r#""100/minute";r=99;t=1"#),
    ("ratelimit-policy", r#""100/minute";q=100;w=60"#),
];
const GITHUB: Fields = &[
    ("x-ratelimit-limit", "5000"),
    ("x-ratelimit-remaining", "4999"),
    ("x-ratelimit-reset", "1790000600"),
];
const OPENAI: Fields = &[
    ("x-ratelimit-limit-requests", "60"),
    ("x-ratelimit-limit-tokens", "150000"),
    ("x-ratelimit-remaining-requests", "59"),
    ("x-ratelimit-remaining-tokens", "149984"),
    ("x-ratelimit-reset-requests", "1s"),
    ("x-ratelimit-reset-tokens", "6m0s"),
];

/// A name, the fields of the responses, and a function that runs a number of requests.
type Row = (&'static str, Fields, fn(Fields, u32));

const ROWS: [Row; 9] = [
    ("obey, no fields", NONE, obey),
    ("obey, RateLimit", RATE_LIMIT, obey),
    ("obey, RateLimit and RateLimit-Policy", WITH_POLICY, obey),
    ("obey, X-RateLimit of GitHub", GITHUB, obey),
    ("obey, X-RateLimit of OpenAI", OPENAI, obey),
    ("pace by origin", NONE, pace),
    ("throttle by origin", NONE, throttle),
    ("`Outgoing::new()`", WITH_POLICY, all),
    ("the service inside", NONE, inside),
];

/// A round is short, so that rows take turns and a busy moment of the machine meets all of them.
const ROUNDS: usize = 40;
const TURNS: u32 = 20_000;

fn main() {
    let mut arguments = env::args().skip(1);
    if let Some(name) = arguments.next() {
        let turns = arguments.next().map_or(1_000_000, |turns| turns.parse().expect("a number"));
        let (_, fields, run) = ROWS.iter().find(|row| row.0 == name).expect("a row of that name");
        return run(fields, turns);
    }
    let mut nanos = vec![Vec::new(); ROWS.len()];
    for _ in 0..ROUNDS {
        for ((_, fields, run), nanos) in ROWS.iter().zip(&mut nanos) {
            let started = Instant::now();
            run(fields, TURNS);
            nanos.push(started.elapsed().as_nanos() as f64 / f64::from(TURNS));
        }
    }
    let median = |nanos: &mut Vec<f64>| {
        nanos.sort_by(f64::total_cmp);
        nanos[nanos.len() / 2]
    };
    let inside = median(&mut nanos[ROWS.len() - 1]);
    for ((name, ..), nanos) in ROWS.iter().zip(&mut nanos) {
        let is_layer = !name.starts_with("read") && *name != "the service inside";
        println!("{name}: {:.0} ns", median(nanos) - if is_layer { inside } else { 0.0 });
    }
}

fn obey(fields: Fields, turns: u32) {
    through(&ObeyLayer::new(), fields, turns);
}

fn pace(fields: Fields, turns: u32) {
    let pacer = Pacer::new(Limit::per_second(1_000_000_000));
    through(&PaceLayer::new(Origin, pacer), fields, turns);
}

fn throttle(fields: Fields, turns: u32) {
    through(&AdaptiveThrottleLayer::new(), fields, turns);
}

fn all(fields: Fields, turns: u32) {
    through(&Outgoing::new(), fields, turns);
}

fn inside(fields: Fields, turns: u32) {
    through(&tower::layer::util::Identity::new(), fields, turns);
}

thread_local! {
    static REQUEST: Cell<Option<Request<()>>> = const { Cell::new(None) };
    static RESPONSE: Cell<Option<Response<()>>> = const { Cell::new(None) };
}

/// Answers at once, with the same response each time.
#[derive(Clone)]
struct Inside;

impl Service<Request<()>> for Inside {
    type Response = Response<()>;
    type Error = BoxError;
    type Future = Ready<Result<Response<()>, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<()>) -> Self::Future {
        REQUEST.set(Some(request));
        ready(Ok(RESPONSE.take().expect("a response")))
    }
}

fn through<L>(layer: &L, fields: Fields, turns: u32)
where
    L: Layer<Inside, Service: Service<Request<()>, Response = Response<()>, Error = BoxError>>,
{
    let mut response = Response::new(());
    *response.headers_mut() = headers(fields);
    RESPONSE.set(Some(response));
    REQUEST.set(Some(Request::get("https://api.example/v1/users").body(()).expect("a request")));
    let (mut service, mut cx) = (layer.layer(Inside), Context::from_waker(Waker::noop()));
    for _ in 0..turns {
        let is_ready = service.poll_ready(&mut cx);
        assert!(matches!(is_ready, Poll::Ready(Ok(()))));
        let future = pin!(service.call(REQUEST.take().expect("a request")));
        let Poll::Ready(Ok(response)) = future.poll(&mut cx) else { panic!("it does not wait") };
        RESPONSE.set(Some(response));
    }
}

fn headers(fields: Fields) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for other in ["content-type", "content-length", "server", "vary", "etag", "date"] {
        headers.insert(other, HeaderValue::from_static("Tue, 22 Sep 2026 12:53:20 GMT"));
    }
    for (name, value) in fields {
        headers.insert(*name, HeaderValue::from_static(value));
    }
    headers
}
