//! Rows that have recovered, and become those of other keys.

use super::*;

/// The charge on the row's own key and the one on the newcomer's each land where they belong.
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

/// Its own key is looked up just as another limit's numbers, which mean something else, are written
/// there.
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

/// A newcomer finds one row that has recovered, and takes no other.
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
        let newcomer = some.next().expect("keys without end");

        let also = store.clone();
        let arrive = move || admits(&also, limit, newcomer);
        let also = store.clone();
        let (met, admitted) = order.both(arrive, move || admits(&also, limit, limited));
        assert!(met && !admitted);
        assert!(!admits(&store, limit, limited) && !admits(&store, limit, newcomer));
    });
}
