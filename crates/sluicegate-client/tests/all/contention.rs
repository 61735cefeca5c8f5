//! Many clients of a server that says nothing before it refuses: how long they take together, and how often they are
//! refused. In simulated time, beside a loop that is written by hand.
//!
//! Each is one run. `src/obey/standing/contention.rs` has means over six runs, of servers that say nothing at all.

use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use http::{Request, Response};
use sluicegate::adapter::Sleep;
use sluicegate::clock::Clock;
use sluicegate::{Limit, Limiter, ManualClock, Memory};
use sluicegate_client::{AdaptiveThrottleLayer, ObeyLayer, Outgoing, Refused, RetryLayer};
use tower::{Layer, Service, ServiceExt, service_fn};

#[derive(Debug, Clone)]
struct Fleet {
    limit: Limit,
    says: Says,
    status: u16,
    /// In each direction, in milliseconds.
    latency: u64,
    clients: u64,
    /// Calls that each client makes at a time.
    callers: u64,
    calls: u64,
}

/// What a refusal says about when to come back, by `Retry-After`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Says {
    RoundedUp,
    RoundedDown,
    Nothing,
}

/// What sends the requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Outgoing,
    /// Sends again after `Retry-After`, else after a random time of up to 100 ms, then 200 ms and so on.
    ByHand,
}

#[derive(Debug, Clone, Copy)]
struct Report {
    seconds: f64,
    refused: f64,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.1} s, {:.1} % refused", self.seconds, 100.0 * self.refused)
    }
}

#[derive(Default)]
struct Counts {
    served: AtomicU64,
    refused: AtomicU64,
}

/// The order in which callers come is a matter of chance: from run to run, times differ by a second or so.
const SEEDS: u64 = 4;

impl Fleet {
    /// The means over several runs.
    fn run(&self, kind: Kind) -> Report {
        let mut mean = Report { seconds: 0.0, refused: 0.0 };
        for seed in 0..SEEDS {
            // The same each time.
            fastrand::seed(seed);
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            let report = runtime.block_on(self.clone().simulate(kind));
            mean.seconds += report.seconds / SEEDS as f64;
            mean.refused += report.refused / SEEDS as f64;
        }
        println!("{self:?}, {kind:?}: {mean}");
        mean
    }

    /// What came out if it took more than this many times as long as loops by hand, or more than this part was refused.
    fn missed(&self, longer: f64, most: f64) -> Option<String> {
        let (outgoing, by_hand) = (self.run(Kind::Outgoing), self.run(Kind::ByHand));
        let is_missed = outgoing.seconds > longer * by_hand.seconds || outgoing.refused > most;
        is_missed.then(|| format!("{self:?}: {outgoing}; by hand {by_hand}"))
    }

