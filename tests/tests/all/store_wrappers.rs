//! A store that wraps another one passes on every method: what it wraps behaves the same inside of it.

use std::cell::RefCell;
use std::future::{Ready, ready};
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sluicegate_core::adapter::{Answer, Charge, Debit, Outcome, Receipt};
use sluicegate_core::clock::Clock;
use sluicegate_core::key::KeyBuf;
use sluicegate_core::limit::{LimitError, LimitStatus};
use sluicegate_core::store::{Blocks, BoxStore, Fallback, Fleet, Share, Store, StoreError};
use sluicegate_core::{Limit, ManualClock, Memory};
use sluicegate_governor::Governor;
use sluicegate_tests::answer;
use sluicegate_tests::stores::{Manner, TestStore};

const LIMIT: Limit = Limit::per_minute(10);

/// Writes down each call, and is a memory otherwise.
#[derive(Clone)]
struct Recorder {
    calls: Arc<Mutex<Vec<String>>>,
    memory: Memory,
    answers_later: bool,
}

impl Recorder {
    fn new(answers_later: bool) -> Self {
        Self { calls: Arc::default(), memory: memory(&ManualClock::new()), answers_later }
    }

    fn note(&self, call: impl Into<String>) {
        self.calls.lock().unwrap().push(call.into());
    }

    /// The calls since the last look, without those that are about blocked keys.
    fn calls(&self) -> Vec<String> {
        let mut calls = std::mem::take(&mut *self.calls.lock().unwrap());
        calls.retain(|call| !call.contains("blocked"));
        calls
    }

    fn answer(
        &self,
        call: &str,
        charge: &Charge,
        answer: Answer<<Memory as Store>::Future>,
    ) -> Answer<Future> {
        let debits: Vec<_> = charge.debits().map(text).collect();
        self.note(format!("{call} {debits:?} {:?}", charge.patience()));
        match self.answers_later {
            true => Answer::Later(ready(answer.now())),
            false => Answer::Now(answer.now()),
        }
    }
}

type Future = Ready<Result<Outcome, StoreError>>;

fn text(debit: &Debit) -> String {
    format!("{} {} of {:?}", debit.cost, debit.limit, debit.key)
}

impl Store for Recorder {
    type Future = Future;

    fn take(&self, charge: &Charge) -> Answer<Future> {
        self.answer("take", charge, self.memory.take(charge))
    }

    fn peek(&self, charge: &Charge) -> Answer<Future> {
        self.answer("peek", charge, self.memory.peek(charge))
    }

    fn reset(&self, charge: &Charge) -> Answer<Future> {
        self.answer("reset", charge, self.memory.reset(charge))
    }

    fn settle(&self, debit: &Debit, receipt: &Receipt, spent: u64) {
        self.note(format!("settle {} to {spent} by {:?}", text(debit), receipt.words()));
    }

    fn follow(&self, debit: &Debit, charged: u64, spent: u64) {
        self.note(format!("follow {} from {charged} to {spent}", text(debit)));
    }

    fn follow_status(&self, debit: &Debit, status: &LimitStatus) {
        let LimitStatus { limit, remaining, reset, refused, .. } = status;
        let status = format!("{remaining} of {limit}, {reset:?}, {refused}");
        self.note(format!("follow_status {} with {status}", text(debit)));
    }

    fn clock(&self) -> Clock {
        self.note("clock");
        self.memory.clock()
    }

    fn check(&self, limit: &Limit) -> Result<(), LimitError> {
        self.note(format!("check {limit}"));
        self.memory.check(limit)
    }
}

fn memory(clock: &ManualClock) -> Memory {
    Memory::builder().clock(clock).capacity(1_000).build()
}

/// Calls every method of the store once.
fn call_all(store: &impl Store) {
    let charge = Charge::of(LIMIT, KeyBuf::of("alice"), 3);
    let patient = charge.clone().patient(Duration::from_secs(2));
    let debit = charge.debits().next().unwrap();
    let outcome = answer(store.take(&patient)).unwrap();
    answer(store.peek(&charge)).unwrap();
    answer(store.reset(&charge)).unwrap();
    store.settle(debit, &outcome.receipts().next().unwrap(), 1);
    store.follow(debit, 2, 5);
    store.follow_status(debit, outcome.decision(&charge).statuses().next().unwrap());
    store.clock();
    store.check(&LIMIT).unwrap();
}

/// What a store is called with, when all of its methods are called on `wrap` of it.
fn calls_through<S: Store>(answers_later: bool, wrap: impl FnOnce(Recorder) -> S) -> Vec<String> {
    let recorder = Recorder::new(answers_later);
    call_all(&wrap(recorder.clone()));
    recorder.calls()
}

#[test]
fn every_method_of_a_wrapped_store_is_called() {
    for later in [false, true] {
        let expected = calls_through(later, |store| store);
        assert_eq!(expected.len(), 8, "{expected:#?}");
        assert_eq!(calls_through(later, Arc::new), expected, "Arc");
        assert_eq!(calls_through(later, Rc::new), expected, "Rc");
        assert_eq!(calls_through(later, Box::new), expected, "Box");
        assert_eq!(calls_through(later, BoxStore::new), expected, "BoxStore");
        assert_eq!(calls_through(later, Blocks::new), expected, "Blocks");
        let everything = |store| {
            let inner = BoxStore::new(Arc::new(Blocks::new(store)));
            Box::new(BoxStore::new(inner))
        };
        assert_eq!(calls_through(later, everything), expected, "all of them");

        let recorder = Recorder::new(later);
        call_all(&&recorder);
        assert_eq!(recorder.calls(), expected, "&");
    }
}

