//! How much several processes admit together, while the store that they share comes and goes.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::*;
use crate::limit::Receipt;
use crate::store::{Fleet, Share};

/// Microseconds from one request to the next, of all processes.
const PAUSE: u64 = 2_713;
const BURST: u64 = 100;
/// A request in 10 ms; four times as many come.
const RATE: Limit = Limit::per_second(100);

/// The store that all processes share, as far as a process reaches it.
#[derive(Clone)]
struct Shared {
    store: Memory,
    is_there: Arc<AtomicBool>,
}

impl Store for Shared {
    type Future = <Memory as Store>::Future;

    fn take(&self, charge: &Charge) -> Answer<Self::Future> {
        match self.is_there.load(Ordering::Relaxed) {
            true => self.store.take(charge),
            false => Answer::Now(Err(StoreError::too_slow())),
        }
    }

    fn peek(&self, charge: &Charge) -> Answer<Self::Future> {
        self.store.peek(charge)
    }

    fn reset(&self, charge: &Charge) -> Answer<Self::Future> {
        self.store.reset(charge)
    }

    fn settle(&self, debit: &Debit, receipt: &Receipt, spent: u64) {
        self.store.settle(debit, receipt, spent);
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

    fn check(&self, limit: &Limit) -> Result<(), LimitError> {
        self.store.check(limit)
    }
}

struct Processes {
    clock: ManualClock,
    processes: Vec<Fallback<Shared, Share>>,
    /// When each request was admitted.
    admitted: Vec<u64>,
    random: u64,
}

impl Processes {
    fn new(count: usize) -> Self {
        let clock = ManualClock::new();
        let memory = || Memory::builder().capacity(10).clock(clock.clone()).build();
        let shared = memory();
        let process = |_| {
            let store = shared.clone();
            let first = Shared { store, is_there: Arc::new(AtomicBool::new(true)) };
            Fallback(first, Share::new(memory(), &Fleet::fixed(1, count as u64)))
        };
        let processes = (0..count).map(process).collect();
        Self { clock, processes, admitted: Vec::new(), random: 1 }
    }

    fn random(&mut self) -> u64 {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        self.random >> 33
    }

    /// Sends requests for this long, spread by chance. The closure says whether a process reaches the shared store.
    fn run(&mut self, time: Duration, limit: Limit, is_there: impl Fn(usize, u64) -> bool) {
        let mut key = KeyBuf::new();
        "alice".write(&mut key);
        let charge = Charge::of(limit, key, 1);
        for _ in 0..time.as_micros() as u64 / PAUSE {
            self.clock.advance(Duration::from_micros(PAUSE));
            let (at, now) = (self.random() as usize % self.processes.len(), self.clock.now());
            let process = &self.processes[at];
            process.0.is_there.store(is_there(at, now), Ordering::Relaxed);
            let Answer::Now(Ok(outcome)) = process.take(&charge) else { panic!("one decides") };
            if outcome.is_admitted() {
                self.admitted.push(now);
            }
        }
    }

    /// Like `run`, but with a request of each process in turn, all within the time in which a token drains.
    fn in_turn(&mut self, time: Duration, limit: Limit, is_there: impl Fn(usize, u64) -> bool) {
        let mut key = KeyBuf::new();
        "alice".write(&mut key);
        let charge = Charge::of(limit, key, 1);
        for _ in 0..time.as_micros() as u64 / 10_000 {
            for at in 0..self.processes.len() {
                self.clock.advance(Duration::from_micros(10_000 / self.processes.len() as u64));
                let (process, now) = (&self.processes[at], self.clock.now());
                process.0.is_there.store(is_there(at, now), Ordering::Relaxed);
                let Answer::Now(Ok(outcome)) = process.take(&charge) else { panic!("one decides") };
                if outcome.is_admitted() {
                    self.admitted.push(now);
                }
            }
        }
    }

