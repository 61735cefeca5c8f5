//! How long a file with many rules takes to load, and to decide about a request.
//!
//! Each rule is for a path of its own. The request is for that of the last rule.
//!
//! `cargo run --release -p sluicegate-server --no-default-features --example many_rules` prints a row for each number of
//! rules.

use std::convert::Infallible;
use std::error::Error;
use std::fmt::Write as _;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use axum::http::{Request, Response};
use sluicegate::RateLimitLayer;
use sluicegate::adapter::Peer;
use sluicegate_config::{Environment, Live};
use tower::{Layer as _, service_fn};
use tower_service::Service;

/// Requests that are timed at once.
const REQUESTS: u32 = 20_000;

/// How often they are. The least time counts, because other programs run beside this.
const TIMES: u32 = 20;

fn main() -> Result<(), Box<dyn Error>> {
    let directory = tempfile::tempdir()?;
    let file = directory.path().join("rules.toml");
    let application = service_fn(async |_: Request<()>| Ok::<_, Infallible>(Response::new(())));
    let bare = each(&mut application.clone(), 0);
    println!("| rules | bytes | loads in | decides in |\n| ---: | ---: | ---: | ---: |");
    for count in [1, 10, 1_000, 10_000, 100_000] {
        let text = rules(count);
        std::fs::write(&file, &text)?;
        let began = Instant::now();
        let live = Live::open(&*file, Environment::new())?;
        let loaded = began.elapsed();
        let mut limited = RateLimitLayer::new(live).layer(application);
        let decided = each(&mut limited, count - 1).saturating_sub(bare);
        println!(
            "| {count} | {} | {:.1} ms | {} ns |",
            text.len(),
            loaded.as_secs_f64() * 1e3,
            decided.as_nanos()
        );
    }
    Ok(())
}

fn rules(count: usize) -> String {
    (0..count).fold(String::new(), |mut text, number| {
        let _ = writeln!(
            text,
            "[[rules]]\nname = \"rule {number}\"\nlimits = [\"1000000/second\"]\nkey = \"ip\"\n\
             when = {{ path = \"/service{number}/items/{{id}}\" }}\n"
        );
        text
    })
}

/// The time of a request for the path of a rule.
fn each<S>(service: &mut S, number: usize) -> Duration
where
    S: Service<Request<()>>,
{
    let target = format!("/service{number}/items/7");
    let times = (0..TIMES).map(|_| {
        let mut requests: Vec<_> = (0..REQUESTS)
            .map(|_| {
                let mut request = Request::get(&target).body(()).expect("a request");
                request.extensions_mut().insert(Peer([192, 0, 2, 7].into()));
                request
            })
            .collect();
        let began = Instant::now();
        while let Some(request) = requests.pop() {
            let response = pin!(service.call(request));
            let polled = response.poll(&mut Context::from_waker(Waker::noop()));
            assert!(matches!(polled, Poll::Ready(Ok(_))), "it is decided in memory");
        }
        began.elapsed() / REQUESTS
    });
    times.min().unwrap_or_default()
}
