//! The room that sliding logs share.

use std::sync::atomic::Ordering;

use super::*;

fn logs(entries: usize) -> (Memory, ManualClock) {
    let clock = ManualClock::new();
    let builder = Memory::builder().capacity(1_000).log_entries(entries);
    (builder.clock(&clock).build(), clock)
}

fn entries(store: &Memory) -> usize {
    store.0.entries.load(Ordering::Relaxed)
}

#[test]
fn the_entries_of_all_logs_are_bounded() {
    let (store, clock) = logs(1_000);
    let limit = Limit::sliding_log(100, MINUTE);
    let mut admitted = 0;
    for number in (0..200).cycle().take(20_000) {
        clock.advance(Duration::from_micros(1));
        admitted += u64::from(take(&store, limit, number).is_ok_and(|one| one.is_admitted()));
        assert!(entries(&store) <= 1_000);
    }
    assert!((500..=1_000).contains(&admitted), "{admitted} entries");
    assert!(store.turned_away() > 0);
}

/// What they held is free for others, though nobody comes back.
#[test]
fn the_room_of_recovered_logs_is_swept_up() {
    let (store, clock) = logs(1_000);
    let limit = Limit::sliding_log(100, MINUTE);
    for number in 0..20 {
        for _ in 0..32 {
            assert!(admits(&store, limit, number));
            clock.advance(Duration::from_micros(1));
        }
    }
    for number in 100..300 {
        let _ = take(&store, limit, number);
    }
    assert!(take(&store, limit, 300).is_err());
    clock.advance(MINUTE + EXPIRED);
    // A bounded amount at a time.
    let admitted = (300..700).filter(|number| take(&store, limit, *number).is_ok()).count();
    assert!(admitted > 200, "{admitted}");
    assert!(entries(&store) <= 1_000);
}

#[test]
fn a_row_that_is_reused_gives_back_its_room() {
    let (store, clock) = logs(1_000_000);
    let limit = Limit::sliding_log(2, SECOND);
    for number in 0..50_000 {
        clock.advance(Duration::from_millis(2));
        assert!(admits(&store, limit, number));
    }
    // Never more than the rows of the table, with four entries each.
    assert!(entries(&store) <= 4 * 1_260, "{}", entries(&store));
}

#[test]
fn a_reset_gives_back_its_room() {
    let (store, _clock) = logs(100);
    let limit = Limit::sliding_log(2, SECOND);
    for _ in 0..1_000 {
        assert!(admits(&store, limit, 0));
        store.reset(&Charge::of(limit, key(0), 1)).now().expect("no room is needed");
        assert_eq!(entries(&store), 0);
    }
}

/// A log without room for one more is still known to be full: failing open must not let it in.
#[test]
fn a_limited_log_is_refused_when_there_is_no_room_for_entries() {
    let (store, clock) = logs(8);
    let limit = Limit::sliding_log(4, MINUTE).count_refused();
    for number in [0, 1].repeat(4) {
        assert!(admits(&store, limit, number));
        clock.advance(Duration::from_micros(1));
    }
    assert!(take(&store, limit, 2).is_err_and(|error| error.is_full()));
    for number in 0..2 {
        assert!(!admits(&store, limit, number));
    }
    assert_eq!(entries(&store), 8);
}

#[test]
fn looking_and_giving_back_need_no_room() {
    let (store, clock) = logs(4);
    let limit = Limit::sliding_log(8, MINUTE);
    let charge = Charge::of(limit, key(0), 1);
    let spend = || {
        clock.advance(Duration::from_micros(1));
        take(&store, limit, 0).expect("room")
    };
    let [_, _, _, last] = [spend(), spend(), spend(), spend()];
    assert!(take(&store, limit, 0).is_err());
    assert_eq!(remaining(&store, limit, 0), 4);
    assert_eq!(store.turned_away(), 1);

    let mark = last.standings().next().expect("one limit").mark;
    let owed = charge.owed().next().expect("one limit");
    store.settle(owed, &mark, 0);
    assert_eq!(remaining(&store, limit, 0), 5);
}

/// A charge of which a part has no room leaves the other parts as they were.
#[test]
fn a_log_without_room_leaves_the_other_rows_of_the_charge_alone() {
    let (store, clock) = logs(4);
    let (log, other) = (Limit::sliding_log(8, MINUTE), Limit::per_minute(10));
    let banning = Limit::per_minute(9).ban(MINUTE);
    for _ in 0..4 {
        assert!(admits(&store, log, 0));
        clock.advance(Duration::from_micros(1));
    }
    let mut all = Charge::of(other, key(0), 1);
    all.owe(log, key(0), 1).expect("three limits");
    all.owe(banning, key(0), 1).expect("three limits");
    for _ in 0..3 {
        assert!(store.take(&all).now().is_err());
    }
    assert_eq!(remaining(&store, other, 0), 10);
    assert_eq!(remaining(&store, log, 0), 4);
    assert_eq!(remaining(&store, banning, 0), 9);
}

/// What has left the window makes room, where no other log will give any up.
#[test]
fn a_key_whose_own_log_has_room_is_not_turned_away() {
    let (store, clock) = logs(8);
    let limit = Limit::sliding_log(4, 10 * SECOND);
    for number in [1, 2] {
        for _ in 0..4 {
            assert!(admits(&store, limit, number));
            clock.advance(SECOND);
        }
    }
    assert!(!admits(&store, limit, 1));
    clock.advance(2 * SECOND);
    assert!(admits(&store, limit, 1));
    assert!(!admits(&store, limit, 1));
    assert_eq!(store.turned_away(), 0);
}

#[test]
fn hammering_does_not_make_a_log_longer_than_its_limit() {
    let (store, _clock) = logs(1_000);
    let limit = Limit::sliding_log(4, MINUTE);
    for _ in 0..100 {
        let _ = take(&store, limit, 1);
    }
    assert!(entries(&store) <= 5, "{}", entries(&store));
}
