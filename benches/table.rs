//! The table: clock, hash, row and step, beside governor's keyed limiter with its defaults.
//!
//! Both hash with SipHash and a seed of their own. tollgate reads the time with `Instant`, which asks
//! the system's clock without a system call; governor with `quanta`, which reads the processor's
//! counter itself.

use std::hint::black_box;
use std::num::NonZeroU32;

use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use tollgate_axum::{Charge, KeyBuf, Limit, Limiter, Memory, Store};
use tollgate_benches::keys::{Draws, Key, Text};
use tollgate_benches::{Contender, Figure, Table, Turns};

/// So much at once that nobody is refused, at one a second, so that nobody recovers either and no row
/// is ever free for another key.
const PLENTY: u32 = 1_000_000_000;

const COLUMNS: [&str; 4] = ["keys", "tollgate `Limiter`", "tollgate `Store`", "governor"];

fn main() {
    let turns = Turns::from_args();
    let populations: &[u64] =
        if turns.is_measuring() { &[1, 1_000, 100_000, 1_000_000] } else { &[1, 1_000] };

    for threads in [1, 2] {
        let title = format!("The table, each key as likely, {}, ns", on(threads));
        Table::print(&turns, &title, COLUMNS, |table| {
            for &keys in populations {
                let row = format!("{keys} × `u64`");
                table.row(&row, &Rivals::<u64>::admitting(keys).compare(&turns, threads));
                let row = format!("{keys} × 24 bytes");
                table.row(&row, &Rivals::<Text>::admitting(keys).compare(&turns, threads));
            }
        });
    }
    for threads in [1, 2] {
        let title = format!("The table, all refused, {}, ns", on(threads));
        Table::print(&turns, &title, COLUMNS, |table| {
            for keys in [1, 1_000] {
                let row = format!("{keys} × `u64`");
                table.row(&row, &Rivals::<u64>::refusing(keys).compare(&turns, threads));
            }
        });
    }
}

fn on(threads: usize) -> String {
    format!("{threads} thread{}", if threads == 1 { "" } else { "s" })
}

struct Rivals<K: Key> {
    keys: u64,
    admits: bool,
    limit: Limit,
    limiter: Limiter,
    store: Memory,
    governor: DefaultKeyedRateLimiter<K>,
}

impl<K: Key> Rivals<K> {
    fn admitting(keys: u64) -> Self {
        let limit = Limit::per_second(1).burst(PLENTY.into());
        let one = const { NonZeroU32::new(1).unwrap() };
        let plenty = const { NonZeroU32::new(PLENTY).unwrap() };
        Self::new(keys, true, limit, Quota::per_second(one).allow_burst(plenty))
    }

    fn refusing(keys: u64) -> Self {
        let one = const { NonZeroU32::new(1).unwrap() };
        Self::new(keys, false, Limit::per_hour(1), Quota::per_hour(one))
    }

    /// Every key has been met once, and the tables are as large as their makers recommend.
    fn new(keys: u64, admits: bool, limit: Limit, quota: Quota) -> Self {
        let memory = || Memory::with_capacity(keys as usize);
        let rivals = Self {
            keys,
            admits,
            limit,
            limiter: Limiter::new(limit).store(memory()),
            store: memory(),
            governor: RateLimiter::keyed(quota),
        };
        for key in (0..keys).map(K::number) {
            assert!(rivals.by_limiter(&key) && rivals.by_store(&key) && rivals.by_governor(&key));
        }
        rivals
    }

    fn compare(&self, turns: &Turns, threads: usize) -> [Figure; 3] {
        turns.take([
            self.contender(threads, Self::by_limiter),
            self.contender(threads, Self::by_store),
            self.contender(threads, Self::by_governor),
        ])
    }

    fn contender(
        &self,
        threads: usize,
        admits: impl Fn(&Self, &K) -> bool + Copy + Send + 'static,
    ) -> Contender<'_> {
        Contender::on_threads(threads, |thread| {
            let mut draws = Draws::below(self.keys, thread);
            move || {
                let key = K::number(black_box(draws.draw()));
                assert_eq!(admits(self, &key), self.admits);
            }
        })
    }

    fn by_limiter(&self, key: &K) -> bool {
        self.limiter.take(key).now().is_ok_and(|decision| decision.is_admitted())
    }

    fn by_store(&self, key: &K) -> bool {
        let mut written = KeyBuf::new();
        key.write(&mut written);
        let charge = Charge::of(self.limit, written, 1);
        self.store.take(&charge).now().is_ok_and(|decision| decision.is_admitted())
    }

    fn by_governor(&self, key: &K) -> bool {
        self.governor.check_key(key).is_ok()
    }
}
