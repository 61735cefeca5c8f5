use super::*;

const SECOND: u64 = 1_000_000;
const NOW: u64 = 1_000 * SECOND;

fn breaker(failures: u32) -> Arc<Breaker> {
    let backoff = Backoff { first: Duration::from_secs(1), longest: Duration::from_secs(8) };
    Arc::new(Breaker::new(BreakerSettings { failures, backoff }))
}

fn fail(breaker: &Arc<Breaker>, now: u64) -> Transition {
    breaker.enter(now).expect("closed, or time to try").fail(now, None)
}

fn opened() -> Arc<Breaker> {
    let breaker = breaker(3);
    assert_eq!(fail(&breaker, NOW), Transition::Stayed);
    assert_eq!(fail(&breaker, NOW), Transition::Stayed);
    assert!(matches!(fail(&breaker, NOW), Transition::Opened(_)));
    breaker
}

#[test]
fn consecutive_failures_open_it() {
    let breaker = opened();
    assert_eq!(breaker.state(), BreakerState::Open);
    assert!(breaker.enter(NOW).is_none());
    assert!(breaker.enter(NOW + SECOND / 2 - 1).is_none());
    assert!(breaker.enter(NOW + SECOND).is_some());
}

#[test]
fn a_success_in_between_starts_the_count_again() {
    let breaker = breaker(3);
    for _ in 0..10 {
        fail(&breaker, NOW);
        fail(&breaker, NOW);
        breaker.enter(NOW).expect("closed").succeed();
    }
    assert_eq!(breaker.state(), BreakerState::Closed);
}

#[test]
fn one_call_at_a_time_probes_the_server() {
    let breaker = opened();
    let now = NOW + SECOND;
    let probe = breaker.enter(now).expect("time to try");
    assert!(breaker.enter(now + 8 * SECOND - 1).is_none());
    drop(probe);
    assert!(breaker.enter(now).is_some(), "a probe without a result leaves it to the next");
}

#[test]
fn a_probe_without_an_answer_is_replaced_by_another() {
    let breaker = opened();
    let now = NOW + SECOND;
    let mut lost = breaker.enter(now).expect("time to try");
    let mut next = breaker.enter(now + 8 * SECOND).expect("time to try again");
    assert_eq!(next.succeed(), Transition::Closed);
    assert_eq!(lost.fail(now + 9 * SECOND, None), Transition::Stayed);
    assert_eq!(breaker.state(), BreakerState::Closed);
}

#[test]
fn a_probe_that_succeeds_closes_it() {
    let breaker = opened();
    let mut probe = breaker.enter(NOW + SECOND).expect("time to try");
    assert_eq!(probe.succeed(), Transition::Closed);
    drop(probe);
    assert_eq!(breaker.state(), BreakerState::Closed);
    assert_eq!(fail(&breaker, NOW), Transition::Stayed, "the count starts again");
}

#[test]
fn a_probe_that_fails_keeps_it_open_for_longer() {
    let breaker = opened();
    let mut now = NOW;
    for longest in [1, 2, 4, 8, 8] {
        assert!(breaker.enter(now + longest * SECOND / 2 - 1).is_none());
        now += longest * SECOND;
        assert_eq!(fail(&breaker, now), Transition::Stayed);
    }
}

#[test]
fn a_call_under_way_when_it_opened_does_not_open_it_again() {
    let breaker = breaker(1);
    let mut late: Vec<_> = (0..5).map(|_| breaker.enter(NOW).expect("closed")).collect();
    let opened = late
        .iter_mut()
        .map(|late| late.fail(NOW, None))
        .filter(|turn| *turn != Transition::Stayed)
        .count();
    assert_eq!(opened, 1);
    assert!(breaker.enter(NOW + SECOND).is_some(), "the pause has not become longer");
}

#[test]
fn an_answer_to_a_call_from_before_it_opened_does_not_close_it() {
    let breaker = breaker(1);
    let mut slow = breaker.enter(NOW).expect("closed");
    let mut late = breaker.enter(NOW).expect("closed");
    slow.fail(NOW, None);
    assert_eq!(late.succeed(), Transition::Stayed);
    assert_eq!(breaker.state(), BreakerState::Open);
    assert!(breaker.enter(NOW).is_none());
}

#[test]
fn a_probe_whose_turn_has_passed_to_another_does_not_close_it() {
    let breaker = opened();
    let now = NOW + SECOND;
    let mut lost = breaker.enter(now).expect("time to try");
    let mut next = breaker.enter(now + 8 * SECOND).expect("time to try again");
    assert_eq!(lost.succeed(), Transition::Stayed);
    assert_eq!(next.succeed(), Transition::Closed);
}

/// Closed by a lucky answer, and opened by the next failures: its pauses grow.
#[test]
fn a_server_that_answers_now_and_then_is_called_less_and_less() {
    let breaker = opened();
    let mut now = NOW;
    for longest in [1, 2, 4, 8, 8] {
        assert!(breaker.enter(now + longest * SECOND / 2 - 1).is_none());
        now += longest * SECOND;
        assert_eq!(breaker.enter(now).expect("time to try").succeed(), Transition::Closed);
        for _ in 0..3 {
            fail(&breaker, now);
        }
    }
}