    async fn simulate(self, kind: Kind) -> Report {
        let clock = ManualClock::at(Duration::ZERO);
        let counts = Arc::new(Counts::default());
        let memory = Memory::builder().capacity(10).clock(&clock).build();
        let limiter = Arc::new(Limiter::new(self.limit).store(memory));
        for _ in 0..self.clients {
            let (clock, counts, limiter) = (clock.clone(), counts.clone(), limiter.clone());
            let (time, noted) = (clock.clone(), counts.clone());
            let network = service_fn(move |_: Request<()>| {
                let (clock, counts, limiter) = (time.clone(), noted.clone(), limiter.clone());
                async move {
                    sleep(&clock, 1_000 * self.latency).await;
                    let decision = limiter.take("all").now().unwrap();
                    let mut response = Response::builder();
                    let count =
                        if decision.is_admitted() { &counts.served } else { &counts.refused };
                    count.fetch_add(1, Relaxed);
                    if !decision.is_admitted() {
                        response = response.status(self.status);
                        let wait = decision.retry_after().unwrap().as_secs();
                        match self.says {
                            Says::RoundedUp => response = response.header("retry-after", wait + 1),
                            Says::RoundedDown => response = response.header("retry-after", wait),
                            Says::Nothing => {}
                        }
                    }
                    sleep(&clock, 1_000 * self.latency).await;
                    Ok::<_, Infallible>(response.body(()).unwrap())
                }
            });
            let layers = Outgoing::new()
                .retry(RetryLayer::builder().clock(&clock).build().unwrap())
                .throttle(AdaptiveThrottleLayer::builder().clock(&clock).build().unwrap())
                .obey(ObeyLayer::builder().clock(&clock).build().unwrap());
            let outgoing = layers.layer(network.clone());
            let left = Arc::new(AtomicU64::new(self.calls / self.clients));
            for _ in 0..self.callers {
                let (clock, left) = (clock.clone(), left.clone());
                let (mut outgoing, mut network) = (outgoing.clone(), network.clone());
                tokio::spawn(async move {
                    sleep(&clock, fastrand::u64(..20_000)).await;
                    while left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_ok() {
                        for attempt in 0.. {
                            let request = Request::get("http://server/").body(()).unwrap();
                            if kind == Kind::Outgoing {
                                let call = outgoing.ready().await.unwrap().call(request).await;
                                match call {
                                    Ok(response) if response.status() == 200 => break,
                                    Ok(_) => continue,
                                    // It would wait for longer than a call does.
                                    Err(error) => {
                                        let refused = Refused::find(&*error).unwrap();
                                        let wait = refused.retry_after().unwrap_or_default();
                                        sleep(&clock, wait.as_micros() as u64).await;
                                        continue;
                                    }
                                }
                            }
                            let response = network.call(request).await.unwrap();
                            if response.status() == 200 {
                                break;
                            }
                            let wait = match response.headers().get("retry-after") {
                                Some(wait) => {
                                    1_000_000 * wait.to_str().unwrap().parse::<u64>().unwrap()
                                }
                                None => fastrand::u64(..100_000 << attempt.min(6)),
                            };
                            sleep(&clock, wait).await;
                        }
                    }
                });
            }
        }
        while counts.served.load(Relaxed) < self.calls / self.clients * self.clients {
            assert!(clock.now() < 600_000_000, "ten minutes were not enough");
            clock.advance(Duration::from_millis(1));
            for _ in 0..4 {
                tokio::task::yield_now().await;
            }
        }
        let (served, refused) =
            (counts.served.load(Relaxed) as f64, counts.refused.load(Relaxed) as f64);
        Report { seconds: clock.now() as f64 / 1e6, refused: refused / (served + refused) }
    }
}

fn sleep(clock: &ManualClock, micros: u64) -> Sleep<tokio::time::Sleep> {
    Sleep::new(&Clock::from(clock), Duration::from_micros(micros), tokio::time::sleep)
}

const FLEET: Fleet = Fleet {
    limit: Limit::per_second(100),
    says: Says::RoundedUp,
    status: 429,
    latency: 1,
    clients: 16,
    callers: 1,
    calls: 2_000,
};

const fn window(count: u64, seconds: u64) -> Limit {
    Limit::fixed_window(count, Duration::from_secs(seconds))
}

/// Sixteen clients make 2,000 calls of a server that allows 100 a second and 100 at once: 19 seconds, if nobody ever waits
/// for too long.
#[test]
fn sixteen_clients_of_a_server_that_only_refuses_take_as_long_as_a_loop_by_hand() {
    use Says::{Nothing, RoundedUp};
    let fleets = [(RoundedUp, 1), (RoundedUp, 8), (Nothing, 1), (Nothing, 8)]
        .map(|(says, callers)| Fleet { says, callers, ..FLEET });
    let missed: Vec<_> = fleets.into_iter().filter_map(|fleet| fleet.missed(1.08, 0.125)).collect();
    assert!(missed.is_empty(), "{missed:#?}");
    let by_hand = FLEET.run(Kind::ByHand);
    assert!(by_hand.refused > 0.1, "{by_hand}");
}

