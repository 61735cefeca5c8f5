//! How long requests are expected to run, by key, and what that means for deadlines.

use proptest::prelude::*;

use super::*;

const SLOW: u64 = key(1_000);
const QUICK: u64 = key(2_000);
const UNKNOWN: u64 = key(3_000);

/// Some moment, in microseconds.
const NOW: u64 = 1_000_000_000_000;
const MS: u64 = 1_000;

/// Keys are hashes: spread over 64 bits.
const fn key(number: u64) -> u64 {
    number.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

fn by(key: u64, deadline: u64) -> Offer {
    Offer { deadline: Some(deadline), key: Some(key), ..offer(CRITICAL, 1) }
}

fn idle() -> Scheduler {
    Scheduler::builder().in_flight(100).queue(100).build().unwrap()
}

/// A request without a deadline ends `now`, after `time`.
fn end(scheduler: &mut Scheduler, now: u64, key: u64, time: u64, completion: Completion) {
    let request = Offer { key: Some(key), ..offer(CRITICAL, 1) };
    let Offered::Start(running) = scheduler.offer(now - time, request, &mut Vec::new()) else {
        panic!("there is room");
    };
    scheduler.done(now, running, None, completion, &mut Vec::new());
}

fn serve(scheduler: &mut Scheduler, now: u64, key: u64, time: u64) {
    end(scheduler, now, key, time, Completion::Success);
}

/// Whether a request is started whose client waits for `patience`. It is then served in `time`.
fn is_served(scheduler: &mut Scheduler, now: u64, key: u64, patience: u64, time: u64) -> bool {
    match scheduler.offer(now, by(key, now + patience), &mut Vec::new()) {
        Offered::Start(running) => {
            scheduler.done(now + time, running, None, Completion::Success, &mut Vec::new());
            true
        }
        other => {
            assert_eq!(reason(&other), ShedReason::Deadline);
            false
        }
    }
}

#[test]
fn a_slow_route_says_nothing_about_the_deadlines_of_others() {
    let mut scheduler = idle();
    for step in 0..100 {
        serve(&mut scheduler, NOW + step, SLOW, 30_000 * MS);
        serve(&mut scheduler, NOW + step, QUICK, MS);
    }
    let now = NOW + 1_000 * MS;
    for _ in 0..10 {
        assert!(is_served(&mut scheduler, now, QUICK, MS, MS));
        assert!(is_served(&mut scheduler, now, UNKNOWN, MS, 0));
        assert!(is_served(&mut scheduler, now, SLOW, 30_000 * MS, 30_000 * MS));
    }
    let refused = (0..10).filter(|_| !is_served(&mut scheduler, now, QUICK, MS - 1, MS)).count();
    assert!(refused >= 9, "{refused}");
}

#[test]
fn three_outliers_in_seven_shut_no_route() {
    let mut scheduler = idle();
    for _ in 0..4 {
        serve(&mut scheduler, NOW, QUICK, MS);
    }
    for (step, time) in [u64::MAX / 2, NOW, 3_600_000 * MS].into_iter().enumerate() {
        let start = scheduler.offer(
            step as u64,
            Offer { key: Some(QUICK), ..offer(CRITICAL, 1) },
            &mut Vec::new(),
        );
        let Offered::Start(running) = start else { panic!("there is room") };
        scheduler.done(time, running, None, Completion::Success, &mut Vec::new());
        assert!(is_served(&mut scheduler, NOW, QUICK, MS, MS));
        serve(&mut scheduler, NOW, QUICK, MS);
    }
}

/// Each of many slow routes is tried, not one of all of them.
#[test]
fn each_route_is_tried_once_a_second() {
    let mut scheduler = idle();
    let routes = 20;
    for route in 0..routes {
        (0..7).for_each(|_| serve(&mut scheduler, NOW, key(route), 5_000 * MS));
    }
    let mut tried = vec![0; routes as usize];
    for step in 0..1_000 {
        let now = NOW + 2_000 * MS + step * 10 * MS;
        for route in 0..routes {
            let offers = if route % 2 == 0 { 1 } else { 10 };
            for _ in 0..offers {
                let time = 5_000 * MS;
                tried[route as usize] +=
                    u32::from(is_served(&mut scheduler, now, key(route), 1_000 * MS, time));
            }
        }
    }
    assert_eq!(tried, vec![10; routes as usize], "ten seconds");
}

#[test]
fn one_try_that_is_quick_opens_its_route_again() {
    let mut scheduler = idle();
    (0..7).for_each(|_| serve(&mut scheduler, NOW, SLOW, 5_000 * MS));
    let from = NOW + 2_000 * MS;
    let served =
        (0..100).filter(|step| is_served(&mut scheduler, from + step * MS, SLOW, 1_000 * MS, MS));
    assert_eq!(served.count(), 100);
}

#[test]
fn a_request_that_is_tried_is_started_after_it_has_waited() {
    let mut scheduler = Scheduler::builder().in_flight(1).queue(100).build().unwrap();
    let mut out = Vec::new();
    (0..7).for_each(|_| serve(&mut scheduler, NOW, SLOW, 5_000 * MS));
    // The mean of all is quick, so the wait is short.
    (0..500).for_each(|_| serve(&mut scheduler, NOW, QUICK, MS));
    let now = NOW + 2_000 * MS;
    let Offered::Start(running) = scheduler.offer(now, offer(CRITICAL, 1), &mut out) else {
        panic!("it is free");
    };
    let tried = queued(&scheduler.offer(now, by(SLOW, now + 1_000 * MS), &mut out));
    let refused = scheduler.offer(now, by(SLOW, now + 1_000 * MS), &mut out);
    assert_eq!(reason(&refused), ShedReason::Deadline);
    scheduler.done(now + 100 * MS, running, None, Completion::Success, &mut out);
    assert!(matches!(out[..], [Instruction::Start(id, _)] if id == tried));
}

/// A route whose clients all give up first.
#[test]
fn a_request_that_is_cut_short_counts_for_at_least_its_time() {
    for completion in [Completion::Cancelled, Completion::Overload] {
        let mut scheduler = idle();
        end(&mut scheduler, NOW, SLOW, 1_000 * MS, completion);
        let now = NOW + 10_000 * MS;
        assert!(is_served(&mut scheduler, now, SLOW, 1_000 * MS, 1_000 * MS));
        // It lowers nothing.
        (0..7).for_each(|_| end(&mut scheduler, now, SLOW, MS, completion));
        let served = (0..10).filter(|_| is_served(&mut scheduler, now, SLOW, 999 * MS, 1_000 * MS));
        assert_eq!(served.count(), 1, "the one that is tried");
    }
    let mut scheduler = idle();
    end(&mut scheduler, NOW, SLOW, 1_000 * MS, Completion::Error);
    assert!((0..10).all(|_| is_served(&mut scheduler, NOW + MS, SLOW, MS, MS)), "says nothing");
}

#[test]
fn a_request_that_was_never_started_says_nothing_about_its_route() {
    let mut scheduler = idle();
    let mut out = Vec::new();
    for _ in 0..7 {
        let request = Offer { key: Some(QUICK), ..offer(CRITICAL, 1) };
        let Offered::Start(running) = scheduler.offer(NOW, request, &mut out) else {
            panic!("there is room");
        };
        scheduler.not_started(NOW + 60_000 * MS, running, &mut out);
    }
    let now = NOW + 60_000 * MS;
    assert!((0..10).all(|_| is_served(&mut scheduler, now, QUICK, MS, MS)));
}

#[test]
fn keys_that_come_once_displace_no_route_in_use() {
    let mut scheduler = idle();
    (0..7).for_each(|_| serve(&mut scheduler, NOW, key(1), 5_000 * MS));
    for number in 2..200_000 {
        serve(&mut scheduler, NOW, key(number), MS);
    }
    let now = NOW + 2_000 * MS;
    let served = (0..10).filter(|_| is_served(&mut scheduler, now, key(1), 1_000 * MS, 5_000 * MS));
    assert_eq!(served.count(), 1, "the one that is tried");
}

/// A client takes each try and leaves at once, and its route is quick again.
#[test]
fn a_client_that_leaves_at_once_does_not_keep_a_route_shut() {
    for key in [Some(SLOW), None] {
        let mut scheduler = idle();
        let mut out = Vec::new();
        let request = Offer { key, ..offer(CRITICAL, 1) };
        for _ in 0..7 {
            let Offered::Start(running) = scheduler.offer(NOW - 5_000 * MS, request, &mut out)
            else {
                panic!("there is room");
            };
            scheduler.done(NOW, running, None, Completion::Success, &mut out);
        }
        let mut served = 0;
        for step in 0..10_000 {
            let now = NOW + step * MS;
            let request = Offer { deadline: Some(now + 1_000 * MS), ..request };
            if let Offered::Start(running) = scheduler.offer(now, request, &mut out) {
                scheduler.done(now, running, None, Completion::Cancelled, &mut out);
            }
            if let Offered::Start(running) = scheduler.offer(now, request, &mut out) {
                scheduler.done(now + MS, running, None, Completion::Success, &mut out);
                served += 1;
            }
        }
        assert!(served > 9_000, "{served} of 10,000 with the key {key:?}");
    }
}

#[test]
fn a_try_that_is_not_started_is_given_back() {
    let mut scheduler = Scheduler::builder().in_flight(1).queue(1).build().unwrap();
    let mut out = Vec::new();
    (0..7).for_each(|_| serve(&mut scheduler, NOW, SLOW, 5_000 * MS));
    // The mean of all is quick, so the wait is short.
    (0..500).for_each(|_| serve(&mut scheduler, NOW, QUICK, MS));
    let now = NOW + 2_000 * MS;
    let request = by(SLOW, now + 1_000 * MS);

    let Offered::Start(running) = scheduler.offer(now, request, &mut out) else {
        panic!("it is tried");
    };
    scheduler.not_started(now, running, &mut out);
    let Offered::Start(_running) = scheduler.offer(now, offer(CRITICAL, 1), &mut out) else {
        panic!("it is free");
    };
    let id = queued(&scheduler.offer(now, request, &mut out));
    assert!(scheduler.cancel(id));
    let other = queued(&scheduler.offer(now, offer(CRITICAL, 1), &mut out));
    assert_eq!(reason(&scheduler.offer(now, request, &mut out)), ShedReason::Full);
    assert!(scheduler.cancel(other));
    let low = Offer { class: NOT_CRITICAL, ..request };
    queued(&scheduler.offer(now, low, &mut out));
    let evicting = scheduler.offer(now, offer(CRITICAL, 1), &mut out);
    assert!(matches!(out.pop(), Some(Instruction::Shed(..))), "it is evicted");
    assert!(scheduler.cancel(queued(&evicting)));
    queued(&scheduler.offer(now, request, &mut out));
}

proptest! {
    /// Whatever a route's requests took before, and however its clock steps.
    #[test]
    fn nothing_shuts_a_route_for_longer_than_a_second(
        before in proptest::collection::vec((0..NOW, 0..4_u8), 0..50),
        back in 0..NOW,
    ) {
        let mut scheduler = idle();
        for (time, completion) in before {
            let outcomes = [Completion::Success, Completion::Overload, Completion::Error, Completion::Cancelled];
            end(&mut scheduler, NOW, QUICK, time, outcomes[usize::from(completion)]);
        }
        let now = NOW - back;
        is_served(&mut scheduler, now, QUICK, MS, MS);
        let now = now + 1_000 * MS;
        prop_assert!((0..20).all(|step| is_served(&mut scheduler, now + step * MS, QUICK, MS, MS)));
    }
}
