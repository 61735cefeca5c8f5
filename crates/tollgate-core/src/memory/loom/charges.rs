//! Charges that owe to several limits, whose rows are locked together.

use super::*;

/// All or none, though each begins with the limit that the other ends with.
#[test]
fn two_limits_are_charged_all_or_none() {
    model(|| {
        let (store, _clock) = store();
        let (one, other) = (Limit::per_hour(2), Limit::per_hour(3));
        let first = key(&store, one, [A, A, A, A]);
        let second = key(&store, other, [B, B, B, B]);
        let charge = |owed: [(Limit, KeyBuf); 2]| {
            let mut charge = Charge::new();
            for (limit, key) in owed {
                charge.owe(limit, key, 1).expect("two limits");
            }
            charge
        };
        let forth = charge([(one, first), (other, second)]);
        let back = charge([(other, second), (one, first)]);

        let also = store.clone();
        let takes = move || also.take(&forth).now().expect("room").is_admitted();
        let (by_one, by_other) = both(takes, || {
            let both = store.take(&back).now().expect("room").is_admitted();
            both && admits(&store, one, first)
        });
        let spent = u64::from(by_one) + 1;
        assert_eq!(remaining(&store, other, second), 3 - spent);
        assert!(by_one || by_other);
        assert_eq!(remaining(&store, one, first), 0);
    });
}
