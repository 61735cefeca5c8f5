//! Every order in which two or three threads can meet at the table, and every old value that a processor
//! may still show them, tried by loom.
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
use super::hash::Seed;
use super::log_budget::LogBudget;
use super::moment::{Moment, MonotonicClock};
use super::one_word::OneWord;
use super::row::{FourRows, TwoWords};
use super::shared_rows::SharedRows;
use super::table::{CHOICES, Table};
use super::{Inner, Memory};
use crate::clock::ManualClock;
use crate::key::KeyBuf;
use crate::limit::{Limit, WhenFull};
use crate::store::Store;
use crate::store::charge::Charge;

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3_600);
const TICK: Duration = Duration::from_micros(1);

/// How often threads are interrupted at most, where `LOOM_MAX_PREEMPTIONS` does not say.
const INTERRUPTIONS: usize = 2;

/// How many places there may be in one run at which it could go on otherwise.
const BRANCHES: usize = 20_000;

/// Which of two threads begins. What the other one does is then moved forward step by step, but loom
/// overlooks a write that could come before another thread's reading where the writer has read the same
/// itself: what it would miss in one order it finds in the other.
#[derive(Clone, Copy)]
enum Order {
    Forth,
    Back,
}

fn model(run: impl Fn(Order) + Copy + Send + Sync + 'static) {
    interrupted(INTERRUPTIONS, run);
}

/// For a model that has so much to do that fewer interruptions have to do.
fn interrupted(times: usize, run: impl Fn(Order) + Copy + Send + Sync + 'static) {
    for order in [Order::Forth, Order::Back] {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound.get_or_insert(times);
        builder.max_branches = BRANCHES;
        builder.check(move || run(order));
    }
}

/// In which table the rows of a limit stand.
#[derive(Debug, Clone, Copy)]
enum RowKind {
    OneWord,
    TwoWords,
}

impl RowKind {
    /// A bucket of so many an hour, all of them at once.
    fn per_hour(self, count: u64) -> Limit {
        self.per(count, HOUR)
    }

    /// So nearly that one who waits a microsecond longer does not notice: a rate of which a microsecond
    /// drains more than one has rows of two words.
    fn per(self, count: u64, period: Duration) -> Limit {
        let limit = match self {
            Self::OneWord => Limit::per(count, period),
            Self::TwoWords => Limit::per(3 * count, 3 * period + TICK).burst(count),
        };
        let limit = limit.when_full(WhenFull::Admit);
        assert_eq!(limit.one_word_bucket().is_some(), matches!(self, Self::OneWord), "{limit}");
        limit
    }
}

fn model_of_both(run: impl Fn(RowKind, Order) + Copy + Send + Sync + 'static) {
    interrupted_of_both(INTERRUPTIONS, run);
}

/// For rows that move: whoever moves one looks at so many places that two interruptions take hours.
fn moving_model(run: impl Fn(RowKind, Order) + Copy + Send + Sync + 'static) {
    interrupted_of_both(1, run);
}

fn interrupted_of_both(times: usize, run: impl Fn(RowKind, Order) + Copy + Send + Sync + 'static) {
    for kind in [RowKind::OneWord, RowKind::TwoWords] {
        interrupted(times, move |order| run(kind, order));
    }
}

/// How many rows a bucket has.
fn rows(limit: Limit) -> usize {
    if limit.one_word_bucket().is_some() { OneWord::ROWS } else { FourRows::<TwoWords>::ROWS }
}

impl Order {
    /// Runs both at once, and hands back what came of each.
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

/// A store of two buckets. It is the same each time: loom goes on where it left off.
fn store() -> (Memory, ManualClock) {
    let clock = ManualClock::new();
    let store = Memory(Arc::new(Inner {
        base: clock.now(),
        monotonic: MonotonicClock::default(),
        is_eager: false,
        one_word: Table::new(0, 0),
        two_words: Table::new(0, clock.now()),
        full_state: Table::new(0, clock.now()),
        seed: Seed::fixed(),
        capacity: 0,
        log_budget: LogBudget::new(0),
        turned_away: AtomicU64::new(0),
        shared_rows: SharedRows::new(0, clock.now()),
        clock: (&clock).into(),
    }));
    assert_eq!([store.0.one_word.buckets(), store.0.two_words.buckets()], [2; 2]);
    // What is made at first use is not made by loom's rules.
    store.0.one_word.make();
    store.0.two_words.make();
    store.0.shared_rows.table.make();
    (store, clock)
}

/// Keys whose rows may stand in these buckets, in this order of choice.
fn keys(store: &Memory, limit: Limit, choices: [usize; CHOICES]) -> impl Iterator<Item = KeyBuf> {
    // Both have as many buckets.
    let table = &store.0.two_words;
    let fingerprint = move |key: &KeyBuf| store.0.seed.fingerprint(limit.id(), key);
    let stands =
        move |key: &KeyBuf| (0..CHOICES).all(|i| table.choice(fingerprint(key), i) == choices[i]);
    (0_u64..).map(KeyBuf::of).filter(stands)
}

/// The first of them.
fn key(store: &Memory, limit: Limit, choices: [usize; CHOICES]) -> KeyBuf {
    keys(store, limit, choices).next().expect("one in sixteen is")
}

/// Whether one more is admitted, by a store that has room.
fn admits(store: &Memory, limit: Limit, key: KeyBuf) -> bool {
    store.spend(&limit, &key, 1).expect("room").is_admitted()
}

fn remaining(store: &Memory, limit: Limit, key: KeyBuf) -> u64 {
    let charge = Charge::of(limit, key, 1);
    let outcome = store.peek(&charge).now().expect("peeks need no room");
    outcome.decision(&charge).remaining().expect("one limit")
}

/// In which bucket the row of a key stands that has not recovered; in one at most.
fn stands(store: &Memory, limit: Limit, key: KeyBuf) -> Option<usize> {
    let fingerprint = store.0.seed.fingerprint(limit.id(), &key);
    let Moment { now, since } = store.0.moment();
    let found: Vec<_> = match limit.one_word_bucket() {
        Some(_) => [A, B]
            .into_iter()
            .filter(|at| is_in(&store.0.one_word, *at, fingerprint, since))
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
