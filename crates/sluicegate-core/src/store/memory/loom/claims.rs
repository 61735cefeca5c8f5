//! Rows that have recovered and are given to other keys.

use super::*;

/// The charge to the row's old key and the charge to the new key are each counted for their own key.
#[test]
fn a_recovered_row_is_claimed_while_its_own_key_comes_back() {
    model_of_both(|kind, order| {
        let (store, clock) = store();
        let limit = kind.per_hour(4);
        let [old, new] = two(keys(&store, limit, [A, A, A, A]));
        assert!(admits(&store, limit, old));
        clock.advance(2 * HOUR);

        let also = store.clone();
        let spend = move || assert!(also.spend(&limit, &old, 1).expect("room").is_admitted());
        let also = store.clone();
        order.both(spend, move || assert!(admits(&also, limit, new)));
        assert_eq!(remaining(&store, limit, old), 3);
        assert_eq!(remaining(&store, limit, new), 3);
    });
}

/// A thread looks up the old key just while another limit writes numbers into the row that mean something else.
#[test]
fn the_numbers_of_another_limit_are_harmless() {
    const WEEK: Duration = Duration::from_secs(604_800);
    model(|order| {
        let (store, clock) = store();
        let (small, large) =
            (Limit::sliding_window(10, WEEK), Limit::sliding_window(4_000_000_000, WEEK));
        let old = key(&store, small, [A, A, A, A]);
        let new = key(&store, large, [A, A, A, A]);
        assert!(admits(&store, small, old));
        clock.advance(3 * WEEK);

        let also = store.clone();
        let claim = move || also.spend(&large, &new, 4_000_000_000).expect("room").is_admitted();
        let also = store.clone();
        let (new_too, old_too) = order.both(claim, move || admits(&also, small, old));
        assert!(new_too && old_too);
        assert_eq!(remaining(&store, small, old), 9);
        assert_eq!(remaining(&store, large, new), 0);
    });
}

/// The new key finds one row that has recovered, and takes no other.
#[test]
fn the_row_of_a_limited_key_is_not_claimed() {
    model_of_both(|kind, order| {
        let (store, clock) = store();
        let limit = kind.per_hour(1);
        let mut some = keys(&store, limit, [A, A, A, A]);
        let [limited, recovered] = two(&mut some);
        assert!(admits(&store, limit, recovered));
        clock.advance(2 * HOUR);
        assert!(admits(&store, limit, limited));
        let newcomer = some.next().expect("the keys are endless");

        let also = store.clone();
        let arrive = move || admits(&also, limit, newcomer);
        let also = store.clone();
        let (met, admitted) = order.both(arrive, move || admits(&also, limit, limited));
        assert!(met && !admitted);
        assert!(!admits(&store, limit, limited) && !admits(&store, limit, newcomer));
    });
}
