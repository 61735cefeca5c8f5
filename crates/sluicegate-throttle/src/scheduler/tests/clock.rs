//! Clocks that step, and deadlines that nobody can mean.

use super::*;

const HOUR: u64 = 3_600_000_000;
const MS: u64 = 1_000;

fn serve(scheduler: &mut Scheduler, now: u64, offer: Offer) {
    match scheduler.offer(now, offer, &mut Vec::new()) {
        Offered::Start(running) => {
            scheduler.done(now, running, None, Completion::Success, &mut Vec::new());
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_rate_goes_on_after_the_clock_has_stepped_back() {
    let mut scheduler = Scheduler::builder().rate(10, SECOND).queue(100).build().unwrap();
    serve(&mut scheduler, HOUR, offer(CRITICAL, 10));
    let waits = queued(&scheduler.offer(HOUR, offer(CRITICAL, 1), &mut Vec::new()));
    let mut out = Vec::new();
    scheduler.drain(0, &mut out);
    assert_eq!(scheduler.next_at(), Some(1_000 * MS), "a second from now, not in an hour");
    scheduler.drain(1_000 * MS, &mut out);
    assert!(matches!(out[..], [Instruction::Start(id, _)] if id == waits));
}

#[test]
fn a_clock_that_is_read_a_little_out_of_order_does_not_speed_a_rate_up() {
    let mut scheduler = Scheduler::builder().rate(10, SECOND).queue(1_000).build().unwrap();
    let mut out = Vec::new();
    for _ in 0..1_000 {
        match scheduler.offer(HOUR, offer(CRITICAL, 1), &mut out) {
            Offered::Start(running) => {
                scheduler.done(HOUR, running, None, Completion::Success, &mut out);
            }
            Offered::Queued(_) => {}
            Offered::Shed(shed) => panic!("{shed:?}"),
        }
    }
    for step in 0..10_000 {
        let jitter = if step % 2 == 0 { 0 } else { 900 * MS };
        scheduler.drain(HOUR + 1_000 * MS + step * MS - jitter, &mut out);
    }
    // What was not used in the first second is lost.
    assert!((99..=101).contains(&out.len()), "{} in ten seconds", out.len());
}

#[test]
fn the_level_of_admission_recovers_after_the_clock_has_stepped_back() {
    let (mut scheduler, running) = busy(Scheduler::builder().in_flight(1).queue(1));
    let mut out = Vec::new();
    for step in 0..200 {
        scheduler.offer(HOUR + step * 10 * MS, offer(Class::SHEDDABLE, 1), &mut out);
    }
    let now = HOUR + 2_000 * MS;
    assert_eq!(scheduler.admitted_classes(now), 3);
    scheduler.done(now, running, None, Completion::Success, &mut out);
    let Some(Instruction::Start(_, running)) = out.pop() else { panic!("one waits") };
    scheduler.done(now, running, None, Completion::Success, &mut out);
    for step in 0..3 {
        serve(&mut scheduler, step * 1_000 * MS, offer(Class::SHEDDABLE, 1));
    }
    assert_eq!(scheduler.admitted_classes(3_000 * MS), 4);
}

#[test]
fn a_deadline_that_has_passed_is_refused_at_once_and_not_tried() {
    let mut scheduler = Scheduler::builder().in_flight(9).queue(100).build().unwrap();
    let mut out = Vec::new();
    let by = |deadline| Offer { deadline: Some(deadline), key: Some(1), ..offer(CRITICAL, 1) };
    for now in [HOUR, 2 * HOUR, u64::MAX] {
        for deadline in [0, 1, now - 1, now] {
            let refused = scheduler.offer(now, by(deadline), &mut out);
            assert_eq!(reason(&refused), ShedReason::Deadline);
        }
        // The route becomes slow, so that one request a second is tried.
        let slow = Offer { key: Some(1), ..offer(CRITICAL, 1) };
        let Offered::Start(running) = scheduler.offer(now - HOUR, slow, &mut out) else {
            panic!("there is room");
        };
        scheduler.done(now, running, None, Completion::Success, &mut out);
    }
    serve(&mut scheduler, HOUR, by(u64::MAX));
    assert_eq!(scheduler.next_at(), None);
}

#[test]
fn a_flow_that_is_alone_may_fill_the_queue_after_the_clock_has_stepped_back() {
    let (mut scheduler, _running) = busy(Scheduler::builder().in_flight(1).queue(10));
    let mut out = Vec::new();
    let of = |flow| Offer { flow, ..offer(CRITICAL, 1) };
    for flow in [1, 2, 1, 2] {
        queued(&scheduler.offer(HOUR, of(flow), &mut out));
    }
    (0..2).for_each(|_| _ = queued(&scheduler.offer(HOUR, of(1), &mut out)));
    assert_eq!(reason(&scheduler.offer(HOUR, of(1), &mut out)), ShedReason::Share);
    for _ in 0..4 {
        queued(&scheduler.offer(0, of(1), &mut out));
    }
    assert_eq!(reason(&scheduler.offer(0, of(1), &mut out)), ShedReason::Full);
}
