//! Rows that make way for new keys.

use super::*;

/// Fills bucket A, with a row in front that may also be in bucket B. Returns the key of that row and a new key whose
/// insertion moves the row to B.
fn crowded(store: &Memory, limit: Limit) -> (KeyBuf, KeyBuf) {
    let mover = key(store, limit, [A, B, A, B]);
    let mut stayers = keys(store, limit, [A, A, A, A]);
    assert!(admits(store, limit, mover));
    stayers.by_ref().take(rows(limit) - 1).for_each(|key| assert!(admits(store, limit, key)));
    let newcomer = stayers.next().expect("the keys are endless");
    assert_eq!(stands(store, limit, mover), Some(A));
    (mover, newcomer)
}

/// The same, after the new key has been inserted.
fn moved(store: &Memory, limit: Limit) -> KeyBuf {
    let (mover, newcomer) = crowded(store, limit);
    assert!(admits(store, limit, newcomer));
    assert_eq!(stands(store, limit, mover), Some(B));
    mover
}

/// Whether there is room for the new key.
fn arrives(store: &Memory, limit: Limit, newcomer: KeyBuf) -> impl FnOnce() -> bool + use<> {
    let store = store.clone();
    move || store.spend(&limit, &newcomer, 1).is_ok()
}

#[test]
fn a_row_is_spent_from_while_it_is_moved() {
    moving_model(|kind, order| {
        let (store, _clock) = store();
        let limit = kind.per_hour(4);
        let (mover, newcomer) = crowded(&store, limit);

        let also = store.clone();
        let spend = move || (0..2).for_each(|_| assert!(admits(&also, limit, mover)));
        let (met, ()) = order.both(arrives(&store, limit, newcomer), spend);
        assert_eq!(remaining(&store, limit, mover), 1);
        assert_eq!(remaining(&store, limit, newcomer), 4 - u64::from(met));
        // If other threads hold the target bucket at that moment, there is no room for now.
        assert_eq!(store.turned_away(), u64::from(!met));
        assert_eq!(stands(&store, limit, mover), Some(if met { B } else { A }));
    });
}

#[test]
fn a_limited_row_stays_limited_while_it_is_moved() {
    moving_model(|kind, order| {
        let (store, _clock) = store();
        let limit = kind.per_hour(1);
        let (mover, newcomer) = crowded(&store, limit);
        let also = store.clone();
        let spend = move || assert!(!admits(&also, limit, mover));
        order.both(arrives(&store, limit, newcomer), spend);
        assert!(!admits(&store, limit, mover));
    });
}

#[test]
fn a_row_is_given_back_to_while_it_is_moved() {
    moving_model(|kind, order| {
        let (store, _clock) = store();
        let limit = kind.per_hour(4);
        let (mover, newcomer) = crowded(&store, limit);
        let charge = Charge::of(limit, mover, 2);
        let taken = store.take(&charge).now().expect("room");
        assert_eq!(remaining(&store, limit, mover), 1);

        let also = store.clone();
        let give = move || {
            let debit = charge.debits().next().expect("one limit");
            also.settle(debit, &taken.receipts().next().expect("one limit"), 0);
        };
        order.both(arrives(&store, limit, newcomer), give);
        assert_eq!(remaining(&store, limit, mover), 3);
    });
}

/// Both threads find it in the bucket that it was moved to.
#[test]
fn a_displaced_row_is_spent_from_exactly() {
    moving_model(|kind, order| {
        let (store, _clock) = store();
        let limit = kind.per_hour(3);
        let mover = moved(&store, limit);
        let spends = |times| {
            let store = store.clone();
            move || (0..times).filter(|_| admits(&store, limit, mover)).count()
        };
        let (one, other) = order.both(spends(2), spends(1));
        assert_eq!(one + other, 2);
        assert_eq!(remaining(&store, limit, mover), 0);
    });
}

/// The row has recovered in its second bucket and is begun anew in its first, while a thread that has read the clock
/// before may still spend from the old row.
#[test]
fn a_displaced_row_that_recovers_is_counted_once() {
    moving_model(|kind, order| {
        let (store, clock) = store();
        let limit = kind.per_hour(1);
        let mover = moved(&store, limit);
        let also = store.clone();
        let late = move || admits(&also, limit, mover);
        let also = store.clone();
        let in_time = move || {
            clock.advance(2 * HOUR);
            admits(&also, limit, mover)
        };
        let (late, in_time) = order.both(late, in_time);
        assert!(late != in_time, "exactly one, in the hour that has begun");
        assert!(!admits(&store, limit, mover));
        assert!(stands(&store, limit, mover).is_some());
    });
}

