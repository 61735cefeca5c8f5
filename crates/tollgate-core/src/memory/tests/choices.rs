//! Rows that do not stand in their first bucket.

use std::collections::BTreeSet;

use super::*;
use crate::memory::locked::{Find, Locked, Sought};
use crate::memory::row::{Narrow, Row};
use crate::memory::table::{CHOICES, Table};

/// How many of `numbers` stand in which of their choices.
fn stand(store: &Memory, limit: Limit, numbers: std::ops::Range<u64>) -> [usize; CHOICES] {
    let mut stand = [0; CHOICES];
    for number in numbers {
        let print = store.0.seed.print(limit.id(), &key(number));
        let table = &store.0.narrow;
        let choice = (0..CHOICES)
            .find(|choice| table.lock(table.choice(print, *choice)).find(print).is_some())
            .expect("it stands in one of them");
        stand[choice] += 1;
    }
    stand
}

/// Each is counted once, wherever it stands and however often others have moved it.
#[test]
fn a_row_is_found_in_each_of_its_choices() {
    let (store, _clock) = memory(2_000);
    let limit = Limit::per_hour(3);
    for round in (0..3).rev() {
        assert!((0..2_100).all(|number| admits(&store, limit, number)));
        for number in 0..2_100 {
            assert_eq!(remaining(&store, limit, number), round);
        }
    }
    assert!((0..2_100).all(|number| !admits(&store, limit, number)));
    let stand = stand(&store, limit, 0..2_100);
    assert!(stand.iter().all(|rows| *rows > 5), "{stand:?}");
    assert_eq!(store.len(), 2_100);
}

/// Rows of one charge are not taken for one another's room.
#[test]
fn the_rows_of_one_charge_do_not_displace_each_other() {
    for first in 0..200 {
        // Three buckets: the rows of a charge meet in one of them again and again.
        let (store, _clock) = memory(1);
        let limits: Vec<_> = (1..=10).map(|i| Limit::per_hour(10 + i)).collect();
        let mut charge = Charge::new();
        for limit in &limits {
            charge.owe(*limit, key(first), 1).expect("limits of different names");
        }
        let Ok(decision) = store.take(&charge).now() else { continue };
        assert!(decision.is_admitted());
        for limit in &limits {
            assert_eq!(remaining(&store, *limit, first), limit.count() - 1, "{limit}");
        }
    }
}

/// Nor is a recovered one that is found, by one that is new.
#[test]
fn a_recovered_row_of_a_charge_is_not_claimed_by_its_other_rows() {
    let mut admitted = 0;
    for first in 0..200 {
        let (store, clock) = memory(9);
        let (old, new) = (Limit::per_second(10), Limit::per_hour(5));
        assert!(admits(&store, old, first));
        clock.advance(MINUTE);
        let mut both = Charge::of(old, key(first), 1);
        for number in 0..5 {
            both.owe(new, key(number), 1).expect("six rows");
        }
        // The rows of one charge do not make way for each other, so some find no room.
        if store.take(&both).now().is_ok() {
            admitted += 1;
            assert_eq!(remaining(&store, old, first), 9);
            assert!((0..5).all(|number| remaining(&store, new, number) == 4));
        }
    }
    assert!(admitted > 150, "{admitted} of 200");
}

/// Giving back and resetting find it as well.
#[test]
fn a_row_in_a_later_choice_can_be_settled_and_reset() {
    let (store, _clock) = memory(1_000);
    let limit = Limit::per_hour(2);
    let decisions: Vec<_> =
        (0..1_000).map(|number| take(&store, limit, number).expect("room")).collect();
    for (decision, number) in decisions.iter().zip(0..) {
        let charge = Charge::of(limit, key(number), 1);
        if number % 2 == 0 {
            let owed = charge.owed().next().expect("one limit");
            let mark = decision.standings().next().expect("one limit").mark;
            store.settle(owed, &mark, 0);
        } else {
            store.reset(&charge).now().expect("no room is needed");
        }
        assert_eq!(remaining(&store, limit, number), 2);
    }
    assert_eq!(store.len(), 0);
}

/// A print that stands where it had recovered must not hide the row that was moved elsewhere.
#[test]
fn a_recovered_row_does_not_hide_the_live_one() {
    let table: Table<Narrow> = Table::new(60, 0);
    let choices = |print| -> Vec<usize> { (0..CHOICES).map(|c| table.choice(print, c)).collect() };
    let print = (1_u64..)
        .map(|number| number.wrapping_mul(0x9e37_79b9_7f4a_7c15))
        .find(|print| choices(*print).iter().collect::<BTreeSet<_>>().len() == CHOICES)
        .expect("most prints have four buckets");
    let (now, long) = (10 << 16, 1_000);
    for (choice, expiry, cell) in [(1, 5, [0, 0]), (2, long, [7, 7])] {
        let bucket = table.lock(choices(print)[choice]);
        bucket.claim(0, print);
        bucket.expire_at(0, expiry);
        bucket.row(0).put(cell);
    }
    let mut locked = Locked::lock(&table, [print].into_iter(), CHOICES);
    let Sought::At(place) = locked.seek(print, Find::OrInsert, CHOICES, now, drop) else {
        panic!("the row is there")
    };
    assert_eq!(locked.row(place).cell(), [7, 7]);
}
