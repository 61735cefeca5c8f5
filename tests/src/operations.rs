//! A store that forgets, compared with a plain map that forgets nothing. Bytes decide the operations.

use std::collections::HashMap;
use std::time::Duration;

use sluicegate_core::adapter::{
    Attempt, Charge, Debit, Keys, Outcome, Receipt, State, decide, preview,
};
use sluicegate_core::key::KeyBuf;
use sluicegate_core::limit::{LimitStatus, Verdict, WhenFull};
use sluicegate_core::store::Store;
use sluicegate_core::{Decision, Limit, ManualClock, Memory};

use crate::subject::answer;

/// Runs operations on a store, chosen by `bytes`: how often, with which keys, at what cost. The clock is not set
/// back: a store that has forgotten a recovered state cannot remember it.
///
/// # Panics
///
/// If the store answers differently from a map of all states.
pub fn run(bytes: &[u8]) {
    let (capacity, bytes) = bytes.split_first().unwrap_or((&0, bytes));
    let clock = ManualClock::new();
    let capacity = 1 + usize::from(*capacity) % 40;
    let store = Memory::builder().capacity(capacity).clock(&clock).build();
    drive(bytes, &clock, &store);
}

/// Like the function above, for a store in any place that has room for all keys and uses this clock. `settled`
/// returns when everything that the store was told to settle has arrived.
///
/// # Panics
///
/// If the store answers differently from a map of all states, or not at all.
pub fn run_on<S: Store>(bytes: &[u8], clock: &ManualClock, store: &S, settled: fn(&S)) {
    drive(bytes, clock, &Roomy { store, settled });
}

/// The store that is driven. It may have no room.
trait Driven {
    /// Takes one limit through the shortcut for one limit, if there is one and `shortcut` asks for it.
    fn take(&self, charge: &Charge, only: bool) -> Option<Outcome>;

    fn peek(&self, charge: &Charge) -> Outcome;

    fn reset(&self, charge: &Charge);

    /// Whether there was room.
    fn settle(&self, debit: &Debit, receipt: &Receipt, spent: u64) -> bool;
}

impl Driven for Memory {
    fn take(&self, charge: &Charge, only: bool) -> Option<Outcome> {
        let before = self.turned_away();
        let taken = match charge.debits().next().filter(|_| only) {
            Some(debit) => self.spend(&debit.limit, &debit.key, debit.cost),
            None => Store::take(self, charge).now(),
        };
        let is_uncounted = taken.as_ref().map_or(true, Outcome::is_uncounted);
        assert_eq!(self.turned_away() > before, is_uncounted);
        taken.ok()
    }

    fn peek(&self, charge: &Charge) -> Outcome {
        Store::peek(self, charge).now().expect("peeks need no room")
    }

    fn reset(&self, charge: &Charge) {
        Store::reset(self, charge).now().expect("no room is needed");
    }

    fn settle(&self, debit: &Debit, receipt: &Receipt, spent: u64) -> bool {
        let before = self.turned_away();
        Store::settle(self, debit, receipt, spent);
        self.turned_away() == before
    }
}

struct Roomy<'a, S> {
    store: &'a S,
    settled: fn(&S),
}

impl<S: Store> Driven for Roomy<'_, S> {
    fn take(&self, charge: &Charge, _: bool) -> Option<Outcome> {
        Some(answer(self.store.take(charge)).expect("the store answers"))
    }

    fn peek(&self, charge: &Charge) -> Outcome {
        answer(self.store.peek(charge)).expect("the store answers")
    }

    fn reset(&self, charge: &Charge) {
        answer(self.store.reset(charge)).expect("the store answers");
    }

    fn settle(&self, debit: &Debit, receipt: &Receipt, spent: u64) -> bool {
        self.store.settle(debit, receipt, spent);
        (self.settled)(self.store);
        true
    }
}

fn drive(bytes: &[u8], clock: &ManualClock, store: &impl Driven) {
    let mut script = Script(bytes);
    let mut model = Model::default();
    let mut admitted: Vec<(Charge, Vec<Receipt>)> = Vec::new();
    while !script.0.is_empty() {
        let now = clock.now();
        match script.byte() % 16 {
            0..8 => {
                let charge = script.charge(true);
                let only = script.takes_by_the_way(&charge);
                let Some(taken) = store.take(&charge, only) else { continue };
                let (keys, patience) = (charge.keys(), charge.patience());
                let decision = taken.decision(&charge);
                // A limit without room has no part in the decision.
                let charge = counted(&charge, &decision);
                let expected =
                    model.run(&charge, |attempts, _| decide(attempts, now, patience, keys));
                assert_eq!(told(&decision), told(&expected));
                if taken.is_admitted() {
                    let receipts = decision.statuses().filter(|status| !status.uncounted);
                    let receipts = receipts.map(|status| status.receipt).collect();
                    admitted.push((charge, receipts));
                }
            }
            8 => {
                let charge = script.charge(false);
                let peeked = store.peek(&charge);
                let expected = model
                    .run(&charge, |attempts, keys| preview(attempts, now, charge.patience(), keys));
                assert_eq!(told(&peeked.decision(&charge)), told(&expected));
            }
            9 => {
                let charge = script.charge(false);
                store.reset(&charge);
                model.forget(&charge);
            }
            10..12 => {
                let ago = usize::from(script.byte()) % 8;
                let spent = u64::from(script.byte() % 6);
                let Some(at) = admitted.len().checked_sub(ago + 1) else { continue };
                let (charge, receipts) = admitted.remove(at);
                for (debit, receipt) in charge.debits().zip(&receipts) {
                    if store.settle(debit, receipt, spent) {
                        let state = model.0.entry((debit.limit.id(), debit.key)).or_default();
                        debit.limit.settle(state, now, receipt, debit.cost, spent);
                    }
                }
            }
            _ => clock.advance(Duration::from_micros(script.micros())),
        }
    }
}

