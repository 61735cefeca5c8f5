//! A server is away for a while: how much is sent to it meanwhile, and when it has all requests again. In simulated time.

use std::io::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use http::{Request, Response};
use sluicegate::ManualClock;
use sluicegate::adapter::Sleep;
use sluicegate::clock::Clock;
use sluicegate_client::{AdaptiveThrottleLayer, ObeyLayer, Outgoing, RetryLayer};
use tower::{Layer, Service, ServiceExt, service_fn};

/// What a request meets while the server is away.
#[derive(Debug, Clone, Copy)]
enum Fault {
    /// 503, of this share of the requests.
    Busy(f64),
    /// The connection breaks.
    Broken,
    /// This status, and `Retry-After`.
    ComeBack(u16, Option<&'static str>),
    /// No answer. Callers give up after half a second.
    Hung,
}

#[derive(Debug, Clone, Copy)]
struct Outage {
    fault: Fault,
    clients: u64,
    /// Requests a second that each client wants to send.
    rate: u64,
    /// Seconds in which the server is well before.
    before: u64,
    /// Seconds for which it is away.
    away: u64,
}

#[derive(Debug, Default)]
struct Counts {
    wanted: AtomicU64,
    sent: AtomicU64,
    served: AtomicU64,
}

/// What was wanted and sent while the server was away; and what was wanted and served from ten seconds after that on.
#[derive(Debug)]
struct Report {
    away: (u64, u64),
    back: (u64, u64),
}

const SECOND: u64 = 1_000_000;

impl Outage {
    const fn of(mut self, away: u64) -> Self {
        self.away = away;
        self
    }

    fn run(self) -> Report {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(self.simulate())
    }

    async fn simulate(self) -> Report {
        let clock = ManualClock::at(Duration::ZERO);
        let counts = Arc::new(Counts::default());
        let (from, to) = (self.before * SECOND, (self.before + self.away) * SECOND);
        let (time, noted) = (clock.clone(), counts.clone());
        let server = service_fn(move |_: Request<()>| {
            noted.sent.fetch_add(1, Relaxed);
            let is_away = (from..to).contains(&time.now());
            let clock = time.clone();
            async move {
                sleep(&clock, Duration::from_millis(5)).await;
                let mut response = Response::builder();
                match self.fault {
                    Fault::Busy(share) if is_away && fastrand::f64() < share => {
                        response = response.status(503);
                    }
                    Fault::ComeBack(status, wait) if is_away => {
                        response = response.status(status);
                        if let Some(wait) = wait {
                            response = response.header("retry-after", wait);
                        }
                    }
                    Fault::Broken if is_away => return Err(Error::other("connection reset")),
                    Fault::Hung if is_away => std::future::pending().await,
                    _ => {}
                }
                Ok(response.body(()).unwrap())
            }
        });
        let clients: Vec<_> = (0..self.clients)
            .map(|_| {
                let layers = Outgoing::new()
                    .retry(RetryLayer::builder().clock(&clock).build().unwrap())
                    .throttle(AdaptiveThrottleLayer::builder().clock(&clock).build().unwrap())
                    .obey(ObeyLayer::builder().clock(&clock).build().unwrap());
                layers.layer(server.clone())
            })
            .collect();
        let send = |client: u64| {
            counts.wanted.fetch_add(1, Relaxed);
            let (mut client, counts) = (clients[client as usize].clone(), counts.clone());
            let patience = sleep(&clock, Duration::from_millis(500));
            let is_impatient = matches!(self.fault, Fault::Hung);
            tokio::spawn(async move {
                let request = Request::get("http://server/").body(()).unwrap();
                let call = async { client.ready().await.unwrap().call(request).await };
                let result = tokio::select! {
                    () = patience, if is_impatient => return,
                    result = call => result,
                };
                let is_served = result.is_ok_and(|response| response.status() == 200);
                counts.served.fetch_add(u64::from(is_served), Relaxed);
            });
        };
        let all = self.clients * self.rate;
        let mut number = 0;
        let step = Duration::from_millis(if self.rate < 50 { 20 } else { 10 });
        let mut until = async |end: u64| {
            while clock.now() < end {
                clock.advance(step);
                while number * SECOND <= clock.now() * all {
                    send(number % self.clients);
                    number += 1;
                }
                for _ in 0..6 {
                    tokio::task::yield_now().await;
                }
            }
            let counts = (&counts.wanted, &counts.sent, &counts.served);
            (counts.0.load(Relaxed), counts.1.load(Relaxed), counts.2.load(Relaxed))
        };
        let begun = until(from).await;
        let back = until(to).await;
        let well = until(to + 10 * SECOND).await;
        let end = until(to + 20 * SECOND).await;
        Report {
            away: (back.0 - begun.0, back.1 - begun.1),
            back: (end.0 - well.0, end.2 - well.2),
        }
    }

