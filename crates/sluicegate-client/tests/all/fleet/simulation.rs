use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{Request, Response};
use sluicegate::adapter::Sleep;
use sluicegate::clock::Clock;
use sluicegate::{Global, Limit, ManualClock, Memory, RateLimitLayer};
use sluicegate_client::{AdaptiveThrottleLayer, ObeyLayer, Outgoing, RetryLayer};
use tower::{Layer, Service, ServiceExt, service_fn};

/// When measuring begins and ends, in milliseconds.
const FROM: u64 = 2_000;
const TO: u64 = 22_000;

/// Requests of one client that are under way or wait.
const WORKERS: u64 = 8;

pub(crate) struct Fleet {
    pub(crate) limit: Limit,
    pub(crate) clients: usize,
    /// Requests a second that all clients together want to send.
    pub(crate) wanted: u64,
    /// In each direction.
    pub(crate) latency: Duration,
}

/// What the server saw.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Report {
    pub(crate) served: u64,
    pub(crate) refused: u64,
    /// Refused before measuring began.
    pub(crate) refused_early: u64,
}

impl Report {
    pub(crate) fn refused_share(&self) -> f64 {
        self.refused as f64 / (self.refused + self.served) as f64
    }

    /// The part of `rate` requests a second that was served.
    pub(crate) fn use_of(&self, rate: f64) -> f64 {
        self.served as f64 * 1_000.0 / ((TO - FROM) as f64 * rate)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = (TO - FROM) as f64 / 1_000.0;
        write!(
            f,
            "{:.1} served a second, {:.2} % refused, {} refused in the first {} s",
            self.served as f64 / seconds,
            100.0 * self.refused_share(),
            self.refused_early,
            FROM / 1_000
        )
    }
}

impl Fleet {
    pub(crate) fn run(&self) -> Report {
        // The same each time.
        fastrand::seed(7);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(self.simulate())
    }

    async fn simulate(&self) -> Report {
        let clock = ManualClock::at(Duration::ZERO);
        let report = Arc::new(Mutex::new(Report::default()));
        let store = Memory::builder().clock(&clock).build();
        let limited = RateLimitLayer::new(self.limit.by(Global)).store(store).layer(service_fn(
            |_: Request<()>| async {
                Ok::<_, std::convert::Infallible>(Response::new(String::new()))
            },
        ));
        for _ in 0..self.clients {
            let (clock, report, latency) = (clock.clone(), report.clone(), self.latency);
            let hands = clock.clone();
            let limited = limited.clone();
            let network = service_fn(move |request: Request<()>| {
                let (clock, report, mut limited) = (hands.clone(), report.clone(), limited.clone());
                async move {
                    sleep(&clock, about(latency)).await;
                    let response = limited.ready().await?.call(request).await?;
                    note(&report, clock.now() / 1_000, response.status().is_success());
                    sleep(&clock, about(latency)).await;
                    Ok::<_, std::convert::Infallible>(response)
                }
            });
            let layers = Outgoing::new()
                .retry(RetryLayer::builder().clock(&clock).build().unwrap())
                .throttle(AdaptiveThrottleLayer::builder().clock(&clock).build().unwrap())
                .obey(ObeyLayer::builder().clock(&clock).build().unwrap());
            let client = layers.layer(network);
            // Each worker sends its part, at most, and waits for the response.
            let period =
                Duration::from_micros(1_000_000 * WORKERS * self.clients as u64 / self.wanted);
            for worker in 0..WORKERS {
                let (clock, mut client) = (clock.clone(), client.clone());
                tokio::spawn(async move {
                    sleep(&clock, period * worker as u32 / WORKERS as u32).await;
                    loop {
                        let next = clock.now() + period.as_micros() as u64;
                        let request = Request::get("http://server/").body(()).unwrap();
                        let _ = client.ready().await.unwrap().call(request).await;
                        let left = next.saturating_sub(clock.now()).max(1_000);
                        sleep(&clock, Duration::from_micros(left)).await;
                    }
                });
            }
        }
        while clock.now() / 1_000 < TO {
            clock.advance(Duration::from_millis(1));
            // Lets everything run that can: a request passes some tasks and locks at most.
            for _ in 0..6 {
                tokio::task::yield_now().await;
            }
        }
        *report.lock().unwrap()
    }
}

/// From half as long to half as long again: requests of several clients do not arrive together again and again.
fn about(latency: Duration) -> Duration {
    latency.mul_f64(0.5 + fastrand::f64())
}

fn note(report: &Mutex<Report>, millis: u64, is_served: bool) {
    let mut report = report.lock().unwrap();
    match (millis >= FROM, is_served) {
        (true, true) => report.served += 1,
        (true, false) => report.refused += 1,
        (false, true) => {}
        (false, false) => report.refused_early += 1,
    }
}

async fn sleep(clock: &ManualClock, time: Duration) {
    Sleep::new(&Clock::from(clock), time, tokio::time::sleep).await;
}