/// The first bucket need not be locked for it, because it already records for long enough that the row is elsewhere.
#[test]
fn a_charge_by_an_older_clock_stays_in_the_past() {
    moving_model(|kind, order| {
        let (store, clock) = store();
        let limit = kind.per_hour(4);
        let mover = moved(&store, limit);
        (0..2).for_each(|_| assert!(admits(&store, limit, mover)));

        let also = store.clone();
        let late = move || {
            let charge = Charge::of(limit, mover, 1);
            let spent = also.spend(&limit, &mover, 1).expect("room");
            assert!(spent.is_admitted());
            spent.decision(&charge).remaining()
        };
        let also = store.clone();
        let in_time = move || {
            clock.advance(2 * HOUR);
            (0..2).for_each(|_| assert!(admits(&also, limit, mover)));
        };
        let (left, ()) = order.both(late, in_time);
        let was_before = left == Some(0);
        assert_eq!(remaining(&store, limit, mover), if was_before { 2 } else { 1 });
    });
}

/// The row has been begun anew in its first bucket, which then records displaced rows again. A thread that looked
/// there long before finds the old row.
#[test]
fn a_row_that_was_begun_anew_is_not_spent_from_in_its_old_place() {
    const MINUTE: Duration = Duration::from_secs(60);
    moving_model(|kind, order| {
        let (store, clock) = store();
        let (limit, brief) = (kind.per_hour(60), kind.per(1, SECOND));
        let mover = key(&store, limit, [A, B, A, B]);
        let next = key(&store, limit, [A, B, B, A]);
        let others: Vec<_> = keys(&store, brief, [A, A, A, A]).take(rows(brief)).collect();
        // In front of the row's later place, so that the next key is not put there.
        assert!(admits(&store, brief, key(&store, brief, [B, B, B, B])));
        assert!(admits(&store, limit, mover));
        others.iter().for_each(|key| assert!(admits(&store, brief, *key)));
        assert_eq!(stands(&store, limit, mover), Some(B));
        assert!(store.spend(&limit, &mover, 19).expect("room").is_admitted());

        let also = store.clone();
        let late = move || {
            assert!(also.spend(&limit, &mover, 30).expect("room").is_admitted());
        };
        let also = store.clone();
        let in_time = move || {
            // After this time nothing is left of twenty tokens.
            clock.advance(26 * MINUTE + SECOND);
            assert!(also.spend(&limit, &next, 60).expect("room").is_admitted());
            assert!(admits(&also, limit, mover));
            others.iter().skip(1).for_each(|key| drop(also.spend(&brief, key, 1)));
        };
        order.both(late, in_time);
        // By the older time, 26 of 50 tokens have drained; by the newer time, none of 30 has.
        let left = remaining(&store, limit, mover);
        assert!(left == 60 - 24 - 1 || left == 60 - 30 - 1, "{left} left");
    });
}

#[test]
fn a_row_is_spent_from_while_it_moves_back() {
    moving_model(|kind, order| {
        let (store, clock) = store();
        let limit = kind.per_hour(4);
        let mover = moved(&store, limit);
        clock.advance(HOUR / 8);
        assert!(admits(&store, limit, mover));
        // A has recovered by now, and B fills.
        clock.advance(HOUR / 4);
        let at_home: Vec<_> = keys(&store, limit, [B, B, B, B]).take(rows(limit)).collect();
        at_home.iter().skip(1).for_each(|key| assert!(admits(&store, limit, *key)));
        assert_eq!(stands(&store, limit, mover), Some(B));
        let before = remaining(&store, limit, mover);

        let also = store.clone();
        let spend = move || assert!(admits(&also, limit, mover));
        let (met, ()) = order.both(arrives(&store, limit, at_home[0]), spend);
        assert_eq!(remaining(&store, limit, mover), before - 1);
        assert_eq!(stands(&store, limit, mover), Some(if met { A } else { B }));
    });
}
