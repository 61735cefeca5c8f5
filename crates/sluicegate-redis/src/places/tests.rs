use std::sync::Arc;
use std::time::Duration;

use sluicegate_core::Limit;
use sluicegate_core::adapter::remote::void;
use sluicegate_core::adapter::{Charge, Receipt};
use sluicegate_core::key::KeyBuf;

use super::{Claim, DOUBTFUL, HOLDERS, Places};

const LEASE: Duration = Duration::from_secs(10);
const PAUSE: u64 = 2_500_000;

type Rows = Vec<(Vec<u8>, u64)>;

fn places() -> Arc<Places> {
    Arc::new(Places::new(LEASE))
}

fn charge(cost: u64) -> Charge {
    Charge::of(Limit::concurrent(5), KeyBuf::of("alice"), cost)
}

fn key(name: &str) -> Vec<u8> {
    name.as_bytes().to_vec()
}

fn claim(places: &Arc<Places>, name: &str, cost: u64, now: u64) -> Claim {
    Claim::charging(places, &charge(cost), &[key(name)], now).expect("it holds places")
}

/// Marks it as known to be held.
fn hold(places: &Arc<Places>, name: &str, cost: u64, now: u64) {
    claim(places, name, cost, now).admitted(&[Receipt::default()]);
}

fn due(places: &Places, now: u64) -> Option<Rows> {
    places.due(now).map(|due| {
        let mut rows = due.rows;
        rows.sort();
        rows
    })
}

#[test]
fn a_charge_without_places_is_not_counted() {
    let places = places();
    let rate = Charge::of(Limit::per_second(5), KeyBuf::of("alice"), 1);
    assert!(Claim::charging(&places, &rate, &[key("a")], 0).is_none());
    assert!(Claim::charging(&places, &charge(0), &[key("a")], 0).is_none());
    assert_eq!(due(&places, 0), None);
}

#[test]
fn what_is_asked_for_counts_until_it_is_refused_or_given_back() {
    let places = places();
    let asked = claim(&places, "a", 2, 0);
    hold(&places, "a", 1, 0);
    assert_eq!(due(&places, PAUSE), Some(vec![(key("a"), 3)]));
    drop(asked);
    assert_eq!(due(&places, PAUSE), Some(vec![(key("a"), 1)]));
    let returned = Claim::returning(&places, key("a"), 1);
    assert_eq!(due(&places, PAUSE), Some(vec![(key("a"), 1)]));
    drop(returned);
    assert_eq!(due(&places, PAUSE), None);
    drop(Claim::returning(&places, key("a"), 1));
    assert_eq!(due(&places, PAUSE), None, "given back twice, it is no less than nothing");
}

#[test]
fn a_shadow_that_was_not_charged_holds_nothing() {
    let places = places();
    let mut asked = claim(&places, "a", 2, 0);
    asked.admitted(&[void()]);
    drop(asked);
    assert_eq!(due(&places, 0), None);
}

#[test]
fn only_what_was_not_touched_for_a_while_is_renewed() {
    let places = places();
    hold(&places, "a", 1, 0);
    hold(&places, "b", 1, 1);
    assert_eq!(due(&places, PAUSE - 1), Some(vec![]));
    assert_eq!(due(&places, PAUSE), Some(vec![(key("a"), 1)]));
    places.renewed(&[(key("a"), 1)], PAUSE);
    assert_eq!(due(&places, PAUSE + 1), Some(vec![(key("b"), 1)]));
    assert_eq!(due(&places, 2 * PAUSE), Some(vec![(key("a"), 1), (key("b"), 1)]));
    // A clock that was set back proves nothing.
    assert_eq!(due(&places, 0).map(|rows| rows.len()), Some(2));
}

/// It was charged after the renewal began, and the server may not have counted that yet.
#[test]
fn a_renewal_makes_no_later_charge_older() {
    let places = places();
    hold(&places, "a", 1, 5);
    places.renewed(&[(key("a"), 1)], 1);
    assert_eq!(due(&places, PAUSE + 4), Some(vec![]));
    assert_eq!(due(&places, PAUSE + 5), Some(vec![(key("a"), 1)]));
}

