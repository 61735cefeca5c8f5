//! loom tries every order in which two or three threads can meet at the table, and every stale value that a processor
//! may still show them.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p sluicegate-core --lib --release --target-dir target/loom memory::loom`

mod buckets;
mod charges;
mod claims;
mod moves;
mod refusals;
mod shared_rows;
mod spends;

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use super::bucket::Bucket;
use super::log_budget::LogBudget;
use super::moment::{Moment, MonotonicClock, StoreClock};
use super::one_word::OneWord;
use super::row::{FourRows, TwoWords};
use super::shared_rows::SharedRows;
use super::table::{CHOICES, Table};
use super::{Inner, Memory};
use crate::clock::ManualClock;
use crate::key::KeyBuf;
use crate::key::hash::KeyHash;
use crate::limit::{Limit, LimitInternals as _, WhenFull};
use crate::store::Store;
use crate::store::charge::Charge;

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3_600);
const TICK: Duration = Duration::from_micros(1);

/// The largest number of times that threads are interrupted, unless `LOOM_MAX_PREEMPTIONS` is set.
const INTERRUPTIONS: usize = 2;

/// The largest number of branches in one run.
const BRANCHES: usize = 20_000;

/// Which of two threads begins. The other one is then moved forward step by step. loom overlooks a write that could
/// come before another thread's read if the writer has read the same location itself. What it misses in one order, it
/// finds in the other.
#[derive(Clone, Copy)]
enum Order {
    Forth,
    Back,
}

fn model(run: impl Fn(Order) + Copy + Send + Sync + 'static) {
    interrupted(INTERRUPTIONS, run);
}

/// For a model with so many steps that it has to do with fewer interruptions.
fn interrupted(times: usize, run: impl Fn(Order) + Copy + Send + Sync + 'static) {
    for order in [Order::Forth, Order::Back] {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound.get_or_insert(times);
        builder.max_branches = BRANCHES;
        builder.check(move || run(order));
    }
}

/// The kind of rows that the limit under test has.
#[derive(Debug, Clone, Copy)]
enum RowKind {
    OneWord,
    TwoWords,
    /// The only account of a limit that is carried over.
    Account,
}

impl RowKind {
    /// A bucket of `count` an hour, all of them at once.
    fn per_hour(self, count: u64) -> Limit {
        self.per(count, HOUR)
    }

    /// The same, with an odd rate whose rows have two words: a microsecond drains more than one unit. The difference
    /// is below a microsecond of waiting.
    fn per(self, count: u64, period: Duration) -> Limit {
        let limit = match self {
            Self::OneWord => Limit::per(count, period),
            Self::TwoWords => Limit::per(3 * count, 3 * period + TICK).burst(count),
            // Each count is a limit of its own.
            Self::Account => Limit::per(count, period).named(&count.to_string()).carried(),
        };
        let limit = limit.when_full(WhenFull::Admit);
        assert_eq!(limit.one_word_bucket().is_some(), matches!(self, Self::OneWord), "{limit}");
        limit
    }
}

fn model_of_both(run: impl Fn(RowKind, Order) + Copy + Send + Sync + 'static) {
    interrupted_of_both(INTERRUPTIONS, run);
}

/// For tests that move rows. Moving a row looks at so many places that two interruptions would take hours.
fn moving_model(run: impl Fn(RowKind, Order) + Copy + Send + Sync + 'static) {
    interrupted_of_both(1, run);
}

fn interrupted_of_both(times: usize, run: impl Fn(RowKind, Order) + Copy + Send + Sync + 'static) {
    for kind in [RowKind::OneWord, RowKind::TwoWords, RowKind::Account] {
        interrupted(times, move |order| run(kind, order));
    }
}

/// The number of rows in a bucket.
fn rows(limit: Limit) -> usize {
    if limit.one_word_bucket().is_some() { OneWord::ROWS } else { FourRows::<TwoWords>::ROWS }
}