/// A tenth of the requests is refused at most, and all calls take as long as those of loops by hand, or up to a
/// 25th longer: the last window may begin before a client comes back.
#[test]
fn a_server_that_counts_by_windows_is_used_as_much_as_by_loops_by_hand() {
    use Says::Nothing;
    let fleets = [
        Fleet { limit: window(100, 1), ..FLEET },
        Fleet { limit: window(100, 1), status: 503, ..FLEET },
        Fleet { limit: window(100, 1), latency: 3, ..FLEET },
        Fleet { limit: window(100, 1), clients: 1, ..FLEET },
        Fleet { limit: window(100, 1), clients: 4, ..FLEET },
        Fleet { limit: window(40, 1), clients: 4, calls: 800, ..FLEET },
        Fleet { limit: window(300, 1), calls: 4_800, ..FLEET },
        Fleet { limit: window(100, 1), clients: 4, latency: 100, callers: 2, calls: 800, ..FLEET },
        Fleet { limit: window(1_000, 10), calls: 4_800, ..FLEET },
        Fleet { limit: window(1_000, 10), clients: 4, callers: 8, calls: 4_000, ..FLEET },
        Fleet { limit: window(1_000, 60), calls: 3_200, ..FLEET },
        Fleet { limit: window(100, 1), says: Nothing, clients: 4, ..FLEET },
        Fleet { limit: window(1_000, 10), says: Nothing, clients: 4, callers: 8, ..FLEET },
    ];
    let missed: Vec<_> = fleets.into_iter().filter_map(|fleet| fleet.missed(1.04, 0.1)).collect();
    assert!(missed.is_empty(), "{missed:#?}");
}

/// Where loops by hand are quicker, because each caller asks until it is served. Clients cannot know when a window ends if
/// the server says so too early. Among very many others, each is served only once or twice in a window. And one caller's
/// refusal holds back the other callers of its process.
#[test]
fn what_clients_cannot_know_costs_them_no_more_than_this() {
    use Says::RoundedDown;
    let fleets = [
        (Fleet { limit: window(1_000, 10), says: RoundedDown, calls: 3_200, ..FLEET }, 1.125, 0.1),
        (Fleet { limit: window(100, 1), clients: 64, ..FLEET }, 1.25, 0.27),
        (Fleet { limit: window(100, 1), latency: 100, callers: 8, ..FLEET }, 1.75, 0.4),
        (Fleet { limit: window(100, 1), callers: 8, ..FLEET }, 1.15, 0.13),
    ];
    let missed = fleets.into_iter().filter_map(|(fleet, longer, most)| fleet.missed(longer, most));
    let missed: Vec<_> = missed.collect();
    assert!(missed.is_empty(), "{missed:#?}");
}

#[test]
fn one_client_of_a_server_that_allows_few_at_once_is_quicker_than_a_loop_by_hand() {
    let limit = Limit::per_second(100).burst(10);
    let fleet = Fleet { limit, clients: 1, callers: 8, calls: 500, ..FLEET };
    let (outgoing, by_hand) = (fleet.run(Kind::Outgoing), fleet.run(Kind::ByHand));
    assert!(outgoing.seconds < by_hand.seconds / 2.0, "{outgoing} {by_hand}");
    assert!(outgoing.refused < 0.1, "{outgoing}");
}

/// A loop by hand is refused 44 to 63 % of the time by this server.
#[test]
fn a_server_of_few_at_once_that_says_nothing_is_used_as_much_as_by_a_loop_by_hand() {
    let limit = Limit::per_second(100).burst(10);
    for (clients, callers) in [(1, 1), (1, 8), (4, 8)] {
        let fleet = Fleet { limit, says: Says::Nothing, clients, callers, calls: 1_000, ..FLEET };
        let (outgoing, by_hand) = (fleet.run(Kind::Outgoing), fleet.run(Kind::ByHand));
        assert!(outgoing.seconds < 1.2 * by_hand.seconds, "{outgoing} {by_hand}");
        assert!(outgoing.refused < 0.1, "{outgoing}");
    }
}

#[test]
fn clients_of_a_server_that_takes_one_request_at_a_time_keep_out_of_its_way() {
    let limit = Limit::per_second(100).burst(1);
    for says in [Says::RoundedUp, Says::Nothing] {
        let fleet = Fleet { limit, says, clients: 4, calls: 400, ..FLEET };
        let report = fleet.run(Kind::Outgoing);
        // A loop by hand takes five minutes where the server says when, and is refused 71 and 58 % of the time.
        assert!(report.seconds < 60.0, "{report}");
        assert!(report.refused < 0.15, "{report}");
    }
}
