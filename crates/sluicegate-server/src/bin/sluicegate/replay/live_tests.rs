//! The requests of a log through the layer as it is live, with handlers that take time, and through a replay: each has the same
//! outcome.

use std::convert::Infallible;
use std::fmt::Write as _;
use std::fs;
use std::net::Ipv4Addr;
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use clap::Parser;
use http::{Request, Response};
use sluicegate::RateLimitLayer;
use sluicegate::adapter::{Peer, Sleep};
use sluicegate::response::Degraded;
use sluicegate_config::{Environment, Live};
use sluicegate_core::adapter::KeyHash;
use sluicegate_core::{ManualClock, Memory};
use tower::{Layer as _, ServiceExt as _, service_fn};

use super::Replay;
use super::judge::Judge;
use crate::virtual_time::Rules;

/// A request, with times in milliseconds.
struct Logged {
    start: u64,
    took: u64,
    client: u8,
    method: &'static str,
    path: &'static str,
    status: u16,
}

const BEGUN: u64 = 1_764_000_000_000;

fn requests(seed: u64, count: usize) -> Vec<Logged> {
    let mut state = seed;
    let mut next = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) % below
    };
    let mut start = BEGUN;
    let one = |_| {
        start += 1 + next(60);
        let took = if next(3) == 0 { 0 } else { next(400) };
        Logged {
            start,
            took,
            client: next(4) as u8,
            method: if next(2) == 0 { "GET" } else { "POST" },
            path: ["/api/users", "/login", "/slow"][next(3) as usize],
            status: [200, 401, 500][next(3) as usize],
        }
    };
    (0..count).map(one).collect()
}

/// A response of the handler, and how long it takes.
#[derive(Clone, Copy)]
struct Answer {
    status: u16,
    takes: Duration,
}

/// Left in responses of the handler: whether it served less.
#[derive(Clone, Copy)]
struct Handled(bool);

type Answering = Pin<Box<dyn Future<Output = &'static str>>>;

/// What the layer does to the requests, by a clock that goes on millisecond by millisecond.
fn live(rules: &Path, requests: &[Logged]) -> Vec<&'static str> {
    let clock = ManualClock::at(Duration::from_millis(BEGUN));
    let live = Live::open(rules, Environment::new().clock(&clock)).expect("rules");
    let timer = clock.clone();
    let handler = service_fn(move |request: Request<()>| {
        let answer = *request.extensions().get::<Answer>().expect("an answer");
        let is_degraded = request.extensions().get::<Degraded>().is_some();
        let timer = timer.clone().into();
        async move {
            Sleep::new(&timer, answer.takes, |_| std::future::pending::<()>()).await;
            let mut response = Response::new(String::new());
            *response.status_mut() = answer.status.try_into().expect("a status");
            response.extensions_mut().insert(Handled(is_degraded));
            Ok::<_, Infallible>(response)
        }
    });
    let layer = RateLimitLayer::new(live.clone())
        .store(Memory::builder().clock(&clock).build())
        .rejection(live.rejection())
        .hold_until(live.hold_until());
    let service = layer.layer(handler);
    let answer = |logged: &Logged| -> Answering {
        let mut request =
            Request::builder().method(logged.method).uri(logged.path).body(()).expect("a request");
        let takes = Duration::from_millis(logged.took);
        request.extensions_mut().insert(Answer { status: logged.status, takes });
        request.extensions_mut().insert(Peer(Ipv4Addr::new(192, 0, 2, logged.client).into()));
        let answered = service.clone().oneshot(request);
        Box::pin(async move {
            let response = answered.await.expect("no error");
            match (response.extensions().get::<Handled>(), response.status().as_u16()) {
                (Some(Handled(false)), _) => "served",
                (Some(Handled(true)), _) => "degraded",
                (None, 302..=308) => "redirected",
                (None, 429) => "refused",
                (None, status) => panic!("{status}"),
            }
        })
    };
    let mut outcomes = vec!["waits"; requests.len()];
    let mut under_way: Vec<(usize, Answering)> = Vec::new();
    let mut cx = Context::from_waker(Waker::noop());
    let mut next = 0;
    let last = requests.last().map_or(BEGUN, |last| last.start);
    for now in BEGUN..last + 60_000 {
        clock.set(Duration::from_millis(now));
        let mut poll = |under_way: &mut Vec<(usize, Answering)>| {
            under_way.retain_mut(|(at, answering)| match answering.as_mut().poll(&mut cx) {
                Poll::Ready(outcome) => {
                    outcomes[*at] = outcome;
                    false
                }
                Poll::Pending => true,
            });
        };
        poll(&mut under_way);
        while requests.get(next).is_some_and(|logged| logged.start == now) {
            under_way.push((next, answer(&requests[next])));
            next += 1;
            poll(&mut under_way);
        }
        if next == requests.len() && under_way.is_empty() {
            break;
        }
    }
    outcomes
}