impl Order {
    /// Runs both closures at the same time, and returns both results.
    fn both<T: 'static, U: 'static>(
        self,
        one: impl FnOnce() -> T + 'static,
        other: impl FnOnce() -> U + 'static,
    ) -> (T, U) {
        match self {
            Self::Forth => {
                let other = loom::thread::spawn(other);
                (one(), other.join().expect("no thread panics"))
            }
            Self::Back => {
                let one = loom::thread::spawn(one);
                let other = other();
                (one.join().expect("no thread panics"), other)
            }
        }
    }
}

/// The numbers of the only two buckets.
const A: usize = 0;
const B: usize = 1;

/// A store with two buckets. It is the same each time, because loom replays its runs.
fn store() -> (Memory, ManualClock) {
    let clock = ManualClock::new();
    let store = Memory(Arc::new(Inner {
        base: clock.now(),
        monotonic: MonotonicClock::default(),
        is_eager: false,
        one_word: Table::new(0, 0),
        two_words: Table::new(0, clock.now()),
        full_state: Table::new(0, clock.now()),
        hash: KeyHash::fixed(),
        capacity: 0,
        log_budget: LogBudget::new(0),
        turned_away: AtomicU64::new(0),
        shared_rows: SharedRows::new(0, clock.now()),
        clock: StoreClock { clock: (&clock).into(), ahead: 0 },
    }));
    assert_eq!([store.0.one_word.buckets(), store.0.two_words.buckets()], [2; 2]);
    assert_eq!(store.0.full_state.buckets(), 2);
    // loom cannot follow an allocation at first use, so the table is made before.
    store.0.one_word.make();
    store.0.two_words.make();
    store.0.full_state.make();
    store.0.shared_rows.table.make();
    (store, clock)
}

/// Keys whose rows may be in these buckets, in this order of choice.
fn keys(store: &Memory, limit: Limit, choices: [usize; CHOICES]) -> impl Iterator<Item = KeyBuf> {
    // Both tables have the same number of buckets.
    let table = &store.0.two_words;
    let fingerprint = move |key: &KeyBuf| store.0.fingerprint(limit.id(), key);
    let stands =
        move |key: &KeyBuf| (0..CHOICES).all(|i| table.choice(fingerprint(key), i) == choices[i]);
    (0_u64..).map(KeyBuf::of).filter(stands)
}

/// The first of these keys.
fn key(store: &Memory, limit: Limit, choices: [usize; CHOICES]) -> KeyBuf {
    keys(store, limit, choices).next().expect("one key in sixteen has these choices")
}

/// Whether one more request is admitted by a store that has room.
fn admits(store: &Memory, limit: Limit, key: KeyBuf) -> bool {
    store.spend(&limit, &key, 1).expect("room").is_admitted()
}

fn remaining(store: &Memory, limit: Limit, key: KeyBuf) -> u64 {
    let charge = Charge::of(limit, key, 1);
    let outcome = store.peek(&charge).now().expect("peeks need no room");
    outcome.decision(&charge).remaining().expect("one limit")
}

/// The bucket that holds the live row of a key; there is at most one.
fn stands(store: &Memory, limit: Limit, key: KeyBuf) -> Option<usize> {
    let fingerprint = store.0.fingerprint(limit.id(), &key);
    let Moment { now, since } = store.0.moment();
    let found: Vec<_> = match limit.one_word_bucket() {
        Some(_) => [A, B]
            .into_iter()
            .filter(|at| is_in(&store.0.one_word, *at, fingerprint, since))
            .collect(),
        None if limit.is_plain_account() => [A, B]
            .into_iter()
            .filter(|at| is_in(&store.0.full_state, *at, fingerprint, now))
            .collect(),
        None => [A, B]
            .into_iter()
            .filter(|at| is_in(&store.0.two_words, *at, fingerprint, now))
            .collect(),
    };
    assert!(found.len() < 2, "one key is counted in two places");
    found.first().copied()
}

fn is_in<B: Bucket>(table: &Table<B>, at: usize, fingerprint: u64, now: u64) -> bool {
    table.lock(at).find_live(fingerprint, table.tick(now)).is_some()
}

fn two<T>(mut some: impl Iterator<Item = T>) -> [T; 2] {
    std::array::from_fn(|_| some.next().expect("two"))
}
