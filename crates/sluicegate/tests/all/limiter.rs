//! The limiter for code without HTTP.

use std::time::Duration;

use sluicegate::limit::WhenFull;
use sluicegate::service::AcquireError;
use sluicegate::store::{Fallback, Fleet, Share};
use sluicegate::{Limit, Limiter, ManualClock, Memory};
use tokio_test::{assert_pending, assert_ready, assert_ready_err, task};

fn limiter(limit: Limit) -> (Limiter, ManualClock) {
    let clock = ManualClock::new();
    let store = Memory::builder().capacity(1_000).clock(&clock).build();
    (Limiter::new(limit).store(store), clock)
}

const SECOND: Duration = Duration::from_secs(1);

#[test]
#[should_panic(expected = "the store cannot keep the limit")]
fn a_limiter_says_at_the_start_that_its_log_is_too_long() {
    let _ = Limiter::new(Limit::sliding_log(3_000_000, SECOND * 86_400));
}

#[test]
fn each_key_has_a_budget_of_its_own() {
    let (limiter, clock) = limiter(Limit::per_second(2));
    for key in ["alice", "bob"] {
        assert!(limiter.take(key).now().unwrap().is_admitted());
        assert!(limiter.take(key).now().unwrap().is_admitted());
        let refused = limiter.take(key).now().unwrap();
        assert_eq!(refused.retry_after(), Some(Duration::from_millis(500)));
    }
    clock.advance(Duration::from_millis(499));
    assert!(!limiter.take("alice").now().unwrap().is_admitted());
    clock.advance(Duration::from_millis(1));
    assert!(limiter.take("alice").now().unwrap().is_admitted());
}

#[test]
fn costs_are_charged_whole_or_not_at_all() {
    let (limiter, _clock) = limiter(Limit::per_minute(10));
    assert!(limiter.take_n("alice", 7).now().unwrap().is_admitted());
    assert!(!limiter.take_n("alice", 4).now().unwrap().is_admitted());
    assert!(limiter.take_n("alice", 3).now().unwrap().is_admitted());
    let never = limiter.take_n("bob", 11).now().unwrap();
    assert_eq!((never.is_admitted(), never.retry_after()), (false, None));
}

#[test]
fn peek_spends_nothing_and_reset_forgets() {
    let (limiter, _clock) = limiter(Limit::per_minute(1));
    for _ in 0..3 {
        assert!(limiter.peek(7_u64).now().unwrap().is_admitted());
    }
    assert!(limiter.take(7_u64).now().unwrap().is_admitted());
    assert!(!limiter.peek(7_u64).now().unwrap().is_admitted());
    assert!(limiter.reset(7_u64).now().unwrap().is_admitted());
    assert!(limiter.take(7_u64).now().unwrap().is_admitted());
}

#[test]
fn give_takes_back_what_was_charged_and_nothing_else() {
    let (limiter, _clock) = limiter(Limit::fixed_window(5, SECOND));
    let taken = limiter.take_n("alice", 5).now().unwrap();
    let refused = limiter.take("alice").now().unwrap();
    limiter.give("alice", &refused);
    assert!(!limiter.take("alice").now().unwrap().is_admitted());
    limiter.give("bob", &taken);
    assert_eq!(limiter.peek("bob").now().unwrap().remaining(), Some(5));
    limiter.give("alice", &taken);
    assert_eq!(limiter.peek("alice").now().unwrap().remaining(), Some(5));
}

#[test]
fn acquire_waits_until_admitted_in_order() {
    let (limiter, clock) = limiter(Limit::per_second(1));
    let mut first = task::spawn(limiter.acquire("alice", SECOND * 10));
    let mut second = task::spawn(limiter.acquire("alice", SECOND * 10));
    let mut third = task::spawn(limiter.acquire("alice", SECOND * 10));
    assert_ready!(first.poll()).unwrap();
    assert_pending!(second.poll());
    assert_pending!(third.poll());
    clock.advance(SECOND);
    assert!(second.is_woken());
    assert_ready!(second.poll()).unwrap();
    assert_pending!(third.poll());
    clock.advance(SECOND);
    assert_ready!(third.poll()).unwrap();
}