    /// All is served ten seconds after the server is back, and it was not asked more than a tenth too often before.
    fn is_over_within_seconds(self) -> Report {
        let report = self.run();
        let (wanted, sent) = report.away;
        // The advance of the budget of each client.
        assert!(
            sent as f64 <= 1.1 * wanted as f64 + 10.0 * self.clients as f64,
            "{self:?}: {report:?}"
        );
        let (wanted, served) = report.back;
        // Those that have just been sent are not answered yet.
        assert!(served + 1 + wanted / 100 >= wanted, "{self:?}: {report:?}");
        report
    }
}

fn sleep(clock: &ManualClock, time: Duration) -> Sleep<tokio::time::Sleep> {
    Sleep::new(&Clock::from(clock), time, tokio::time::sleep)
}

const OUTAGE: Outage =
    Outage { fault: Fault::Busy(1.0), clients: 1, rate: 100, before: 0, away: 10 };

#[test]
fn a_server_that_was_down_from_the_start_has_all_requests_again_within_ten_seconds() {
    for away in [10, 120, 600] {
        OUTAGE.of(away).is_over_within_seconds();
    }
    Outage { fault: Fault::Broken, ..OUTAGE }.is_over_within_seconds();
}

#[test]
fn a_server_that_was_well_before_has_all_requests_again_within_ten_seconds() {
    for away in [10, 120, 600] {
        Outage { before: 60, rate: 20, ..OUTAGE.of(away) }.is_over_within_seconds();
    }
}

#[test]
fn a_client_of_few_requests_sends_all_of_them_again_within_ten_seconds() {
    for rate in [1, 2, 3, 5] {
        for away in [30, 180] {
            Outage { rate, ..OUTAGE.of(away) }.is_over_within_seconds();
        }
        Outage { rate, before: 60, ..OUTAGE.of(120) }.is_over_within_seconds();
    }
}

#[test]
fn a_server_that_fails_in_part_has_all_requests_again_within_ten_seconds() {
    for share in [0.5, 0.6, 0.8, 0.95] {
        for rate in [1, 20] {
            let fault = Fault::Busy(share);
            Outage { fault, rate, before: 10, ..OUTAGE.of(120) }.is_over_within_seconds();
        }
    }
}

#[test]
fn many_clients_send_all_again_within_ten_seconds() {
    for (clients, rate) in [(16, 10), (100, 2)] {
        Outage { clients, rate, ..OUTAGE.of(30) }.is_over_within_seconds();
    }
}

#[test]
fn a_server_that_asks_for_a_second_while_it_is_away_has_all_requests_again_within_ten_seconds() {
    let faults = [
        Fault::ComeBack(503, Some("1")),
        Fault::ComeBack(429, None),
        Fault::ComeBack(429, Some("0")),
        Fault::ComeBack(403, Some("1")),
    ];
    for fault in faults {
        for (away, before) in [(10, 0), (10, 30), (120, 30)] {
            Outage { fault, before, rate: 20, ..OUTAGE.of(away) }.is_over_within_seconds();
        }
    }
}

#[test]
fn a_server_that_hangs_gets_few_requests_and_all_of_them_within_ten_seconds_after() {
    for (before, away) in [(0, 60), (5, 120)] {
        let outage = Outage { fault: Fault::Hung, before, ..OUTAGE.of(away) };
        let (wanted, sent) = outage.is_over_within_seconds().away;
        // The server is believed in for a while that it was well.
        let most = wanted / 5 + 3 * before * outage.rate;
        assert!(sent < most, "{outage:?}: {sent} of {wanted}");
    }
}
