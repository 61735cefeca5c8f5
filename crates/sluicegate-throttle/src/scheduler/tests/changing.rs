//! Settings that change while requests wait and run.

use proptest::prelude::*;

use super::*;
use crate::adaptive::{Algorithm, Bandwidth, Sample};

fn change(scheduler: &mut Scheduler, builder: SchedulerBuilder) -> Vec<Instruction> {
    let mut out = Vec::new();
    scheduler.reconfigure(0, builder, &mut out).unwrap();
    out
}

#[test]
fn more_places_start_what_waits_at_once() {
    let (mut scheduler, _running) = busy(Scheduler::builder().in_flight(1).queue(10));
    let mut out = Vec::new();
    for _ in 0..5 {
        queued(&scheduler.offer(0, offer(CRITICAL, 1), &mut out));
    }
    let out = change(&mut scheduler, Scheduler::builder().in_flight(4).queue(10));
    assert_eq!((out.len(), scheduler.running(), scheduler.len()), (3, 4, 2));
}

#[test]
fn fewer_places_and_a_smaller_queue_lose_nobody() {
    let (mut scheduler, _running) = busy(Scheduler::builder().in_flight(1).queue(10));
    let mut out = Vec::new();
    for _ in 0..10 {
        queued(&scheduler.offer(0, offer(CRITICAL, 1), &mut out));
    }
    let out = change(&mut scheduler, Scheduler::builder().in_flight(1).queue(3));
    assert!(out.is_empty(), "{out:?}");
    assert_eq!((scheduler.len(), scheduler.bound()), (10, 3));
    let refused = scheduler.offer(0, offer(CRITICAL, 1), &mut Vec::new());
    assert_eq!(reason(&refused), ShedReason::Full);
}

#[test]
fn what_a_rate_has_started_is_drained_at_the_new_rate() {
    let (mut scheduler, _running) = busy(Scheduler::builder().rate(1, SECOND).queue(100));
    queued(&scheduler.offer(0, offer(CRITICAL, 10), &mut Vec::new()));
    assert_eq!(scheduler.next_at(), Some(1_000_000));
    change(&mut scheduler, Scheduler::builder().rate(100, 10 * SECOND).queue(100));
    assert_eq!(scheduler.next_at(), Some(100_000));
    change(&mut scheduler, Scheduler::builder().rate(1, 3 * SECOND).queue(100));
    assert_eq!(scheduler.next_at(), Some(3_000_000));
}

#[test]
fn the_time_before_a_change_is_drained_at_the_rate_that_it_had() {
    let mut scheduler = Scheduler::builder().rate(10, SECOND).queue(1_000).build().unwrap();
    let mut out = Vec::new();
    let first = scheduler.offer(0, offer(CRITICAL, 100), &mut out);
    assert!(matches!(first, Offered::Start(_)), "{first:?}");
    let slower = Scheduler::builder().rate(1, SECOND).queue(1_000);
    scheduler.reconfigure(9_000_000, slower, &mut out).unwrap();
    queued(&scheduler.offer(9_000_000, offer(CRITICAL, 1), &mut out));
    // A cost of 90 has been drained in nine seconds, and 10 are left.
    assert_eq!(scheduler.next_at(), Some(19_000_000));
}

#[test]
fn an_adaptive_limit_goes_on_from_what_was_learnt() {
    let mut algorithm = Bandwidth::new(2, 2, 500);
    algorithm.start_at(120);
    assert_eq!(algorithm.limit(), 120);
    algorithm.start_at(1_000);
    assert_eq!(algorithm.limit(), 500);
    // It goes on learning from there.
    for now in 0..10_000 {
        algorithm.update(Sample {
            now,
            time: 1_000,
            answered: Some(1_000),
            in_flight: 500,
            is_overload: true,
        });
    }
    assert!(algorithm.limit() <= 500, "{algorithm:?}");

    let adaptive = |start| Scheduler::builder().adaptive(Bandwidth::new(start, 1, 200)).queue(10);
    let mut scheduler = adaptive(50).build().unwrap();
    change(&mut scheduler, adaptive(20));
    assert_eq!(scheduler.limit(), Some(50));
    change(&mut scheduler, Scheduler::builder().in_flight(7).queue(10));
    assert_eq!(scheduler.limit(), Some(7));
}

#[test]
fn what_cannot_change_is_refused_and_changes_nothing() {
    let (mut scheduler, _running) = busy(Scheduler::builder().in_flight(1).queue(10));
    let mut error = |builder: SchedulerBuilder| {
        scheduler.reconfigure(0, builder, &mut Vec::new()).unwrap_err().to_string()
    };
    let builder = || Scheduler::builder().in_flight(9).queue(99);
    let kind = error(Scheduler::builder().rate(1, SECOND).queue(1));
    assert_eq!(kind, "the kind of capacity cannot change while the throttle runs: start it anew");
    assert!(error(builder().classes(2)).contains("number of classes"));
    assert!(error(builder().partitions([0.5])).contains("number of partitions"));
    assert!(error(builder().flow_queues(2)).contains("number of flow queues"));
    assert!(error(builder().queue(0)).contains("at least 1"));
    assert_eq!((scheduler.limit(), scheduler.bound()), (Some(1), 10));
}

#[derive(Debug, Clone)]
enum Operation {
    Offer { rank: u8, flow: u64, cost: u64, partition: Option<u8> },
    End { which: usize },
    Cancel { which: usize },
    Pass { time: u64 },
    Change(Numbers),
}

