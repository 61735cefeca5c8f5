//! More keys than there is room for.

use super::*;
use crate::store::memory::bucket::Bucket as _;

/// Keys that were limited before a flood are limited exactly as before throughout the flood.
#[test]
fn a_flood_of_new_keys_frees_nobody() {
    let (store, clock) = memory(10_000);
    let limit = Limit::per_minute(3).when_full(WhenFull::Admit);
    let limited = 0..1_000;
    for number in limited.clone() {
        assert!((0..3).all(|_| admits(&store, limit, number)));
    }
    // A token is added each 20 s. A third of that has passed when the flood ends.
    let flood = 1_000_000..1_200_000;
    let mut turned_away = 0;
    for number in flood {
        clock.advance(Duration::from_micros(33));
        match take(&store, limit, number) {
            Ok(decision) => assert!(decision.is_admitted()),
            Err(error) => {
                assert!(error.is_full());
                turned_away += 1;
            }
        }
        if number % 50 == 0 {
            assert!(!admits(&store, limit, number % 1_000), "freed by key {number}");
        }
    }
    assert_eq!(store.turned_away(), turned_away);
    assert!(turned_away > 180_000, "{turned_away}");
    assert!(limited.clone().all(|number| !admits(&store, limit, number)));
    assert!(store.len() >= 10_000 && store.len() <= 18_006);

    clock.advance(MINUTE);
    assert!(limited.clone().all(|number| admits(&store, limit, number)));
}

/// Ten times as many keys as there is room for, at one moment. A key with a row is counted exactly, and a key without
/// one is counted as turned away.
#[test]
fn a_flood_at_one_moment_changes_nothing_for_anybody_else() {
    const CAPACITY: u64 = if cfg!(miri) { 20 } else { 2_000 };
    let (store, _clock) = memory(CAPACITY as usize);
    let limit = Limit::per_minute(3).when_full(WhenFull::Admit);
    let spend = |number: u64| match number % 2 {
        0 => store.spend(&limit, &key(number), 1),
        _ => store.take(&Charge::of(limit, key(number), 1)).now(),
    };
    // A quarter of the keys is limited, and a quarter has something left.
    let residents = 0..CAPACITY / 2;
    for number in residents.clone() {
        let times = if number % 2 == 0 { 3 } else { 1 };
        assert!((0..times).all(|_| spend(number).expect("room").is_admitted()));
    }

    let flood = CAPACITY..CAPACITY * 11;
    let (mut met, mut turned_away) = (Vec::new(), Vec::new());
    for number in flood {
        match spend(number) {
            Ok(outcome) => {
                assert!(outcome.is_admitted(), "key {number} was refused by strangers");
                met.push(number);
            }
            Err(error) => {
                assert!(error.is_full());
                turned_away.push(number);
            }
        }
        let resident = number % (CAPACITY / 2);
        if resident % 2 == 0 {
            let refused = spend(resident).expect("its row is there");
            assert_eq!(refused.retry_after(), Some(SECOND * 20), "freed by key {number}");
        } else {
            assert_eq!(remaining(&store, limit, resident), 2, "forgotten for key {number}");
        }
    }
    assert_eq!(store.turned_away(), turned_away.len() as u64);
    assert!(met.len() as u64 >= CAPACITY / 2, "room for {} only", met.len());
    assert_eq!(store.len(), residents.count() + met.len());
    assert!(met.iter().all(|number| remaining(&store, limit, *number) == 2));
    // Nothing was charged to these keys, and peek and reset need no room.
    assert!(turned_away.iter().all(|number| remaining(&store, limit, *number) == 3));
    let first = Charge::of(limit, key(turned_away[0]), 1);
    store.reset(&first).now().expect("no room is needed");
    assert_eq!(store.turned_away(), turned_away.len() as u64);
}

/// Rows that have recovered make room: keys that come at the rate that the table is made for find room.
#[test]
fn nobody_is_turned_away_while_time_makes_room() {
    let (store, clock) = memory(10_000);
    let limit = Limit::per_minute(60);
    // 5,000 keys spend within the second that each takes to recover.
    for number in 0..200_000 {
        clock.advance(Duration::from_micros(200));
        assert!(admits(&store, limit, number));
    }
    assert_eq!(store.turned_away(), 0);
    assert!(store.len() <= 5_500, "{} rows in use", store.len());
}

/// If there is no room for another limit of a limited key, the key is still refused.
#[test]
fn no_room_for_another_limit_frees_no_limited_key() {
    let (store, _clock) = memory(100);
    let [limit, other] =
        [Limit::per_minute(1), Limit::per_hour(6)].map(|limit| limit.when_full(WhenFull::Admit));
    assert!(admits(&store, limit, 0));
    (1..10_000).for_each(|number| drop(take(&store, limit, number)));

    let mut full = 0;
    for number in 1..1_000 {
        let mut both = Charge::of(other, key(1_000_000 + number), 1);
        both.add(limit, key(0), 1).expect("two limits");
        assert!(!store.take(&both).now().expect("the refusal").is_admitted());

        let mut both = Charge::of(other, key(1_000_000 + number), 1);
        both.add(limit, key(2_000_000 + number), 1).expect("two limits");
        full += u64::from(store.take(&both).now().is_err());
    }
    assert!(full > 990);
}

/// A flood leaves no trace: afterwards keys are found in their first bucket again.
#[test]
fn a_table_that_was_full_recovers() {
    let (store, clock) = memory(1_000);
    let limit = Limit::per_minute(60).when_full(WhenFull::Admit);
    (0..5_000).for_each(|number| drop(take(&store, limit, number)));
    assert!(store.turned_away() > 0);
    clock.advance(SECOND + EXPIRED);
    assert_eq!(store.len(), 0);
    assert!(store.is_empty());
    let (table, tick) = (&store.0.one_word, store.0.one_word.tick(store.0.moment().since));
    assert!((0..table.buckets()).all(|bucket| !table.lock(bucket).has_displaced(tick)));
}
