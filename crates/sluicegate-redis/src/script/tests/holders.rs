//! Several holders of one concurrency limit. Some die, or are stopped for a while.

use std::collections::BTreeMap;
use std::time::Duration;

use fastrand::Rng;
use sluicegate_core::Limit;
use sluicegate_core::adapter::remote::{receipt, receipt_words};
use sluicegate_core::adapter::{Debit, Keys, Receipt};

use super::super::{Call, Caller, Row, missing};
use super::compare::{charge, outcome};
use super::pick::{DAY, SECOND};
use super::redis::{Content, Redis};

const NOW: u64 = 20_454 * DAY;
const LEASE: u64 = 10 * SECOND;
const KEY: &[u8] = b"t:{alice}0";

/// Some processes and the server.
struct Fleet {
    redis: Redis,
    debit: Debit,
    /// Whether the script for several limits decides.
    by_the_other: bool,
    now: u64,
    turn: u64,
}

impl Fleet {
    fn new(limit: Limit) -> Self {
        let debit = charge(limit, "alice", 1).debits().next().unwrap().clone();
        let fleet = Self { redis: Redis::new(), debit, by_the_other: false, now: NOW, turn: 0 };
        fleet.redis.turn_to(NOW);
        fleet
    }

    fn pass(&mut self, time: u64) {
        self.now += time;
        self.redis.turn_to(self.now);
    }

    fn caller(&mut self, holder: u64) -> Caller {
        self.turn += 1;
        Caller { now: None, holder, lease: LEASE, turn: self.turn }
    }

    /// The sum that all hold afterwards, and the receipt, if it is admitted.
    fn take(&mut self, holder: u64, cost: u64) -> Option<(u64, Receipt)> {
        let by = self.caller(holder);
        let charge = charge(self.debit.limit, "alice", cost);
        let debit = charge.debits().next().unwrap();
        let rows = &[Row { key: KEY, debit }];
        let patience = self.by_the_other.then_some(Duration::ZERO);
        let answer = self.redis.run(&Call::take(rows, patience, Keys::One, by)).unwrap();
        let outcome = outcome(charge.debits(), &answer).unwrap();
        let receipt = outcome.receipts().next().unwrap();
        outcome.is_admitted().then(|| (receipt_words(&receipt).0[0], receipt))
    }

    fn admits(&mut self, holder: u64) -> bool {
        self.take(holder, 1).is_some()
    }

    fn give_back(&mut self, holder: u64, receipt: &Receipt, cost: u64) {
        let by = self.caller(holder);
        let mut debit = self.debit.clone();
        debit.cost = cost;
        self.redis.run(&Call::settle(&Row { key: KEY, debit: &debit }, receipt, 0, by)).unwrap();
    }

    /// Returns whether what the holder knows of was missing.
    fn renew(&mut self, holder: u64, known: u64) -> bool {
        let by = self.caller(holder);
        let answer = self.redis.run(&Call::renew(vec![KEY.to_vec()], [known], by)).unwrap();
        missing(&answer, 1).unwrap()[0]
    }

    fn left(&mut self) -> u64 {
        // Entries that belong to no process of the test.
        let by = self.caller(999);
        let charge = charge(self.debit.limit, "alice", 1);
        let rows = &[Row { key: KEY, debit: charge.debits().next().unwrap() }];
        let answer = self.redis.run(&Call::peek(rows, None, Keys::One, by)).unwrap();
        outcome(charge.debits(), &answer).unwrap().decision(&charge).remaining().unwrap()
    }
}

/// Each kind of row: narrow rows, and rows with more words before the holders.
fn three() -> [Limit; 4] {
    let (three, moment) = (Limit::concurrent(3), Duration::from_micros(1));
    [
        three,
        three.ban(moment),
        three.ban(moment).ban_after(1_000, moment),
        three.named("a").carried(),
    ]
}

fn fleets() -> impl Iterator<Item = Fleet> {
    three().into_iter().flat_map(|limit| {
        [false, true].map(|by_the_other| Fleet { by_the_other, ..Fleet::new(limit) })
    })
}

#[test]
fn what_a_process_that_has_died_held_is_free_when_its_lease_is_over() {
    for mut fleet in fleets() {
        assert!((0..3).all(|_| fleet.admits(1)));
        fleet.pass(LEASE - 1);
        assert!(!fleet.admits(2));
        fleet.pass(1);
        assert!((0..3).all(|_| fleet.admits(2)));
        assert!(!fleet.admits(2));
    }
}

