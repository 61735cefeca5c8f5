//! The table compared with a plain map, under random operations.

use std::collections::HashMap;

use proptest::prelude::*;

use super::*;
use crate::limit::remote::{self, Carried};
use crate::limit::testing::{decide, preview};
use crate::limit::{Attempt, LimitStatus, Outcome, Receipt, State, Verdict};

#[derive(Debug, Clone)]
enum Operation {
    Take {
        debit: Vec<(usize, u64, u64)>,
        patience: u64,
    },
    Peek {
        debit: Vec<(usize, u64, u64)>,
    },
    Reset {
        debit: Vec<(usize, u64, u64)>,
    },
    /// Settles the charge that was admitted this many charges ago.
    Settle {
        ago: usize,
        spent: u64,
    },
    Pass {
        micros: u64,
    },
}

fn limits() -> [Limit; 15] {
    [
        Limit::per_second(4),
        Limit::per_second(3),
        Limit::per_second(5).refill(2, Duration::from_millis(700)),
        Limit::leaky_bucket(4, SECOND).queue(3),
        Limit::fixed_window(3, SECOND),
        Limit::sliding_window(4, SECOND),
        Limit::concurrent(3),
        Limit::sliding_log(5, SECOND),
        Limit::per_second(2).ban(SECOND * 2),
        Limit::per_second(9).min_gap(Duration::from_millis(30)),
        Limit::per_second(2).ban(SECOND * 2).ban_after(3, SECOND),
        Limit::per_second(4).named("plan").carried(),
        Limit::per_second(9).burst(3).named("plan").carried(),
        Limit::fixed_window(3, SECOND).named("plan").carried(),
        Limit::fixed_window(7, SECOND * 2).named("plan").carried(),
    ]
    .map(|limit| limit.when_full(WhenFull::Admit))
}

fn debit() -> impl Strategy<Value = Vec<(usize, u64, u64)>> {
    let one = (0..limits().len(), 0_u64..12, 0_u64..4);
    prop_oneof![
        3 => prop::collection::vec(one.clone(), 1),
        1 => prop::collection::vec(one, 2..6),
    ]
}

fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        8 => (debit(), prop_oneof![Just(0), 0_u64..2_000_000])
            .prop_map(|(debit, patience)| Operation::Take { debit, patience }),
        1 => debit().prop_map(|debit| Operation::Peek { debit }),
        1 => debit().prop_map(|debit| Operation::Reset { debit }),
        3 => (0_usize..8, 0_u64..6).prop_map(|(ago, spent)| Operation::Settle { ago, spent }),
        4 => prop_oneof![0_u64..300_000, 0_u64..5_000_000]
            .prop_map(|micros| Operation::Pass { micros }),
    ]
}

/// The model: keeps every state for ever.
#[derive(Default)]
struct Model(HashMap<(u64, KeyBuf), State>);

