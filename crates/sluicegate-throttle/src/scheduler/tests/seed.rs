use super::*;

#[test]
fn a_newcomer_evicts_the_oldest_of_a_lower_class_and_only_if_that_makes_room() {
    let builder = Scheduler::builder().rate(10, SECOND).queue(20).classes(2);
    let (mut scheduler, _running) = busy(builder);
    let mut out = Vec::new();
    let a = queued(&scheduler.offer(0, offer(NOT_CRITICAL, 12), &mut out));
    let b = queued(&scheduler.offer(0, offer(NOT_CRITICAL, 8), &mut out));
    let c = scheduler.offer(0, offer(NOT_CRITICAL, 1), &mut out);
    assert_eq!(reason(&c), ShedReason::Full);
    assert!(out.is_empty());

    let d = queued(&scheduler.offer(0, offer(CRITICAL, 5), &mut out));
    match &out[..] {
        [Instruction::Shed(id, shed)] => {
            assert_eq!((*id, shed.reason), (a, ShedReason::Evicted));
        }
        other => panic!("{other:?}"),
    }
    out.clear();

    let e = scheduler.offer(0, offer(CRITICAL, 20), &mut out);
    assert_eq!(reason(&e), ShedReason::Full);
    assert!(out.is_empty(), "evicting B would not make room");
    assert_eq!((scheduler.len(), scheduler.cost()), (2, 13));
    assert_eq!(started(&mut scheduler, 0), [d, b]);
}

#[test]
fn no_request_is_evicted_without_need() {
    let (mut scheduler, _running) = busy(Scheduler::builder().in_flight(1).queue(20).classes(2));
    let mut out = Vec::new();
    let small = queued(&scheduler.offer(0, offer(NOT_CRITICAL, 2), &mut out));
    let large = queued(&scheduler.offer(0, offer(NOT_CRITICAL, 18), &mut out));
    queued(&scheduler.offer(0, offer(CRITICAL, 10), &mut out));
    assert!(matches!(&out[..], [Instruction::Shed(id, _)] if *id == large));
    assert!(scheduler.cancel(small));
}

#[test]
fn the_least_critical_class_goes_first() {
    let (mut scheduler, _running) = busy(Scheduler::builder().in_flight(1).queue(4));
    let mut out = Vec::new();
    let oldest = queued(&scheduler.offer(0, offer(Class::SHEDDABLE_PLUS, 2), &mut out));
    let lowest = queued(&scheduler.offer(1, offer(Class::SHEDDABLE, 2), &mut out));
    queued(&scheduler.offer(2, offer(Class::CRITICAL, 2), &mut out));
    assert!(matches!(&out[..], [Instruction::Shed(id, _)] if *id == lowest));
    out.clear();
    queued(&scheduler.offer(3, offer(Class::CRITICAL, 2), &mut out));
    assert!(matches!(&out[..], [Instruction::Shed(id, _)] if *id == oldest));
    assert_eq!(
        reason(&scheduler.offer(4, offer(Class::CRITICAL, 1), &mut out)),
        ShedReason::Full,
        "an equal class is never evicted"
    );
}

#[test]
fn a_client_that_leaves_frees_its_cost_at_once() {
    let (mut scheduler, running) = busy(Scheduler::builder().in_flight(1).queue(10));
    let mut out = Vec::new();
    let first = queued(&scheduler.offer(0, offer(CRITICAL, 10), &mut out));
    assert_eq!(reason(&scheduler.offer(0, offer(CRITICAL, 10), &mut out)), ShedReason::Full);
    assert!(scheduler.cancel(first));
    assert!(!scheduler.cancel(first));
    let second = queued(&scheduler.offer(0, offer(CRITICAL, 10), &mut out));
    assert!(!scheduler.cancel(first), "the place is another request's now");
    scheduler.done(1, running, None, Completion::Success, &mut out);
    assert!(matches!(&out[..], [Instruction::Start(id, _)] if *id == second));
}

#[test]
fn what_cannot_work_fails_with_a_sentence() {
    let error = |builder: SchedulerBuilder| builder.build().unwrap_err().to_string();
    let works = || Scheduler::builder().in_flight(1).queue(10);
    assert!(works().build().is_ok());
    assert_eq!(error(Scheduler::builder().queue(10)), "a throttle needs a capacity above zero");
    assert_eq!(
        error(Scheduler::builder().queue(10).in_flight(0)),
        "a throttle needs a capacity above zero"
    );
    assert_eq!(
        error(Scheduler::builder().queue(10).rate(0, SECOND)),
        "a throttle needs a capacity above zero"
    );
    assert!(error(works().rate(1, SECOND)).starts_with("a throttle has one capacity"));
    assert_eq!(error(works().queue(0)), "the queue has to hold a cost of at least 1");
    assert_eq!(
        error(works().dearest(11)),
        "the queue holds a cost of 10, but the dearest request costs 11 and would never fit"
    );
    assert_eq!(error(works().weights([1, 2])), "4 classes need 4 weights; 2 were given");
    assert!(error(works().weights([4, 3, 2, 0])).contains("weight of zero"));
    assert!(error(works().classes(9)).contains("1 to 8 classes"));
    assert!(error(works().flow_queues(0)).contains("1 to 1024 queues"));
    assert!(error(works().codel(SECOND * 2, SECOND)).contains("CoDel"));
}
