//! Random sequences for the scripts and the Rust step: equal answers, equal states.
//!
//! `SLUICEGATE_STEPS=5000000 cargo test --release -p sluicegate-redis differential` runs more of them.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::Duration;

use fastrand::Rng;
use sluicegate_core::Limit;
use sluicegate_core::adapter::{Charge, Debit, Receipt};
use sluicegate_core::key::KeyBuf;
use sluicegate_core::limit::Verdict;

use super::super::lease::can_lease;
use super::compare::charge;
use super::model::Pair;
use super::pick::{self, DAY, Known};

/// Steps with one set of limits, before everything is forgotten.
const EPISODE: u64 = 80;

/// 2026-01-01 00:00:00 UTC: a border of every window that divides a day.
const NOW: u64 = 20_454 * DAY;

/// A charge that can be settled.
struct Paid {
    debit: Debit,
    receipt: Receipt,
}

struct Episode<'a> {
    pair: &'a mut Pair,
    rng: Rng,
    limits: Vec<Limit>,
    keys: usize,
    paid: Vec<Paid>,
    /// In microseconds, from the last outcome.
    told: u64,
}

impl<'a> Episode<'a> {
    fn new(pair: &'a mut Pair, seed: u64) -> Self {
        let mut rng = Rng::with_seed(seed);
        pair.clear();
        pair.turn_to(NOW + rng.u64(..DAY) * u64::from(rng.bool()));
        let limits = match rng.u8(..10) {
            0..5 => 1,
            5..8 => 2,
            8 => 3,
            _ => 5,
        };
        let limits = match limits {
            1 => vec![pick::limit(&mut rng)],
            _ => pick::mixture(&mut rng, limits),
        };
        let keys = if rng.bool() { 1 } else { 2 };
        Self { pair, rng, limits, keys, paid: Vec::new(), told: 0 }
    }

    fn step(&mut self) {
        let at = self.rng.usize(..self.limits.len());
        if self.limits[at].is_carried() && self.rng.u8(..8) == 0 {
            self.limits[at] = pick::changed(&mut self.rng, &self.limits[at]);
        }
        let limit = self.limit();
        let now = pick::moment(&mut self.rng, self.pair.now, Known { limit, told: self.told });
        // After the year 2100, begins again.
        self.pair.turn_to(if now > 2 * NOW { NOW } else { now });
        self.pair.tells_time = self.rng.bool();
        match self.rng.u8(..32) {
            0..20 => self.take(),
            20..23 => self.peek(),
            23..29 => self.settle(),
            29 if self.rng.bool() => self.reset(),
            _ => self.lease(),
        }
    }

    fn limit(&mut self) -> Limit {
        self.limits[self.rng.usize(..self.limits.len())]
    }

    fn key(&mut self) -> KeyBuf {
        KeyBuf::of(["alice", "bob"][self.rng.usize(..self.keys)])
    }

    /// One limit; or several, all on one key, or some.
    fn charge(&mut self) -> Charge {
        let mut charge = Charge::new();
        let key = self.key();
        let (one, same_key) = (self.rng.u8(..4) == 0, self.rng.bool());
        for i in 0..if one { 1 } else { self.limits.len() } {
            let limit = if one { self.limit() } else { self.limits[i] };
            let key = if same_key { key } else { self.key() };
            let cost = pick::cost(&mut self.rng, &limit);
            // Two limits with one name and algorithm cannot be in one charge.
            let _ = charge.add(limit, key, cost);
        }
        charge
    }

    fn take(&mut self) {
        let charge = self.patient_or_not();
        let outcome = self.pair.take(&charge);
        let told = match outcome.verdict() {
            Verdict::Admit { wait } => Some(wait),
            Verdict::Refuse { retry_after } => retry_after,
            Verdict::Never => None,
        };
        self.told = told.map_or(0, |told| told.as_micros().min(3 * u128::from(DAY)) as u64);
        if outcome.is_admitted() {
            let paid = charge.debits().cloned().zip(outcome.receipts());
            let paid = paid.filter(|(_, receipt)| !receipt.is_void());
            self.paid.extend(paid.map(|(debit, receipt)| Paid { debit, receipt }));
        }
    }

    fn patient_or_not(&mut self) -> Charge {
        let charge = self.charge();
        if self.rng.u8(..3) == 0 {
            let limit = self.limit();
            let period = limit.period().map_or(1, |period| period.as_micros() as u64);
            let patience = match self.rng.u8(..6) {
                0 => 0,
                1 => self.told,
                2 => self.told.saturating_sub(1),
                3 => period * self.rng.u64(..5),
                4 => self.rng.u64(..=period),
                _ => period / limit.count() * self.rng.u64(..4),
            };
            return charge.patient(Duration::from_micros(patience));
        }
        charge
    }

    fn peek(&mut self) {
        let charge = self.patient_or_not();
        self.pair.peek(&charge);
    }

    fn reset(&mut self) {
        let charge = self.charge();
        self.pair.reset(&charge);
    }

