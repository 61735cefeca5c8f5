//! New keys that have no room.

use super::*;

/// Fills both buckets for a second. Returns a new key that has no room.
fn full(store: &Memory, kind: RowKind, limit: Limit) -> KeyBuf {
    let brief = kind.per(1, SECOND);
    for choices in [[A, A, A, A], [B, B, B, B]] {
        let some: Vec<_> = keys(store, brief, choices).take(rows(brief)).collect();
        some.into_iter().for_each(|key| assert!(admits(store, brief, key)));
    }
    key(store, limit, [A, B, A, B])
}

fn together(kind: RowKind) -> Limit {
    kind.per_hour(1).when_full(WhenFull::CountTogether)
}

#[test]
fn a_newcomer_without_room_is_counted_once() {
    moving_model(|kind, order| {
        let (store, _clock) = store();
        let limit = together(kind);
        let newcomer = full(&store, kind, limit);
        let spends = || {
            let store = store.clone();
            move || admits(&store, limit, newcomer)
        };
        let (one, other) = order.both(spends(), spends());
        assert!(one != other, "exactly one");
        assert_eq!(store.turned_away(), 0);
    });
}

/// The table has recovered for one thread, and is full for the other.
#[test]
fn a_newcomer_that_gets_a_row_keeps_what_it_was_charged_without() {
    moving_model(|kind, order| {
        let (store, clock) = store();
        let limit = together(kind);
        let newcomer = full(&store, kind, limit);
        let also = store.clone();
        let late = move || admits(&also, limit, newcomer);
        let also = store.clone();
        let in_time = move || {
            clock.advance(2 * SECOND);
            admits(&also, limit, newcomer)
        };
        let (late, in_time) = order.both(late, in_time);
        assert!(late != in_time, "exactly one, in the hour that has begun");
        assert!(!admits(&store, limit, newcomer));
    });
}
