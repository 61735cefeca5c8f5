//! Charges of several limits, whose rows are locked together.

use super::*;

/// All or none, though each thread begins with the limit that the other ends with.
#[test]
fn two_limits_are_charged_all_or_none() {
    model_of_both(|kind, order| {
        let (store, _clock) = store();
        let (one, other) = (kind.per_hour(2), kind.per_hour(3));
        let first = key(&store, one, [A, A, A, A]);
        let second = key(&store, other, [B, B, B, B]);
        let takes = |debit: [(Limit, KeyBuf); 2]| {
            let mut charge = Charge::new();
            for (limit, key) in debit {
                charge.add(limit, key, 1).expect("two limits");
            }
            let store = store.clone();
            move || store.take(&charge).now().expect("room").is_admitted()
        };
        let forth = takes([(one, first), (other, second)]);
        let back = takes([(other, second), (one, first)]);
        let also = store.clone();
        let (forth, (back, alone)) = order.both(forth, move || (back(), admits(&also, one, first)));
        assert_eq!(usize::from(forth) + usize::from(back) + usize::from(alone), 2);
        assert_eq!(remaining(&store, one, first), 0);
        assert_eq!(remaining(&store, other, second), 3 - u64::from(forth) - u64::from(back));
    });
}
