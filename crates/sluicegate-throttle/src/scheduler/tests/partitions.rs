//! Shares of the work in flight, that are guaranteed and lent.

use proptest::prelude::*;

use super::*;
use crate::adaptive::Bandwidth;

const SEARCH: Option<u8> = Some(0);
const FEED: Option<u8> = Some(1);

/// Ten places: six for one partition, three for another.
fn divided() -> Scheduler {
    let builder = Scheduler::builder().in_flight(10).queue(1_000);
    builder.partitions([0.6, 0.3]).build().unwrap()
}

fn of(partition: Option<u8>) -> Offer {
    Offer { partition, ..offer(CRITICAL, 1) }
}

fn started(scheduler: &mut Scheduler, partition: Option<u8>) -> Option<Running> {
    match scheduler.offer(0, of(partition), &mut Vec::new()) {
        Offered::Start(running) => Some(running),
        Offered::Queued(_) => None,
        Offered::Shed(shed) => panic!("{shed:?}"),
    }
}

#[test]
fn a_partition_borrows_what_is_idle() {
    let mut scheduler = divided();
    let running = (0..20).map_while(|_| started(&mut scheduler, FEED)).count();
    assert_eq!(running, 10);
    assert_eq!(
        scheduler.partition(1).map(|[running, waiting, _]| (running, waiting)),
        Some((10, 1))
    );
}

#[test]
fn a_partition_below_its_share_starts_at_once_although_others_have_borrowed_its_places() {
    let mut scheduler = divided();
    let borrowed: Vec<_> = (0..10).map_while(|_| started(&mut scheduler, FEED)).collect();
    let owed = (0..20).map_while(|_| started(&mut scheduler, SEARCH)).count();
    assert_eq!((owed, scheduler.running()), (6, 16));
    assert!(started(&mut scheduler, FEED).is_none());
    // Places that were borrowed are given back: only the first seven ends start nothing.
    let mut out = Vec::new();
    for (ended, running) in borrowed.into_iter().enumerate() {
        scheduler.done(0, running, None, Completion::Success, &mut out);
        assert!(scheduler.running() >= 10, "{ended}");
        if !out.is_empty() {
            assert_eq!(ended, 6);
            return;
        }
    }
    panic!("nothing was started");
}

#[test]
fn a_place_that_is_owed_goes_before_more_critical_requests_of_others() {
    let builder = Scheduler::builder().in_flight(2).queue(100).partitions([0.5]);
    let mut scheduler = builder.build().unwrap();
    let mut out = Vec::new();
    let own = started(&mut scheduler, SEARCH).unwrap();
    let _other = started(&mut scheduler, None).unwrap();
    queued(&scheduler.offer(0, of(None), &mut out));
    let low = Offer { partition: SEARCH, ..offer(Class::SHEDDABLE, 1) };
    let low = queued(&scheduler.offer(0, low, &mut out));
    scheduler.done(0, own, None, Completion::Success, &mut out);
    assert!(matches!(&out[..], [Instruction::Start(id, _)] if *id == low), "{out:?}");
}

#[test]
fn places_without_a_guarantee_go_by_class_and_then_to_the_longest_wait() {
    let mut scheduler = divided();
    let mut out = Vec::new();
    let running: Vec<_> = (0..10).map_while(|_| started(&mut scheduler, None)).collect();
    let own: Vec<_> = (0..20).map_while(|_| started(&mut scheduler, SEARCH)).collect();
    let own = own.into_iter().chain((0..20).map_while(|_| started(&mut scheduler, FEED)));
    let own: Vec<_> = own.collect();
    assert_eq!(scheduler.running(), 10 + 6 + 3);
    out.clear();
    let late = Offer { partition: None, ..offer(CRITICAL, 1) };
    queued(&scheduler.offer(5, late, &mut out));
    let mut order = Vec::new();
    for running in running {
        scheduler.done(9, running, None, Completion::Success, &mut out);
        order.extend(out.drain(..).map(|told| match told {
            Instruction::Start(_, running) => running,
            shed @ Instruction::Shed(..) => panic!("{shed:?}"),
        }));
    }
    let waited: Vec<_> = order.iter().map(Running::waited).collect();
    assert_eq!(waited, [9], "one of the two that have waited since 0; ten run again");
    drop(own);
}

#[test]
fn an_eviction_takes_the_oldest_of_all_partitions() {
    let builder = Scheduler::builder().in_flight(1).queue(10).partitions([0.5, 0.5]);
    let mut scheduler = builder.build().unwrap();
    let mut out = Vec::new();
    let fill = [SEARCH, FEED].map(|partition| started(&mut scheduler, partition).unwrap());
    let offer = |partition, class, cost| Offer { partition, ..offer(class, cost) };
    let ids = [(0, FEED), (1, SEARCH), (2, FEED)].map(|(now, partition)| {
        queued(&scheduler.offer(now, offer(partition, NOT_CRITICAL, 3), &mut out))
    });
    queued(&scheduler.offer(3, offer(SEARCH, CRITICAL, 5), &mut out));
    let shed: Vec<_> = out
        .iter()
        .map(|told| match told {
            Instruction::Shed(id, _) => *id,
            start @ Instruction::Start(..) => panic!("{start:?}"),
        })
        .collect();
    assert_eq!(shed.len(), 2);
    assert!(shed.contains(&ids[0]) && shed.contains(&ids[1]));
    drop(fill);
}