/// A request that is refused changes nothing on the server.
#[test]
fn requests_that_are_refused_put_no_renewal_off() {
    let places = places();
    hold(&places, "a", 1, 0);
    for now in [PAUSE / 2, PAUSE - 1, PAUSE] {
        drop(claim(&places, "a", 1, now));
    }
    assert_eq!(due(&places, PAUSE), Some(vec![(key("a"), 1)]));
    let waiting = claim(&places, "a", 1, PAUSE + 1);
    assert_eq!(
        due(&places, PAUSE + 1),
        Some(vec![(key("a"), 2)]),
        "nor does one without an answer"
    );
    drop(waiting);
    hold(&places, "a", 1, PAUSE + 2);
    assert_eq!(due(&places, 2 * PAUSE + 1), Some(vec![]), "one that is admitted is a renewal");
}

#[test]
fn what_is_lost_is_counted_once() {
    let places = places();
    let lose = || places.lose([&key("a")]);
    hold(&places, "a", 1, 0);
    due(&places, PAUSE);
    // The entry that this one begins may be newer than the answer to the renewal.
    hold(&places, "a", 1, PAUSE);
    assert_eq!([lose(), lose()], [1, 0]);
    due(&places, 2 * PAUSE);
    assert_eq!([lose(), lose()], [1, 0]);
    due(&places, 3 * PAUSE);
    assert_eq!(lose(), 0, "it was counted before");
    // What was lost may count too much, but nothing else may count too little.
    assert_eq!(due(&places, 3 * PAUSE), Some(vec![(key("a"), 2)]));
}

#[test]
fn what_is_asked_for_or_given_back_is_not_lost() {
    let places = places();
    let _asked = claim(&places, "a", 1, 0);
    due(&places, PAUSE);
    assert_eq!(places.lose([&key("a"), &key("b")]), 0);
    hold(&places, "a", 1, PAUSE);
    due(&places, 2 * PAUSE);
    let _returned = Claim::returning(&places, key("a"), 1);
    assert_eq!(places.lose([&key("a")]), 0);
}

/// The server lowers its count only if nothing was taken since that turn.
#[test]
fn a_renewal_has_the_turn_of_the_newest_claim() {
    let places = places();
    hold(&places, "a", 1, 0);
    hold(&places, "b", 1, 0);
    assert_eq!(places.due(PAUSE).map(|due| due.turn), Some(2));
    let refused = claim(&places, "a", 1, 0);
    let turn = refused.turn();
    drop(refused);
    assert_eq!((places.due(2 * PAUSE).map(|due| due.turn), turn), (Some(3), 3));
}

#[test]
fn a_doubt_is_reported_once_and_again_if_that_fails() {
    let places = places();
    claim(&places, "a", 2, 0).doubt();
    let told = Some(vec![(key("a"), 0)]);
    assert_eq!(due(&places, 0), told);
    assert_eq!(due(&places, 0), None, "the server knows");
    places.not_renewed(&[(key("a"), 0)]);
    assert_eq!(due(&places, 0), told);
    // In a row that is in use, too.
    places.not_renewed(&[(key("a"), 0)]);
    hold(&places, "a", 1, 0);
    assert_eq!(due(&places, 0), Some(vec![(key("a"), 1)]));
    assert_eq!(due(&places, 0), Some(vec![]));
    drop(Claim::returning(&places, key("a"), 1));
    assert_eq!(due(&places, 0), None);
    assert_eq!(places.doubtful(), 0);
}

#[test]
fn the_number_of_doubts_is_bounded() {
    let places = places();
    for number in 0..2 * DOUBTFUL {
        claim(&places, &number.to_string(), 1, 0).doubt();
    }
    assert_eq!(due(&places, 0).map(|rows| rows.len()), Some(DOUBTFUL));
    assert_eq!((due(&places, 0), places.doubtful()), (None, 0));
}

#[test]
fn turns_grow() {
    let places = places();
    let turns = [(); 3].map(|()| claim(&places, "a", 1, 0).turn());
    assert_eq!(turns, [1, 2, 3]);
}

#[test]
fn holders_differ() {
    let numbers: std::collections::BTreeSet<_> = (0..100).map(|_| places().holder()).collect();
    assert_eq!(numbers.len(), 100);
    assert!(numbers.iter().all(|number| (1..HOLDERS).contains(number)));
}