#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    replay: Replay,
}

/// What a replay says of them. The server wrote its log as responses ended.
fn replayed(rules: &Path, log: &Path, requests: &[Logged]) -> Vec<&'static str> {
    let mut lines: Vec<_> = requests
        .iter()
        .map(|logged| {
            let Logged { start, took, client, method, path, status } = logged;
            let end = start + took;
            let seconds = |millis: u64| format!("{}.{:03}", millis / 1_000, millis % 1_000);
            let (at, took) = (seconds(end), seconds(*took));
            (end, format!("192.0.2.{client} {at} {took} \"{method} {path} HTTP/1.1\" {status}\n"))
        })
        .collect();
    lines.sort_by_key(|(end, _)| *end);
    let mut text = String::new();
    lines.iter().for_each(|(_, line)| write!(text, "{line}").expect("a text"));
    fs::write(log, text).expect("a file");
    let format = "$remote_addr $msec $request_time \"$request\" $status";
    let arguments = ["replay", log.to_str().unwrap(), "--format", format, "--rules", "rules.toml"];
    let mut records = Cli::parse_from(arguments).replay.logs.open().expect("a log");
    let mut judge = Judge::new(Rules::open(rules).expect("rules"), 10_000, KeyHash::new());
    let mut outcomes = Vec::new();
    while let Some(record) = records.next().expect("a log") {
        outcomes.push(judge.judge(&record).outcome);
    }
    outcomes
}

#[test]
fn a_replay_decides_about_every_request_as_the_layer_does_live() {
    let rule = |name: &str, limits: &str, more: &str| {
        format!("[[rules]]\nname = \"{name}\"\nkey = \"ip\"\nlimits = [{limits}]\n{more}\n")
    };
    let slow = rule("slow", "\"concurrent 1\"", "when = { path = \"/slow\" }");
    let rules = [
        rule("a", "\"5/second burst 3\"", ""),
        rule("a", "\"fixed 5/second\", \"log 60 per 10 seconds\"", ""),
        rule("a", "\"sliding 5/second\"", "when = { method = \"POST\" }"),
        rule("a", "\"log 4 per 2 seconds\"", "count_if = [401]"),
        rule("a", "\"leaky 4/second queue 3\"", ""),
        rule(
            "a",
            "{ rate = \"log 4 per 1 second\", ban = { for = \"2 seconds\", after = 3, within = \"5 seconds\" } }",
            "",
        ),
        rule("a", "\"3/second\"", "reject = { redirect = \"https://a.example/\" }"),
        rule("a", "\"3/second\"", "reject = \"degrade\""),
        rule("a", "\"3/second\"", "reject = \"shadow\""),
        rule("a", "\"2/second\"", "cost = 2"),
        slow.clone(),
        format!("hold_until = \"head\"\n{slow}"),
        // All or none, with places, queues and charges that are given back.
        format!(
            "{slow}{}{}",
            rule(
                "login",
                "\"log 3 per 2 seconds\"",
                "when = { path = \"/login\" }\ncount_if = [401]"
            ),
            rule("queue", "\"leaky 10/second queue 2\"", "")
        ),
    ];
    let directory = tempfile::tempdir().expect("a directory");
    let (file, log) = (directory.path().join("rules.toml"), directory.path().join("access.log"));
    for (seed, rules) in rules.iter().enumerate() {
        fs::write(&file, rules).expect("a file");
        let requests = requests(seed as u64, 400);
        let (live, replayed) = (live(&file, &requests), replayed(&file, &log, &requests));
        let differs = live.iter().zip(&replayed).position(|(live, replayed)| live != replayed);
        assert_eq!(differs, None, "{rules}\n{live:?}\n{replayed:?}");
        let is_served = live.iter().filter(|outcome| **outcome == "served").count();
        let is_trial = rules.contains("shadow");
        assert!(is_served > 20 && (is_trial || is_served < 395), "{is_served} served by {rules}");
    }
}