    /// The most that was admitted in any interval beyond the rate of `limits`.
    fn beyond(&self, limits: f64) -> f64 {
        let (mut level, mut most, mut last) = (0_f64, 0_f64, 0);
        for now in &self.admitted {
            level = (level - (now - last) as f64 * limits / 10_000.0).max(0.0) + 1.0;
            (most, last) = (most.max(level), *now);
        }
        most
    }
}

const SECOND: Duration = Duration::from_secs(1);
/// The promised bound beyond the rate.
const PROMISED: f64 = 2.0 * BURST as f64;
/// Chance does not spread requests evenly. Four processes get this much tolerance on the rate.
const BY_CHANCE: f64 = 1.05;

fn limits_of(processes: usize) -> f64 {
    if processes == 1 { 1.0 } else { BY_CHANCE }
}

#[test]
fn one_outage_costs_one_burst() {
    for processes in [1, 2, 4, 10] {
        for outage in [1, 4, 60] {
            let mut fleet = Processes::new(processes);
            fleet.run(3 * SECOND, RATE, |_, _| true);
            fleet.run(outage * SECOND, RATE, |_, _| false);
            fleet.run(3 * SECOND, RATE, |_, _| true);
            let beyond = fleet.beyond(1.0);
            assert!(beyond <= PROMISED, "{processes} processes, {outage} s: {beyond}");
            let right = RATE.count() * u64::from(outage + 6);
            let admitted = fleet.admitted.len() as u64;
            assert!(admitted + 2 * BURST >= right, "{admitted} of {right}: a share is given out");
        }
    }
}

/// From 10 ms to minutes, with the store available most of the time, half of it, or hardly ever.
#[test]
fn switching_back_and_forth_mints_nothing() {
    for period in [10_u64, 25, 50, 100, 200, 400, 1_000, 1_700, 4_000, 20_000, 90_000] {
        for (up, of) in [(1, 2), (1, 5), (4, 5)] {
            for processes in [1, 4] {
                let mut fleet = Processes::new(processes);
                let time = Duration::from_millis(50_000.max(3 * period));
                fleet.run(time, RATE, |_, now| now / 1_000 % period < period * up / of);
                let beyond = fleet.beyond(limits_of(processes));
                assert!(
                    beyond <= PROMISED,
                    "{processes} processes, there {up}/{of} of {period} ms: {beyond}"
                );
            }
        }
    }
}

#[test]
fn one_request_in_some_that_fails_mints_nothing() {
    for seed in 0..20 {
        let mut fleet = Processes::new(4);
        let chance = 1 + seed % 7;
        fleet.run(20 * SECOND, RATE, |at, now| {
            let mixed = (now / PAUSE).wrapping_add(seed).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            (mixed.rotate_left(20) ^ at as u64).wrapping_mul(0xD6E8_FEB8_6659_FD93) >> 61 >= chance
        });
        let beyond = fleet.beyond(BY_CHANCE);
        assert!(beyond <= PROMISED, "seed {seed}: {beyond}");
    }
}

/// Its share is added to what the others are admitted, and nothing else.
#[test]
fn a_process_that_is_cut_off_alone_adds_its_share() {
    let mut fleet = Processes::new(4);
    fleet.run(60 * SECOND, RATE, |at, _| at != 0);
    let beyond = fleet.beyond(1.25);
    assert!(beyond <= PROMISED, "{beyond}");
}

#[test]
fn of_a_window_at_most_twice_the_count_is_admitted() {
    let limit = Limit::fixed_window(BURST, 10 * SECOND);
    for period in [10_u64, 200, 3_000, 15_000] {
        let mut fleet = Processes::new(4);
        fleet.run(60 * SECOND, limit, |_, now| now / 1_000 % period < period / 2);
        let mut windows = std::collections::BTreeMap::<_, u64>::new();
        for now in &fleet.admitted {
            *windows.entry(now / 10_000_000).or_default() += 1;
        }
        assert!(windows.values().all(|sum| *sum <= 2 * BURST), "{period} ms: {windows:?}");
    }
}

/// A request that was not counted in the first store is not counted in the second.
#[test]
fn what_is_given_back_to_the_first_is_given_back_to_the_second() {
    for limit in [RATE, Limit::sliding_log(8, 10 * SECOND), Limit::fixed_window(8, 10 * SECOND)] {
        let fleet = Processes::new(2);
        let store = &fleet.processes[0];
        let mut key = KeyBuf::new();
        "alice".write(&mut key);
        let charge = Charge::of(limit, key, 4);
        let (outcome, _) = polled(store.take(&charge));
        let receipt = outcome.expect("one decides").receipts().next().expect("one limit");
        let left = || {
            let (peeked, _) = polled(store.1.peek(&charge));
            peeked.expect("it is in this process").decision(&charge).remaining()
        };
        let part = limit.count() / 2;
        assert_eq!(left(), Some(part - 4), "{limit}");
        store.settle(charge.debits().next().expect("one"), &receipt, 1);
        assert_eq!(left(), Some(part - 1), "{limit}");
    }
}

/// Processes ask in turn, and one of them always comes just when a token has drained.
#[test]
fn a_process_that_gets_all_of_the_first_store_leaves_the_others_no_burst() {
    for processes in [2_usize, 4, 10] {
        for period in [200_u64, 400, 1_000, 2_000, 8_000] {
            for (up, of) in [(1, 2), (1, 5), (4, 5)] {
                let mut fleet = Processes::new(processes);
                let time = Duration::from_millis(50_000.max(3 * period));
                let is_there = |_, now: u64| now / 1_000 % period < period * up / of;
                fleet.in_turn(time, RATE, is_there);
                let beyond = fleet.beyond(1.0);
                assert!(
                    beyond <= PROMISED,
                    "{processes} processes, there {up}/{of} of {period} ms: {beyond}"
                );
            }
        }
    }
}
