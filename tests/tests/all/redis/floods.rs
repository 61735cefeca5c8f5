//! Remembered refusals: a flood costs the server next to nothing, and does not change decisions.

use std::time::Duration;

use sluicegate_core::adapter::{Charge, Receipt};
use sluicegate_core::store::Store;
use sluicegate_core::{Limit, ManualClock};
use sluicegate_redis::{Redis, RedisBuilder};
use sluicegate_tests::servers::{Server, until};
use sluicegate_tests::{answer, conformance, key};

use super::DAY;
use super::load::{Load, attempts};
use super::store::{by_hand, open, own_prefix, patient, settled, shared, shared_cluster};

const SECOND: Duration = Duration::from_secs(1);

/// A day's worth, so nothing is refilled during the test.
const TEN: Limit = Limit::fixed_window(10, DAY).from_first();

fn remembering(builder: RedisBuilder) -> RedisBuilder {
    builder.remember_refusals(1_024, Duration::MAX)
}

conformance!(
    a_server_that_is_remembered,
    |clock: &ManualClock| open(remembering(by_hand(clock)).url(&shared().url())),
    settled
);
conformance!(
    a_cluster_that_is_remembered,
    |clock: &ManualClock| open(remembering(by_hand(clock)).cluster(shared_cluster().urls())),
    settled
);

/// How often a server was called for a decision.
fn scripts(server: &Server) -> u64 {
    let told = server.cli(["INFO", "commandstats"]).text();
    let calls = told.lines().filter_map(|line| {
        let (_, calls) = line.strip_prefix("cmdstat_eval")?.split_once("calls=")?;
        calls.split(',').next()?.parse::<u64>().ok()
    });
    calls.sum()
}

#[test]
fn a_flood_from_one_client_costs_the_server_a_handful_of_questions() {
    let server = Server::start();
    let store = open(remembering(patient()).url(&server.url()));
    let tally = attempts(&store, &Charge::of(TEN, key("alice"), 1), 4, 25_000);
    assert_eq!((tally.admitted, tally.refused), (10, 99_990));
    let counts = store.counts();
    assert_eq!((counts.decisions, counts.refused), (100_000, 99_990));
    // Four tasks ask until one is refused. One script may hold several of their calls, and a call is made twice if
    // the server does not know the script.
    let asked = 100_000 - counts.refused_locally;
    assert!((11..=30).contains(&asked), "{asked} asked");
    let scripts = scripts(&server);
    assert!((1..=40).contains(&scripts), "{scripts} scripts");
}

/// Time passes meanwhile, by the server's clock and by this process's.
#[test]
fn what_comes_back_is_admitted_during_a_flood() {
    let server = Server::start();
    let store = open(remembering(patient()).url(&server.url()));
    let limit = Limit::per_second(100).burst(1);
    let began = std::time::Instant::now();
    let load = Load::start(&store, &Charge::of(limit, key("alice"), 1), 4);
    until("a good deal to be admitted", || (store.counts().admitted >= 50).then_some(()));
    let tally = load.stop();
    let most = 1 + began.elapsed().as_millis() as u64 / 10;
    assert!(tally.admitted <= most, "{} of {most}", tally.admitted);
    assert_eq!(tally.failed, 0);
    assert!(store.counts().refused_locally > 0);
}

/// Each key may be on another server with its own clock.
#[test]
fn charges_to_several_keys_of_a_cluster_are_not_remembered() {
    let store = open(remembering(patient()).cluster(shared_cluster().urls()));
    let mut charge = Charge::of(TEN, key("alice"), 1);
    charge.add(TEN, key("everybody"), 1).expect("two keys");
    let tally = attempts(&store, &charge, 1, 20);
    assert_eq!((tally.admitted, tally.refused), (10, 10));
    assert_eq!(store.counts().refused_locally, 0);
    assert_eq!(attempts(&store, &Charge::of(TEN, key("alice"), 1), 1, 20).refused, 20);
    assert!(store.counts().refused_locally >= 19);
}

