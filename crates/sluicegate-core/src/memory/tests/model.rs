//! The table against a plain map, whatever is done to both.

use std::collections::HashMap;

use proptest::prelude::*;

use super::*;
use crate::limit::testing::{decide, preview};
use crate::limit::{Mark, Outcome, Slot, Standing, State, Verdict};

#[derive(Debug, Clone)]
enum Operation {
    Take {
        owed: Vec<(usize, u64, u64)>,
        patience: u64,
    },
    Peek {
        owed: Vec<(usize, u64, u64)>,
    },
    Reset {
        owed: Vec<(usize, u64, u64)>,
    },
    /// Settles the charge that was admitted so many charges ago.
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

fn owed() -> impl Strategy<Value = Vec<(usize, u64, u64)>> {
    let one = (0..limits().len(), 0_u64..12, 0_u64..4);
    prop_oneof![
        3 => prop::collection::vec(one.clone(), 1),
        1 => prop::collection::vec(one, 2..6),
    ]
}

fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        8 => (owed(), prop_oneof![Just(0), 0_u64..2_000_000])
            .prop_map(|(owed, patience)| Operation::Take { owed, patience }),
        1 => owed().prop_map(|owed| Operation::Peek { owed }),
        1 => owed().prop_map(|owed| Operation::Reset { owed }),
        3 => (0_usize..8, 0_u64..6).prop_map(|(ago, spent)| Operation::Settle { ago, spent }),
        4 => prop_oneof![0_u64..300_000, 0_u64..5_000_000]
            .prop_map(|micros| Operation::Pass { micros }),
    ]
}

/// Every state for ever, in no particular place.
#[derive(Default)]
struct Model(HashMap<(u64, KeyBuf), State>);

impl Model {
    fn run<R>(&mut self, charge: &Charge, run: impl FnOnce(&mut [Slot<'_>]) -> R) -> R {
        let at = |owed: &crate::Owed| (owed.limit.id(), owed.key);
        let mut states: Vec<State> =
            charge.owed().map(|owed| self.0.remove(&at(owed)).unwrap_or_default()).collect();
        let mut slots: Vec<_> = charge
            .owed()
            .zip(&mut states)
            .map(|(owed, state)| Slot { limit: &owed.limit, state, cost: owed.cost })
            .collect();
        let result = run(&mut slots);
        self.0.extend(charge.owed().map(at).zip(states));
        result
    }

    /// Looks, and leaves all as it is.
    fn peek<R>(&mut self, charge: &Charge, run: impl FnOnce(&mut [Slot<'_>]) -> R) -> R {
        let before = self.0.clone();
        let result = self.run(charge, run);
        self.0 = before;
        result
    }

    fn settle(&mut self, charge: &Charge, marks: &[Mark], now: u64, spent: u64) {
        for (owed, mark) in charge.owed().zip(marks) {
            let state = self.0.entry((owed.limit.id(), owed.key)).or_default();
            owed.limit.settle(state, now, mark, owed.cost, spent);
        }
    }
}

fn charge(owed: &[(usize, u64, u64)], patience: u64) -> Charge {
    let mut charge = Charge::new();
    for (limit, number, cost) in owed {
        // One key has but one plan at a time.
        let _ = charge.owe(limits()[*limit], key(*number), *cost);
    }
    if patience == 0 { charge } else { charge.patient(Duration::from_micros(patience)) }
}

/// A decision but for its marks' moments.
fn told(decision: &Decision) -> (Verdict, Vec<Standing>) {
    let counted = decision.standings().filter(|standing| !standing.uncounted);
    let standings = counted.cloned().map(|mut standing| {
        standing.mark.since = 0;
        standing.mark.by_all = false;
        standing
    });
    (decision.verdict(), standings.collect())
}

/// The charge without what was not counted of it.
fn counted(whole: &Charge, decision: &Decision) -> Charge {
    let mut charge = Charge::new();
    for (owed, standing) in whole.owed().zip(decision.standings()) {
        if !standing.uncounted {
            charge.owe(owed.limit, owed.key, owed.cost).expect("a part of a charge");
        }
    }
    charge
}

/// Takes by the way for one limit where there is a choice, every other time.
fn take(store: &Memory, charge: &Charge, turn: usize) -> Result<Outcome, StoreError> {
    match charge.only() {
        Some(owed) if charge.patience().is_none() && turn % 2 == 0 => {
            store.spend(&owed.limit, &owed.key, owed.cost)
        }
        _ => store.take(charge).now(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// What the store forgets was as good as never spent: it answers as one that forgets nothing.
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
                Operation::Take { owed, patience } => {
                    let charge = charge(&owed, patience);
                    let patience = charge.patience();
                    let before = store.turned_away();
                    let taken = take(&store, &charge, turn);
                    let is_uncounted = taken.as_ref().map_or(true, Outcome::is_uncounted);
                    prop_assert_eq!(store.turned_away() > before, is_uncounted);
                    let Ok(taken) = taken else { continue };
                    let keys = charge.keys();
                    let taken = taken.decision(&charge);
                    // What there is no room for has no part in it.
                    let charge = counted(&charge, &taken);
                    let model = model.run(&charge, |slots| decide(slots, now, patience, keys));
                    prop_assert_eq!(told(&taken), told(&model));
                    if taken.is_admitted() {
                        // Where one has forgotten a row that was as good as none, it has begun it anew.
                        let own = taken.standings().filter(|standing| !standing.uncounted);
                        let marks = own.zip(model.standings());
                        let marks: Vec<_> = marks.map(|(taken, model)| (taken.mark, model.mark)).collect();
                        admitted.push((charge, marks));
                    }
                }
                Operation::Peek { owed } => {
                    let charge = charge(&owed, 0);
                    let peeked = store.peek(&charge).now().expect("peeks need no room");
                    let peeked = peeked.decision(&charge);
                    prop_assert_eq!(peeked, model.peek(&charge, |slots| preview(slots, now, charge.keys())));
                }
                Operation::Reset { owed } => {
                    let charge = charge(&owed, 0);
                    store.reset(&charge).now().expect("no room is needed");
                    model.run(&charge, |slots| {
                        for slot in slots.iter_mut().filter(|slot| !slot.limit.is_held()) {
                            *slot.state = State::default();
                        }
                    });
                }
                Operation::Settle { ago, spent } => {
                    let Some(at) = admitted.len().checked_sub(ago + 1) else { continue };
                    let (charge, marks) = admitted.remove(at);
                    for (owed, (own, mark)) in charge.owed().zip(&marks) {
                        let before = store.turned_away();
                        store.settle(owed, own, spent);
                        if store.turned_away() == before {
                            let one = Charge::of(owed.limit, owed.key, owed.cost);
                            model.settle(&one, &[*mark], now, spent);
                        }
                    }
                }
                Operation::Pass { micros } => clock.advance(Duration::from_micros(micros)),
            }
        }
    }
}
