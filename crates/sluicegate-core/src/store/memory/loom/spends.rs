//! Spending on keys whose rows are in one bucket.

use super::*;

/// How many of `times` attempts are admitted.
fn spends(
    store: &Memory,
    limit: Limit,
    key: KeyBuf,
    times: usize,
) -> impl FnOnce() -> usize + use<> {
    let store = store.clone();
    move || (0..times).filter(|_| admits(&store, limit, key)).count()
}

#[test]
fn two_threads_get_exactly_what_is_left() {
    model_of_both(|kind, order| {
        let (store, _clock) = store();
        let limit = kind.per_hour(4);
        let key = key(&store, limit, [A, A, A, A]);
        assert!(admits(&store, limit, key));
        let (one, other) = order.both(spends(&store, limit, key, 2), spends(&store, limit, key, 2));
        assert_eq!(one + other, 3);
        assert_eq!(remaining(&store, limit, key), 0);
    });
}

/// A window has two words, and both change.
#[test]
fn a_window_is_spent_from_exactly() {
    model(|order| {
        let (store, clock) = store();
        let limit = Limit::sliding_window(4, HOUR);
        let key = key(&store, limit, [A, A, A, A]);
        assert!((0..2).all(|_| admits(&store, limit, key)));
        // The previous window counts as two until half of this one has passed.
        clock.advance(HOUR);
        let (one, other) = order.both(spends(&store, limit, key, 2), spends(&store, limit, key, 2));
        assert_eq!(one + other, 2);
    });
}

#[test]
fn a_place_held_by_one_thread_is_not_given_to_another() {
    model(|order| {
        let (store, _clock) = store();
        let limit = Limit::concurrent(1);
        let key = key(&store, limit, [A, A, A, A]);
        let charge = Charge::of(limit, key, 1);
        let hold = || {
            let (store, charge) = (store.clone(), charge.clone());
            move || {
                let held = admits(&store, limit, key);
                if held {
                    let debit = charge.debits().next().expect("one limit");
                    store.settle(debit, &Default::default(), 0);
                }
                held
            }
        };
        let (one, other) = order.both(hold(), hold());
        assert!(one || other);
        assert_eq!(remaining(&store, limit, key), 1);
    });
}

/// Neither thread finds a row. Only one makes it.
#[test]
fn two_threads_with_one_new_key_make_one_row() {
    model_of_both(|kind, order| {
        let (store, _clock) = store();
        let limit = kind.per_hour(4);
        let key = key(&store, limit, [A, B, A, B]);
        let (one, other) = order.both(spends(&store, limit, key, 2), spends(&store, limit, key, 1));
        assert_eq!(one + other, 3);
        assert_eq!(remaining(&store, limit, key), 1);
        assert_eq!(stands(&store, limit, key), Some(A));
    });
}

#[test]
fn neighbours_do_not_pay_for_each_other() {
    model_of_both(|kind, order| {
        let (store, _clock) = store();
        let limit = kind.per_hour(4);
        let [one, other] = two(keys(&store, limit, [A, A, A, A]));
        assert!(admits(&store, limit, one) && admits(&store, limit, other));
        order.both(spends(&store, limit, one, 2), spends(&store, limit, other, 1));
        assert_eq!(remaining(&store, limit, one), 1);
        assert_eq!(remaining(&store, limit, other), 2);
    });
}
