use super::*;

#[test]
fn a_request_that_cannot_make_its_deadline_is_refused_at_once() {
    let (mut scheduler, _running) = busy(Scheduler::builder().rate(10, SECOND).queue(100));
    let mut out = Vec::new();
    queued(&scheduler.offer(0, offer(CRITICAL, 9), &mut out));
    // One that runs and nine in front: a second.
    let by = |deadline| Offer { deadline: Some(deadline), ..offer(CRITICAL, 1) };
    assert_eq!(reason(&scheduler.offer(0, by(999_999), &mut out)), ShedReason::Deadline);
    queued(&scheduler.offer(0, by(1_000_000), &mut out));
}

#[test]
fn the_predicted_cost_counts_towards_the_deadline() {
    let (mut scheduler, running) = busy(Scheduler::builder().in_flight(1).queue(100));
    let mut out = Vec::new();
    // A cost of 1 takes a millisecond.
    scheduler.done(1_000, running, None, Completion::Success, &mut out);
    let by = |cost, deadline| Offer { deadline: Some(deadline), ..offer(CRITICAL, cost) };
    let too_dear = scheduler.offer(2_000, by(20, 21_000), &mut out);
    assert_eq!(reason(&too_dear), ShedReason::Deadline);
    assert!(matches!(scheduler.offer(2_000, by(20, 22_000), &mut out), Offered::Start(_)));
}

