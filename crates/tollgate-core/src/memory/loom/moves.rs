//! Rows that make way for newcomers.

use super::*;

/// Bucket A full, with the row of the key that is returned in front; B is empty. Whoever comes next to A
/// moves that row to B.
fn crowded(store: &Memory, limit: Limit) -> (KeyBuf, KeyBuf) {
    let mover = key(store, limit, [A, B, A, B]);
    let mut stayers = keys(store, limit, [A, A, A, A]);
    assert!(admits(store, limit, mover));
    stayers.by_ref().take(3).for_each(|key| assert!(admits(store, limit, key)));
    (mover, stayers.next().expect("keys without end"))
}

/// The same, with the newcomer there already.
fn moved(store: &Memory, limit: Limit) -> KeyBuf {
    let (mover, newcomer) = crowded(store, limit);
    assert!(admits(store, limit, newcomer));
    assert_eq!(stands(store, limit, mover), Some(B));
    mover
}

#[test]
fn a_row_is_spent_from_while_it_is_moved() {
    model(|| {
        let (store, _clock) = store();
        let limit = Limit::per_hour(4);
        let (mover, newcomer) = crowded(&store, limit);

        let other = store.clone();
        let arrive = move || other.spend(&limit, &newcomer, 1).is_ok();
        let (counted, ()) = both(arrive, || {
            (0..2).for_each(|_| assert!(admits(&store, limit, mover)));
        });
        assert_eq!(remaining(&store, limit, mover), 1);
        assert_eq!(remaining(&store, limit, newcomer), 4 - u64::from(counted));
        // Where the bucket to move to is held by others just then, there is no room for now.
        assert_eq!(store.turned_away(), u64::from(!counted));
        assert_eq!(stands(&store, limit, mover), Some(if counted { B } else { A }));
    });
}

#[test]
fn a_limited_row_stays_limited_while_it_is_moved() {
    model(|| {
        let (store, _clock) = store();
        let limit = Limit::per_hour(1);
        let (mover, newcomer) = crowded(&store, limit);

        let other = store.clone();
        both(
            move || drop(other.spend(&limit, &newcomer, 1)),
            || {
                (0..2).for_each(|_| assert!(!admits(&store, limit, mover)));
            },
        );
        assert!(!admits(&store, limit, mover));
    });
}

#[test]
fn a_row_is_given_back_to_while_it_is_moved() {
    model(|| {
        let (store, _clock) = store();
        let limit = Limit::per_hour(4);
        let (mover, newcomer) = crowded(&store, limit);
        let charge = Charge::of(limit, mover, 2);
        let taken = store.take(&charge).now().expect("room");
        assert_eq!(remaining(&store, limit, mover), 1);

        let other = store.clone();
        both(
            move || drop(other.spend(&limit, &newcomer, 1)),
            || {
                let owed = charge.owed().next().expect("one limit");
                store.settle(owed, &taken.marks().next().expect("one limit"), 0);
            },
        );
        assert_eq!(remaining(&store, limit, mover), 3);
    });
}

/// Both find it in the bucket that it was moved to.
#[test]
fn a_row_that_stands_elsewhere_is_spent_from_exactly() {
    model(|| {
        let (store, _clock) = store();
        let limit = Limit::per_hour(3);
        let mover = moved(&store, limit);
        let other = store.clone();
        let spends = move || (0..2).filter(|_| admits(&other, limit, mover)).count();
        let (one, two) = both(spends, || usize::from(admits(&store, limit, mover)));
        assert_eq!(one + two, 2);
        assert_eq!(remaining(&store, limit, mover), 0);
    });
}

/// It has recovered where it stands, and is begun anew in its first bucket, while another thread, which
/// read the clock before, still spends from it.
#[test]
fn a_row_that_recovers_elsewhere_is_counted_once() {
    model(|| {
        let (store, clock) = store();
        let limit = Limit::per_hour(1);
        let mover = moved(&store, limit);
        let other = store.clone();
        let late = move || admits(&other, limit, mover);
        let (late, own) = both(late, || {
            clock.advance(2 * HOUR);
            admits(&store, limit, mover)
        });
        assert!(late != own, "once in the hour that has begun");
        assert!(!admits(&store, limit, mover));
        assert!(stands(&store, limit, mover).is_some());
    });
}

/// The row in the way is itself at home elsewhere, and moves back.
#[test]
fn a_row_is_spent_from_while_it_moves_back() {
    model(|| {
        let (store, clock) = store();
        let limit = Limit::per_hour(4);
        let mover = moved(&store, limit);
        // A empties, B fills.
        clock.advance(HOUR / 8);
        assert!(admits(&store, limit, mover));
        clock.advance(HOUR / 8);
        let at_home = keys(&store, limit, [B, B, B, B]);
        let mut at_home = at_home.take(4);
        at_home.by_ref().take(3).for_each(|key| assert!(admits(&store, limit, key)));
        let newcomer = at_home.next().expect("four");
        let before = remaining(&store, limit, mover);
        assert_eq!(stands(&store, limit, mover), Some(B));

        let other = store.clone();
        let arrive = move || other.spend(&limit, &newcomer, 1).is_ok();
        let (counted, ()) = both(arrive, || assert!(admits(&store, limit, mover)));
        assert_eq!(remaining(&store, limit, mover), before - 1);
        assert_eq!(stands(&store, limit, mover), Some(if counted { A } else { B }));
    });
}