#[test]
fn what_cannot_be_admitted_in_time_is_refused_at_once() {
    let (limiter, _clock) = limiter(Limit::per_second(1));
    let mut first = task::spawn(limiter.acquire("alice", SECOND));
    assert_ready!(first.poll()).unwrap();
    let mut waiting = task::spawn(limiter.acquire("alice", SECOND));
    assert_pending!(waiting.poll());
    let mut hopeless = task::spawn(limiter.acquire("alice", SECOND));
    match assert_ready_err!(hopeless.poll()) {
        AcquireError::Refused(decision) => {
            assert_eq!(decision.retry_after(), Some(SECOND * 2));
        }
        error => panic!("{error}"),
    }
}

#[test]
fn a_dropped_acquire_gives_its_place_back() {
    let (limiter, clock) = limiter(Limit::per_second(1));
    let mut first = task::spawn(limiter.acquire("alice", SECOND));
    assert_ready!(first.poll()).unwrap();
    for _ in 0..5 {
        let mut gone = task::spawn(limiter.acquire("alice", SECOND));
        assert_pending!(gone.poll());
    }
    let mut waiting = task::spawn(limiter.acquire("alice", SECOND));
    assert_pending!(waiting.poll());
    clock.advance(SECOND);
    assert_ready!(waiting.poll()).unwrap();
}

#[test]
fn a_ticket_holds_a_place_until_it_is_dropped() {
    let (limiter, _clock) = limiter(Limit::concurrent(1));
    let mut held = task::spawn(limiter.acquire("alice", SECOND));
    let ticket = assert_ready!(held.poll()).unwrap();
    let mut other = task::spawn(limiter.acquire("alice", SECOND));
    assert_ready_err!(other.poll());
    drop(ticket);
    let mut other = task::spawn(limiter.acquire("alice", SECOND));
    assert!(assert_ready!(other.poll()).is_ok());
}

#[test]
fn nobody_waits_in_a_leaky_bucket_for_longer_than_told() {
    let (limiter, clock) = limiter(Limit::leaky_bucket(1, SECOND).queue(5));
    let mut first = task::spawn(limiter.acquire("alice", SECOND * 10));
    assert_ready!(first.poll()).unwrap();
    let mut impatient = task::spawn(limiter.acquire("alice", SECOND / 100));
    match assert_ready_err!(impatient.poll()) {
        AcquireError::Refused(decision) => {
            assert_eq!(decision.retry_after(), Some(SECOND - SECOND / 100));
        }
        error => panic!("{error}"),
    }
    let mut patient = task::spawn(limiter.acquire("alice", SECOND * 10));
    assert_pending!(patient.poll());
    clock.advance(SECOND);
    assert_ready!(patient.poll()).unwrap();
}

#[test]
fn those_who_wait_for_their_turn_are_counted() {
    let (limiter, clock) = limiter(Limit::leaky_bucket(1, SECOND).queue(5));
    let clone = limiter.clone();
    let mut asked: Vec<_> =
        (0..4).map(|_| task::spawn(limiter.acquire("alice", SECOND * 2))).collect();
    assert_ready!(asked[0].poll()).unwrap();
    assert_pending!(asked[1].poll());
    assert_pending!(asked[2].poll());
    // Three seconds are longer than it may wait, whatever room the bucket's own queue has.
    assert_ready_err!(asked[3].poll());
    assert_eq!(clone.waiting(), 2);
    clock.advance(SECOND);
    assert_ready!(asked[1].poll()).unwrap();
    assert_eq!(clone.waiting(), 1);
    drop(asked);
    assert_eq!(clone.waiting(), 0);
}

#[test]
fn a_peek_at_a_cost_tells_what_taking_it_would() {
    let (limiter, _clock) = limiter(Limit::per_minute(10));
    assert!(limiter.peek_n("alice", 10).now().unwrap().is_admitted());
    assert!(limiter.take_n("alice", 4).now().unwrap().is_admitted());
    let refused = limiter.peek_n("alice", 10).now().unwrap();
    assert_eq!(refused.retry_after(), Some(SECOND * 24));
    assert!(limiter.peek_n("alice", 11).now().unwrap().never_fits());
    assert_eq!(limiter.peek("alice").now().unwrap().remaining(), Some(6));
}

