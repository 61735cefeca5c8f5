//! What of the rows survives a restart.

use super::super::restore::Forgotten;
use super::*;
use crate::limit::WhenFull;
use crate::store::Blocks;

#[test]
fn every_kind_of_count_survives() {
    let clock = ManualClock::new();
    let mut kept = StoreOnDisk::new(10_000, &clock);
    for (number, limit) in limits().into_iter().enumerate() {
        for key in 0..1_000 {
            for _ in 0..(key + number as u64) % 4 {
                admits(&kept.store, limit, key);
            }
        }
    }
    let everything = |store: &Memory| -> Vec<u64> {
        let keys = limits().into_iter().flat_map(|limit| (0..1_000).map(move |key| (limit, key)));
        keys.map(|(limit, key)| remaining(store, limit, key)).collect()
    };
    let before = everything(&kept.store);
    let (rows, used) = (kept.store.len(), kept.store.0.log_budget.used());
    for capacity in [10_000, 10_000, 20_000, 7_000] {
        kept = kept.restarted(capacity, &clock);
        assert_eq!(kept.store.len(), rows);
        assert_eq!(everything(&kept.store), before);
        assert!(kept.store.0.log_budget.used() <= used);
    }
}

#[test]
fn places_are_free_after_a_restart_and_a_ban_of_who_held_one_stays() {
    let clock = ManualClock::new();
    let at_once = Limit::concurrent(2);
    let banning = Limit::concurrent(2).ban(HOUR);
    let kept = StoreOnDisk::new(100, &clock);
    for limit in [at_once, banning] {
        assert_eq!([1; 3].map(|key| admits(&kept.store, limit, key)), [true, true, false]);
    }
    let kept = kept.restarted(100, &clock);
    assert_eq!(remaining(&kept.store, at_once, 1), 2);
    assert!(!admits(&kept.store, banning, 1));
    clock.advance(HOUR);
    assert_eq!([1; 3].map(|key| admits(&kept.store, banning, key)), [true, true, false]);
}

/// What is free after a restart are the places, and nothing else of their row.
#[test]
fn a_gap_and_refusals_of_who_held_a_place_survive() {
    let clock = ManualClock::new();
    let gap = Limit::concurrent(2).min_gap(HOUR);
    let strikes = Limit::concurrent(1).ban(HOUR).ban_after(3, HOUR);
    let kept = StoreOnDisk::new(100, &clock);
    assert_eq!([1; 2].map(|key| admits(&kept.store, gap, key)), [true, false]);
    assert_eq!([1; 3].map(|key| admits(&kept.store, strikes, key)), [true, false, false]);
    let is_banned = |kept: &StoreOnDisk| {
        let charge = charge(strikes, 1, 1);
        let outcome = kept.store.peek(&charge).now().expect("peeks need no room");
        outcome.decision(&charge).statuses().any(|status| status.banned)
    };
    let kept = kept.restarted(100, &clock);
    assert!(!admits(&kept.store, gap, 1));
    assert_eq!([1; 2].map(|key| admits(&kept.store, strikes, key)), [true, false]);
    assert!(is_banned(&kept), "this was the third");
    clock.advance(HOUR);
    let kept = kept.restarted(100, &clock);
    assert!(admits(&kept.store, gap, 1));
    clock.advance(24 * HOUR);
    assert_eq!(kept.restarted(100, &clock).store.len(), 0);
}

#[test]
fn a_ban_by_hand_survives() {
    let clock = ManualClock::new();
    let kept = StoreOnDisk::new(100, &clock);
    let limit = Limit::per_minute(60);
    let blocks = Blocks::new(kept.store.clone());
    blocks.block(1_u64, 50 * 365 * 24 * HOUR).now().expect("room");
    blocks.block(2_u64, HOUR).now().expect("room");
    let kept = kept.restarted(100, &clock);
    clock.advance(HOUR);
    let blocks = Blocks::new(kept.store.clone());
    let admits = |key| blocks.take(&charge(limit, key, 1)).now().expect("room").is_admitted();
    assert_eq!([1, 2, 3].map(admits), [false, true, true]);
}

/// Ticks of a row last for nine years.
#[test]
fn what_takes_decades_to_recover_is_not_taken_for_a_place() {
    const YEARS: Duration = Duration::from_secs(20 * 365 * 86_400);
    let clock = ManualClock::new();
    let mut kept = StoreOnDisk::new(100, &clock);
    let limits = [Limit::fixed_window(1, YEARS), Limit::sliding_log(1, YEARS)];
    limits.into_iter().for_each(|limit| assert!(admits(&kept.store, limit, 1)));
    for _ in 0..3 {
        kept = kept.restarted(100, &clock);
        limits.into_iter().for_each(|limit| assert!(!admits(&kept.store, limit, 1), "{limit}"));
    }
}