impl Model {
    fn run<R>(&mut self, charge: &Charge, run: impl FnOnce(&mut [Attempt<'_>]) -> R) -> R {
        let at = |debit: &crate::adapter::Debit| (debit.limit.id(), debit.key);
        let mut states: Vec<State> =
            charge.debits().map(|debit| self.0.remove(&at(debit)).unwrap_or_default()).collect();
        let mut attempts: Vec<_> = charge
            .debits()
            .zip(&mut states)
            .map(|(debit, state)| Attempt { limit: &debit.limit, state, cost: debit.cost })
            .collect();
        let result = run(&mut attempts);
        self.0.extend(charge.debits().map(at).zip(states));
        result
    }

    /// Peeks, and leaves the state as it is.
    fn peek<R>(&mut self, charge: &Charge, run: impl FnOnce(&mut [Attempt<'_>]) -> R) -> R {
        let before = self.0.clone();
        let result = self.run(charge, run);
        self.0 = before;
        result
    }

    fn settle(&mut self, charge: &Charge, receipts: &[Receipt], now: u64, spent: u64) {
        for (debit, receipt) in charge.debits().zip(receipts) {
            let state = self.0.entry((debit.limit.id(), debit.key)).or_default();
            debit.limit.settle(state, now, receipt, debit.cost, spent);
        }
    }
}

fn charge(debit: &[(usize, u64, u64)], patience: u64) -> Charge {
    let mut charge = Charge::new();
    for (limit, number, cost) in debit {
        // One key has only one plan at a time.
        let _ = charge.add(limits()[*limit], key(*number), *cost);
    }
    if patience == 0 { charge } else { charge.patient(Duration::from_micros(patience)) }
}

/// A decision without the moments of its receipts.
fn told(decision: &Decision) -> (Verdict, Vec<LimitStatus>) {
    let counted = decision.statuses().filter(|status| !status.uncounted);
    let statuses = counted.cloned().map(|mut status| {
        status.receipt = remote::receipt_carried(status.receipt, Carried::default());
        status
    });
    (decision.verdict(), statuses.collect())
}

/// The charge without the limits that were not counted.
fn counted(whole: &Charge, decision: &Decision) -> Charge {
    let mut charge = Charge::new();
    for (debit, status) in whole.debits().zip(decision.statuses()) {
        if !status.uncounted {
            charge.add(debit.limit, debit.key, debit.cost).expect("it is a part of a valid charge");
        }
    }
    charge
}

/// Every other time, a charge to one limit takes the shortcut for one limit.
fn take(store: &Memory, charge: &Charge, turn: usize) -> Result<Outcome, StoreError> {
    match charge.only() {
        Some(debit) if charge.patience().is_none() && turn % 2 == 0 => {
            store.spend(&debit.limit, &debit.key, debit.cost)
        }
        _ => store.take(charge).now(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// The store forgets only states that equal fresh ones, so it answers like a model that forgets nothing.
    #[test]
    fn a_small_table_answers_as_an_unbounded_one(
        capacity in 1_usize..40,
        operations in prop::collection::vec(operation(), 1..150),
    ) {
        let clock = ManualClock::new();
        let builder = Memory::builder().capacity(capacity).log_entries(10_000);
        let store = builder.clock(&clock).build();
        let (mut model, mut admitted) = (Model::default(), Vec::new());
        for (turn, operation) in operations.into_iter().enumerate() {
            let now = clock.now();
            match operation {
                Operation::Take { debit, patience } => {
                    let charge = charge(&debit, patience);
                    let patience = charge.patience();
                    let before = store.turned_away();
                    let taken = take(&store, &charge, turn);
                    let is_uncounted = taken.as_ref().map_or(true, Outcome::is_uncounted);
                    prop_assert_eq!(store.turned_away() > before, is_uncounted);
                    let Ok(taken) = taken else { continue };
                    let keys = charge.keys();
                    let taken = taken.decision(&charge);
                    // A limit without room has no part in the decision.
                    let charge = counted(&charge, &taken);
                    let model = model.run(&charge, |attempts| decide(attempts, now, patience, keys));
                    prop_assert_eq!(told(&taken), told(&model));
                    if taken.is_admitted() {
                        // If one of them has forgotten a recovered row, it has begun it anew.
                        let own = taken.statuses().filter(|status| !status.uncounted);
                        let receipts = own.zip(model.statuses());
                        let receipts: Vec<_> = receipts.map(|(taken, model)| (taken.receipt, model.receipt)).collect();
                        admitted.push((charge, receipts));
                    }
                }
                Operation::Peek { debit } => {
                    let charge = charge(&debit, 0);
                    let peeked = store.peek(&charge).now().expect("peeks need no room");
                    let peeked = peeked.decision(&charge);
                    prop_assert_eq!(peeked, model.peek(&charge, |attempts| preview(attempts, now, charge.keys())));
                }
                Operation::Reset { debit } => {
                    let charge = charge(&debit, 0);
                    store.reset(&charge).now().expect("no room is needed");
                    model.run(&charge, |attempts| {
                        for attempt in attempts.iter_mut().filter(|attempt| !attempt.limit.is_held()) {
                            *attempt.state = State::default();
                        }
                    });
                }
                Operation::Settle { ago, spent } => {
                    let Some(at) = admitted.len().checked_sub(ago + 1) else { continue };
                    let (charge, receipts) = admitted.remove(at);
                    for (debit, (own, receipt)) in charge.debits().zip(&receipts) {
                        let before = store.turned_away();
                        store.settle(debit, own, spent);
                        if store.turned_away() == before {
                            let one = Charge::of(debit.limit, debit.key, debit.cost);
                            model.settle(&one, &[*receipt], now, spent);
                        }
                    }
                }
                Operation::Pass { micros } => clock.advance(Duration::from_micros(micros)),
            }
        }
    }
}
