mod outages;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Waker;

use super::*;
use crate::clock::ManualClock;
use crate::key::{KeyBuf, Part};
use crate::store::memory::Memory;

/// A memory that answers after so many polls, or fails then.
#[derive(Clone)]
struct Slow {
    store: Memory,
    polls: usize,
    fails: bool,
    settled: Arc<AtomicUsize>,
}

struct Answered(usize, Option<Result<Outcome, StoreError>>);

impl Future for Answered {
    type Output = Result<Outcome, StoreError>;

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
        if self.0 > 0 {
            self.0 -= 1;
            return Poll::Pending;
        }
        Poll::Ready(self.1.take().expect("polled after it was ready"))
    }
}

impl Slow {
    fn new(polls: usize, fails: bool) -> Self {
        let store = Memory::builder().capacity(10).clock(ManualClock::new()).build();
        Self { store, polls, fails, settled: Arc::default() }
    }

    fn answer(&self, ask: Ask, charge: &Charge) -> Answer<Answered> {
        let decision = match self.fails {
            true => Err(StoreError::too_slow()),
            false => ask.of(&self.store, charge).now(),
        };
        match self.polls {
            0 => Answer::Now(decision),
            polls => Answer::Later(Answered(polls, Some(decision))),
        }
    }

    fn remaining(&self) -> Option<u64> {
        self.store.peek(&charge()).now().expect("room").decision(&charge()).remaining()
    }
}

impl Store for Slow {
    type Future = Answered;

    fn take(&self, charge: &Charge) -> Answer<Answered> {
        self.answer(Ask::Take, charge)
    }

    fn peek(&self, charge: &Charge) -> Answer<Answered> {
        self.answer(Ask::Peek, charge)
    }

    fn reset(&self, charge: &Charge) -> Answer<Answered> {
        self.answer(Ask::Reset, charge)
    }

    fn settle(&self, debit: &Debit, receipt: &Receipt, spent: u64) {
        self.settled.fetch_add(1, Ordering::SeqCst);
        self.store.settle(debit, receipt, spent);
    }

    fn check(&self, limit: &Limit) -> Result<(), LimitError> {
        match self.fails {
            // Any error will do.
            true => Limit::try_concurrent(0).map(|_| ()),
            false => self.store.check(limit),
        }
    }

    fn follow(&self, debit: &Debit, charged: u64, spent: u64) {
        self.store.follow(debit, charged, spent);
    }

    fn follow_status(&self, debit: &Debit, status: &LimitStatus) {
        self.store.follow_status(debit, status);
    }

    fn clock(&self) -> Clock {
        self.store.clock()
    }
}

const LIMIT: Limit = Limit::per_minute(5);

fn charge() -> Charge {
    let mut key = KeyBuf::new();
    "alice".write(&mut key);
    Charge::of(LIMIT, key, 1)
}

/// The answer, and how often it was asked for in vain.
fn polled<F>(answer: Answer<F>) -> (Result<Outcome, StoreError>, usize)
where
    F: Future<Output = Result<Outcome, StoreError>> + Unpin,
{
    let mut future = match answer {
        Answer::Now(decision) => return (decision, 0),
        Answer::Later(future) => future,
    };
    let mut cx = Context::from_waker(Waker::noop());
    let mut pending = 0;
    loop {
        match Pin::new(&mut future).poll(&mut cx) {
            Poll::Ready(decision) => return (decision, pending),
            Poll::Pending => pending += 1,
        }
    }
}

/// Every way for the first and the second to answer.
#[test]
fn the_second_decides_what_the_first_cannot_and_settling_reaches_who_decided() {
    for (first, second, fails) in
        [0, 2].into_iter().flat_map(|a| [0, 3].map(|b| [(a, b, false), (a, b, true)])).flatten()
    {
        let store = Fallback(Slow::new(first, fails), Slow::new(second, false));
        let case = format!("{first} and {second} polls, the first fails: {fails}");
        let (decision, pending) = polled(store.take(&charge()));
        let decision = decision.expect("one of them decides");
        assert_eq!(pending, if fails { first + second } else { first }, "{case}");

        let (decided, other) = if fails { (&store.1, &store.0) } else { (&store.0, &store.1) };
        assert_eq!(decided.remaining(), Some(4), "{case}");
        // The second follows what the first has charged.
        assert_eq!(other.remaining(), Some(if fails { 5 } else { 4 }), "{case}");

        let (charge, receipt) = (charge(), decision.receipts().next().expect("one"));
        store.settle(charge.debits().next().expect("one"), &receipt, 0);
        assert_eq!(decided.settled.load(Ordering::SeqCst), 1, "{case}");
        assert_eq!(other.settled.load(Ordering::SeqCst), 0, "{case}");
        assert_eq!(decided.remaining(), Some(5), "{case}");
        assert_eq!(other.remaining(), Some(5), "{case}");

        polled(store.take(&charge)).0.expect("one of them decides");
        let peeked = polled(store.peek(&charge)).0.expect("one of them looks");
        assert_eq!(peeked.decision(&charge).remaining(), Some(4), "{case}");
        let reset = polled(store.reset(&charge)).0.expect("one of them forgets");
        assert_eq!(reset.decision(&charge).remaining(), Some(5), "{case}");
    }
}

#[test]
fn settling_finds_its_way_through_fallbacks_of_fallbacks() {
    for decides in 0_usize..4 {
        let store = |i| Slow::new(i % 2, i < decides);
        let four = Fallback(Fallback(store(0), store(1)), Fallback(store(2), store(3)));
        let decision = polled(four.take(&charge())).0.expect("one of them decides");
        let (charge, receipt) = (charge(), decision.receipts().next().expect("one"));
        four.settle(charge.debits().next().expect("one"), &receipt, 0);
        let settled = [&four.0.0, &four.0.1, &four.1.0, &four.1.1]
            .map(|store| store.settled.load(Ordering::SeqCst));
        let mut expected = [0; 4];
        expected[decides] = 1;
        assert_eq!(settled, expected);
    }
}

#[test]
fn where_both_fail_the_second_s_error_is_the_answer() {
    for (first, second) in [(0, 0), (2, 0), (0, 2), (2, 2)] {
        let store = Fallback(Slow::new(first, true), Slow::new(second, true));
        let (decision, _) = polled(store.take(&charge()));
        assert!(decision.expect_err("both fail").is_too_slow());
    }
}

#[test]
fn both_have_to_keep_the_limit() {
    let keeps = |first, second| Fallback(Slow::new(0, first), Slow::new(0, second)).check(&LIMIT);
    assert!(keeps(false, false).is_ok());
    assert!(keeps(true, false).is_err());
    assert!(keeps(false, true).is_err());
}
