//! More keys than there is room for.

use super::*;

/// The keys that were limited before a flood stay limited throughout, to the letter.
#[test]
fn a_flood_of_new_keys_frees_nobody() {
    let (store, clock) = memory(10_000);
    let limit = Limit::per_minute(3);
    let limited = 0..1_000;
    for number in limited.clone() {
        assert!((0..3).all(|_| admits(&store, limit, number)));
    }
    // A token each 20 s: a third of it has passed when the flood ends.
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
    assert!(turned_away > 180_000);
    assert!(limited.clone().all(|number| !admits(&store, limit, number)));
    assert!(store.len() >= 10_000 && store.len() <= 12_508);

    clock.advance(MINUTE);
    assert!(limited.clone().all(|number| admits(&store, limit, number)));
}

/// Rows that have recovered make room: whoever comes at the rate that the table is made for is met.
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

/// A key that is limited is refused rather than not counted, when there is no room for another of its
/// limits: failing open must not let it in.
#[test]
fn no_room_for_another_limit_frees_no_limited_key() {
    let (store, _clock) = memory(100);
    let (limit, other) = (Limit::per_minute(1), Limit::per_hour(7));
    assert!(admits(&store, limit, 0));
    (1..10_000).for_each(|number| drop(take(&store, limit, number)));

    let mut full = 0;
    for number in 1..1_000 {
        let mut both = Charge::of(other, key(1_000_000 + number), 1);
        both.owe(limit, key(0), 1).expect("two limits");
        assert!(!store.take(&both).now().expect("the refusal").is_admitted());

        let mut both = Charge::of(other, key(1_000_000 + number), 1);
        both.owe(limit, key(2_000_000 + number), 1).expect("two limits");
        full += u64::from(store.take(&both).now().is_err());
    }
    assert!(full > 990);
}

/// A flood that is over leaves no trace: keys are found in their first bucket again.
#[test]
fn a_table_that_was_full_recovers() {
    let (store, clock) = memory(1_000);
    let limit = Limit::per_minute(60);
    (0..5_000).for_each(|number| drop(take(&store, limit, number)));
    assert!(store.turned_away() > 0);
    clock.advance(SECOND + EXPIRED);
    assert_eq!(store.len(), 0);
    assert!(store.is_empty());
    let (table, tick) = (&store.0.narrow, store.0.narrow.tick(clock.now()));
    assert!((0..table.buckets()).all(|bucket| !table.lock(bucket).is_passed(tick)));
}