#[test]
fn a_renewed_place_is_held_as_long_as_it_is_renewed() {
    for mut fleet in fleets() {
        assert!((0..3).all(|_| fleet.admits(1)));
        for _ in 0..1_000 {
            fleet.pass(LEASE - 1);
            assert!(!fleet.renew(1, 3));
            assert!(!fleet.admits(2));
        }
        fleet.pass(LEASE);
        assert!(fleet.admits(2));
        assert!(fleet.renew(1, 3), "and then it is lost");
    }
}

/// As long as no other process has taken its places, they are its own.
#[test]
fn a_process_that_comes_back_before_others_took_its_places_has_lost_nothing() {
    let mut fleet = Fleet::new(Limit::concurrent(3));
    let (_, receipt) = fleet.take(1, 3).unwrap();
    assert!(!fleet.admits(2));
    // In the millisecond of its expiry a row still exists.
    fleet.pass(LEASE);
    assert!(!fleet.renew(1, 3));
    assert!(!fleet.admits(2));
    fleet.give_back(1, &receipt, 3);
    assert_eq!(fleet.left(), 3);
}

#[test]
fn a_process_that_was_stopped_gives_back_nothing_that_it_has_lost() {
    for mut fleet in fleets() {
        let (_, lost) = fleet.take(1, 3).unwrap();
        fleet.pass(2 * LEASE);
        let (_, other) = fleet.take(2, 1).unwrap();
        // Not what another process holds now.
        fleet.give_back(1, &lost, 3);
        assert_eq!(fleet.left(), 2);
        // Nor what it has taken since.
        let (_, own) = fleet.take(1, 2).unwrap();
        fleet.give_back(1, &lost, 3);
        assert_eq!(fleet.left(), 0);
        fleet.give_back(1, &own, 2);
        fleet.give_back(2, &other, 1);
        assert_eq!(fleet.left(), 3);
        fleet.give_back(2, &other, 1);
        assert_eq!(fleet.left(), 3, "nor more than there is");
    }
}

#[test]
fn what_was_taken_or_given_back_in_a_lost_message_is_lowered_at_the_next_renewal() {
    for mut fleet in fleets() {
        assert!((0..3).all(|_| fleet.admits(1)));
        // The process does not know that it has two of them.
        fleet.renew(1, 1);
        assert_eq!(fleet.left(), 2);
        fleet.renew(1, 0);
        assert_eq!(fleet.left(), 3);
    }
}

#[test]
fn what_was_taken_after_a_renewal_was_asked_for_is_not_lowered_by_it() {
    let mut fleet = Fleet::new(Limit::concurrent(3));
    assert!(fleet.admits(1));
    let early = fleet.caller(1);
    assert!(fleet.admits(1));
    fleet.redis.run(&Call::renew(vec![KEY.to_vec()], [1], early)).unwrap();
    assert_eq!(fleet.left(), 1);
}

#[test]
fn what_is_wrong_with_one_row_keeps_no_other_from_being_renewed() {
    let mut fleet = Fleet::new(Limit::concurrent(3));
    assert!((0..3).all(|_| fleet.admits(1)));
    fleet.redis.put(b"list", Content::List);
    fleet.redis.put(b"long", Content::Bytes(vec![7; 200]));
    fleet.pass(LEASE - 1);
    let by = fleet.caller(1);
    let keys: [&[u8]; 4] = [b"list", b"long", b"none", KEY];
    let answer =
        fleet.redis.run(&Call::renew(keys.map(<[u8]>::to_vec).to_vec(), [1, 1, 1, 3], by)).unwrap();
    assert_eq!(missing(&answer, 4).unwrap(), [true, true, true, false]);
    fleet.pass(LEASE - 1);
    assert!(!fleet.admits(2));
}

/// A row from before processes had leases. The process that wrote it may have died.
#[test]
fn a_row_of_the_old_format_is_read_and_lapses_as_one_holder() {
    for mut fleet in fleets() {
        let words = match fleet.debit.limit {
            limit if limit == three()[0] => 2,
            limit if limit == three()[1] => 7,
            limit if limit == three()[2] => 9,
            _ => 14,
        };
        let mut row: Vec<u8> = 3_f64.to_le_bytes().to_vec();
        row.resize(8 * words, 0);
        if words == 14 {
            row[72..88].fill(0);
        }
        fleet.redis.put(KEY, Content::Bytes(row));
        assert!(!fleet.admits(1), "{}", fleet.debit.limit);
        fleet.give_back(1, &receipt([3, 0], [0; 2], false), 1);
        assert_eq!(fleet.left(), 0, "it was not this process that held it");
        fleet.pass(LEASE - 1);
        assert!(!fleet.admits(1));
        fleet.pass(1);
        assert!((0..3).all(|_| fleet.admits(1)), "{}", fleet.debit.limit);
    }
}

