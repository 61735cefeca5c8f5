//! Refusals, which are read without the lock.

use super::*;

/// Words of before and after a writing, mixed, would tell another time.
#[test]
fn a_refusal_is_not_made_of_two_states() {
    model(|| {
        let (store, clock) = store();
        let limit = Limit::per_hour(60);
        let key = key(&store, limit, [A, A, A, A]);
        let charge = Charge::of(limit, key, 60);
        let taken = store.take(&charge).now().expect("room");
        // Half a token has dropped in; then three more are charged.
        clock.advance(30 * SECOND);

        let other = store.clone();
        let refused = move || {
            let refused = other.spend(&limit, &key, 1).expect("room");
            refused.retry_after().expect("it is limited").as_secs()
        };
        let (retry, ()) = both(refused, || {
            let owed = charge.owed().next().expect("one limit");
            store.settle(owed, &taken.marks().next().expect("one limit"), 63);
        });
        assert!(retry == 30 || retry == 210, "{retry} s");
    });
}

/// Nor of a row's two places.
#[test]
fn a_refusal_is_told_of_a_row_that_is_moved() {
    model(|| {
        let (store, clock) = store();
        let limit = Limit::per_hour(1);
        let mover = super::key(&store, limit, [A, B, A, B]);
        let mut stayers = keys(&store, limit, [A, A, A, A]);
        assert!(admits(&store, limit, mover));
        clock.advance(HOUR / 4);
        stayers.by_ref().take(3).for_each(|key| assert!(admits(&store, limit, key)));
        let newcomer = stayers.next().expect("keys without end");

        let other = store.clone();
        let refused = move || other.spend(&limit, &mover, 1).expect("room").retry_after();
        let (retry, _) = both(refused, || store.spend(&limit, &newcomer, 1).is_ok());
        assert_eq!(retry, Some(HOUR * 3 / 4));
    });
}