/// What this process gives back takes effect at once; what another process gives back, after the longest time.
#[test]
fn what_is_given_back_is_seen() {
    let clock = ManualClock::new();
    let prefix = own_prefix();
    let on = |builder: RedisBuilder| open(builder.url(&shared().url()).prefix(&prefix));
    let store = on(by_hand(&clock).remember_refusals(16, SECOND));
    let other = on(by_hand(&clock));
    let charge = Charge::of(TEN, key("alice"), 1);
    let debit = charge.debits().next().expect("one");
    let take = |store: &Redis| answer(store.take(&charge)).expect("the store answers");
    let spend_all = || {
        let receipts =
            std::iter::repeat_with(|| take(&store)).take_while(|taken| taken.is_admitted());
        let last = receipts.last().and_then(|taken| taken.receipts().next());
        assert!(!take(&store).is_admitted());
        last.unwrap_or_default()
    };

    let receipt = spend_all();
    store.settle(debit, &receipt, 0);
    assert!(take(&store).is_admitted(), "given back");
    spend_all();
    answer(store.reset(&charge)).expect("the store answers");
    assert!(take(&store).is_admitted(), "reset");

    let receipt = spend_all();
    other.settle(debit, &receipt, 0);
    settled(&other);
    clock.advance(SECOND - Duration::from_micros(1));
    assert!(!take(&store).is_admitted(), "the other process does not know yet");
    clock.advance(Duration::from_micros(1));
    assert!(take(&store).is_admitted(), "looked at again");
}

#[test]
fn a_server_that_begins_anew_is_asked_anew() {
    let server = Server::start();
    let store = open(remembering(patient()).url(&server.url()));
    let charge = Charge::of(TEN, key("alice"), 1);
    assert_eq!(attempts(&store, &charge, 1, 100).admitted, 10);
    server.kill();
    server.restart();
    let bob = Charge::of(TEN, key("bob"), 1);
    until("the new one to answer", || answer(store.take(&bob)).ok());
    assert_eq!(attempts(&store, &charge, 1, 100).admitted, 10);
}

#[test]
fn a_refusal_outlives_the_server_and_a_yes_does_not() {
    let server = Server::start();
    let clock = ManualClock::new();
    let store = open(remembering(by_hand(&clock)).url(&server.url()));
    let charge = Charge::of(Limit::per_second(1), key("alice"), 1);
    assert_eq!(attempts(&store, &charge, 1, 3).refused, 2);
    server.kill();
    until("the loss to be noticed", || {
        answer(store.take(&Charge::of(TEN, key("bob"), 1))).is_err().then_some(())
    });
    assert_eq!(attempts(&store, &charge, 1, 10).refused, 10);
    clock.advance(SECOND);
    assert_eq!(attempts(&store, &charge, 1, 10).failed, 10);
}

/// Pseudo-random numbers (PCG's generator), the same in every run.
struct Drawn(u64);

impl Drawn {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 40) % most
    }

    fn charge(&mut self) -> Charge {
        let limits = [
            Limit::per_second(3).burst(2),
            Limit::per_second(5).refill(2, SECOND / 2),
            Limit::leaky_bucket(4, SECOND).queue(2),
            Limit::fixed_window(4, SECOND),
            Limit::sliding_window(4, SECOND),
            Limit::sliding_log(4, SECOND),
        ];
        let mut charge = Charge::new();
        for _ in 0..[1, 1, 1, 2][self.below(4) as usize] {
            let limit = limits[self.below(6) as usize];
            charge.add(limit, key("alice"), self.below(4)).expect("few limits");
        }
        charge
    }
}

#[test]
fn a_store_that_remembers_decides_like_one_that_does_not() {
    let clock = ManualClock::new();
    let both = [remembering(by_hand(&clock)), by_hand(&clock)];
    let both = both.map(|builder| open(builder.url(&shared().url())));
    let mut drawn = Drawn(7);
    let mut paid: Vec<(Charge, [Vec<Receipt>; 2])> = Vec::new();
    for _ in 0..6_000 {
        match drawn.below(16) {
            0 => {
                let charge = drawn.charge();
                for store in &both {
                    answer(store.reset(&charge)).expect("an answer");
                }
            }
            1 if !paid.is_empty() => {
                let (charge, receipts) = paid.swap_remove(drawn.below(paid.len() as u64) as usize);
                let spent = drawn.below(5);
                for (store, receipts) in both.iter().zip(&receipts) {
                    for (debit, receipt) in charge.debits().zip(receipts) {
                        store.settle(debit, receipt, spent);
                    }
                }
            }
            2 | 3 => clock.advance(Duration::from_micros(1 << drawn.below(20))),
            _ => {
                let charge = drawn.charge();
                let taken = both.each_ref().map(|store| answer(store.take(&charge)));
                let [one, other] = taken.map(|taken| taken.expect("an answer"));
                assert_eq!(one.decision(&charge), other.decision(&charge));
                if one.is_admitted() {
                    paid.push((charge, [one, other].map(|taken| taken.receipts().collect())));
                }
            }
        }
    }
    let [remembered, asked] = both.map(|store| store.counts());
    assert!(remembered.refused_locally > 500, "{remembered:?}");
    assert_eq!(asked.refused_locally, 0);
}
