//! A queue that is sized for a time.

use proptest::prelude::*;

use super::*;
use crate::adaptive::{Algorithm, Sample};

/// Half as much after each overload.
#[derive(Debug)]
struct Halving(usize);

impl Algorithm for Halving {
    fn limit(&self) -> usize {
        self.0
    }

    fn update(&mut self, sample: Sample) {
        if sample.is_overload {
            self.0 /= 2;
        }
    }
}

#[test]
fn a_queue_for_a_time_holds_what_the_capacity_drains_in_it() {
    let queue = Duration::from_millis(200);
    let bound = |builder: SchedulerBuilder| builder.queue_time(queue).build().unwrap().bound();
    assert_eq!(bound(Scheduler::builder().rate(1_000, SECOND)), 200);
    assert_eq!(bound(Scheduler::builder().rate(6_000, 60 * SECOND)), 20);
    // Eight places, for 200,000 microseconds each.
    assert_eq!(bound(Scheduler::builder().in_flight(8)), 1_600_000);
    assert_eq!(bound(Scheduler::builder().adaptive(Halving(20))), 4_000_000);
    let nothing = Scheduler::builder().rate(1, SECOND).queue_time(queue).build();
    assert!(nothing.unwrap_err().to_string().contains("at least 1"));
    let longest = Scheduler::builder().in_flight(usize::MAX).queue_time(Duration::MAX);
    assert_eq!(longest.build().unwrap().bound(), u64::MAX >> 2);
}

#[test]
fn it_follows_an_adaptive_limit_and_a_change_of_settings() {
    let builder = Scheduler::builder().adaptive(Halving(20)).queue_time(SECOND);
    let (mut scheduler, running) = busy(builder);
    let mut out = Vec::new();
    scheduler.done(1_000, running, None, Completion::Overload, &mut out);
    assert_eq!((scheduler.limit(), scheduler.bound()), (Some(10), 10_000_000));
    let other = Scheduler::builder().in_flight(3).queue_time(2 * SECOND);
    scheduler.reconfigure(1_000, other, &mut out).unwrap();
    assert_eq!(scheduler.bound(), 6_000_000);
}

#[test]
fn what_has_waited_for_an_eighth_longer_is_shed_when_its_time_comes() {
    let builder = Scheduler::builder().in_flight(1).queue_time(Duration::from_micros(800));
    let (mut scheduler, _running) = busy(builder);
    let mut out = Vec::new();
    let first = queued(&scheduler.offer(100, offer(CRITICAL, 1), &mut out));
    let second = queued(&scheduler.offer(150, offer(NOT_CRITICAL, 1), &mut out));
    assert_eq!(scheduler.next_at(), Some(1_000));
    scheduler.drain(999, &mut out);
    assert!(out.is_empty(), "{out:?}");
    scheduler.drain(1_000, &mut out);
    assert!(matches!(&out[..], [Instruction::Shed(id, shed)]
        if *id == first && shed.reason == ShedReason::Stale));
    assert_eq!(scheduler.next_at(), Some(1_050));
    out.clear();
    scheduler.drain(1_050, &mut out);
    assert!(matches!(&out[..], [Instruction::Shed(id, _)] if *id == second));
    assert_eq!(scheduler.next_at(), None);
    // A queue that has been empty starts anew.
    queued(&scheduler.offer(5_000, offer(CRITICAL, 1), &mut out));
    assert_eq!(scheduler.next_at(), Some(5_900));
}

#[test]
fn nothing_is_queued_while_a_rate_owes_more_than_a_queue_holds() {
    let builder = Scheduler::builder().rate(1_000_000, SECOND).queue_time(SECOND);
    let (mut scheduler, running) = busy(builder);
    let mut out = Vec::new();
    // It was expected to cost 1, and has cost ten seconds.
    scheduler.done(0, running, Some(10_000_000), Completion::Success, &mut out);
    let refused = scheduler.offer(0, offer(CRITICAL, 1), &mut out);
    assert_eq!(reason(&refused), ShedReason::Full);
    queued(&scheduler.offer(8_900_000, offer(CRITICAL, 1), &mut out));
}

