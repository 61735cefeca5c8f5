//! The grant changes while the limit is in use.

use super::*;
use crate::client::{OnLoss, Session};
use crate::{Pool, Template, Templates};

#[test]
fn what_is_spent_under_an_old_grant_counts_under_the_new() {
    let clock = ManualClock::new();
    let limit = rate(&clock);
    grant(&limit, 10.0);
    assert_eq!(admitted(&limit), 10);
    // Ten times as much: it flows in from now on, and is not there at once.
    grant(&limit, 100.0);
    assert_eq!(admitted(&limit), 0);
    clock.advance(SECOND / 10);
    assert_eq!(admitted(&limit), 10);
}

#[test]
fn an_idle_client_that_gets_more_does_not_find_more_than_it_had() {
    let clock = ManualClock::new();
    let limit = rate(&clock);
    grant(&limit, 10.0);
    grant(&limit, 100.0);
    assert_eq!(admitted(&limit), 10);
}

#[test]
fn grants_that_alternate_admit_no_more_than_they_held() {
    let clock = ManualClock::new();
    let limit = rate(&clock);
    let mut all = 0;
    for round in 0..100 {
        grant(&limit, if round % 2 == 0 { 1.0 } else { 100.0 });
        all += admitted(&limit);
        clock.advance(SECOND / 100);
        all += admitted(&limit);
    }
    // 0.5 s of each, and the burst of the first.
    assert!((50..=52).contains(&all), "{all}");
}

#[test]
fn a_smaller_grant_leaves_no_more_than_its_burst() {
    let clock = ManualClock::new();
    let limit = rate(&clock);
    grant(&limit, 100.0);
    take(&limit, 1);
    grant(&limit, 5.0);
    assert_eq!(admitted(&limit), 5);
}

#[test]
fn an_idle_client_whose_grant_was_taken_finds_what_it_had_left_when_it_gets_it_again() {
    let clock = ManualClock::new();
    let day = MINUTE * 60 * 24;
    let limit = LeasedLimit::rate("money").clock(&clock).per(day).build().unwrap();
    limit.grant(Amount::units(5), day, Amount::ZERO);
    limit.grant(Amount::ZERO, day, Amount::ZERO);
    assert_eq!(admitted(&limit), 0);
    clock.advance(MINUTE);
    limit.grant(Amount::units(5), day, Amount::ZERO);
    assert_eq!(admitted(&limit), 5);
}

#[test]
fn when_the_lease_is_lost_it_stops_keeps_or_falls_back_on_the_safe_capacity() {
    for (on_loss, expected) in [(OnLoss::Stop, 0), (OnLoss::Keep, 10), (OnLoss::Safe, 3)] {
        let template = Template::new("*", Amount::units(10)).safe(Amount::units(3));
        let mut pool = Pool::new(Templates::new([template]).unwrap());
        pool.lead(0, 1, Some(Vec::new()));
        let mut session = Session::new("one", 0, 7);
        session.add("db", Amount::units(10), on_loss);
        let crate::client::Action::Ask(request) = session.poll(0) else { panic!("it asks") };
        session.answered(0, &pool.answer(0, &request).unwrap());

        let clock = ManualClock::new();
        let limit = rate(&clock);
        limit.follow(0, &session, "db");
        // The server does not answer any more. The lease ends a millisecond early, never late.
        for second in 0..60 {
            assert_eq!(admitted(&limit), 10, "second {second}");
            clock.advance(SECOND);
        }
        admitted(&limit);
        clock.advance(SECOND);
        assert_eq!(admitted(&limit), expected, "{on_loss:?}");
        assert_eq!(limit.capacity(), Amount::units(expected));
    }
}

#[test]
fn a_lease_ends_at_its_moment_though_nobody_tells_the_limit() {
    let clock = ManualClock::new();
    let limit = rate(&clock);
    limit.grant(Amount::units(10), SECOND, Amount::ZERO);
    clock.advance(SECOND - Duration::from_micros(1));
    assert!(take(&limit, 1).is_admitted());
    clock.advance(Duration::from_micros(1));
    assert!(!take(&limit, 1).is_admitted());
}

