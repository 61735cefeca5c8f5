//! Refusals, which read a row without its lock.

use super::*;

/// A mixture of the words before and after a write would give a wrong time.
#[test]
fn a_refusal_is_not_made_of_two_states() {
    model_of_both(|kind, order| {
        let (store, clock) = store();
        let limit = kind.per(60, 60 * SECOND);
        let key = key(&store, limit, [A, A, A, A]);
        let charge = Charge::of(limit, key, 60);
        let taken = store.take(&charge).now().expect("room");
        // Half a token has been added; then three more are charged.
        clock.advance(SECOND / 2);

        let also = store.clone();
        let force = move || {
            let debit = charge.debits().next().expect("one limit");
            also.settle(debit, &taken.receipts().next().expect("one limit"), 63);
        };
        let also = store.clone();
        let refused = move || also.spend(&limit, &key, 1).expect("room").retry_after();
        let ((), retry) = order.both(force, refused);
        let retry = retry.expect("it is limited").as_millis();
        assert!(retry == 500 || retry == 3_500, "{retry} ms");
    });
}

/// A refusal never mixes the content of a row's place before and after a move.
#[test]
fn a_row_that_is_moved_refuses_exactly() {
    moving_model(|kind, order| {
        let (store, clock) = store();
        let limit = kind.per_hour(1);
        let mover = key(&store, limit, [A, B, A, B]);
        let mut stayers = keys(&store, limit, [A, A, A, A]);
        assert!(admits(&store, limit, mover));
        clock.advance(HOUR / 4);
        stayers.by_ref().take(rows(limit) - 1).for_each(|key| assert!(admits(&store, limit, key)));
        let newcomer = stayers.next().expect("the keys are endless");

        let also = store.clone();
        let arrive = move || drop(also.spend(&limit, &newcomer, 1));
        let also = store.clone();
        let refused = move || also.spend(&limit, &mover, 1).expect("room").retry_after();
        let ((), retry) = order.both(arrive, refused);
        assert_eq!(retry.map(|retry| retry.as_secs()), Some(2_700));
    });
}

/// Nor does it mix the states of a displaced row that others spend from.
#[test]
fn a_displaced_row_refuses_exactly() {
    moving_model(|kind, order| {
        let (store, clock) = store();
        let limit = kind.per_hour(60);
        let mover = key(&store, limit, [A, B, A, B]);
        assert!(admits(&store, limit, mover));
        keys(&store, limit, [A, A, A, A])
            .take(rows(limit))
            .for_each(|key| assert!(admits(&store, limit, key)));
        assert_eq!(stands(&store, limit, mover), Some(B));
        assert!(store.spend(&limit, &mover, 39).expect("room").is_admitted());
        clock.advance(30 * SECOND);

        let also = store.clone();
        let spend = move || assert!(admits(&also, limit, mover));
        let also = store.clone();
        let refused = move || also.spend(&limit, &mover, 60).expect("room").retry_after();
        let ((), retry) = order.both(spend, refused);
        let retry = retry.expect("not all of it is left").as_secs();
        assert!(retry == 39 * 60 + 30 || retry == 40 * 60 + 30, "{retry} s");
    });
}