#[test]
fn what_a_tier_carries_survives() {
    let clock = ManualClock::new();
    let kept = StoreOnDisk::new(100, &clock);
    let tier = |count| Limit::per_hour(count).named("plan").carried();
    for _ in 0..8 {
        assert!(admits(&kept.store, tier(10), 1));
    }
    assert!(admits(&kept.store, tier(20), 1));
    let kept = kept.restarted(100, &clock);
    assert_eq!(remaining(&kept.store, tier(10), 1), 1);
}

#[test]
fn keys_that_were_counted_together_still_are() {
    let clock = ManualClock::new();
    let kept = StoreOnDisk::new(8, &clock);
    let limit = Limit::per_hour(1).when_full(WhenFull::CountTogether);
    let mut together = (0..).filter(|key| {
        let before = kept.store.counted_together();
        assert!(admits(&kept.store, limit, *key) || kept.store.counted_together() > before);
        kept.store.counted_together() > before
    });
    let key = together.next().expect("the table is full at some time");
    assert!(!admits(&kept.store, limit, key));
    let kept = kept.restarted(8, &clock);
    assert!(!admits(&kept.store, limit, key));
    // Also where there is room for a row of its own.
    let kept = kept.restarted(1_000, &clock);
    assert!(!admits(&kept.store, limit, key));
}

/// A flood of new keys before a restart must not free those that are limited.
#[test]
fn a_store_that_was_full_forgets_nobody() {
    let limits = [Limit::per_hour(1), Limit::fixed_window(1, HOUR), Limit::sliding_log(1, HOUR)];
    for limit in limits.map(|limit| limit.when_full(WhenFull::Refuse)) {
        let clock = ManualClock::new();
        let mut kept = StoreOnDisk::new(1_000, &clock);
        let take = |store: &Memory, key| store.take(&charge(limit, key, 1)).now();
        let full = (0..5_000).filter(|key| take(&kept.store, *key).is_ok()).collect::<Vec<_>>();
        assert!((1_001..2_000).contains(&full.len()), "{}", full.len());
        for _ in 0..3 {
            kept = kept.restarted(1_000, &clock);
            assert!(full.iter().all(|key| !admits(&kept.store, limit, *key)), "{limit}");
        }
    }
}

#[test]
fn what_has_no_room_in_a_smaller_store_is_counted() {
    let clock = ManualClock::new();
    let mut kept = StoreOnDisk::new(1_000, &clock);
    let limit = Limit::per_hour(1);
    (0..1_000).for_each(|key| assert!(admits(&kept.store, limit, key)));
    kept.write();
    let builder = Memory::builder().capacity(100).clock(&clock);
    let kept = StoreOnDisk::start(builder, Some(kept.file()));
    let Forgotten(forgotten) = kept.opened.forgotten;
    assert_eq!(forgotten + kept.store.len(), 1_000);
    assert!(forgotten > 500, "{forgotten}");
}

/// New keys displace rows while the table is read: from buckets that are not read yet to buckets that were.
#[test]
fn nothing_that_was_counted_before_a_write_is_missing_from_it() {
    // So full that new keys displace a row, whatever the secret, and never so full that one finds no room. The tables
    // take several pages.
    let limits = [
        (Limit::per_hour(1), 20_000, 27_000),
        (Limit::fixed_window(1, HOUR), 20_000, 20_000),
        (Limit::sliding_log(1, HOUR), 20_000, 20_000),
    ];
    for (limit, capacity, keys) in limits {
        let limit = limit.when_full(WhenFull::Admit);
        let clock = ManualClock::new();
        let mut kept = StoreOnDisk::new(capacity, &clock);
        (0..keys).for_each(|key| assert!(admits(&kept.store, limit, key)));
        let store = kept.store.clone();
        // After the header and the first page.
        kept.disk.once_appended(2, move || {
            for key in keys..keys + 300 {
                let outcome = store.take(&charge(limit, key, 1)).now();
                assert!(outcome.map_or(true, |outcome| outcome.is_admitted()));
            }
        });
        kept.writer.begin_anew();
        kept.write();
        assert!(kept.disk.is_hook_done());
        let builder = Memory::builder().capacity(2 * capacity).clock(&clock);
        let read = StoreOnDisk::start(builder, Some(kept.file()));
        assert_eq!(read.opened, Opened::default());
        let missing = (0..keys).filter(|key| admits(&read.store, limit, *key)).count();
        assert_eq!(missing, 0, "{limit}");
    }
}
