//! Promises, over random arrivals, ends and departures.

use std::collections::HashMap;

use proptest::prelude::*;

use super::*;

const BOUND: u64 = 50;

#[derive(Debug, Clone)]
enum Operation {
    Offer { rank: u8, flow: u64, cost: u64, patience: Option<u64> },
    End { which: usize, actual: Option<u64> },
    Cancel { which: usize },
    Pass { time: u64 },
}

fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        6 => (0..4_u8, 0..6_u64, 1..30_u64, proptest::option::of(0..3_000_000_u64)).prop_map(
            |(rank, flow, cost, patience)| Operation::Offer { rank, flow, cost, patience }
        ),
        3 => (any::<usize>(), proptest::option::of(0..60_u64))
            .prop_map(|(which, actual)| Operation::End { which, actual }),
        1 => any::<usize>().prop_map(|which| Operation::Cancel { which }),
        3 => (0..2_000_000_u64).prop_map(|time| Operation::Pass { time }),
    ]
}

fn builder() -> impl Strategy<Value = (SchedulerBuilder, bool)> {
    let capacity = prop_oneof![
        (1..40_u64).prop_map(|cost| Scheduler::builder().rate(cost, SECOND)),
        (1..4_usize).prop_map(|requests| Scheduler::builder().in_flight(requests)),
    ];
    (capacity, any::<[bool; 3]>(), 1..9_usize).prop_map(
        |(builder, [late, codel, weights], queues)| {
            let builder = builder.queue(BOUND).flow_queues(queues);
            let builder = if late { builder.freshest_when_late(SECOND / 2) } else { builder };
            let builder = if codel { builder.codel(SECOND / 5, SECOND) } else { builder };
            let builder = if weights { builder.weights([8, 4, 2, 1]) } else { builder };
            (builder, !weights)
        },
    )
}

/// What a plain observer knows.
#[derive(Default)]
struct Observer {
    /// Rank, cost and the order of arrival of each queued request.
    queued: Vec<(Id, u8, u64, u64)>,
    deadlines: HashMap<u64, u64>,
    running: Vec<Running>,
    offered: u64,
    started: u64,
    shed: u64,
    cancelled: u64,
    is_strict: bool,
}

impl Observer {
    fn remove(&mut self, id: Id) -> (u8, u64, u64) {
        let at = self.queued.iter().position(|queued| queued.0 == id).expect("a queued request");
        let (_, rank, cost, arrival) = self.queued.remove(at);
        (rank, cost, arrival)
    }

    fn cost(&self) -> u64 {
        self.queued.iter().map(|queued| queued.2).sum()
    }

    fn obey(&mut self, now: u64, instruction: Instruction) -> Option<(u8, u64, u64)> {
        match instruction {
            Instruction::Start(id, running) => {
                let (rank, cost, arrival) = self.remove(id);
                assert_eq!((running.class().rank(), running.cost()), (rank.into(), cost));
                if self.is_strict {
                    let higher = self.queued.iter().find(|queued| queued.1 < rank);
                    assert!(higher.is_none(), "started below {higher:?}");
                }
                if let Some(&deadline) = self.deadlines.get(&arrival) {
                    assert!(now <= deadline, "started after its deadline");
                }
                self.started += 1;
                self.running.push(running);
                None
            }
            Instruction::Shed(id, shed) => {
                self.shed += 1;
                let removed = self.remove(id);
                (shed.reason == ShedReason::Evicted).then_some(removed)
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]
    #[test]
    fn every_promise_holds_over_random_arrivals(
        (builder, is_strict) in builder(),
        operations in proptest::collection::vec(operation(), 1..200),
    ) {
        let mut scheduler = builder.build().unwrap();
        let mut observer = Observer { is_strict, ..Observer::default() };
        let mut now = 0;
        let mut out = Vec::new();
        for (arrival, operation) in (0..).zip(operations) {
            let mut evicted = Vec::new();
            match operation {
                Operation::Offer { rank, flow, cost, patience } => {
                    let deadline = patience.map(|patience| now + patience);
                    let class = Class::at(rank);
                    let offered =
                        scheduler.offer(now, Offer { class, flow, cost, deadline, partition: None, key: None }, &mut out);
                    evicted.extend(out.drain(..).filter_map(|told| observer.obey(now, told)));
                    observer.offered += 1;
                    let freed: u64 = evicted.iter().map(|evicted| evicted.1).sum();
                    // What did not fit before the evictions.
                    let excess = (observer.cost() + freed + cost).saturating_sub(BOUND);
                    let lower: u64 = observer.queued.iter()
                        .filter(|queued| queued.1 > rank).map(|queued| queued.2).sum();
                    match offered {
                        Offered::Queued(id) => {
                            prop_assert!(freed >= excess);
                            for &(victim, cost, _) in &evicted {
                                prop_assert!(victim > rank, "an equal or higher class was evicted");
                                prop_assert!(freed - cost < excess, "evicted in vain");
                            }
                            observer.queued.push((id, rank, cost, arrival));
                            observer.deadlines.extend(deadline.map(|deadline| (arrival, deadline)));
                        }
                        Offered::Start(running) => {
                            prop_assert!(evicted.is_empty() && observer.queued.is_empty());
                            observer.started += 1;
                            observer.running.push(running);
                        }
                        Offered::Shed(shed) => {
                            prop_assert!(evicted.is_empty(), "evicted for one who was refused");
                            if shed.reason == ShedReason::Full {
                                prop_assert!(lower < excess, "refused although room could be made");
                            }
                            observer.shed += 1;
                        }
                    }
                }
                Operation::End { which, actual } if !observer.running.is_empty() => {
                    let which = which % observer.running.len();
                    let running = observer.running.swap_remove(which);
                    scheduler.done(now, running, actual, Completion::Success, &mut out);
                }
                Operation::Cancel { which } if !observer.queued.is_empty() => {
                    let (id, ..) = observer.queued[which % observer.queued.len()];
                    prop_assert!(scheduler.cancel(id));
                    observer.remove(id);
                    observer.cancelled += 1;
                }
                Operation::End { .. } | Operation::Cancel { .. } => {}
                Operation::Pass { time } => {
                    now += time;
                    scheduler.drain(now, &mut out);
                    for told in out.drain(..) {
                        let _ = observer.obey(now, told);
                    }
                    for (_, _, _, arrival) in &observer.queued {
                        let deadline = observer.deadlines.get(arrival);
                        prop_assert!(deadline.is_none_or(|deadline| now < *deadline), "it is not answered");
                    }
                }
            }
            for told in out.drain(..) {
                let _ = observer.obey(now, told);
            }

            let deadlines = observer.queued.iter().filter_map(|queued| observer.deadlines.get(&queued.3));
            if let Some(earliest) = deadlines.min() {
                prop_assert!(scheduler.next_at().is_some_and(|next| next <= *earliest));
            }
            prop_assert!(scheduler.cost() <= BOUND);
            prop_assert_eq!(scheduler.cost(), observer.cost());
            prop_assert_eq!(scheduler.len(), observer.queued.len());
            prop_assert_eq!(scheduler.running(), observer.running.len());
            let counts = scheduler.counts();
            prop_assert_eq!(
                (counts.offered, counts.started, counts.all_shed(), counts.cancelled),
                (observer.offered, observer.started, observer.shed, observer.cancelled)
            );
            prop_assert_eq!(
                counts.offered,
                counts.started + counts.all_shed() + counts.cancelled + scheduler.len() as u64
            );
        }
    }
}
