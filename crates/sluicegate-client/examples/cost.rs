//! What obeying costs a response: reading its fields, and asking and telling the standing with its server.
//!
//!     cargo run --release -p sluicegate-client --example cost
//!
//! Prints nanoseconds a response; under `perf stat -e instructions:u`, count instructions.

use std::hint::black_box;
use std::time::{Duration, Instant};

use http::{HeaderMap, HeaderValue, StatusCode};
use sluicegate_client::obey::{Rules, Signal, Standing};

const TURNS: u32 = 2_000_000;

fn main() {
    let fields: [(&str, &[(&'static str, &'static str)]); 4] = [
        ("no fields", &[]),
        ("RateLimit", &[("ratelimit", r#""100/minute";r=99;t=1"#)]),
        (
            "RateLimit and RateLimit-Policy",
            &[
                ("ratelimit", r#""100/minute";r=99;t=1"#),
                ("ratelimit-policy", r#""100/minute";q=100;w=60"#),
            ],
        ),
        (
            "X-RateLimit of GitHub",
            &[
                ("x-ratelimit-limit", "5000"),
                ("x-ratelimit-remaining", "4999"),
                ("x-ratelimit-reset", "1790000600"),
            ],
        ),
    ];
    for (name, fields) in fields {
        let mut headers = HeaderMap::new();
        for other in ["content-type", "content-length", "server", "vary", "etag"] {
            headers.insert(other, HeaderValue::from_static("some value"));
        }
        for (name, value) in fields {
            headers.insert(*name, HeaderValue::from_static(value));
        }
        let (rules, mut standing, mut now) =
            (Rules::default(), Standing::default(), 1_790_000_000_000_000);
        let started = Instant::now();
        for _ in 0..TURNS {
            now += 10_000;
            let turn = standing.ask(now, &rules);
            let signal =
                Signal::read(StatusCode::OK, black_box(&headers), Duration::from_micros(now));
            standing.observe(now, &signal, turn, &rules, 7);
        }
        black_box(&standing);
        let nanos = started.elapsed().as_nanos() as f64 / f64::from(TURNS);
        println!("{name}: {nanos:.0} ns a response");
    }
}
