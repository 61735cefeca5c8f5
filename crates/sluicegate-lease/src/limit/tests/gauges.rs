use super::*;

fn gauge(clock: &ManualClock) -> LeasedLimit {
    LeasedLimit::gauge("workers").clock(clock).build().expect("a gauge")
}

#[test]
fn as_many_are_in_flight_as_are_held_rounded_down() {
    let clock = ManualClock::new();
    let limit = gauge(&clock);
    grant(&limit, 3.9);
    let running: Vec<_> = (0..3).map(|_| take(&limit, 1)).collect();
    assert!(running.iter().all(sluicegate_core::adapter::Outcome::is_admitted));
    assert!(!take(&limit, 1).is_admitted());
    settle(&limit, &running[0], 1, 0);
    assert!(take(&limit, 1).is_admitted());
    grant(&limit, 0.9);
    assert!(!take(&limit, 1).is_admitted());
}

#[test]
fn what_is_in_use_when_a_grant_shrinks_stays_in_use_and_is_reported() {
    let clock = ManualClock::new();
    let limit = gauge(&clock);
    grant(&limit, 10.0);
    let running: Vec<_> = (0..10).map(|_| take(&limit, 1)).collect();
    grant(&limit, 4.0);
    assert_eq!(limit.outstanding(), Amount::units(10));
    for outcome in &running[..6] {
        assert!(!take(&limit, 1).is_admitted());
        settle(&limit, outcome, 1, 0);
    }
    assert_eq!(limit.outstanding(), Amount::units(4));
    assert!(!take(&limit, 1).is_admitted());
    settle(&limit, &running[6], 1, 0);
    assert!(take(&limit, 1).is_admitted());
}

#[test]
fn what_is_wanted_is_the_most_in_use_and_what_was_refused_meanwhile() {
    let clock = ManualClock::new();
    let limit = gauge(&clock);
    grant(&limit, 2.0);
    let running: Vec<_> = (0..2).map(|_| take(&limit, 1)).collect();
    (0..3).for_each(|_| drop(take(&limit, 1)));
    assert_eq!(limit.wants(), Amount::units(5));
    // For as long as two are in use, two are wanted.
    clock.advance(MINUTE * 30);
    assert_eq!(limit.wants(), Amount::units(2));
    running.iter().for_each(|outcome| settle(&limit, outcome, 1, 0));
    clock.advance(SECOND / 2);
    assert_eq!(limit.wants(), Amount::units(2));
    clock.advance(MINUTE);
    assert_eq!(limit.wants(), Amount::ZERO);
}

#[test]
fn giving_back_twice_frees_no_more_than_there_is() {
    let clock = ManualClock::new();
    let limit = gauge(&clock);
    grant(&limit, 2.0);
    let outcome = take(&limit, 1);
    (0..5).for_each(|_| settle(&limit, &outcome, 1, 0));
    assert_eq!(admitted(&limit), 2);
    assert!(!take(&limit, u64::MAX).is_admitted());
}