/// Down and up, to nothing and to all of it.
#[test]
fn a_charge_is_settled_to_what_it_cost() {
    let (limiter, _clock) = limiter(Limit::fixed_window(10, SECOND * 60));
    let left = |key: &str| limiter.peek(key).now().unwrap().remaining();
    let charge = |key: &str| limiter.charge(key, 4).now().unwrap();

    charge("less").settle_to(1);
    charge("more").settle_to(9);
    charge("none").give_back();
    charge("all").keep();
    drop(charge("dropped"));
    let told = ["less", "more", "none", "all", "dropped"].map(left);
    assert_eq!(told, [9, 1, 10, 6, 6].map(Some));

    let taken = limiter.take_n("alice", 4).now().unwrap();
    limiter.settle("alice", &taken, 7);
    assert_eq!(left("alice"), Some(3));
    let refused = limiter.take_n("alice", 4).now().unwrap();
    limiter.settle("alice", &refused, 1);
    assert_eq!(left("alice"), Some(3), "a refused decision has charged nothing");

    assert!(matches!(limiter.charge("alice", 4).now(), Err(AcquireError::Refused(_))));
    assert!(matches!(limiter.charge("alice", 11).now(), Err(AcquireError::NeverFits(_))));
}

#[test]
fn two_stores_in_this_process_answer_at_once_together() {
    let small = Memory::builder().capacity(1).build();
    // The first store reports that it has no room, instead of counting new keys together.
    let limit = Limit::per_hour(1).when_full(WhenFull::Admit);
    let limiter = Limiter::new(limit).store(Fallback(small, Memory::new()));
    for client in 0..50_u64 {
        assert!(limiter.take(client).now().unwrap().is_admitted());
        assert!(!limiter.take(client).now().unwrap().is_admitted());
    }
    let limiter = limiter.store(Fallback(Fallback(Memory::new(), Memory::new()), Memory::new()));
    assert!(limiter.take("alice").now().unwrap().is_admitted());
}

#[test]
fn what_a_key_has_spent_can_be_set() {
    let kinds = [
        Limit::per_second(10),
        Limit::leaky_bucket(1, SECOND).queue(9),
        Limit::fixed_window(10, SECOND * 10),
        Limit::sliding_window(10, SECOND * 10),
        Limit::sliding_log(10, SECOND * 10),
    ];
    for limit in kinds {
        let (limiter, _clock) = limiter(limit);
        assert!(limiter.take_n("alice", 3).now().unwrap().is_admitted());
        for amount in [7, 1, 10, 0, 4] {
            limiter.set_spent("alice", amount).now().unwrap();
            let left = limiter.peek("alice").now().unwrap().remaining();
            assert_eq!(left, Some(10 - amount), "{limit}");
        }
        assert_eq!(limiter.peek("bob").now().unwrap().remaining(), Some(10), "{limit}");
    }
}

#[test]
fn what_is_set_beyond_the_limit_refuses_until_it_has_drained() {
    let (limiter, clock) = limiter(Limit::per_second(10));
    limiter.set_spent("alice", 25).now().unwrap();
    let refused = limiter.take("alice").now().unwrap();
    assert_eq!(refused.retry_after(), Some(Duration::from_millis(1_600)));
    clock.advance(Duration::from_millis(1_599));
    assert!(!limiter.take("alice").now().unwrap().is_admitted());
    clock.advance(Duration::from_millis(1));
    assert!(limiter.take("alice").now().unwrap().is_admitted());

    limiter.set_spent("alice", u64::MAX).now().unwrap();
    assert!(!limiter.take("alice").now().unwrap().is_admitted());
    limiter.set_spent("alice", 0).now().unwrap();
    assert!(limiter.take_n("alice", 10).now().unwrap().is_admitted());
}