#[test]
fn a_request_that_missed_its_deadline_is_not_started() {
    let (mut scheduler, running) = busy(Scheduler::builder().in_flight(1).queue(100));
    let mut out = Vec::new();
    let by = |deadline| Offer { deadline: Some(deadline), ..offer(CRITICAL, 1) };
    let missed = queued(&scheduler.offer(0, by(5_000), &mut out));
    let waits = queued(&scheduler.offer(0, by(50_000), &mut out));
    scheduler.done(6_000, running, None, Completion::Success, &mut out);
    match &out[..] {
        [Instruction::Shed(first, shed), Instruction::Start(second, running)] => {
            assert_eq!((*first, shed.reason, *second), (missed, ShedReason::Missed, waits));
            assert_eq!(running.waited(), 6_000);
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_request_is_answered_when_its_deadline_passes() {
    let (mut scheduler, _running) = busy(Scheduler::builder().in_flight(1).queue(100));
    let mut out = Vec::new();
    let by = |deadline| Offer { deadline: Some(deadline), ..offer(CRITICAL, 1) };
    let late = queued(&scheduler.offer(0, by(9_000), &mut out));
    let soon = queued(&scheduler.offer(0, by(5_000), &mut out));
    let patient = queued(&scheduler.offer(0, offer(CRITICAL, 1), &mut out));
    assert_eq!(scheduler.next_at(), Some(5_000));
    scheduler.drain(4_999, &mut out);
    assert!(out.is_empty());
    scheduler.drain(5_000, &mut out);
    assert!(matches!(out.pop(), Some(Instruction::Shed(id, shed))
        if id == soon && shed.reason == ShedReason::Missed));
    assert_eq!(scheduler.next_at(), Some(9_000));
    // One that leaves is not waited for.
    assert!(scheduler.cancel(late));
    assert_eq!(scheduler.next_at(), None);
    assert!(scheduler.cancel(patient));
}

#[test]
fn requests_that_leave_pile_up_no_deadlines() {
    let (mut scheduler, _running) = busy(Scheduler::builder().in_flight(1).queue(100));
    let mut out = Vec::new();
    let by = |deadline| Offer { deadline: Some(deadline), ..offer(CRITICAL, 1) };
    // It stays in front of all the others.
    queued(&scheduler.offer(0, by(1_000), &mut out));
    for _ in 0..10_000 {
        let id = queued(&scheduler.offer(0, by(1_000_000_000), &mut out));
        assert!(scheduler.cancel(id));
        assert!(scheduler.deadlines.len() <= 64);
    }
}

#[test]
fn requests_that_missed_their_deadline_make_room_in_a_full_queue() {
    let (mut scheduler, _running) = busy(Scheduler::builder().in_flight(1).queue(10));
    let mut out = Vec::new();
    let short = Offer { deadline: Some(1_000), ..offer(CRITICAL, 10) };
    let missed = queued(&scheduler.offer(0, short, &mut out));
    queued(&scheduler.offer(1_000, offer(CRITICAL, 10), &mut out));
    assert!(matches!(&out[..], [Instruction::Shed(id, _)] if *id == missed));
}

#[test]
fn retry_after_is_the_time_that_the_backlog_takes() {
    let (mut scheduler, _running) = busy(Scheduler::builder().rate(10, SECOND).queue(20));
    let mut out = Vec::new();
    queued(&scheduler.offer(0, offer(Class::SHEDDABLE, 15), &mut out));
    queued(&scheduler.offer(0, offer(Class::CRITICAL, 5), &mut out));
    let shed = |offered| match offered {
        Offered::Shed(shed) => shed,
        other => panic!("{other:?}"),
    };
    // 1 runs; a critical request waits for 5 more, a sheddable one for 20.
    let lowest = shed(scheduler.offer(0, offer(Class::SHEDDABLE, 1), &mut out));
    assert_eq!(lowest.retry_after, 2_100_000);
    let critical = shed(scheduler.offer(0, offer(Class::CRITICAL, 16), &mut out));
    assert_eq!(critical.retry_after, 600_000);
}

#[test]
fn a_cost_that_was_predicted_wrongly_is_settled() {
    let (mut scheduler, running) = busy(Scheduler::builder().rate(10, SECOND).queue(20));
    let mut out = Vec::new();
    queued(&scheduler.offer(0, offer(CRITICAL, 1), &mut out));
    assert_eq!(scheduler.next_at(), Some(100_000));
    scheduler.done(0, running, Some(11), Completion::Success, &mut out);
    assert_eq!(scheduler.next_at(), Some(1_100_000));

    let (mut scheduler, running) = busy(Scheduler::builder().rate(10, SECOND).queue(20));
    queued(&scheduler.offer(0, offer(CRITICAL, 1), &mut out));
    scheduler.not_started(0, running, &mut out);
    assert!(matches!(&out[..], [Instruction::Start(..)]), "what was not started costs nothing");
}

/// A cold start, or a database that was slow for a while.
#[test]
fn a_slow_time_does_not_refuse_requests_with_deadlines_for_ever() {
    for builder in [
        Scheduler::builder().in_flight(2).queue(100),
        Scheduler::builder().rate(1_000, SECOND).queue(100),
    ] {
        let (mut scheduler, running) = busy(builder);
        let mut out = Vec::new();
        scheduler.done(5_000_000, running, None, Completion::Success, &mut out);
        // One that never ends runs beside them, such as an event stream.
        let endless = scheduler.offer(5_000_000, offer(CRITICAL, 1), &mut out);
        assert!(matches!(endless, Offered::Start(_)));
        // From now on the server answers in a millisecond, and clients wait for one second.
        let mut served = 0;
        for now in (6_000_000..20_000_000).step_by(10_000) {
            let by = Offer { deadline: Some(now + 1_000_000), ..offer(CRITICAL, 1) };
            match scheduler.offer(now, by, &mut out) {
                Offered::Start(running) => {
                    served += u32::from(now >= 15_000_000);
                    scheduler.done(now + 1_000, running, None, Completion::Success, &mut out);
                }
                Offered::Shed(shed) => assert_eq!(shed.reason, ShedReason::Deadline),
                Offered::Queued(_) => panic!("there is room"),
            }
        }
        assert_eq!(served, 500);
    }
}

/// Downloads without a deadline beside short requests with one.
#[test]
fn a_few_long_requests_do_not_refuse_the_short_ones_beside_them() {
    let (mut scheduler, running) = busy(Scheduler::builder().in_flight(100).queue(100));
    let mut out = Vec::new();
    scheduler.done(3_600_000_000, running, None, Completion::Success, &mut out);
    let (mut served, mut long) = (0, None);
    for step in 0..2_000_u64 {
        let now = 3_600_000_000 + step * 10_000;
        if step % 100 == 0 {
            if let Some(ended) = long.take() {
                scheduler.done(now + 100_000_000, ended, None, Completion::Success, &mut out);
            }
            match scheduler.offer(now, offer(CRITICAL, 1), &mut out) {
                Offered::Start(running) => long = Some(running),
                other => panic!("{other:?}"),
            }
        }
        let by = Offer { deadline: Some(now + 500_000), ..offer(CRITICAL, 1) };
        if let Offered::Start(running) = scheduler.offer(now, by, &mut out) {
            scheduler.done(now + 10_000, running, None, Completion::Success, &mut out);
            served += 1;
        }
    }
    assert!(served >= 1_990, "{served}");
}

#[test]
fn few_requests_are_tried_on_a_server_that_stays_too_slow_for_their_deadlines() {
    let (mut scheduler, running) = busy(Scheduler::builder().in_flight(100).queue(100));
    let mut out = Vec::new();
    scheduler.done(5_000_000, running, None, Completion::Success, &mut out);
    let (mut running, mut tried) = (std::collections::VecDeque::new(), 0);
    for now in (6_000_000..106_000_000).step_by(10_000) {
        if running.front().is_some_and(|(since, _)| now - since >= 5_000_000) {
            let (_, ended) = running.pop_front().unwrap();
            scheduler.done(now, ended, None, Completion::Success, &mut out);
        }
        let by = Offer { deadline: Some(now + 1_000_000), ..offer(CRITICAL, 1) };
        if let Offered::Start(started) = scheduler.offer(now, by, &mut out) {
            running.push_back((now, started));
            tried += 1;
        }
    }
    assert!((50..=100).contains(&tried), "one a second, found {tried}");
}

/// While a rate owes something, requests that would be late are refused, and then nothing but their coming lets time pass.
#[test]
fn a_rate_that_owed_something_once_does_not_refuse_requests_with_deadlines_for_ever() {
    let builder = Scheduler::builder().rate(1_000_000, SECOND).queue(1_000_000);
    let (mut scheduler, first) = busy(builder);
    let mut out = Vec::new();
    let within = |now: u64, time| Offer { deadline: Some(now + time), ..offer(CRITICAL, 1) };
    scheduler.done(0, first, Some(2_000_000), Completion::Success, &mut out);
    let refused = scheduler.offer(0, within(0, 1_000_000), &mut out);
    assert_eq!(reason(&refused), ShedReason::Deadline);
    let later = scheduler.offer(60_000_000, within(60_000_000, 1_000_000), &mut out);
    assert!(matches!(later, Offered::Start(_)), "{later:?}");
}