#[test]
fn a_server_that_has_answered_for_long_enough_is_trusted_again() {
    let breaker = opened();
    assert_eq!(fail(&breaker, NOW + SECOND), Transition::Stayed);
    let now = NOW + 4 * SECOND;
    for _ in 0..=3 * HEALTHY_AFTER {
        breaker.enter(now).expect("it answers").succeed();
    }
    for _ in 0..3 {
        fail(&breaker, now);
    }
    assert!(breaker.enter(now + SECOND).is_some(), "the shortest pause");
}

#[test]
fn only_a_probe_needs_a_connection() {
    let breaker = opened();
    assert!(breaker.pause(NOW).is_some());
    assert_eq!(breaker.pause(NOW + SECOND), None);
    let mut probe = breaker.enter(NOW + SECOND).expect("time to try");
    assert_eq!(breaker.pause(NOW + SECOND), None);
    probe.fail(NOW + SECOND, None);
    assert!(breaker.pause(NOW + SECOND).is_some());
}

#[test]
fn without_a_connection_no_call_probes_the_server() {
    let breaker = opened();
    breaker.put_off(NOW + SECOND, Duration::from_secs(1));
    assert!(breaker.enter(NOW + 2 * SECOND - 1).is_none());
    breaker.put_off(NOW + SECOND, Duration::from_millis(1));
    assert!(breaker.enter(NOW + 2 * SECOND - 1).is_none(), "the pause has not become shorter");
    assert!(breaker.enter(NOW + 2 * SECOND).is_some());
}

#[test]
fn without_a_number_of_failures_it_never_opens() {
    let breaker = breaker(0);
    for _ in 0..100 {
        assert_eq!(fail(&breaker, NOW), Transition::Stayed);
    }
    assert!(breaker.enter(NOW).is_some());
}

/// A server that answers only the probe would make all requests wait that come within one deadline.
#[test]
fn after_a_probe_calls_are_let_through_as_they_are_answered() {
    let breaker = opened();
    let now = NOW + SECOND;
    let mut probe = breaker.enter(now).expect("time to try");
    assert_eq!(probe.succeed(), Transition::Closed);
    let mut under_way: Vec<_> = std::iter::from_fn(|| breaker.enter(now)).collect();
    assert_eq!(under_way.len(), 3, "as many as can open it");
    for expected in [6, 12, 24] {
        for mut permit in std::mem::take(&mut under_way) {
            assert_eq!(permit.succeed(), Transition::Stayed);
        }
        under_way.extend(std::iter::from_fn(|| breaker.enter(now)));
        assert_eq!(under_way.len(), expected);
    }
    // A probe that fails or is dropped makes room for one other, not more.
    under_way.pop().expect("one").fail(now, None);
    under_way.pop();
    under_way.extend(std::iter::from_fn(|| breaker.enter(now)));
    assert_eq!(under_way.len(), 24);
    under_way.iter_mut().for_each(|permit| assert_eq!(permit.succeed(), Transition::Stayed));
    let healthy: Vec<_> = (0..1_000).map_while(|_| breaker.enter(now)).collect();
    assert_eq!(healthy.len(), 1_000, "30 answers have shown that it is healthy");
}

#[test]
fn a_broken_connection_is_one_failure_however_many_calls_were_on_it() {
    let breaker = breaker(3);
    let calls = || (0..64).map(|_| breaker.enter(NOW).expect("closed")).collect::<Vec<_>>();
    for connection in 0..2 {
        for mut call in calls() {
            assert_eq!(call.fail(NOW, Some(connection)), Transition::Stayed);
        }
    }
    // A call on the first connection that hears of it later.
    let mut late = breaker.enter(NOW).expect("closed");
    assert_eq!(late.fail(NOW, Some(0)), Transition::Stayed);
    let mut calls = calls();
    assert!(matches!(calls[0].fail(NOW, Some(2)), Transition::Opened(_)));
    assert!(calls[1..].iter_mut().all(|call| call.fail(NOW, Some(2)) == Transition::Stayed));
    assert_eq!(breaker.state(), BreakerState::Open);
}

#[test]
fn a_probe_on_a_connection_whose_failure_was_counted_keeps_it_open() {
    let breaker = breaker(1);
    breaker.enter(NOW).expect("closed").fail(NOW, Some(0));
    let mut probe = breaker.enter(NOW + SECOND).expect("time to try");
    probe.fail(NOW + SECOND, Some(0));
    drop(probe);
    assert!(breaker.enter(NOW + 2 * SECOND - 1).is_none(), "the pause is twice as long");
}

const DOUBLING: Backoff =
    Backoff { first: Duration::from_millis(100), longest: Duration::from_secs(5) };

#[test]
fn waits_double_up_to_the_longest_and_differ() {
    for (failed, whole) in [(0, 100), (1, 100), (2, 200), (6, 3_200), (7, 5_000), (99, 5_000)] {
        let whole = Duration::from_millis(whole);
        for _ in 0..100 {
            let wait = DOUBLING.after(failed);
            assert!(wait >= whole / 2 && wait <= whole, "{wait:?} after {failed}");
        }
    }
    let waits: Vec<_> = (0..20).map(|_| DOUBLING.after(3)).collect();
    assert!(waits.iter().any(|wait| *wait != waits[0]));
}