#[test]
fn a_clock_that_steps_back_does_not_make_the_dead_hold_for_longer() {
    for mut fleet in fleets() {
        assert!((0..3).all(|_| fleet.admits(1)));
        fleet.now -= 3_600 * SECOND;
        fleet.redis.turn_to(fleet.now);
        assert!(!fleet.admits(2));
        fleet.pass(LEASE);
        assert!(fleet.admits(2), "{}", fleet.debit.limit);
    }
}

/// What each process holds, in a plain list.
#[derive(Debug, Default)]
struct Plain(BTreeMap<u64, Held>);

#[derive(Debug, Clone)]
struct Held {
    count: u64,
    since: u64,
    lapses: u64,
}

impl Plain {
    fn sum(&self) -> u64 {
        self.0.values().map(|held| held.count).sum()
    }

    /// From this holder's point of view: all others may lapse.
    fn without_lapsed(&self, own: u64, now: u64) -> Self {
        let live = self.0.iter().filter(|(holder, held)| **holder == own || held.lapses > now);
        Self(live.map(|(holder, held)| (*holder, held.clone())).collect())
    }

    /// A process that writes the row shows that it is alive.
    fn touch(&mut self, holder: u64, now: u64) {
        if let Some(own) = self.0.get_mut(&holder) {
            own.lapses = now + LEASE;
        }
        self.0.retain(|_, held| held.count > 0);
    }
}

#[test]
fn random_holders_hold_what_a_plain_list_says() {
    for seed in 0..100 {
        let mut rng = Rng::with_seed(seed);
        let limit = three()[rng.usize(..4)];
        let mut fleet = Fleet::new(limit);
        let (mut plain, mut paid) = (Plain::default(), Vec::new());
        for _ in 0..200 {
            if rng.u8(..4) == 0 {
                fleet.pass(rng.u64(..LEASE / 2));
            }
            // Longer than any ban.
            fleet.pass(2);
            // A row that no process has written to for a lease is gone.
            if fleet.redis.row(KEY).is_none() {
                plain.0.clear();
            }
            let (mut holder, now) = (rng.u64(1..5), fleet.now);
            fleet.by_the_other = rng.bool();
            // A lapsed entry stays until a process writes the row.
            let mut seen = plain.without_lapsed(holder, now);
            match rng.u8(..10) {
                0..5 => {
                    let cost = rng.u64(..4);
                    let fits = seen.sum() + cost <= 3;
                    let taken = fleet.take(holder, cost);
                    assert_eq!(taken.is_some(), fits, "seed {seed}: {seen:?}");
                    if let (true, Some((sum, receipt))) = (cost > 0, taken) {
                        let new = Held { count: 0, since: fleet.turn, lapses: 0 };
                        seen.0.entry(holder).or_insert(new).count += cost;
                        assert_eq!(sum, seen.sum());
                        paid.push((holder, receipt, cost));
                    }
                }
                5..8 if !paid.is_empty() => {
                    let at = rng.usize(..paid.len());
                    let (payer, receipt, cost) = paid.swap_remove(at);
                    holder = payer;
                    seen = plain.without_lapsed(holder, now);
                    fleet.give_back(holder, &receipt, cost);
                    let since = receipt_words(&receipt).0[1];
                    if let Some(own) = seen.0.get_mut(&holder).filter(|own| own.since == since) {
                        own.count = own.count.saturating_sub(cost);
                    }
                }
                8 => {
                    fleet.renew(holder, plain.0.get(&holder).map_or(0, |held| held.count));
                    seen = Plain(plain.0.clone());
                }
                _ => {
                    let free = 3 - plain.without_lapsed(999, now).sum();
                    assert_eq!(fleet.left(), free, "seed {seed}: {plain:?}");
                }
            }
            if fleet.redis.has_written(KEY) {
                seen.touch(holder, now);
                plain = seen;
            }
        }
    }
}