/// More critical ones would overtake it for ever, although there is time for all of them.
#[test]
fn in_a_queue_that_is_not_full_a_request_goes_first_before_it_would_be_shed() {
    for (cost, goes_first) in [(1, true), (700, false)] {
        let builder = Scheduler::builder().in_flight(1).queue_time(Duration::from_micros(800));
        let (mut scheduler, running) = busy(builder);
        let mut out = Vec::new();
        let old = queued(&scheduler.offer(100, offer(NOT_CRITICAL, 1), &mut out));
        let next = queued(&scheduler.offer(600, offer(CRITICAL, 1), &mut out));
        queued(&scheduler.offer(650, offer(CRITICAL, cost), &mut out));
        // After 599 of 800 microseconds.
        scheduler.done(699, running, None, Completion::Success, &mut out);
        let Some(Instruction::Start(id, running)) = out.pop() else { panic!("{out:?}") };
        assert_eq!(id, next);
        scheduler.done(700, running, None, Completion::Success, &mut out);
        let Some(Instruction::Start(id, _)) = out.pop() else { panic!("{out:?}") };
        assert_eq!(id == old, goes_first, "the queue holds {cost}");
    }
}

#[derive(Debug, Clone)]
enum Operation {
    Offer { rank: u8, flow: u64, cost: u64, partition: Option<u8> },
    End { which: usize, cost: u64 },
    Cancel { which: usize },
    Pass { time: u64 },
}

fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        6 => (0..4_u8, 0..9_u64, 1..90_000_u64, proptest::option::of(0..2_u8)).prop_map(
            |(rank, flow, cost, partition)| Operation::Offer { rank, flow, cost, partition }
        ),
        3 => (any::<usize>(), 0..3_000_000_u64)
            .prop_map(|(which, cost)| Operation::End { which, cost }),
        1 => any::<usize>().prop_map(|which| Operation::Cancel { which }),
        4 => (0..400_000_u64).prop_map(|time| Operation::Pass { time }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]
    /// Whatever was predicted, whatever it cost, and whatever the others do: classes, weights, flows, partitions, order.
    /// An eighth longer than the queue, and twice as long for a rate with weights or freshest first.
    #[test]
    fn no_request_waits_for_longer_than_it_may(
        is_rate in any::<bool>(),
        has_weights in any::<bool>(),
        is_late in any::<bool>(),
        operations in proptest::collection::vec(operation(), 1..300),
    ) {
        let builder = Scheduler::builder().queue_time(Duration::from_millis(200));
        let longest = if is_rate && (has_weights || is_late) { 400_000 } else { 225_000 };
        let builder = match is_rate {
            true => builder.rate(1_000_000, SECOND),
            false => builder.in_flight(3).partitions([0.5, 0.25]),
        };
        let builder = if has_weights { builder.weights([8, 4, 2, 1]) } else { builder };
        let late = Duration::from_millis(50);
        let builder = if is_late { builder.freshest_when_late(late) } else { builder };
        let mut scheduler = builder.build().unwrap();
        let (mut waiting, mut running) = (Vec::<(Id, u64)>::new(), Vec::<Running>::new());
        let (mut now, mut out) = (0, Vec::new());
        for operation in operations {
            match operation {
                Operation::Offer { rank, flow, cost, partition } => {
                    let class = Class::at(rank);
                    let offer = Offer { class, flow, cost, deadline: None, partition, key: None };
                    match scheduler.offer(now, offer, &mut out) {
                        Offered::Start(started) => running.push(started),
                        Offered::Queued(id) => waiting.push((id, now)),
                        Offered::Shed(_) => {}
                    }
                }
                Operation::End { which, cost } if !running.is_empty() => {
                    let ended = running.swap_remove(which % running.len());
                    scheduler.done(now, ended, Some(cost), Completion::Success, &mut out);
                }
                Operation::Cancel { which } if !waiting.is_empty() => {
                    let (id, _) = waiting.swap_remove(which % waiting.len());
                    prop_assert!(scheduler.cancel(id));
                }
                Operation::End { .. } | Operation::Cancel { .. } => {}
                Operation::Pass { time } => {
                    let end = now + time;
                    while let Some(next) = scheduler.next_at().filter(|next| *next <= end) {
                        now = now.max(next);
                        let before = out.len();
                        scheduler.drain(now, &mut out);
                        let next = scheduler.next_at();
                        prop_assert!(out.len() > before || next.is_none_or(|next| next > now));
                    }
                    now = end;
                }
            }
            for told in out.drain(..) {
                let (Instruction::Start(id, _) | Instruction::Shed(id, _)) = &told;
                let at = waiting.iter().position(|(queued, _)| queued == id);
                waiting.swap_remove(at.expect("a queued request"));
                if let Instruction::Start(_, started) = told {
                    prop_assert!(started.waited() <= longest, "{}", started.waited());
                    running.push(started);
                }
            }
            for (_, since) in &waiting {
                prop_assert!(now - since <= longest, "{}", now - since);
            }
        }
    }
}
