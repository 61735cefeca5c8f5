//! How many keys there is room for.

use super::*;
use crate::store::memory::row::{FourRows, FullState, TwoWords};

/// The number of distinct keys that a store accepts before the first one finds no room.
fn room(capacity: usize, limit: Limit) -> usize {
    let (store, _clock) = memory(capacity);
    let limit = limit.when_full(WhenFull::Admit);
    (0..).take_while(|number| take(&store, limit, *number).is_ok()).count()
}

#[test]
fn a_store_has_room_for_its_capacity_of_live_keys() {
    let small = [1, 2, 3, 4, 5, 7, 10, 15, 25, 50, 99].map(|capacity| (capacity, 100));
    let large = [(1_000, 10), (10_000, 3), (100_000, 1)];
    for (capacity, times) in small.into_iter().chain(large) {
        for _ in 0..times {
            let room = room(capacity, Limit::per_hour(1));
            assert!(room >= capacity, "the {room}th of {capacity} keys was turned away");
        }
    }
}

#[test]
fn a_store_has_room_for_its_capacity_of_full_states() {
    for capacity in [1, 10, 100, 1_000] {
        for limit in [Limit::per_hour(1).ban(MINUTE), Limit::sliding_log(3, MINUTE)] {
            let room = room(capacity, limit);
            assert!(room >= capacity, "the {room}th of {capacity} keys was turned away");
        }
    }
}

#[test]
fn a_shadow_limit_without_room_is_ignored() {
    let (store, _clock) = memory(1);
    let shadow = Limit::per_hour(1).ban(MINUTE).shadow();
    let real = Limit::fixed_window(2, MINUTE);
    let fills = (0..1_000).filter(|number| take(&store, shadow, *number).is_ok()).count();
    assert_eq!(fills, 1_000);
    assert_eq!(store.turned_away(), 0);
    let mut charge = Charge::of(shadow, key(2_000), 1);
    charge.add(real, key(2_000), 1).expect("two limits");
    let admitted = [(); 3].map(|()| store.take(&charge).now().expect("room for one").is_admitted());
    assert_eq!(admitted, [true, true, false]);
}

/// What a shadow limit has counted still counts when the limit begins to refuse.
#[test]
fn a_shadow_counts_where_the_limit_does() {
    for limit in [Limit::per_hour(2), Limit::per_second(3), Limit::per_hour(2).ban(MINUTE)] {
        let (store, _clock) = memory(10);
        assert!((0..limit.count()).all(|_| admits(&store, limit.shadow(), 1)));
        assert!(!admits(&store, limit, 1), "{limit}");
        assert!(admits(&store, limit.shadow(), 1), "{limit}");
    }
}

#[test]
fn four_rows_fill_two_cache_lines() {
    assert_eq!(size_of::<FourRows<TwoWords>>(), 128);
    assert_eq!(size_of::<FourRows<FullState>>(), 128);
}

#[test]
fn len_counts_the_rows_in_use() {
    let (store, clock) = memory(100);
    let limit = Limit::per_minute(60);
    assert!(store.is_empty());
    for number in 0..20 {
        admits(&store, limit, number);
        admits(&store, Limit::concurrent(2), number);
        admits(&store, Limit::sliding_log(3, MINUTE), number);
    }
    remaining(&store, limit, 77);
    assert_eq!(store.len(), 60);
    clock.advance(SECOND + EXPIRED);
    assert_eq!(store.len(), 40);
    clock.advance(MINUTE);
    assert_eq!(store.len(), 20);
}

/// However long it is held, no other key gets its row.
#[test]
fn a_row_that_is_held_is_not_reused() {
    let (store, clock) = memory(100);
    let limit = Limit::concurrent(1);
    assert!((0..100).all(|number| admits(&store, limit, number)));
    clock.advance(MINUTE * 60 * 24 * 3_650);
    for number in 0..10_000 {
        let _ = take(&store, Limit::per_second(1), 1_000 + number);
    }
    assert!((0..100).all(|number| !admits(&store, limit, number)));

    let charge = Charge::of(limit, key(7), 1);
    let debit = charge.debits().next().expect("one limit");
    let receipt = Default::default();
    store.settle(debit, &receipt, 0);
    assert!(admits(&store, limit, 7));
}

/// A row that recovers later than an expiry can express is not reused either.
#[test]
fn a_row_of_a_limit_that_takes_decades_is_kept() {
    let (store, clock) = memory(10);
    let limit = Limit::per(1, MINUTE * 60 * 24 * 36_500);
    assert!((0..10).all(|number| admits(&store, limit, number)));
    for _ in 0..30 {
        clock.advance(MINUTE * 60 * 24 * 365);
        (100..200).for_each(|number| drop(take(&store, Limit::per_second(1), number)));
        assert!((0..10).all(|number| !admits(&store, limit, number)));
    }
}

#[test]
fn a_refused_newcomer_takes_no_row() {
    let (store, _clock) = memory(10);
    for number in 0..1_000 {
        let charge = Charge::of(Limit::per_minute(5), key(number), 6);
        assert!(!store.take(&charge).now().expect("room").is_admitted());
    }
    assert_eq!(store.len(), 0);
    assert_eq!(store.turned_away(), 0);
}

/// A bucket none of whose rows can be displaced is remembered as such for a while, whatever is given back elsewhere.
#[test]
fn room_that_is_given_back_is_found_within_four_seconds() {
    for limit in [Limit::per_day(1), Limit::fixed_window(1, SECOND * 86_400)] {
        let limit = limit.when_full(WhenFull::Admit);
        let (store, clock) = memory(3_000);
        let admits = |number| take(&store, limit, number).is_ok();
        let (own, newcomers): (Vec<_>, Vec<_>) = (0..12_000).partition(|number| admits(*number));
        assert!(newcomers.len() > 3_000, "{limit}: {}", newcomers.len());
        // One row in seven.
        for number in own.iter().step_by(7) {
            store.reset(&Charge::of(limit, key(*number), 1)).now().expect("no room is needed");
        }
        let left_out = |numbers: &[u64]| -> Vec<u64> {
            numbers.iter().copied().filter(|number| !admits(*number)).collect()
        };
        let some = left_out(&newcomers[newcomers.len() - 200..]);
        assert!(!some.is_empty(), "{limit}: some find the free rows only by displacing others");
        clock.advance(SECOND * 5);
        assert_eq!(left_out(&some), [0_u64; 0], "{limit}");
    }
}