#[test]
fn what_is_set_beyond_a_window_or_a_log_refuses_until_it_is_over() {
    let (window, clock) = limiter(Limit::fixed_window(10, SECOND));
    window.set_spent("alice", 20).now().unwrap();
    let retry = window.take("alice").now().unwrap().retry_after().unwrap();
    clock.advance(retry - Duration::from_micros(1));
    assert!(!window.take("alice").now().unwrap().is_admitted());
    clock.advance(Duration::from_micros(1));
    assert!(window.take("alice").now().unwrap().is_admitted());

    let (log, clock) = limiter(Limit::sliding_log(10, SECOND));
    log.set_spent("alice", 20).now().unwrap();
    // Ten are counted for one second, and the ten beyond the limit for the next.
    let refused = log.take("alice").now().unwrap();
    assert_eq!(refused.retry_after(), Some(2 * SECOND));
    clock.advance(2 * SECOND - Duration::from_micros(1));
    assert!(!log.take("alice").now().unwrap().is_admitted());
    clock.advance(Duration::from_micros(1));
    assert!(log.take("alice").now().unwrap().is_admitted());
}

#[test]
fn setting_what_was_spent_leaves_places_held_and_works_for_several_limits_and_stores() {
    let limits = [Limit::per_hour(100), Limit::per_minute(10), Limit::concurrent(1)];
    let store =
        Fallback(Memory::with_capacity(1_000), Share::new(Memory::new(), &Fleet::fixed(1, 2)));
    let limiter = Limiter::new(limits).store(store);
    let held = limiter.charge("alice", 1).now().unwrap();
    limiter.set_spent("alice", 10).now().unwrap();
    let left: Vec<_> =
        limiter.peek("alice").now().unwrap().statuses().map(|s| s.remaining).collect();
    assert_eq!(left, [90, 0, 0]);
    drop(held);
    let mut awaited = task::spawn(limiter.set_spent("alice", 0));
    assert_ready!(awaited.poll()).unwrap();
    assert!(limiter.take("alice").now().unwrap().is_admitted());
    let places = Limiter::new(Limit::concurrent(1));
    let held = places.charge("alice", 1).now().unwrap();
    places.set_spent("alice", 0).now().unwrap();
    assert!(!places.take("alice").now().unwrap().is_admitted());
    drop(held);
}

#[test]
fn a_key_is_blocked_by_hand_until_exactly_the_time_is_over() {
    let (limiter, clock) = limiter(Limit::fixed_window(10, SECOND * 10_000));
    let limiter = limiter.blockable();
    let micro = Duration::from_micros(1);
    assert!(limiter.take_n("alice", 3).now().unwrap().is_admitted());
    limiter.block("alice", SECOND * 60).now().unwrap();
    for refused in [limiter.peek("alice"), limiter.take("alice")] {
        let refused = refused.now().unwrap();
        assert_eq!((refused.is_admitted(), refused.retry_after()), (false, Some(SECOND * 60)));
        let names: Vec<_> = refused.statuses().map(|s| s.limit.name().to_string()).collect();
        assert_eq!((names, refused.remaining()), (vec!["blocked".to_owned()], Some(0)));
    }
    let mut waiting = task::spawn(limiter.acquire("alice", SECOND * 100));
    assert_ready_err!(waiting.poll());
    assert!(limiter.take("bob").now().unwrap().is_admitted());

    clock.advance(SECOND * 60 - micro);
    assert_eq!(limiter.peek("alice").now().unwrap().retry_after(), Some(micro));
    clock.advance(micro);
    assert_eq!(limiter.take("alice").now().unwrap().remaining(), Some(6));
}

#[test]
fn a_block_replaces_the_one_before_and_can_be_ended() {
    let (limiter, clock) = limiter(Limit::per_second(10));
    let limiter = limiter.blockable();
    for length in [SECOND, SECOND * 1_000, SECOND * 5, Duration::MAX, Duration::from_nanos(1_001)] {
        limiter.block("alice", length).now().unwrap();
        let retry = limiter.peek("alice").now().unwrap().retry_after().unwrap();
        let micros = length.as_nanos().div_ceil(1_000).min(100 * 365 * 86_400 * 1_000_000);
        assert_eq!(retry.as_micros(), micros);
    }
    limiter.block("alice", SECOND * 86_400 * 400).now().unwrap();
    clock.advance(SECOND * 86_400 * 399);
    assert!(!limiter.take("alice").now().unwrap().is_admitted());
    limiter.reset("alice").now().unwrap();
    assert!(!limiter.take("alice").now().unwrap().is_admitted());
    limiter.unblock("alice").now().unwrap();
    assert!(limiter.take("alice").now().unwrap().is_admitted());
}
