//! A store that forgets, driven beside a plain map that forgets nothing, by whatever bytes say.

use std::collections::HashMap;
use std::time::Duration;

use sluicegate_core::{
    Charge, Decision, KeyBuf, Keys, Limit, ManualClock, Mark, Memory, Outcome, Owed, Slot,
    Standing, State, Store, Verdict, WhenFull, decide, preview,
};

use crate::subject::answer;

/// Whatever can be done to a store, as the bytes say: how often, to which keys, at what cost. The clock is
/// not set back: a store that has forgotten what had recovered cannot know of it again.
///
/// # Panics
///
/// When the store answers otherwise than a map of all states would.
pub fn run(bytes: &[u8]) {
    let (capacity, bytes) = bytes.split_first().unwrap_or((&0, bytes));
    let clock = ManualClock::new();
    let capacity = 1 + usize::from(*capacity) % 40;
    let store = Memory::builder().capacity(capacity).clock(&clock).build();
    drive(bytes, &clock, &store);
}

/// The same for a store that has room for all keys, wherever it is, and whose clock this is. `settled`
/// returns when everything that the store was told to settle has arrived.
///
/// # Panics
///
/// When the store answers otherwise than a map of all states would, or not at all.
pub fn run_on<S: Store>(bytes: &[u8], clock: &ManualClock, store: &S, settled: fn(&S)) {
    drive(bytes, clock, &Roomy { store, settled });
}

/// What is driven: a store that may have no room.
trait Driven {
    /// Takes by the way for one limit, if there is one, where that is asked for.
    fn take(&self, charge: &Charge, only: bool) -> Option<Outcome>;

    fn peek(&self, charge: &Charge) -> Outcome;

    fn reset(&self, charge: &Charge);

    /// Whether there was room for it.
    fn settle(&self, owed: &Owed, mark: &Mark, spent: u64) -> bool;
}

impl Driven for Memory {
    fn take(&self, charge: &Charge, only: bool) -> Option<Outcome> {
        let before = self.turned_away();
        let taken = match charge.owed().next().filter(|_| only) {
            Some(owed) => self.spend(&owed.limit, &owed.key, owed.cost),
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

    fn settle(&self, owed: &Owed, mark: &Mark, spent: u64) -> bool {
        let before = self.turned_away();
        Store::settle(self, owed, mark, spent);
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

    fn settle(&self, owed: &Owed, mark: &Mark, spent: u64) -> bool {
        self.store.settle(owed, mark, spent);
        (self.settled)(self.store);
        true
    }
}

fn drive(bytes: &[u8], clock: &ManualClock, store: &impl Driven) {
    let mut script = Script(bytes);
    let mut model = Model::default();
    let mut admitted: Vec<(Charge, Vec<Mark>)> = Vec::new();
    while !script.0.is_empty() {
        let now = clock.now();
        match script.byte() % 16 {
            0..8 => {
                let charge = script.charge(true);
                let only = script.takes_by_the_way(&charge);
                let Some(taken) = store.take(&charge, only) else { continue };
                let (keys, patience) = (charge.keys(), charge.patience());
                let decision = taken.decision(&charge);
                // What there is no room for has no part in it.
                let charge = counted(&charge, &decision);
                let expected = model.run(&charge, |slots, _| decide(slots, now, patience, keys));
                assert_eq!(told(&decision), told(&expected));
                if taken.is_admitted() {
                    let marks = decision.standings().filter(|standing| !standing.uncounted);
                    let marks = marks.map(|standing| standing.mark).collect();
                    admitted.push((charge, marks));
                }
            }
            8 => {
                let charge = script.charge(false);
                let peeked = store.peek(&charge);
                let expected =
                    model.run(&charge, |slots, keys| preview(slots, now, charge.patience(), keys));
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
                let (charge, marks) = admitted.remove(at);
                for (owed, mark) in charge.owed().zip(&marks) {
                    if store.settle(owed, mark, spent) {
                        let state = model.0.entry((owed.limit.id(), owed.key)).or_default();
                        owed.limit.settle(state, now, mark, owed.cost, spent);
                    }
                }
            }
            _ => clock.advance(Duration::from_micros(script.micros())),
        }
    }
}

/// Bytes, read from the front; zeros when they are used up.
struct Script<'a>(&'a [u8]);

impl Script<'_> {
    fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    /// From none to eight seconds, short ones as likely as long ones.
    fn micros(&mut self) -> u64 {
        let digits = u64::from(self.byte()) << 8 | u64::from(self.byte());
        digits << (self.byte() % 8)
    }

    fn charge(&mut self, patient: bool) -> Charge {
        let all = limits();
        let mut charge = Charge::new();
        // Four in five owe to one limit. Those that record a refusal do so alone: of a new key, where
        // another limit refuses, it needs room.
        let count = match self.byte() % 5 {
            0 => 2 + self.byte() % 4,
            _ => 1,
        };
        let limits = if count == 1 { &all[..] } else { &all[..RECORD_NOTHING] };
        for _ in 0..count {
            let limit = limits[usize::from(self.byte()) % limits.len()];
            let key = KeyBuf::of(u64::from(self.byte() % 48));
            let cost = u64::from(self.byte() % 3);
            if charge.owed().all(|owed| owed.limit != limit || owed.key != key) {
                charge.owe(limit, key, cost).expect("few limits");
            }
        }
        match self.byte() % 4 {
            0 if patient => charge.patient(Duration::from_micros(self.micros())),
            _ => charge,
        }
    }

    /// By the way for one limit where there is a choice, half of the time.
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

/// How many of them, from the front.
const RECORD_NOTHING: usize = 10;

/// Every state for ever, in no particular place.
#[derive(Default)]
struct Model(HashMap<(u64, KeyBuf), State>);

impl Model {
    fn run(
        &mut self,
        charge: &Charge,
        run: impl FnOnce(&mut [Slot<'_>], Keys) -> Outcome,
    ) -> Decision {
        let at = |owed: &Owed| (owed.limit.id(), owed.key);
        let states = charge.owed().map(|owed| self.0.remove(&at(owed)).unwrap_or_default());
        let mut states: Vec<State> = states.collect();
        let slots = charge.owed().zip(&mut states);
        let mut slots: Vec<_> = slots
            .map(|(owed, state)| Slot { limit: &owed.limit, state, cost: owed.cost })
            .collect();
        let outcome = run(&mut slots, charge.keys());
        self.0.extend(charge.owed().map(at).zip(states));
        outcome.decision(charge)
    }

    /// What is held stays held.
    fn forget(&mut self, charge: &Charge) {
        for owed in charge.owed().filter(|owed| !owed.limit.is_held()) {
            self.0.remove(&(owed.limit.id(), owed.key));
        }
    }
}

/// All of it but the marks, which are the store's own, and in a peek stand for a charge that was not made.
fn told(decision: &Decision) -> (Verdict, Vec<Standing>) {
    let unmarked = |mut standing: Standing| {
        standing.mark = Mark::default();
        standing
    };
    let counted = decision.standings().filter(|standing| !standing.uncounted);
    (decision.verdict(), counted.cloned().map(unmarked).collect())
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

/// Numbers that look drawn (PCG's generator), the same in every run.
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
        for seed in 0..2_000 {
            run(&drawn(seed, 600));
        }
    }
}
