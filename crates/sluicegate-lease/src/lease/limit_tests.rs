//! Limits that follow the leases of a client.

use std::time::Duration;

use sluicegate_core::adapter::Charge;
use sluicegate_core::key::KeyBuf;
use sluicegate_core::store::Store;
use sluicegate_core::{Limit, ManualClock};
use tokio::time::sleep;

use super::tests::Cut;
use super::{InProcess, Lease, LeaseClient};
use crate::amount::Amount;
use crate::client::OnLoss;
use crate::limit::{LeasedBuilder, LeasedLimit, Wants};
use crate::template::{Template, Templates};

const SECOND: Duration = Duration::from_secs(1);

/// 100 units, leased for 10 seconds at a time, and asked for each second.
fn server() -> InProcess {
    let template = Template::new("*", Amount::units(100))
        .lease(10 * SECOND)
        .refresh(SECOND)
        .safe(Amount::units(3));
    InProcess::new(Templates::new([template]).unwrap())
}

fn client(server: &InProcess) -> LeaseClient {
    LeaseClient::over(server.clone())
}

fn outstanding(server: &InProcess) -> Amount {
    server.with(|server| server.pool().outstanding("db"))
}

/// Asks for some requests; returns how many were admitted.
fn ask(limit: &LeasedLimit, times: u64) -> usize {
    let charge = Charge::of(limit.limit(), KeyBuf::new(), 1);
    let is_admitted = |_: &u64| limit.take(&charge).now().unwrap().is_admitted();
    (0..times).filter(is_admitted).count()
}

/// The clock of the limit goes along with that of the runtime.
async fn pass(clock: &ManualClock, time: Duration) {
    let mut left = time;
    while !left.is_zero() {
        let step = left.min(Duration::from_millis(10));
        sleep(step).await;
        clock.advance(step);
        left -= step;
    }
}