#[test]
fn partitions_that_cannot_work_are_refused_with_a_sentence() {
    let error = |shares: &[f64]| {
        let builder = Scheduler::builder().in_flight(1).queue(1).partitions(shares.to_vec());
        builder.build().unwrap_err().to_string()
    };
    assert_eq!(error(&[0.6, 0.6]), "the shares of all partitions are at most 1 together, not 1.2");
    assert_eq!(error(&[0.0]), "the share of a partition is above 0 and at most 1, not 0.0");
    assert_eq!(error(&[f64::NAN]), "the share of a partition is above 0 and at most 1, not NaN");
    assert_eq!(error(&[0.1; 9]), "a throttle has at most 8 partitions; 9 were given");
    let rate = Scheduler::builder().rate(1, SECOND).queue(1).partitions([0.5]);
    assert!(rate.build().unwrap_err().to_string().contains("a rate has none"));
    let thirds = Scheduler::builder().in_flight(1).queue(1).partitions([1.0 / 3.0; 3]);
    assert!(thirds.build().is_ok());
}

#[derive(Debug, Clone)]
enum Operation {
    Offer { rank: u8, partition: Option<u8>, cost: u64 },
    End { which: usize, completion: bool },
    Cancel { which: usize },
}

fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        4 => (0..4_u8, proptest::option::of(0..3_u8), 1..20_u64)
            .prop_map(|(rank, partition, cost)| Operation::Offer { rank, partition, cost }),
        3 => (any::<usize>(), any::<bool>())
            .prop_map(|(which, completion)| Operation::End { which, completion }),
        1 => any::<usize>().prop_map(|which| Operation::Cancel { which }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]
    /// The guarantee and the end of borrowing, after every step, for fixed and adaptive limits.
    #[test]
    fn a_partition_never_waits_while_it_uses_less_than_its_share(
        shares in prop_oneof![
            Just([0.5, 0.3, 0.2]), Just([0.01, 0.02, 0.9]), Just([0.33, 0.33, 0.34]),
        ],
        limit in 1..12_usize,
        is_adaptive in any::<bool>(),
        weighted in any::<bool>(),
        operations in proptest::collection::vec(operation(), 1..300),
    ) {
        let builder = Scheduler::builder().queue(60).partitions(shares);
        let builder = if weighted { builder.weights([8, 4, 2, 1]) } else { builder };
        let builder = match is_adaptive {
            true => builder.adaptive(Bandwidth::new(limit, 1, 20)),
            false => builder.in_flight(limit),
        };
        let mut scheduler = builder.build().unwrap();
        let mut running: Vec<Running> = Vec::new();
        let mut waiting: Vec<Id> = Vec::new();
        let mut out = Vec::new();
        for operation in operations {
            let before = scheduler.running();
            let mut is_start_owed = false;
            match operation {
                Operation::Offer { rank, partition, cost } => {
                    let class = Class::at(rank);
                    let is_below = partition.is_some_and(|partition| {
                        let [running, _, guaranteed] = scheduler.partition(partition).unwrap();
                        running < guaranteed
                    });
                    let offer = Offer { class, flow: 0, cost, deadline: None, partition, key: None };
                    match scheduler.offer(0, offer, &mut out) {
                        Offered::Start(started) => {
                            prop_assert!(is_below || before < scheduler.limit().unwrap());
                            running.push(started);
                        }
                        Offered::Queued(id) => {
                            prop_assert!(!is_below, "it waits below its share");
                            waiting.push(id);
                        }
                        Offered::Shed(_) => prop_assert!(!is_below, "shed below its share"),
                    }
                }
                Operation::End { which, completion } if !running.is_empty() => {
                    let ended = running.swap_remove(which % running.len());
                    is_start_owed = true;
                    let completion = if completion { Completion::Success } else { Completion::Overload };
                    scheduler.done(1_000, ended, None, completion, &mut out);
                }
                Operation::Cancel { which } if !waiting.is_empty() => {
                    let id = waiting.swap_remove(which % waiting.len());
                    prop_assert!(scheduler.cancel(id));
                }
                Operation::End { .. } | Operation::Cancel { .. } => {}
            }
            for told in out.drain(..) {
                let (Instruction::Start(id, _) | Instruction::Shed(id, _)) = &told;
                let at = waiting.iter().position(|queued| queued == id);
                waiting.swap_remove(at.expect("a queued request"));
                if let Instruction::Start(_, started) = told {
                    prop_assert!(is_start_owed);
                    running.push(started);
                }
            }
            let limit = scheduler.limit().unwrap();
            let mut guaranteed = 0;
            for partition in 0..3 {
                let used @ [running, waiting, own] = scheduler.partition(partition).unwrap();
                guaranteed += own;
                prop_assert!(waiting == 0 || running >= own, "{used:?}");
            }
            prop_assert!(waiting.is_empty() || scheduler.running() >= limit, "idle places");
            prop_assert!(is_adaptive || scheduler.running() <= limit + guaranteed);
            prop_assert_eq!(scheduler.running(), running.len());
            prop_assert_eq!(scheduler.len(), waiting.len());
        }
    }
}
