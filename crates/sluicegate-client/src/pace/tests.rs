use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use sluicegate::store::{Fleet, Share};
use sluicegate::{Global, Limit, ManualClock, Memory};
use tower::{Layer, Service};

use super::*;
use crate::BoxError;

const SECOND: Duration = Duration::from_secs(1);
const MS: Duration = Duration::from_millis(1);

fn memory(clock: &ManualClock) -> Memory {
    Memory::builder().capacity(100).clock(clock).build()
}

fn poll<F: Future>(future: std::pin::Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn callers_leave_in_order_spread_as_the_limit_says() {
    let clock = ManualClock::new();
    let pacer = Pacer::counted_in(memory(&clock), Limit::per_second(10).burst(1));
    let mut turns: Vec<_> = (0..5).map(|_| Box::pin(pacer.turn("api"))).collect();
    for left in (0..5).rev() {
        let first = turns.remove(0);
        assert!(turns.iter_mut().all(|turn| poll(turn.as_mut()).is_pending()));
        assert!(poll(pin!(first)).is_ready());
        assert_eq!((turns.len(), pacer.waiting()), (left, left));
        clock.advance(100 * MS);
    }
}

#[test]
fn a_caller_that_would_wait_too_long_is_refused_at_once_and_one_that_does_not_wait_too() {
    let clock = ManualClock::new();
    let limit = Limit::per_second(1);
    for (patience, expected) in [
        (Patience::Not, false),
        (Patience::AtMost(999 * MS), false),
        (Patience::AtMost(SECOND), true),
        (Patience::UntilAdmitted, true),
    ] {
        let pacer = Pacer::counted_in(memory(&clock), limit).patience(patience);
        assert!(poll(pin!(pacer.turn("api"))).is_ready());
        let mut turn = pin!(pacer.turn("api"));
        match poll(turn.as_mut()) {
            Poll::Pending => assert!(expected, "{patience:?}"),
            Poll::Ready(result) => {
                let error = result.expect_err("the limit is spent");
                let is_refused = matches!(error, PaceError::Refused { retry_after: Some(SECOND) });
                assert!(is_refused && !expected, "{patience:?}: {error:?}");
            }
        }
    }
}

#[test]
fn a_caller_that_leaves_gives_its_place_back() {
    let clock = ManualClock::new();
    let pacer = Pacer::counted_in(memory(&clock), Limit::per_second(1));
    assert!(poll(pin!(pacer.turn("api"))).is_ready());
    let (mut one, mut other) = (Box::pin(pacer.turn("api")), Box::pin(pacer.turn("api")));
    assert!(poll(one.as_mut()).is_pending() && poll(other.as_mut()).is_pending());
    drop(other);
    drop(one);
    assert_eq!(pacer.waiting(), 0);
    let mut next = pin!(pacer.turn("api"));
    assert!(poll(next.as_mut()).is_pending());
    clock.advance(SECOND);
    assert!(poll(next.as_mut()).is_ready());
}

#[test]
fn a_caller_with_longer_to_wait_looks_at_the_limit_again() {
    let clock = ManualClock::new();
    let limit = |count| Limit::per_hour(count).named("api").carried();
    let pacer = Pacer::counted_in(memory(&clock), limit(1));
    assert!(poll(pin!(pacer.turn("api"))).is_ready());
    let mut turn = pin!(pacer.turn("api"));
    assert!(poll(turn.as_mut()).is_pending());
    clock.advance(SECOND);
    assert!(poll(turn.as_mut()).is_pending());
    // It would have been an hour. The quota is raised.
    pacer.set_limits(limit(3_600));
    clock.advance(SECOND);
    assert!(poll(turn.as_mut()).is_ready());
}

#[test]
fn a_caller_waits_while_its_process_has_no_part_of_the_fleets_limit() {
    let clock = ManualClock::new();
    let fleet = Fleet::by_clock(2 * SECOND, &clock);
    let pacer = Pacer::counted_in(Share::new(memory(&clock), &fleet), Limit::per_second(10));
    let mut turn = pin!(pacer.turn("api"));
    fleet.see(2);
    assert!(poll(turn.as_mut()).is_pending());
    for _ in 0..22 {
        clock.advance(100 * MS);
        let is_open = fleet.part().is_some();
        assert!(poll(turn.as_mut()).is_pending() || is_open);
        if is_open {
            return;
        }
    }
    panic!("it was never admitted");
}

#[test]
fn what_costs_more_than_the_limit_never_waits() {
    let pacer = Pacer::new(Limit::per_second(10));
    let Poll::Ready(Err(error)) = poll(pin!(pacer.turn_n("api", 11))) else { panic!("it waits") };
    assert!(matches!(error, PaceError::NeverFits), "{error:?}");
}

#[test]
fn a_bounded_number_of_callers_waits() {
    let clock = ManualClock::new();
    let pacer = Pacer::counted_in(memory(&clock), Limit::per_second(1)).most_waiting(1);
    assert!(poll(pin!(pacer.turn("api"))).is_ready());
    let mut waits = Box::pin(pacer.turn("api"));
    assert!(poll(waits.as_mut()).is_pending());
    let Poll::Ready(Err(error)) = poll(pin!(pacer.turn("api"))) else { panic!("it waits") };
    assert!(matches!(error, PaceError::Crowded), "{error:?}");
    drop(waits);
    assert!(poll(pin!(pacer.turn("api"))).is_pending());
}

#[test]
fn a_place_of_concurrency_is_waited_for_and_given_back() {
    let clock = ManualClock::new();
    let pacer = Pacer::counted_in(memory(&clock), Limit::concurrent(1));
    let Poll::Ready(Ok(ticket)) = poll(pin!(pacer.turn("api"))) else { panic!("it waits") };
    let mut turn = pin!(pacer.turn("api"));
    assert!(poll(turn.as_mut()).is_pending());
    drop(ticket);
    clock.advance(50 * MS);
    assert!(poll(turn.as_mut()).is_ready());
}

#[test]
fn a_service_sees_limits_that_were_exchanged_and_holds_places_until_responses_end() {
    let clock = ManualClock::new();
    let pacer = Pacer::counted_in(memory(&clock), Limit::concurrent(1)).patience(Patience::Not);
    let inside =
        tower::service_fn(|_: http::Request<()>| std::future::pending::<Result<(), BoxError>>());
    let mut service = PaceLayer::new(Global, pacer.clone()).layer(inside);
    let mut admits = || {
        let mut response = Box::pin(service.call(http::Request::new(())));
        (poll(response.as_mut()).is_pending(), response)
    };
    let (first, response) = admits();
    assert_eq!((first, admits().0), (true, false));
    drop(response);
    assert!(admits().0);
    pacer.set_limits(Limit::concurrent(2));
    let responses = [admits(), admits(), admits()];
    assert_eq!(responses.map(|(is_sent, _)| is_sent), [true, true, false]);
}

#[test]
fn settings_that_make_no_sense_are_refused() {
    for each in [Duration::ZERO, Duration::from_secs(61)] {
        let error = Pacer::new(Limit::per_second(1)).look_again(each).expect_err("no sense");
        assert!(error.to_string().contains("looks again"), "{error}");
    }
}