#[test]
fn no_place_is_booked_beyond_the_end_of_the_lease() {
    let clock = ManualClock::new();
    let limit = rate(&clock);
    limit.grant(Amount::units(10), SECOND, Amount::ZERO);
    assert_eq!(admitted(&limit), 10);
    let waits: Vec<_> = (0..20).map(|_| wait_for(&limit, 1, MINUTE)).collect();
    let booked: Vec<_> = waits.iter().filter(|outcome| outcome.is_admitted()).collect();
    assert_eq!(booked.len(), 10);
    assert!(booked.iter().all(|outcome| outcome.wait() <= SECOND));
    // The others are told when they could go if the lease is renewed.
    assert_eq!(waits[19].retry_after(), Some(SECOND + SECOND / 10));
}

#[test]
fn with_a_safe_capacity_places_are_booked_at_its_pace_after_the_end_of_the_lease() {
    let clock = ManualClock::new();
    let limit = rate(&clock);
    limit.grant(Amount::units(10), SECOND, Amount::units(2));
    assert_eq!(admitted(&limit), 10);
    let wait = |_| wait_for(&limit, 1, MINUTE).wait();
    let waits: Vec<_> = (0..12).map(wait).collect();
    assert_eq!(waits[9], SECOND);
    assert_eq!(waits[10], SECOND + SECOND / 2);
    assert_eq!(waits[11], SECOND * 2);
}

#[test]
fn places_that_are_booked_count_as_outstanding_until_they_are_left() {
    let clock = ManualClock::new();
    let limit = rate(&clock);
    grant(&limit, 10.0);
    admitted(&limit);
    assert!(wait_for(&limit, 1, SECOND).is_admitted());
    assert!(wait_for(&limit, 1, SECOND).is_admitted());
    // The grant shrinks while they wait: they still leave at ten a second.
    grant(&limit, 1.0);
    assert_eq!(limit.outstanding(), Amount::units(10));
    clock.advance(SECOND / 5);
    assert_eq!(limit.outstanding(), Amount::ZERO);
}

#[test]
fn a_limit_that_was_closed_admits_nothing_whatever_is_granted() {
    let clock = ManualClock::new();
    let limit = rate(&clock);
    limit.grant(Amount::units(10), MINUTE, Amount::units(10));
    assert!(take(&limit, 1).is_admitted());
    limit.close();
    limit.close();
    grant(&limit, 10.0);
    assert!(!take(&limit, 1).is_admitted());
    assert_eq!((limit.capacity(), limit.wants()), (Amount::ZERO, Amount::ZERO));
}

#[test]
fn a_clock_that_is_set_back_lengthens_no_lease_and_mints_nothing() {
    let clock = ManualClock::at(MINUTE * 60);
    let limit = rate(&clock);
    limit.grant(Amount::units(10), SECOND * 10, Amount::ZERO);
    assert_eq!(admitted(&limit), 10);
    clock.advance(SECOND * 4);
    assert_eq!(admitted(&limit), 10);
    clock.set(MINUTE);
    assert_eq!(admitted(&limit), 0);
    // It goes on at once, and ends after the six seconds that were left.
    let mut all = 0;
    for _ in 0..20 {
        clock.advance(SECOND);
        all += admitted(&limit);
    }
    assert!((50..=60).contains(&all), "{all}");
    // Back to the beginning of time, and to its end.
    clock.set(Duration::ZERO);
    assert_eq!(admitted(&limit), 0);
    clock.set(Duration::from_micros(u64::MAX));
    assert_eq!(admitted(&limit), 0);
}

#[test]
fn an_idle_client_says_once_that_it_is_needed_again() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    let clock = ManualClock::new();
    let limit = rate(&clock);
    let needed = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&needed);
    // The listener may use the limit.
    let same = limit.clone();
    limit.on_need(move || {
        assert!(!same.wants().is_zero());
        count.fetch_add(1, Ordering::SeqCst);
    });
    (0..100).for_each(|_| drop(take(&limit, 1)));
    assert_eq!(needed.load(Ordering::SeqCst), 1);
    // While nothing is granted, it does not say so again.
    limit.grant(Amount::ZERO, MINUTE, Amount::ZERO);
    take(&limit, 1);
    assert_eq!(needed.load(Ordering::SeqCst), 1);
    grant(&limit, 10.0);
    admitted(&limit);
    assert_eq!(needed.load(Ordering::SeqCst), 1);
    clock.advance(MINUTE);
    take(&limit, 1);
    assert_eq!(needed.load(Ordering::SeqCst), 2);
}
