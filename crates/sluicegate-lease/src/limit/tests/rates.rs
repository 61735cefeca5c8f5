use super::*;

#[test]
fn without_a_lease_nothing_goes_and_nobody_is_told_when() {
    let clock = ManualClock::new();
    let limit = rate(&clock);
    let refused = take(&limit, 1);
    assert!(!refused.is_admitted() && refused.retry_after().is_none() && !refused.never_fits());
}

#[test]
fn a_fractional_capacity_is_exact_for_ever() {
    let clock = ManualClock::new();
    let limit = rate(&clock);
    limit.grant(amount(36.5), MINUTE * 60, Amount::ZERO);
    assert_eq!(admitted(&limit), 36);
    // Half a request is left of the burst; after a thousand seconds too.
    let mut all = 0;
    for _ in 0..2_000 {
        clock.advance(SECOND / 2);
        all += admitted(&limit);
    }
    assert_eq!(all, 36_500);
}

#[test]
fn a_third_of_a_hundred_is_exact_to_a_millionth() {
    let clock = ManualClock::new();
    let limit = rate(&clock);
    limit.grant(Amount::units(100).share(1, 3), Duration::from_secs(100_000), Amount::ZERO);
    let mut all = admitted(&limit);
    for _ in 0..60_000 {
        clock.advance(SECOND / 2);
        all += admitted(&limit);
    }
    // 33.333333 a second, and the burst of as much.
    assert_eq!(all, (30_001_u64 * 33_333_333) / 1_000_000);
}

#[test]
fn a_capacity_of_two_million_a_second_is_exact() {
    let clock = ManualClock::new();
    let limit = rate(&clock);
    limit.grant(Amount::units(2_000_000), MINUTE, Amount::ZERO);
    assert!(take(&limit, 2_000_000).is_admitted());
    assert!(!take(&limit, 1).is_admitted());
    for _ in 0..1_000 {
        clock.advance(Duration::from_micros(1));
        assert_eq!(admitted(&limit), 2);
    }
}

#[test]
fn the_largest_capacity_and_the_longest_period_do_not_overflow() {
    let clock = ManualClock::new();
    let month = Duration::from_secs(31 * 24 * 3600);
    let limit = LeasedLimit::rate("db").clock(&clock).per(month).build().unwrap();
    limit.grant(Amount::MAX, month * 100, Amount::MAX);
    assert!(take(&limit, 1_000_000_000).is_admitted());
    assert!(!take(&limit, u64::MAX).is_admitted());
    clock.advance(month * 1_000);
    assert!(take(&limit, 1_000_000_000).is_admitted());
    let charged = take(&limit, 0);
    settle(&limit, &charged, 0, u64::MAX);
    settle(&limit, &charged, 0, u64::MAX);
    assert!(!take(&limit, 1).is_admitted());
}

#[test]
fn a_refused_client_that_waits_exactly_as_told_is_admitted_and_not_a_microsecond_earlier() {
    for units in [0.7, 1.0, 3.0, 36.5, 33.333333, 1_234.567891] {
        let clock = ManualClock::new();
        let limit = rate(&clock);
        limit.grant(amount(units), MINUTE * 60, Amount::ZERO);
        admitted(&limit);
        for _ in 0..20 {
            let told = take(&limit, 1).retry_after().expect("it is known");
            clock.advance(told - Duration::from_micros(1));
            assert!(!take(&limit, 1).is_admitted(), "{units}");
            clock.advance(Duration::from_micros(1));
            assert!(take(&limit, 1).is_admitted(), "{units}");
        }
    }
}

#[test]
fn dollars_a_day_are_at_hand_when_the_lease_begins() {
    let clock = ManualClock::new();
    let day = Duration::from_secs(24 * 3600);
    let limit = LeasedLimit::rate("money").clock(&clock).per(day).build().unwrap();
    limit.grant(Amount::units(5), day * 9, Amount::ZERO);
    assert_eq!(admitted(&limit), 5);
    assert_eq!(take(&limit, 1).retry_after(), Some(day / 5));
    // What was asked within a day is wanted for a day.
    assert_eq!(limit.wants(), Amount::units(7));
}

