//! Rows that are not in their first bucket.

use std::collections::BTreeSet;

use super::*;
use crate::store::memory::bucket::Bucket;
use crate::store::memory::locked::{FindMode, LockedBuckets, SearchResult};
use crate::store::memory::one_word::OneWord;
use crate::store::memory::row::{FourRows, TwoWords};
use crate::store::memory::table::{CHOICES, Table};

/// How many rows of `numbers` are in which of their choices.
fn places<B: Bucket>(
    store: &Memory,
    table: &Table<B>,
    limit: Limit,
    numbers: std::ops::Range<u64>,
) -> [usize; CHOICES] {
    let mut places = [0; CHOICES];
    for number in numbers {
        let fingerprint = store.0.fingerprint(limit.id(), &key(number));
        let choice = (0..CHOICES)
            .find(|choice| {
                table.lock(table.choice(fingerprint, *choice)).find(fingerprint).is_some()
            })
            .expect("it is in one of them");
        places[choice] += 1;
    }
    places
}

/// Each row is counted once, wherever it is and however often others have moved it.
fn are_found_in_each_of_their_choices(limit: Limit, keys: u64) -> Memory {
    let (store, _clock) = memory(2_000);
    for round in (0..limit.count()).rev() {
        assert!((0..keys).all(|number| admits(&store, limit, number)));
        for number in 0..keys {
            assert_eq!(remaining(&store, limit, number), round);
        }
    }
    assert!((0..keys).all(|number| !admits(&store, limit, number)));
    assert_eq!(store.len() as u64, keys);
    store
}

#[test]
fn a_row_of_two_words_is_found_in_each_of_its_choices() {
    let limit = Limit::fixed_window(3, 60 * MINUTE);
    let store = are_found_in_each_of_their_choices(limit, 2_000);
    let places = places(&store, &store.0.two_words, limit, 0..2_000);
    assert!(places.iter().all(|rows| *rows > 5), "{places:?}");
}

#[test]
fn a_row_of_one_word_is_found_in_each_of_its_choices() {
    let limit = Limit::per_hour(3);
    let store = are_found_in_each_of_their_choices(limit, 2_900);
    let places = places(&store, &store.0.one_word, limit, 0..2_900);
    assert!(places.iter().all(|rows| *rows > 5), "{places:?}");
}

/// The rows of one charge do not take each other's place.
#[test]
fn the_rows_of_one_charge_do_not_displace_each_other() {
    for first in 0..200 {
        // There are three buckets, so the rows of a charge often meet in one of them.
        let (store, _clock) = memory(1);
        let limits: Vec<_> = (1..=10).map(|i| Limit::per_hour(10 + i)).collect();
        let mut charge = Charge::new();
        for limit in &limits {
            charge.add(*limit, key(first), 1).expect("limits of different names");
        }
        let Ok(decision) = store.take(&charge).now() else { continue };
        assert!(decision.is_admitted());
        for limit in &limits {
            assert_eq!(remaining(&store, *limit, first), limit.count() - 1, "{limit}");
        }
    }
}

/// A recovered row of the charge is not claimed by a new one either.
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
            both.add(new, key(number), 1).expect("six rows");
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

/// Giving back and resetting find a row there as well.
#[test]
fn a_row_in_a_later_choice_can_be_settled_and_reset() {
    let (store, _clock) = memory(1_000);
    let limit = Limit::per_hour(2);
    let decisions: Vec<_> =
        (0..1_000).map(|number| take(&store, limit, number).expect("room")).collect();
    for (decision, number) in decisions.iter().zip(0..) {
        let charge = Charge::of(limit, key(number), 1);
        if number % 2 == 0 {
            let debit = charge.debits().next().expect("one limit");
            let receipt = decision.statuses().next().expect("one limit").receipt;
            store.settle(debit, &receipt, 0);
        } else {
            store.reset(&charge).now().expect("no room is needed");
        }
        assert_eq!(remaining(&store, limit, number), 2);
    }
    assert_eq!(store.len(), 0);
}

/// A row of `fingerprint` in two of its buckets. Returns the content of the row that is found after a tenth of the
/// time to the last expiry.
fn found<B: Bucket>(expiries: [(usize, u32); 2], content: fn(u32) -> B::Content) -> B::Content {
    let table: Table<B> = Table::new(60, 0);
    let choices = |fingerprint| -> Vec<usize> {
        (0..CHOICES).map(|c| table.choice(fingerprint, c)).collect()
    };
    let fingerprint = (1_u64..)
        .map(|number| number.wrapping_mul(0x9e37_79b9_7f4a_7c15))
        .find(|fingerprint| choices(*fingerprint).iter().collect::<BTreeSet<_>>().len() == CHOICES)
        .expect("most fingerprints have four buckets");
    for (choice, expiry) in expiries {
        let bucket = table.lock(choices(fingerprint)[choice]);
        bucket.claim(0, fingerprint, 0);
        bucket.put(0, content(expiry), expiry);
    }
    let mut locked = LockedBuckets::lock(&table, [fingerprint].into_iter(), CHOICES);
    let SearchResult::Found(place) =
        locked.seek(fingerprint, FindMode::OrInsert, CHOICES, 10 << 16, drop)
    else {
        panic!("the row is there")
    };
    locked.take(place)
}

/// A recovered row must not hide the live row of the same fingerprint, which was moved elsewhere.
#[test]
fn a_recovered_row_does_not_hide_the_live_one() {
    let words = |expiry| [u64::from(expiry); 2];
    assert_eq!(found::<FourRows<TwoWords>>([(1, 5), (2, 1_000)], words), [1_000; 2]);
    let free_at = |expiry| u64::from(expiry) << 16;
    assert_eq!(found::<OneWord>([(1, 5), (2, 1_000)], free_at), 1_000 << 16);
}

/// Otherwise a thread with an older time could spend from the other.
#[test]
fn only_one_of_two_recovered_rows_is_left() {
    let free_at = |expiry| u64::from(expiry) << 16;
    assert_eq!(found::<OneWord>([(1, 5), (2, 7)], free_at), 5 << 16);
}