/// Bytes, read from the front. After the end come zeros.
struct Script<'a>(&'a [u8]);

impl Script<'_> {
    fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    /// From zero to eight seconds; short times are as likely as long ones.
    fn micros(&mut self) -> u64 {
        let digits = u64::from(self.byte()) << 8 | u64::from(self.byte());
        digits << (self.byte() % 8)
    }

    fn charge(&mut self, patient: bool) -> Charge {
        let all = limits();
        let mut charge = Charge::new();
        // Four in five charges have one limit. Limits that record refusals are alone in their charge: if another
        // limit refuses, they need room for a new key.
        let count = match self.byte() % 5 {
            0 => 2 + self.byte() % 4,
            _ => 1,
        };
        let limits = if count == 1 { &all[..] } else { &all[..RECORD_NOTHING] };
        for _ in 0..count {
            let limit = limits[usize::from(self.byte()) % limits.len()];
            let key = KeyBuf::of(u64::from(self.byte() % 48));
            let cost = u64::from(self.byte() % 3);
            if charge.debits().all(|debit| debit.limit != limit || debit.key != key) {
                charge.add(limit, key, cost).expect("few limits");
            }
        }
        match self.byte() % 4 {
            0 if patient => charge.patient(Duration::from_micros(self.micros())),
            _ => charge,
        }
    }

    /// Every other time, one limit is taken through the shortcut, where there is a choice.
    fn takes_by_the_way(&mut self, charge: &Charge) -> bool {
        charge.len() == 1 && charge.patience().is_none() && self.byte() < 128
    }
}

fn limits() -> [Limit; 12] {
    let second = Duration::from_secs(1);
    [
        Limit::per_second(3),
        Limit::per_second(4).burst(2),
        Limit::per(7, second * 3).burst(5),
        Limit::per_second(5).refill(2, Duration::from_millis(700)),
        Limit::leaky_bucket(4, second).queue(3),
        Limit::fixed_window(3, second),
        Limit::sliding_window(4, second),
        Limit::concurrent(3),
        Limit::sliding_log(5, second),
        Limit::per_second(9).min_gap(Duration::from_millis(30)),
        Limit::per_second(2).ban(second * 2),
        Limit::sliding_window(2, second * 3).count_refused(),
    ]
    .map(|limit| limit.when_full(WhenFull::Admit))
}

/// How many bytes, from the front.
const RECORD_NOTHING: usize = 10;

/// The map: keeps every state for ever.
#[derive(Default)]
struct Model(HashMap<(u64, KeyBuf), State>);

impl Model {
    fn run(
        &mut self,
        charge: &Charge,
        run: impl FnOnce(&mut [Attempt<'_>], Keys) -> Outcome,
    ) -> Decision {
        let at = |debit: &Debit| (debit.limit.id(), debit.key);
        let states = charge.debits().map(|debit| self.0.remove(&at(debit)).unwrap_or_default());
        let mut states: Vec<State> = states.collect();
        let attempts = charge.debits().zip(&mut states);
        let mut attempts: Vec<_> = attempts
            .map(|(debit, state)| Attempt { limit: &debit.limit, state, cost: debit.cost })
            .collect();
        let outcome = run(&mut attempts, charge.keys());
        self.0.extend(charge.debits().map(at).zip(states));
        outcome.decision(charge)
    }

    /// Held places stay held.
    fn forget(&mut self, charge: &Charge) {
        for debit in charge.debits().filter(|debit| !debit.limit.is_held()) {
            self.0.remove(&(debit.limit.id(), debit.key));
        }
    }
}

/// All of the decision but the receipts. Each store has its own receipts, and those of a peek belong to no charge.
fn told(decision: &Decision) -> (Verdict, Vec<LimitStatus>) {
    let unmarked = |mut status: LimitStatus| {
        status.receipt = Receipt::default();
        status
    };
    let counted = decision.statuses().filter(|status| !status.uncounted);
    (decision.verdict(), counted.cloned().map(unmarked).collect())
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

/// Pseudo-random numbers (PCG's generator), the same in every run.
pub fn drawn(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 56) as u8
    };
    std::iter::repeat_with(next).take(len).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_answers_as_a_map_that_forgets_nothing() {
        for seed in 0..600 {
            run(&drawn(seed, 600));
        }
    }
}
