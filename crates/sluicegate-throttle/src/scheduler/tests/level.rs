use super::*;

const MILLISECOND: u64 = 1_000;

/// A server for 100 requests a second, under `load` requests a second of each class for three seconds.
fn under(load: u64) -> (Scheduler, u64) {
    let mut scheduler = Scheduler::builder().rate(100, SECOND).queue(20).build().unwrap();
    let mut out = Vec::new();
    let mut now = 0;
    for number in 0..load * 4 * 3 {
        now = number * 1_000 * MILLISECOND / (load * 4);
        scheduler.offer(now, offer(Class::at((number % 4) as u8), 1), &mut out);
        for instruction in out.drain(..) {
            if let Instruction::Start(_, running) = instruction {
                scheduler.done(now, running, None, Completion::Success, &mut Vec::new());
            }
        }
    }
    (scheduler, now)
}

#[test]
fn the_level_is_the_lowest_class_of_which_most_is_admitted() {
    let at = |load| {
        let (scheduler, now) = under(load);
        scheduler.admitted_classes(now)
    };
    assert_eq!(at(20), 4);
    // Three classes fill the server.
    assert_eq!(at(33), 3);
    assert_eq!(at(50), 2);
    assert_eq!(at(90), 1);
    assert_eq!(at(1_000), 0);
}

#[test]
fn after_a_quiet_time_every_class_is_admitted() {
    let (mut scheduler, now) = under(90);
    assert_eq!(scheduler.admitted_classes(now), 1);
    let later = now + 2_000 * MILLISECOND;
    assert_eq!(scheduler.admitted_classes(later), 4);
    // The first request after it does not bring the old times back.
    scheduler.offer(later, offer(CRITICAL, 1), &mut Vec::new());
    assert_eq!(scheduler.admitted_classes(later), 4);
}

#[test]
fn what_would_never_fit_says_nothing_about_the_load() {
    let (mut scheduler, _running) = busy(Scheduler::builder().rate(100, SECOND).queue(20));
    for number in 0..300 {
        scheduler.offer(number * 10 * MILLISECOND, offer(CRITICAL, 21), &mut Vec::new());
    }
    assert!(scheduler.counts().shed_for(ShedReason::NeverFits) > 0);
    assert_eq!(scheduler.admitted_classes(3_000 * MILLISECOND), 4);
}

#[test]
fn deadlines_that_have_passed_say_nothing_about_the_load() {
    let mut scheduler = Scheduler::builder().in_flight(100).queue(100).build().unwrap();
    let mut out = Vec::new();
    for now in (0..3_000).map(|step| step * MILLISECOND) {
        let honest = scheduler.offer(now, offer(CRITICAL, 1), &mut out);
        let Offered::Start(running) = honest else { panic!("{honest:?}") };
        for _ in 0..2 {
            let late = Offer { deadline: Some(now), ..offer(CRITICAL, 1) };
            assert_eq!(reason(&scheduler.offer(now, late, &mut out)), ShedReason::Deadline);
        }
        scheduler.done(now, running, None, Completion::Success, &mut out);
        assert_eq!(scheduler.admitted_classes(now), 4, "at {now}");
    }
}

#[test]
fn deadlines_that_a_queue_makes_impossible_say_that_there_is_load() {
    let (mut scheduler, _running) = busy(Scheduler::builder().rate(1, SECOND).queue(20));
    let mut out = Vec::new();
    for now in (0..3_000).map(|step| step * MILLISECOND) {
        let soon = Offer { deadline: Some(now + MILLISECOND), ..offer(CRITICAL, 1) };
        let _ = scheduler.offer(now, soon, &mut out);
    }
    assert_eq!(scheduler.admitted_classes(3_000 * MILLISECOND), 0);
}

#[test]
fn a_flow_that_sends_more_than_its_share_says_nothing_about_the_load() {
    let (mut scheduler, _running) = busy(Scheduler::builder().rate(100, SECOND).queue(20));
    let mut out = Vec::new();
    for step in 0..3_000 {
        let now = step * MILLISECOND;
        let flow = u64::from(step % 100 == 0);
        let _ = scheduler.offer(now, Offer { flow, ..offer(CRITICAL, 1) }, &mut out);
        for instruction in out.drain(..) {
            if let Instruction::Start(_, running) = instruction {
                scheduler.done(now, running, None, Completion::Success, &mut Vec::new());
            }
        }
    }
    assert!(scheduler.counts().shed_for(ShedReason::Share) > 2_000);
    assert_eq!(scheduler.admitted_classes(3_000 * MILLISECOND), 4);
}

#[test]
fn deadlines_shorter_than_the_time_of_the_route_say_nothing_about_the_load() {
    let mut scheduler = Scheduler::builder().in_flight(1).queue(100).build().unwrap();
    let mut out = Vec::new();
    let known = Offer { key: Some(1), ..offer(CRITICAL, 1) };
    for step in 0..600 {
        let now = step * 10 * MILLISECOND;
        let honest = scheduler.offer(now, known, &mut out);
        let Offered::Start(running) = honest else { panic!("{honest:?}") };
        // Another one has the place.
        for _ in 0..2 * u32::from(step > 0) {
            let short = Offer { deadline: Some(now + MILLISECOND), ..known };
            assert_eq!(reason(&scheduler.offer(now, short, &mut out)), ShedReason::Deadline);
        }
        scheduler.done(now + 5 * MILLISECOND, running, None, Completion::Success, &mut out);
        assert_eq!(scheduler.admitted_classes(now), 4, "at {now}");
    }
}

#[test]
fn a_client_does_not_hide_that_the_others_are_shed() {
    let (mut scheduler, _running) = busy(Scheduler::builder().rate(1, SECOND).queue(20));
    let mut out = Vec::new();
    for step in 0..3_000 {
        let now = step * MILLISECOND;
        let _ = scheduler.offer(now, Offer { flow: step, ..offer(CRITICAL, 1) }, &mut out);
        for _ in 0..9 {
            let late = Offer { deadline: Some(now), ..offer(CRITICAL, 1) };
            assert_eq!(reason(&scheduler.offer(now, late, &mut out)), ShedReason::Deadline);
        }
    }
    assert!(scheduler.counts().shed_for(ShedReason::Full) > 2_000);
    assert_eq!(scheduler.admitted_classes(3_000 * MILLISECOND), 0);
}
