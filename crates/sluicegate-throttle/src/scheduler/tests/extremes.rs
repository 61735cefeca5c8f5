//! Numbers that nobody means: what handlers report by mistake, and settings without a bound.

use super::*;
use crate::adaptive::Bandwidth;
use crate::error::ConfigError;

const MINUTE: u64 = 60_000_000;

#[test]
fn a_cost_without_a_bound_does_not_shut_the_rate_for_ever() {
    let (mut scheduler, running) = busy(Scheduler::builder().rate(10, SECOND).queue(20));
    let mut out = Vec::new();
    queued(&scheduler.offer(0, offer(CRITICAL, 1), &mut out));
    scheduler.done(0, running, Some(u64::MAX), Completion::Success, &mut out);
    assert_eq!(scheduler.next_at(), Some(MINUTE));
    scheduler.drain(MINUTE, &mut out);
    assert!(matches!(&out[..], [Instruction::Start(..)]));
}

#[test]
fn what_was_predicted_is_owed_whatever_it_is() {
    let mut scheduler = Scheduler::builder().rate(10, SECOND).queue(2_000).build().unwrap();
    let mut out = Vec::new();
    let Offered::Start(running) = scheduler.offer(0, offer(CRITICAL, 1_200), &mut out) else {
        panic!("it is free");
    };
    queued(&scheduler.offer(0, offer(CRITICAL, 1), &mut out));
    scheduler.done(0, running, Some(u64::MAX), Completion::Success, &mut out);
    assert_eq!(scheduler.next_at(), Some(2 * MINUTE));
}

#[test]
fn a_queue_without_a_bound_holds_requests_of_any_cost() {
    let builder = Scheduler::builder().in_flight(1).queue(u64::MAX).classes(2).weights([1, 1]);
    let (mut scheduler, running) = busy(builder);
    let mut out = Vec::new();
    for cost in [u64::MAX, u64::MAX / 2, u64::MAX / 3, u64::MAX / 5, 1] {
        for (flow, class) in [(0, NOT_CRITICAL), (1, NOT_CRITICAL), (0, CRITICAL)] {
            scheduler.offer(0, Offer { flow, ..offer(class, cost) }, &mut out);
        }
    }
    scheduler.done(1, running, Some(u64::MAX), Completion::Success, &mut out);
    let Some(Instruction::Start(_, running)) = out.pop() else { panic!("nobody is started") };
    scheduler.done(2, running, Some(u64::MAX), Completion::Success, &mut out);
    while let Some(instruction) = out.pop() {
        if let Instruction::Start(_, running) = instruction {
            scheduler.done(3, running, Some(u64::MAX), Completion::Success, &mut out);
        }
    }
    assert_eq!((scheduler.len(), scheduler.cost()), (0, 0));
    let counts = scheduler.counts();
    assert_eq!(counts.offered, counts.started + counts.all_shed());
}

#[test]
fn times_without_a_bound_are_no_overflow() {
    for (target, interval) in [(Duration::MAX, Duration::MAX), (SECOND, Duration::MAX)] {
        let builder = Scheduler::builder().in_flight(1).queue(10).codel(target, interval);
        let (mut scheduler, running) = busy(builder.freshest_when_late(Duration::MAX));
        let (mut out, mut running) = (Vec::new(), Some(running));
        for now in (10 * MINUTE..100 * MINUTE).step_by(MINUTE as usize) {
            let by = Offer { deadline: Some(u64::MAX), ..offer(CRITICAL, 1) };
            match scheduler.offer(now, by, &mut out) {
                Offered::Start(started) => running = Some(started),
                Offered::Queued(_) => {}
                Offered::Shed(shed) => panic!("{shed:?}"),
            }
            let ended = running.take().expect("one runs");
            scheduler.done(now + MINUTE / 2, ended, None, Completion::Success, &mut out);
            if let Some(Instruction::Start(_, started)) = out.pop() {
                running = Some(started);
            }
        }
        let counts = scheduler.counts();
        assert_eq!(counts.offered, counts.started + counts.shed_for(ShedReason::Stale));
    }
}

#[test]
fn a_clock_that_steps_back_loses_nobody_and_starts_nobody_twice() {
    for builder in [
        Scheduler::builder().rate(10, SECOND).queue(100),
        Scheduler::builder().in_flight(1).queue(100).codel(SECOND, SECOND),
    ] {
        let mut scheduler = builder.build().unwrap();
        let (mut out, mut at_once) = (Vec::new(), Vec::new());
        for now in [50 * MINUTE, 3, MINUTE, 0, 49 * MINUTE, 7] {
            match scheduler.offer(now, offer(CRITICAL, 1), &mut out) {
                Offered::Start(running) => at_once.push(running),
                Offered::Queued(_) => {}
                Offered::Shed(shed) => panic!("{shed:?}"),
            }
        }
        assert_eq!((at_once.len(), scheduler.len() + out.len()), (1, 5));
        scheduler.done(1, at_once.pop().unwrap(), None, Completion::Success, &mut out);
        let mut served = 0;
        for now in [0, 51 * MINUTE, 2, 52 * MINUTE, 53 * MINUTE, 1, 54 * MINUTE, 55 * MINUTE] {
            scheduler.drain(now, &mut out);
            while let Some(instruction) = out.pop() {
                let Instruction::Start(_, running) = instruction else { panic!("shed") };
                scheduler.done(now, running, None, Completion::Success, &mut out);
                served += 1;
            }
        }
        assert_eq!((served, scheduler.len(), scheduler.running()), (5, 0, 0));
    }
}