/// A first store is called as if it were alone. The second follows it, and is asked where the first fails.
#[test]
fn every_method_of_both_stores_of_a_fallback_is_called() {
    for later in [false, true] {
        let expected = calls_through(later, |store| store);
        let second = Recorder::new(false);
        let first = calls_through(later, |store| Fallback(store, second.clone()));
        assert_eq!(first, expected);
        let followed = second.calls();
        let begin = |call: &str| call.split(' ').next().unwrap().to_owned();
        let names: Vec<_> = followed.iter().map(|call| begin(call)).collect();
        // For the charge, its settlement, and the two calls of the fallback itself. Waits are measured by one clock.
        let expected_names =
            ["follow", "follow_status", "follow", "follow", "follow_status", "check"];
        assert_eq!(names, expected_names, "{followed:#?}");

        let second = calls_through(later, |store| Fallback(away(), store));
        let mut expected = expected;
        expected.retain(|call| call != "clock");
        assert_eq!(second, expected);
    }
}

/// A store that always fails.
fn away() -> TestStore {
    TestStore::new(Memory::with_capacity(1), Manner::Fails)
}

/// How many requests a second store admits after the first has gone away, which has admitted `own` of this process and
/// `elsewhere` of others. The last of the own is given back.
fn admitted_after<S: Store + Clone>(limit: Limit, [own, elsewhere]: [u64; 2], second: S) -> u64 {
    let clock = ManualClock::new();
    let shared = TestStore::new(memory(&clock), Manner::AtOnce);
    let store = Fallback(shared.clone(), second);
    let charge = Charge::of(limit, KeyBuf::of("alice"), 1);
    let debit = charge.debits().next().unwrap();
    for _ in 0..elsewhere {
        assert!(shared.memory().take(&charge).now().unwrap().is_admitted());
    }
    for at in 0..own {
        let outcome = answer(store.take(&charge)).unwrap();
        if at + 1 == own && outcome.is_admitted() {
            store.settle(debit, &outcome.receipts().next().unwrap(), 0);
        }
    }
    shared.set(Manner::Fails);
    let admits = |_: &u64| answer(store.take(&charge)).unwrap().is_admitted();
    (0..1_000).take_while(admits).count() as u64
}

#[test]
fn a_second_store_follows_the_first_whatever_it_is_wrapped_in() {
    let limits = [
        Limit::per_hour(10),
        Limit::per_day(10).burst(4),
        Limit::fixed_window(10, Duration::from_secs(3_600)),
        Limit::sliding_window(10, Duration::from_secs(3_600)),
        Limit::sliding_log(10, Duration::from_secs(3_600)),
        Limit::per_hour(10).named("carried").carried(),
    ];
    let spends = [[1, 10], [1, 5], [4, 0], [3, 4], [0, 0]];
    for limit in limits {
        for [own, elsewhere] in spends {
            let spend = [own, elsewhere.min(limit.capacity())];
            let clock = ManualClock::new();
            let memory = || memory(&clock);
            let expected = admitted_after(limit, spend, memory());
            if spend == [1, 10] && limit == Limit::per_hour(10) {
                assert_eq!(expected, 0, "everything was spent elsewhere");
            }
            let failed = RefCell::new(Vec::new());
            let expect = |name, admitted| {
                if admitted != expected {
                    failed.borrow_mut().push((name, admitted));
                }
            };
            expect("Arc", admitted_after(limit, spend, Arc::new(memory())));
            expect("Rc", admitted_after(limit, spend, Rc::new(memory())));
            expect("&", admitted_after(limit, spend, &memory()));
            expect("BoxStore", admitted_after(limit, spend, BoxStore::new(memory())));
            let boxed = BoxStore::new(Arc::new(BoxStore::new(memory())));
            expect("BoxStore of BoxStore", admitted_after(limit, spend, boxed));
            expect("Blocks", admitted_after(limit, spend, Blocks::new(memory())));
            expect(
                "Share",
                admitted_after(limit, spend, Share::new(memory(), &Fleet::fixed(1, 1))),
            );
            let boxed = BoxStore::new(Share::new(Blocks::new(memory()), &Fleet::fixed(1, 1)));
            expect("BoxStore of Share", admitted_after(limit, spend, boxed));
            expect("Fallback", admitted_after(limit, spend, Fallback(memory(), away())));
            expect("Fallback", admitted_after(limit, spend, Fallback(away(), memory())));
            let fleet = Fleet::by_clock(Duration::from_secs(1), &clock);
            fleet.open();
            fleet.see(1);
            expect(
                "Share of a fleet that changes",
                admitted_after(limit, spend, Share::new(memory(), &fleet)),
            );
            let governor = Governor::with_clock(1_000, &clock);
            if governor.check(&limit).is_ok() {
                expect("Governor", admitted_after(limit, spend, governor));
            }
            let failed = failed.into_inner();
            assert!(failed.is_empty(), "{limit}, {spend:?}: {failed:?}, a memory {expected}");
        }
    }
}
