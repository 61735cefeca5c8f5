use super::*;

#[test]
fn who_cannot_make_the_deadline_is_refused_at_once() {
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
    scheduler.done(1_000, running, None, Outcome::Success, &mut out);
    let by = |cost, deadline| Offer { deadline: Some(deadline), ..offer(CRITICAL, cost) };
    let too_dear = scheduler.offer(2_000, by(20, 21_000), &mut out);
    assert_eq!(reason(&too_dear), ShedReason::Deadline);
    assert!(matches!(scheduler.offer(2_000, by(20, 22_000), &mut out), Offered::Start(_)));
}

#[test]
fn who_has_missed_the_deadline_is_not_started() {
    let (mut scheduler, running) = busy(Scheduler::builder().in_flight(1).queue(100));
    let mut out = Vec::new();
    let by = |deadline| Offer { deadline: Some(deadline), ..offer(CRITICAL, 1) };
    let missed = queued(&scheduler.offer(0, by(5_000), &mut out));
    let waits = queued(&scheduler.offer(0, by(50_000), &mut out));
    scheduler.done(6_000, running, None, Outcome::Success, &mut out);
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
fn those_who_missed_their_deadline_make_room_in_a_full_queue() {
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
    scheduler.done(0, running, Some(11), Outcome::Success, &mut out);
    assert_eq!(scheduler.next_at(), Some(1_100_000));

    let (mut scheduler, running) = busy(Scheduler::builder().rate(10, SECOND).queue(20));
    queued(&scheduler.offer(0, offer(CRITICAL, 1), &mut out));
    scheduler.not_started(0, running, &mut out);
    assert!(matches!(&out[..], [Instruction::Start(..)]), "what was not started costs nothing");
}