#[test]
fn a_burst_can_be_smaller_than_what_flows_in_a_period() {
    let clock = ManualClock::new();
    let limit = LeasedLimit::rate("db").clock(&clock).burst(2).build().unwrap();
    grant(&limit, 10.0);
    assert_eq!(admitted(&limit), 2);
    clock.advance(SECOND);
    assert_eq!(admitted(&limit), 2);
}

#[test]
fn a_cost_above_the_burst_is_refused_for_now_because_the_grant_may_grow() {
    let clock = ManualClock::new();
    let limit = rate(&clock);
    grant(&limit, 10.0);
    let refused = take(&limit, 11);
    assert!(!refused.is_admitted() && !refused.never_fits() && refused.retry_after().is_none());
    grant(&limit, 20.0);
    clock.advance(SECOND);
    assert!(take(&limit, 11).is_admitted());
}

#[test]
fn what_was_not_spent_is_given_back_unless_it_has_flowed_in_since() {
    let clock = ManualClock::new();
    let limit = rate(&clock);
    grant(&limit, 10.0);
    let charged = take(&limit, 10);
    settle(&limit, &charged, 10, 4);
    assert_eq!(admitted(&limit), 6);
    // Half of it flows in, and others spend that. Only the other half can be given back.
    clock.advance(SECOND);
    let charged = take(&limit, 10);
    clock.advance(SECOND / 2);
    assert_eq!(admitted(&limit), 5);
    settle(&limit, &charged, 10, 0);
    settle(&limit, &charged, 10, 0);
    assert!(admitted(&limit) <= 10);
}

#[test]
fn a_cost_that_turns_out_higher_is_paid_off_before_anything_goes() {
    let clock = ManualClock::new();
    let limit = rate(&clock);
    grant(&limit, 10.0);
    let charged = take(&limit, 1);
    settle(&limit, &charged, 1, 20);
    assert_eq!(take(&limit, 1).retry_after(), Some(SECOND + SECOND / 10));
}

#[test]
fn nobody_fills_a_lease_by_resetting_it() {
    let clock = ManualClock::new();
    let limit = rate(&clock);
    grant(&limit, 10.0);
    admitted(&limit);
    let outcome = limit.reset(&charge(&limit, 1)).now().unwrap();
    assert!(!outcome.is_admitted());
    assert_eq!(admitted(&limit), 0);
}

#[test]
fn peeking_says_what_taking_would_and_changes_nothing() {
    let clock = ManualClock::new();
    let limit = rate(&clock);
    grant(&limit, 2.0);
    for expected in [true, true, false] {
        let peeked = limit.peek(&charge(&limit, 1)).now().unwrap();
        assert_eq!(peeked.is_admitted(), expected);
        assert_eq!(take(&limit, 1).retry_after(), peeked.retry_after());
    }
    assert_eq!(limit.wants(), Amount::units(3));
}

#[test]
fn bad_settings_are_named() {
    let error = |builder: super::super::LeasedBuilder| builder.build().unwrap_err().to_string();
    assert!(error(LeasedLimit::rate("")).contains("the name is empty"));
    assert!(error(LeasedLimit::rate("db").per(Duration::ZERO)).contains("period"));
    assert!(error(LeasedLimit::rate("db").per(Duration::from_micros(1_500))).contains("fraction"));
    assert!(error(LeasedLimit::rate("db").per(MINUTE * 60 * 24 * 32)).contains("31 days"));
    assert!(error(LeasedLimit::rate("db").burst(0)).contains("burst"));
    assert!(error(LeasedLimit::gauge("db").burst(3)).contains("burst"));
}

#[test]
fn many_threads_admit_no_more_than_one() {
    let clock = ManualClock::new();
    let limit = rate(&clock);
    grant(&limit, 1_000.0);
    for _ in 0..3 {
        let all: u64 = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| admitted(&limit))).collect();
            threads.into_iter().map(|thread| thread.join().expect("no panic")).sum()
        });
        assert_eq!(all, 1_000);
        clock.advance(SECOND);
    }
}
