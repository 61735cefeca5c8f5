//! Rows that have recovered, and become those of other keys.

use super::*;

/// The charge on the recovered row's own key and the one on the newcomer's each land where they belong.
#[test]
fn a_recovered_row_is_claimed_while_its_own_key_comes_back() {
    model(|| {
        let (store, clock) = store();
        let limit = Limit::per_hour(4);
        let [old, new] = two(keys(&store, limit, [A, A, A, A]));
        assert!(admits(&store, limit, old));
        clock.advance(2 * HOUR);

        let other = store.clone();
        both(move || assert!(admits(&other, limit, old)), || assert!(admits(&store, limit, new)));
        assert_eq!(remaining(&store, limit, old), 3);
        assert_eq!(remaining(&store, limit, new), 3);
    });
}

/// Its own key is looked up just as somebody else's numbers, which mean something else, are written there.
#[test]
fn the_numbers_of_another_limit_are_harmless() {
    const WEEK: Duration = Duration::from_secs(604_800);
    model(|| {
        let (store, clock) = store();
        let (small, large) =
            (Limit::sliding_window(10, WEEK), Limit::sliding_window(4_000_000_000, WEEK));
        let old = key(&store, small, [A, A, A, A]);
        let new = key(&store, large, [A, A, A, A]);
        assert!(admits(&store, small, old));
        clock.advance(3 * WEEK);

        let other = store.clone();
        let spend = move || other.spend(&large, &new, 4_000_000_000).expect("room").is_admitted();
        let (large_too, small_too) = both(spend, || admits(&store, small, old));
        assert!(large_too && small_too);
        assert_eq!(remaining(&store, small, old), 9);
        assert_eq!(remaining(&store, large, new), 0);
    });
}

/// However many newcomers there are.
#[test]
fn the_row_of_a_limited_key_is_not_claimed() {
    model(|| {
        let (store, clock) = store();
        let limit = Limit::per_hour(1);
        let mut keys = keys(&store, limit, [A, A, A, A]);
        let [limited, recovered] = two(&mut keys);
        assert!(admits(&store, limit, recovered));
        clock.advance(2 * HOUR);
        let brief = Limit::per_hour(2);
        let full = super::keys(&store, brief, [A, A, A, A]);
        full.take(2).for_each(|key| assert!(admits(&store, brief, key)));
        assert!(admits(&store, limit, limited));

        let newcomer = keys.next().expect("keys without end");
        let other = store.clone();
        let flood = move || other.spend(&limit, &newcomer, 1).is_ok();
        let (counted, admitted) = both(flood, || admits(&store, limit, limited));
        assert!(counted && !admitted);
        assert!(!admits(&store, limit, limited));
    });
}