fn rate(lease: &Lease, clock: &ManualClock) -> LeasedLimit {
    lease.limit(LeasedLimit::rate("db").clock(clock)).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_limit_follows_its_lease_and_the_lease_follows_the_demand() {
    let (server, clock) = (server(), ManualClock::new());
    let client = client(&server);
    let lease = client.resource("db").wants(Wants::learned()).lease().unwrap();
    let limit = rate(&lease, &clock);
    pass(&clock, SECOND).await;
    assert_eq!((limit.capacity(), lease.wants()), (Amount::ZERO, Amount::ZERO));

    // Nine requests a second, of which the first are refused.
    let mut admitted = Vec::new();
    for _ in 0..10 {
        let mut this_second = 0;
        for _ in 0..9 {
            this_second += ask(&limit, 1);
            pass(&clock, SECOND / 9).await;
        }
        admitted.push(this_second);
    }
    assert!(admitted[0] >= 1, "{admitted:?}");
    assert!(admitted[3..].iter().all(|admitted| *admitted == 9), "{admitted:?}");
    assert!((9.0..=10.0).contains(&limit.capacity().as_f64()), "{}", limit.capacity());

    // Ten times as many are granted within a second.
    for _ in 0..9 {
        ask(&limit, 10);
        pass(&clock, SECOND / 9).await;
    }
    assert!(limit.capacity() >= Amount::units(60), "{}", limit.capacity());

    // Nobody asks any more: it is given back by and by.
    pass(&clock, 60 * SECOND).await;
    assert_eq!((limit.capacity(), outstanding(&server)), (Amount::ZERO, Amount::ZERO));
}

/// Clients of 200 units a second, each of which wants as many requests a second as `wants` says. Returns what was admitted in a second after
/// the first ten.
async fn admitted_of(clients: usize, wants: impl Fn(u64, usize) -> u64) -> f64 {
    let template = Template::new("*", Amount::units(200)).lease(20 * SECOND).refresh(5 * SECOND);
    let server = InProcess::new(Templates::new([template]).unwrap());
    let clock = ManualClock::new();
    let clients: Vec<_> = (0..clients).map(|_| client(&server)).collect();
    let limits = clients.iter().map(|client| {
        let lease = client.resource("db").lease().unwrap();
        lease.limit(LeasedLimit::rate("db").clock(&clock).burst(10)).unwrap()
    });
    let limits: Vec<_> = limits.collect();
    let mut left = vec![0; limits.len()];
    let mut admitted = 0;
    for millis in (0..40_000).step_by(10) {
        for (at, limit) in limits.iter().enumerate() {
            left[at] += wants(millis, at) * 10;
            let asked = ask(limit, left[at] / 1_000);
            left[at] %= 1_000;
            admitted += if millis >= 10_000 { asked } else { 0 };
        }
        let held: Amount = limits.iter().map(LeasedLimit::capacity).sum();
        assert!(held <= Amount::units(200), "{held}");
        pass(&clock, Duration::from_millis(10)).await;
    }
    admitted as f64 / 30.0
}

#[tokio::test(start_paused = true)]
async fn clients_that_are_busy_in_turns_get_what_the_others_leave() {
    // How many take turns, for how long, what the busy one asks for, and what all are admitted of 200 a second.
    for (clients, turn, asked, least) in [
        (2, 2_000, 200, 180.0),
        (2, 2_000, 300, 180.0),
        (2, 1_000, 200, 155.0),
        (2, 3_000, 200, 180.0),
        (2, 5_000, 300, 185.0),
        (4, 2_000, 200, 155.0),
    ] {
        let wants =
            |millis, at| if millis / turn % clients as u64 == at as u64 { asked } else { 0 };
        let admitted = admitted_of(clients, wants).await;
        assert!(admitted >= least, "{admitted} of {clients} in turns of {turn} ms, {asked} asked");
    }
}

#[tokio::test(start_paused = true)]
async fn clients_that_are_busy_all_the_time_share_everything() {
    assert!(admitted_of(2, |_, _| 150).await >= 199.0);
    assert!(admitted_of(10, |_, _| 9).await >= 89.5);
    // So do those whose requests come all at once.
    let at_once = |millis, at| if millis % 1_000 == 100 * at as u64 { 800 } else { 0 };
    assert!(admitted_of(10, at_once).await >= 79.0);
}

#[tokio::test(start_paused = true)]
async fn an_idle_client_that_is_needed_asks_at_once() {
    let (server, clock) = (server(), ManualClock::new());
    let client = client(&server);
    let lease = client.resource("db").lease().unwrap();
    let limit = rate(&lease, &clock);
    pass(&clock, Duration::from_millis(300)).await;
    assert_eq!(ask(&limit, 1), 0);
    pass(&clock, Duration::from_millis(20)).await;
    assert_eq!(ask(&limit, 1), 1);
}

/// How often a client asks in a minute of which 100 requests a second want something, while others hold everything.
async fn asks_in_vain(wants: Wants, make: fn(&str) -> LeasedBuilder, refresh: Duration) -> usize {
    let template = Template::new("*", Amount::units(100)).lease(3 * refresh).refresh(refresh);
    let server = InProcess::new(Templates::new([template]).unwrap());
    let (others, link) = (client(&server), Cut::of(server));
    let critical = others.resource("db").wants(Amount::units(100)).lease().unwrap();
    let clock = ManualClock::new();
    pass(&clock, SECOND).await;
    let client = LeaseClient::over(link.clone());
    let lease = client.resource("db").band(1).wants(wants).lease().unwrap();
    let limit = lease.limit(make("db").clock(&clock)).unwrap();
    for _ in 0..6_000 {
        assert_eq!(ask(&limit, 1), 0);
        pass(&clock, SECOND / 100).await;
    }
    assert_eq!(critical.capacity(), Amount::units(100));
    link.requests()
}

#[tokio::test(start_paused = true)]
async fn a_client_that_is_granted_nothing_asks_again_in_growing_intervals() {
    for make in [LeasedLimit::rate, LeasedLimit::gauge] {
        for wants in [Wants::learned(), Wants::fixed(Amount::units(5))] {
            // Twelve renewals, some twenty retries, and some for each rise of what is learned.
            let asked = asks_in_vain(wants, make, 5 * SECOND).await;
            assert!((12..=60).contains(&asked), "{asked} times in a minute");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_lease_has_one_limit_at_a_time() {
    let (server, clock) = (server(), ManualClock::new());
    let client = client(&server);
    let lease = client.resource("db").wants(Amount::units(30)).lease().unwrap();
    let limit = rate(&lease, &clock);
    let error = lease.rate().unwrap_err().to_string();
    assert!(error.contains("a limit follows this lease already"), "{error}");
    drop(limit);
    assert!(lease.rate().is_ok());
    let long = client.resource("x".repeat(32)).lease().unwrap();
    assert!(long.rate().unwrap_err().to_string().contains("longer than 31 bytes"));
}

#[tokio::test(start_paused = true)]
async fn a_limit_keeps_its_lease_and_gives_it_back_when_it_is_dropped() {
    let (server, clock) = (server(), ManualClock::new());
    let client = client(&server);
    let lease = client.resource("db").wants(Amount::units(30)).lease().unwrap();
    let limit = rate(&lease, &clock);
    drop((client, lease));
    pass(&clock, 20 * SECOND).await;
    assert_eq!(outstanding(&server), Amount::units(30));
    drop(limit);
    pass(&clock, SECOND / 10).await;
    assert_eq!(outstanding(&server), Amount::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_limit_that_is_used_after_its_client_was_closed_admits_nothing() {
    let (server, clock) = (server(), ManualClock::new());
    let client = client(&server);
    let wants = Amount::units(30);
    let lease = client.resource("db").wants(wants).on_loss(OnLoss::Keep).lease().unwrap();
    let limit = rate(&lease, &clock);
    pass(&clock, SECOND).await;
    assert_eq!(ask(&limit, 1), 1);
    client.close().await;
    assert_eq!(ask(&limit, 100), 0);
    // Neither does it after its runtime has been asked to do something for it.
    lease.set_wants(Amount::units(50));
    pass(&clock, 20 * SECOND).await;
    assert_eq!((ask(&limit, 100), limit.capacity()), (0, Amount::ZERO));
}

#[tokio::test(start_paused = true)]
async fn places_in_use_are_not_given_to_others_before_they_are_free() {
    let (server, clock) = (server(), ManualClock::new());
    let (one, two) = (client(&server), client(&server));
    let lease = one.resource("db").wants(Amount::units(100)).lease().unwrap();
    let limit = lease.limit(LeasedLimit::gauge("db").clock(&clock)).unwrap();
    pass(&clock, SECOND).await;
    let charge = Charge::of(limit.limit(), KeyBuf::new(), 1);
    let running: Vec<_> = (0..90).map(|_| limit.take(&charge).now().unwrap()).collect();
    assert!(running.iter().all(sluicegate_core::adapter::Outcome::is_admitted));

    // Its fair share is 50 now, but 90 are in use.
    let other = two.resource("db").wants(Amount::units(100)).lease().unwrap();
    pass(&clock, 5 * SECOND).await;
    assert_eq!(limit.capacity(), Amount::units(50));
    assert_eq!(other.capacity(), Amount::units(10));
    for outcome in &running[..40] {
        for (debit, receipt) in charge.debits().zip(outcome.receipts()) {
            limit.settle(debit, &receipt, 0);
        }
    }
    pass(&clock, 5 * SECOND).await;
    assert_eq!((limit.capacity(), other.capacity()), (Amount::units(50), Amount::units(50)));
}

#[tokio::test(start_paused = true)]
async fn with_one_client_more_than_places_all_places_are_used() {
    let template = Template::new("*", Amount::units(30)).lease(10 * SECOND).refresh(SECOND);
    let server = InProcess::new(Templates::new([template]).unwrap());
    let clock = ManualClock::new();
    let clients: Vec<_> = (0..31).map(|_| client(&server)).collect();
    let limits = clients.iter().map(|client| {
        let lease = client.resource("db").lease().unwrap();
        lease.limit(LeasedLimit::gauge("db").clock(&clock)).unwrap()
    });
    let limits: Vec<_> = limits.collect();
    let (mut served, mut places) = (vec![0; 31], 0);
    for second in 0..60 {
        for (limit, served) in limits.iter().zip(&mut served) {
            // A request that is over at once. Who is refused asks again.
            let charge = Charge::of(limit.limit(), KeyBuf::new(), 1);
            let outcome = limit.take(&charge).now().unwrap();
            for (debit, receipt) in charge.debits().zip(outcome.receipts()) {
                limit.settle(debit, &receipt, 0);
            }
            *served += u32::from(outcome.is_admitted());
        }
        let held: Amount = limits.iter().map(LeasedLimit::capacity).sum();
        assert!(held <= Amount::units(30), "{held}");
        let usable = limits.iter().map(|limit| limit.capacity().as_units()).sum::<u64>();
        places += if second >= 20 { usable } else { 0 };
        pass(&clock, SECOND).await;
    }
    assert!(places >= 29 * 40, "{places} in 40 s");
    assert!(served.iter().all(|served| *served >= 45), "{served:?}");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_lies_about_its_wants_gets_its_fair_share_and_no_more() {
    let (server, clock) = (server(), ManualClock::new());
    let (liar, honest) = (client(&server), client(&server));
    let lie = liar.resource("db").wants(Amount::MAX).lease().unwrap();
    pass(&clock, 3 * SECOND).await;
    assert_eq!(lie.capacity(), Amount::units(100));
    let lease = honest.resource("db").wants(Amount::units(40)).lease().unwrap();
    let limit = rate(&lease, &clock);
    pass(&clock, 3 * SECOND).await;
    assert_eq!((limit.capacity(), lie.capacity()), (Amount::units(40), Amount::units(60)));
    // One that could use half of all gets half.
    lease.set_wants(Amount::units(80));
    pass(&clock, 3 * SECOND).await;
    assert_eq!((limit.capacity(), lie.capacity()), (Amount::units(50), Amount::units(50)));
}

#[tokio::test(start_paused = true)]
async fn another_limit_of_the_same_name_is_refused() {
    let (server, clock) = (server(), ManualClock::new());
    let client = client(&server);
    let lease = client.resource("db").wants(Amount::units(30)).lease().unwrap();
    let limit = rate(&lease, &clock);
    assert!(limit.check(&Limit::per_second(5).named("db")).is_err());
    assert!(limit.check(&limit.limit()).is_ok());
}