/// Capacities that are far from any machine's.
fn extreme_capacities() -> Vec<SchedulerBuilder> {
    let build = Scheduler::builder;
    let year = Duration::from_secs(366 * 86_400);
    let micro = Duration::from_micros(1);
    let mut builders = vec![build().in_flight(1), build().in_flight(usize::MAX)];
    for cost in [1, 1_000, u64::MAX] {
        builders.extend([micro, SECOND, year].map(|period| build().rate(cost, period)));
    }
    builders.push(build().adaptive(Bandwidth::new(usize::MAX, 1, usize::MAX)));
    builders.push(build().in_flight(usize::MAX).partitions([1.0 / 3.0; 3]));
    builders
}

#[test]
fn no_setting_overflows() {
    const MOMENTS: [u64; 6] = [0, 1, MINUTE, u64::MAX / 2, u64::MAX - 1, u64::MAX];
    for (queue, cost) in [(1, 1), (u64::MAX, u64::MAX), (u64::MAX, 1), (1 << 62, 1 << 62)] {
        for builder in extreme_capacities() {
            let mut scheduler = builder.queue(queue).build().unwrap();
            let (mut out, mut running, mut queued) = (Vec::new(), Vec::new(), 0);
            for (step, now) in (0..).zip(MOMENTS.into_iter().cycle().take(60)) {
                let partition = Some(step % 4);
                let deadline = (step % 3 == 0).then_some(now.wrapping_add(u64::from(step)));
                let request = Offer { cost, partition, deadline, ..offer(CRITICAL, cost) };
                match scheduler.offer(now, request, &mut out) {
                    Offered::Start(started) => running.push(started),
                    Offered::Queued(_) => queued += 1,
                    Offered::Shed(_) => {}
                }
                if step % 2 == 0 {
                    if let Some(ended) = running.pop() {
                        let actual = (step % 4 == 0).then_some(u64::MAX);
                        scheduler.done(now, ended, actual, Completion::Success, &mut out);
                    }
                }
                for instruction in out.drain(..) {
                    queued -= 1;
                    if let Instruction::Start(_, started) = instruction {
                        running.push(started);
                    }
                }
                let _ = (scheduler.next_at(), scheduler.baseline());
            }
            assert_eq!((scheduler.len(), scheduler.running()), (queued, running.len()));
        }
    }
}

#[test]
fn a_rate_changes_between_extremes_without_an_overflow() {
    let year = Duration::from_secs(366 * 86_400);
    let rates = [(1, year), (u64::MAX, year), (u64::MAX, Duration::from_micros(1)), (10, SECOND)];
    for (before, after) in rates.iter().flat_map(|before| rates.map(|after| (*before, after))) {
        let builder = |(cost, period)| Scheduler::builder().rate(cost, period).queue(u64::MAX);
        let mut scheduler = builder(before).build().unwrap();
        let mut out = Vec::new();
        let Offered::Start(_) = scheduler.offer(0, offer(CRITICAL, u64::MAX), &mut out) else {
            panic!("it is free");
        };
        queued(&scheduler.offer(0, offer(CRITICAL, 1), &mut out));
        scheduler.reconfigure(0, builder(after), &mut out).unwrap();
        // What was started drains at the new rate.
        let (cost, period) = after;
        let time = u128::from(u64::MAX) * period.as_micros() / u128::from(cost);
        let expected = u64::try_from(time).unwrap_or(u64::MAX);
        let next = scheduler.next_at().unwrap();
        assert!(next.abs_diff(expected) <= 1, "{next} for {expected}");
    }
}

#[test]
fn a_period_that_is_too_short_or_too_long_is_refused_with_a_sentence() {
    for period in [Duration::ZERO, Duration::from_nanos(999), Duration::MAX] {
        let error = Scheduler::builder().rate(1, period).queue(1).build().unwrap_err();
        assert!(error.to_string().contains("at most a year"), "{error}");
    }
    let dearest = Scheduler::builder().in_flight(1).queue(u64::MAX).dearest(u64::MAX);
    assert!(matches!(dearest.build(), Err(ConfigError::QueueTooSmall(..))));
}
