//! Spending, giving back and forgetting at the same time.

use super::*;

/// What is in use is never more than the limit, and in the end nothing of it is left.
#[test]
fn what_is_given_back_can_be_spent_once_more_and_no_oftener() {
    let shapes = [
        Limit::per_hour(3),
        Limit::fixed_window(3, MINUTE),
        Limit::sliding_window(3, MINUTE),
        Limit::concurrent(3),
        Limit::sliding_log(3, MINUTE),
    ];
    for limit in shapes {
        let (store, _clock) = memory(1);
        let charge = Charge::of(limit, key(0), 1);
        let (under_way, kept) = (AtomicU64::new(0), AtomicU64::new(0));
        together(|thread| {
            for round in 0..ROUNDS {
                let outcome = match (thread + round) % 2 {
                    0 => store.spend(&limit, &key(0), 1),
                    _ => store.take(&charge).now(),
                };
                let outcome = outcome.expect("room");
                if !outcome.is_admitted() {
                    continue;
                }
                assert!(under_way.fetch_add(1, Ordering::SeqCst) < 3, "{limit}");
                thread::yield_now();
                // One charge is never given back.
                if thread == 0 && kept.fetch_add(1, Ordering::SeqCst) == 0 {
                    continue;
                }
                under_way.fetch_sub(1, Ordering::SeqCst);
                let debit = charge.debits().next().expect("one limit");
                store.settle(debit, &outcome.receipts().next().expect("one limit"), 0);
            }
        });
        let under_way = under_way.into_inner();
        assert!(under_way <= 1);
        assert_eq!(remaining(&store, limit, 0), 3 - under_way, "{limit}");
    }
}

/// A response may turn out to have cost more, beyond the limit.
#[test]
fn what_is_charged_on_top_is_never_lost() {
    let limit = Limit::per_hour(THREADS * ROUNDS * 3);
    let (store, _clock) = memory(1);
    let charge = Charge::of(limit, key(0), 1);
    together(|_| {
        for _ in 0..ROUNDS {
            let outcome = store.spend(&limit, &key(0), 1).expect("room");
            assert!(outcome.is_admitted());
            let debit = charge.debits().next().expect("one limit");
            store.settle(debit, &outcome.receipts().next().expect("one limit"), 3);
        }
    });
    assert_eq!(remaining(&store, limit, 0), 0);
}

/// Keys in the same buckets are forgotten.
#[test]
fn a_key_is_not_forgotten_when_others_are() {
    let limit = Limit::per_hour(THREADS * ROUNDS / 2);
    let (store, _clock) = memory(4);
    let admitted = AtomicU64::new(0);
    together(|thread| {
        let neighbour = Charge::of(limit, key(1 + thread % 4), 1);
        for round in 0..ROUNDS {
            one(spend(&store, limit, 0, thread + round).expect("room"), &admitted);
            assert!(store.take(&neighbour).now().expect("room").is_admitted());
            store.reset(&neighbour).now().expect("no room is needed");
        }
    });
    assert_eq!(admitted.into_inner(), THREADS * ROUNDS / 2);
    assert_eq!(remaining(&store, limit, 0), 0);
    assert_eq!(store.len(), 1);
}

/// Each reset grants the limit once more, and no more than that.
#[test]
fn a_key_that_is_forgotten_while_it_spends_gets_its_limit_anew() {
    let limit = Limit::per_hour(5);
    let (store, _clock) = memory(1);
    let charge = Charge::of(limit, key(0), 1);
    let (admitted, forgotten) = (AtomicU64::new(0), AtomicU64::new(0));
    together(|thread| {
        for round in 0..ROUNDS {
            one(spend(&store, limit, 0, thread + round).expect("room"), &admitted);
            if thread == 0 && round % 10 == 9 {
                store.reset(&charge).now().expect("no room is needed");
                one(true, &forgotten);
            }
        }
    });
    let left = remaining(&store, limit, 0);
    let most = 5 * (forgotten.into_inner() + 1) - left;
    assert!((5..=most).contains(&admitted.into_inner()));
}