    /// To less, the same, or more; soon or late. One time in four it can be settled again.
    fn settle(&mut self) {
        if self.paid.is_empty() {
            return self.take();
        }
        let newest = self.paid.len() - 1;
        let at = if self.rng.bool() { newest } else { self.rng.usize(..=newest) };
        let Paid { debit, receipt } = &self.paid[at];
        let spent = match self.rng.u8(..8) {
            0..4 => 0,
            4 | 5 => self.rng.u64(..=debit.cost),
            6 => debit.cost + self.rng.u64(..3),
            _ => debit.cost + self.rng.u64(..=debit.limit.capacity()),
        };
        self.pair.settle(debit, receipt, spent);
        if self.rng.u8(..4) > 0 {
            self.paid.swap_remove(at);
        }
    }

    fn lease(&mut self) {
        let limit = self.limit();
        if !can_lease(&limit) {
            return self.take();
        }
        let most = pick::cost(&mut self.rng, &limit).max(1);
        let least = if self.rng.bool() { 1 } else { self.rng.u64(1..=most) };
        let debit = Charge::of(limit, self.key(), most);
        let debit = debit.debits().next().unwrap().clone();
        let (taken, receipt) = self.pair.lease(&debit, least, most);
        if taken > 0 {
            let charge = Charge::of(limit, debit.key, taken);
            self.paid.push(Paid { debit: charge.debits().next().unwrap().clone(), receipt });
        }
    }
}

fn run(steps: u64) {
    let mut pair = Pair::new();
    let mut left = steps;
    for seed in 0.. {
        if left == 0 {
            break;
        }
        // Long enough that the bytes of dropped stamps are sometimes reclaimed.
        let length = (if seed % 16 == 0 { 8 * EPISODE } else { EPISODE }).min(left);
        left -= length;
        let mut episode = Episode::new(&mut pair, seed);
        for step in 0..length {
            let result = catch_unwind(AssertUnwindSafe(|| episode.step()));
            if let Err(panic) = result {
                eprintln!("seed {seed}, step {step}, limits {:?}", episode.limits);
                resume_unwind(panic);
            }
        }
    }
}

#[test]
fn random_sequences_are_decided_alike() {
    let steps = std::env::var("SLUICEGATE_STEPS").ok();
    run(steps.map_or(40_000, |steps| steps.parse().expect("SLUICEGATE_STEPS is a number")));
}

#[test]
fn one_limit_alone_is_charged_by_the_fast_script_and_several_by_the_other() {
    let limit = Limit::per_minute(2);
    let one = charge(limit, "alice", 1);
    let mut both = one.clone();
    both.add(Limit::per_hour(9), KeyBuf::of("alice"), 1).unwrap();
    let mut pair = Pair::new();
    pair.turn_to(NOW);
    pair.take(&one);
    // TIME, GET, SET.
    assert_eq!(pair.redis.commands(), 3);
    pair.take(&both);
    assert_eq!(pair.redis.commands(), 5);
    assert!(!pair.take(&one).is_admitted());
    assert_eq!(pair.redis.commands(), 2);
}

#[test]
fn a_request_that_waits_for_another_limit_may_book_in_the_window_of_its_wait() {
    let time = Duration::from_secs;
    let mut charge = charge(Limit::fixed_window(1, time(60)), "alice", 1);
    charge.add(Limit::per(1, time(90)), KeyBuf::of("all"), 1).unwrap();
    let mut pair = Pair::new();
    pair.turn_to(NOW);
    assert!(pair.take(&charge).is_admitted());
    let outcome = pair.take(&charge.patient(time(200)));
    assert_eq!(outcome.verdict(), Verdict::Admit { wait: time(90) });
}

/// Ten a minute beside six hundred, and a hundred a day beside twenty a second, in turn for the same time.
#[test]
fn numbers_in_turn_are_decided_alike_in_redis() {
    let plan = |text: &str| format!("{text} named plan carried").parse::<Limit>().unwrap();
    for (tight, generous, span, most) in [
        ("10/minute", "600/minute", 600, [10 + 100, 600 + 6_000]),
        ("100/day", "20/second", 3_600, [100 + 5, 20 + 72_000]),
        ("fixed 10/minute", "fixed 600/minute", 600, [110, 6_600]),
        ("sliding 10/minute", "sliding 20/second", 600, [110, 12_020]),
        ("10/minute stepped", "600/minute stepped", 600, [110, 6_600]),
        ("leaky 10/minute queue 3", "leaky 600/minute queue 30", 600, [104, 6_031]),
    ] {
        let (tight, generous) = (plan(tight), plan(generous));
        let mut pair = Pair::new();
        let mut admitted = [0, 0];
        for turn in 0..400 {
            pair.turn_to(NOW + turn * span * 1_000_000 / 400);
            for (at, limit) in [(0, tight), (1, generous), (1, generous)] {
                admitted[at] += u64::from(pair.take(&charge(limit, "alice", 1)).is_admitted());
            }
        }
        let [by_tight, by_generous] = admitted;
        assert!(by_tight <= most[0], "{by_tight} by {tight}");
        assert!(by_tight + by_generous <= most[1], "{by_tight} and {by_generous} by {generous}");
    }
}