#[derive(Debug, Clone)]
struct Numbers {
    capacity: u64,
    queue: u64,
    weights: Option<[u32; 4]>,
    late: Option<u64>,
    codel: Option<u64>,
    shares: [f64; 2],
}

impl Numbers {
    fn builder(&self, has_rate: bool) -> SchedulerBuilder {
        let millis = Duration::from_millis;
        let builder = Scheduler::builder().queue(self.queue);
        let builder = match has_rate {
            true => builder.rate(self.capacity, SECOND),
            false => builder.in_flight(self.capacity as usize).partitions(self.shares),
        };
        let builder = match self.weights {
            Some(weights) => builder.weights(weights),
            None => builder,
        };
        let builder = match self.late {
            Some(late) => builder.freshest_when_late(millis(late)),
            None => builder,
        };
        match self.codel {
            Some(target) => builder.codel(millis(target), millis(target * 5)),
            None => builder,
        }
    }
}

fn numbers() -> impl Strategy<Value = Numbers> {
    let option = proptest::option::of::<std::ops::Range<u64>>;
    let weights = proptest::option::of(Just([8, 4, 2, 1]));
    let shares = prop_oneof![Just([0.5, 0.5]), Just([0.1, 0.2]), Just([0.9, 0.1])];
    (1..20_u64, 1..80_u64, weights, option(1..500), option(1..300), shares).prop_map(
        |(capacity, queue, weights, late, codel, shares)| Numbers {
            capacity,
            queue,
            weights,
            late,
            codel,
            shares,
        },
    )
}

fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        6 => (0..4_u8, 0..100_u64, 1..12_u64, proptest::option::of(0..2_u8)).prop_map(
            |(rank, flow, cost, partition)| Operation::Offer { rank, flow, cost, partition }
        ),
        3 => any::<usize>().prop_map(|which| Operation::End { which }),
        1 => any::<usize>().prop_map(|which| Operation::Cancel { which }),
        3 => (0..500_000_u64).prop_map(|time| Operation::Pass { time }),
        2 => numbers().prop_map(Operation::Change),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]
    /// Every request that was offered starts, is shed for a reason of its own, or leaves; also if settings change at
    /// any time. A change itself sheds nobody but those that CoDel drops when their turn comes.
    #[test]
    fn a_change_of_settings_loses_no_request(
        has_rate in any::<bool>(),
        first in numbers(),
        operations in proptest::collection::vec(operation(), 1..200),
    ) {
        let mut scheduler = first.builder(has_rate).build().unwrap();
        let mut has_codel = first.codel.is_some();
        let (mut waiting, mut running) = (Vec::<Id>::new(), Vec::<Running>::new());
        let (mut now, mut out) = (0, Vec::new());
        for operation in operations {
            match operation {
                Operation::Offer { rank, flow, cost, partition } => {
                    let class = Class::at(rank);
                    let offer = Offer { class, flow, cost, deadline: None, partition, key: None };
                    match scheduler.offer(now, offer, &mut out) {
                        Offered::Start(started) => running.push(started),
                        Offered::Queued(id) => waiting.push(id),
                        Offered::Shed(_) => {}
                    }
                }
                Operation::End { which } if !running.is_empty() => {
                    let ended = running.swap_remove(which % running.len());
                    scheduler.done(now, ended, None, Completion::Success, &mut out);
                }
                Operation::Cancel { which } if !waiting.is_empty() => {
                    prop_assert!(scheduler.cancel(waiting.swap_remove(which % waiting.len())));
                }
                Operation::End { .. } | Operation::Cancel { .. } => {}
                Operation::Pass { time } => {
                    now += time;
                    scheduler.drain(now, &mut out);
                }
                Operation::Change(numbers) => {
                    let before = (scheduler.counts(), scheduler.len(), scheduler.running());
                    scheduler.reconfigure(now, numbers.builder(has_rate), &mut out).unwrap();
                    let after = scheduler.counts();
                    let started = (after.started - before.0.started) as usize;
                    let shed = (after.all_shed() - before.0.all_shed()) as usize;
                    prop_assert_eq!(scheduler.bound(), numbers.queue);
                    prop_assert_eq!(scheduler.running(), before.2 + started);
                    prop_assert_eq!(scheduler.len(), before.1 - started - shed);
                    has_codel |= numbers.codel.is_some();
                    prop_assert!(has_codel || shed == 0);
                }
            }
            for told in out.drain(..) {
                let (Instruction::Start(id, _) | Instruction::Shed(id, _)) = &told;
                let at = waiting.iter().position(|queued| queued == id);
                waiting.swap_remove(at.expect("a queued request"));
                if let Instruction::Start(_, started) = told {
                    running.push(started);
                }
            }
            prop_assert_eq!((scheduler.len(), scheduler.running()), (waiting.len(), running.len()));
        }
        // Whatever is in force at the end serves all that wait.
        for _ in 0..10_000 {
            if waiting.is_empty() {
                break;
            }
            now += 100_000;
            for ended in running.drain(..) {
                scheduler.done(now, ended, None, Completion::Success, &mut out);
            }
            scheduler.drain(now, &mut out);
            for told in out.drain(..) {
                let (Instruction::Start(id, _) | Instruction::Shed(id, _)) = &told;
                waiting.retain(|queued| queued != id);
                if let Instruction::Start(_, started) = told {
                    running.push(started);
                }
            }
        }
        prop_assert!(waiting.is_empty(), "{} wait for ever", waiting.len());
        prop_assert!(scheduler.is_empty() && scheduler.cost() == 0);
    }
}
