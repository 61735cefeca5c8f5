//! Keys without room that are counted together, and keys that have a row.

use std::collections::HashMap;

use proptest::prelude::*;

use super::full::fill;
use super::*;
use crate::limit::testing::decide;
use crate::limit::{Attempt, LimitInternals as _, Receipt, State};

const HOUR: Duration = Duration::from_secs(3_600);

/// The number of rows that the new keys of a limit share.
const SHARED: u64 = 256;

fn shapes(count: u64) -> [Limit; 8] {
    [
        Limit::per_hour(count),
        Limit::per(3 * count, 3 * HOUR + Duration::from_micros(1)).burst(count),
        Limit::fixed_window(count, HOUR),
        Limit::sliding_window(count, HOUR),
        Limit::sliding_log(count, HOUR),
        Limit::per_hour(count).ban(HOUR),
        Limit::fixed_window(count, HOUR).named("login").carried(),
        Limit::concurrent(count),
    ]
}

fn admitted(store: &Memory, limit: Limit, numbers: impl Iterator<Item = u64>) -> u64 {
    numbers.map(|number| u64::from(admits(store, limit, number))).sum()
}

fn settle(store: &Memory, limit: Limit, number: u64, receipt: &Receipt, spent: u64) {
    let charge = Charge::of(limit, key(number), 1);
    store.settle(charge.debits().next().expect("one limit"), receipt, spent);
}

#[test]
fn a_newcomer_without_room_is_admitted_no_more_than_its_limit() {
    for limit in shapes(5) {
        let (store, _clock) = memory(50);
        fill(&store, limit);
        assert_eq!(admitted(&store, limit, [7; 100].into_iter()), 5, "{limit}");
        assert_eq!(store.counted_together(), 100, "{limit}");
    }
}

/// The owner of a /46 has 262,144 networks of 64 bits. Each counts as a client.
#[test]
fn a_flood_of_networks_shares_some_hundred_budgets() {
    for limit in shapes(5) {
        let (store, _clock) = memory(50);
        fill(&store, limit);
        let met = admitted(&store, limit, 0..20_000);
        assert!(met <= SHARED * 5, "{met} of {limit}");
        assert!(met >= SHARED * 4, "{met} of {limit}");
    }
}

/// Each second brings some hundred keys that were never seen before, as long as the window lasts. Limited keys stay
/// limited, and each new key is limited.
#[test]
fn a_table_full_of_fresh_keys_for_an_hour_frees_nobody() {
    let (store, clock) = memory(2_000);
    let limit = Limit::fixed_window(3, HOUR).from_first();
    let known = 0..100;
    assert_eq!(
        admitted(&store, limit, known.clone().chain(known.clone()).chain(known.clone())),
        300
    );
    let (mut guesses, mut met) = (0, 0);
    for second in 0..3_599_u64 {
        clock.advance(SECOND);
        met += admitted(&store, limit, (0..20).map(|i| 1_000_000 + 20 * second + i));
        guesses += admitted(&store, limit, [500].into_iter());
        assert!(!admits(&store, limit, second % 100), "freed in second {second}");
    }
    assert!(guesses <= 3, "{guesses} guesses");
    assert!(met <= 3_000 + SHARED * 3, "{met}");
    assert_eq!(store.turned_away(), 0);
    clock.advance(SECOND + EXPIRED);
    assert!(known.into_iter().all(|number| admits(&store, limit, number)));
}

/// What a key was charged together with others is not forgotten when it gets its own row.
#[test]
fn a_key_that_gets_a_row_begins_with_what_was_counted_together() {
    for limit in shapes(5).into_iter().filter(|limit| !limit.is_held()) {
        let (store, clock) = memory(50);
        // This key is in the same table and is gone in a minute.
        let brief = match limit {
            limit if limit.has_extra_state() => Limit::sliding_log(1, MINUTE),
            limit if limit.fits_one_word() => Limit::per_minute(1),
            _ => Limit::fixed_window(1, MINUTE).from_first(),
        };
        fill(&store, brief);
        assert_eq!(admitted(&store, limit, [7; 3].into_iter()), 3, "{limit}");
        assert_eq!(store.counted_together(), 3, "{limit}");
        clock.advance(MINUTE + EXPIRED);
        assert_eq!(remaining(&store, limit, 7), 2, "{limit}");
        assert_eq!(admitted(&store, limit, [7; 9].into_iter()), 2, "{limit}");
        // A new key shares a row with it once in 256 times.
        assert_eq!(store.counted_together(), 3, "{limit}");
        clock.advance(3 * HOUR);
        assert_eq!(admitted(&store, limit, [7; 9].into_iter()), 5, "{limit}");
    }
}

/// Also if the search for the row of another limit has to begin again with more locks.
#[test]
fn a_key_that_gets_a_row_beside_another_limit_begins_with_what_was_counted_together() {
    let (limit, other) = (Limit::fixed_window(5, HOUR), Limit::fixed_window(2, HOUR));
    for _ in 0..200 {
        let (store, clock) = memory(50);
        fill(&store, Limit::fixed_window(1, MINUTE).from_first());
        assert_eq!(admitted(&store, limit, [7; 3].into_iter()), 3);
        clock.advance(MINUTE + EXPIRED);
        // Some buckets are full, and others are not.
        (0..45).for_each(|number| drop(take(&store, other, number)));
        let mut both = Charge::of(limit, key(7), 1);
        both.add(other, key(1_000), 1).expect("two limits");
        assert!(store.take(&both).now().expect("room").is_admitted());
        assert_eq!(remaining(&store, limit, 7), 1);
    }
}

#[test]
fn a_refused_key_takes_no_row_for_what_others_spent() {
    let (store, clock) = memory(50);
    let limit = Limit::per_hour(1);
    fill(&store, Limit::per_minute(1));
    assert_eq!(admitted(&store, limit, 0..5_000), SHARED);
    clock.advance(MINUTE + EXPIRED);
    assert_eq!(store.len(), 0);
    assert_eq!(admitted(&store, limit, 5_000..9_000), 0);
    assert_eq!(store.len(), 0);
    clock.advance(HOUR);
    assert_eq!(admitted(&store, limit, 0..20), 20);
}

/// A place held in a shared row is given back there. A key does not get a place twice by getting its own row.
#[test]
fn places_that_are_held_together_are_given_back_where_they_were_taken() {
    let (store, clock) = memory(50);
    let limit = Limit::concurrent(2);
    fill(&store, Limit::fixed_window(1, MINUTE).from_first());
    let held = [(); 2].map(|()| take(&store, limit, 7).expect("a row"));
    assert!(held.iter().all(|decision| decision.is_admitted()));
    let receipts = held.map(|decision| decision.statuses().next().expect("one limit").receipt);
    assert!(!admits(&store, limit, 7));
    clock.advance(MINUTE + EXPIRED);
    assert!(!admits(&store, limit, 7));
    settle(&store, limit, 7, &receipts[0], 0);
    let again = take(&store, limit, 7).expect("a row");
    assert!(again.is_admitted() && !admits(&store, limit, 7));
    settle(&store, limit, 7, &receipts[1], 0);
    settle(&store, limit, 7, &again.statuses().next().expect("one limit").receipt, 0);
    // Nothing is held any more, so the key has its own row from now on.
    let before = store.counted_together();
    assert_eq!(admitted(&store, limit, [7; 5].into_iter()), 2);
    assert_eq!(store.counted_together(), before);
}

#[test]
fn giving_back_to_a_shared_row_mints_nothing() {
    for limit in shapes(5).into_iter().filter(|limit| !limit.is_held()) {
        let (store, _clock) = memory(50);
        fill(&store, limit);
        let taken = [(); 5].map(|()| take(&store, limit, 7).expect("a row"));
        let receipt = |i: usize| taken[i].statuses().next().expect("one limit").receipt;
        settle(&store, limit, 7, &receipt(4), 0);
        assert_eq!(remaining(&store, limit, 7), 1, "{limit}");
        // A cost above the reserved one is charged to the same row.
        settle(&store, limit, 7, &receipt(3), 2);
        assert_eq!(admitted(&store, limit, [7; 5].into_iter()), 0, "{limit}");
        assert_eq!(store.turned_away(), 100, "the keys that filled the table");
    }
}

/// The numbers of a limit change while its new keys are counted together.
#[test]
fn a_reload_frees_nobody_who_is_counted_together() {
    let (store, _clock) = memory(50);
    let [before, after] =
        [5, 3].map(|count| Limit::fixed_window(count, HOUR).named("login").carried());
    fill(&store, before);
    assert_eq!(admitted(&store, before, [7; 3].into_iter()), 3);
    assert_eq!(admitted(&store, after, [7; 9].into_iter()), 0);
    assert_eq!(admitted(&store, before, [7; 9].into_iter()), 2);
}

/// Two keys of one request would share a row. Neither passes uncounted.
#[test]
fn two_keys_of_one_request_do_not_share_a_row() {
    let (store, _clock) = memory(50);
    let limit = Limit::per_hour(1);
    fill(&store, limit);
    let mut admitted = 0;
    for number in 0..3_000 {
        let mut charge = Charge::of(limit, key(2 * number), 1);
        charge.add(limit, key(2 * number + 1), 1).expect("two keys");
        match store.take(&charge).now() {
            Ok(outcome) => admitted += u64::from(outcome.is_admitted()),
            Err(error) => assert!(error.must_refuse()),
        }
    }
    assert!(admitted <= SHARED / 2, "{admitted}");
}

/// Not even if the row is in use already, as that of a place that is held.
#[test]
fn two_keys_of_one_request_lose_nothing_in_the_row_that_they_share() {
    for limit in shapes(3) {
        let (store, _clock) = memory(50);
        fill(&store, limit);
        let row = |number| store.0.fingerprint(limit.id(), &key(number)) % SHARED;
        let other = (8..).find(|number| row(*number) == row(7)).expect("one of some hundred");
        assert_eq!(admitted(&store, limit, [7; 2].into_iter()), 2);
        let mut both = Charge::of(limit, key(7), 1);
        both.add(limit, key(other), 1).expect("two keys");
        assert!(store.take(&both).now().is_err_and(|error| error.must_refuse()), "{limit}");
        store.peek(&both).now().expect("peeks need no room");
        assert_eq!(admitted(&store, limit, [7; 9].into_iter()), 1, "{limit}");
    }
}

/// With more limits than there are shared rows for, new keys are refused, not admitted.
#[test]
fn shared_rows_are_bounded() {
    let (store, _clock) = memory(1);
    let mut met = 0;
    let limits = if cfg!(miri) { 0..2 } else { 0..100 };
    for limit in limits.map(|count| Limit::per_hour(1 + count)) {
        fill(&store, limit);
        for number in 0..600 {
            match take(&store, limit, number) {
                Ok(decision) => met += u64::from(decision.is_admitted()),
                Err(error) => assert!(error.must_refuse()),
            }
        }
    }
    // A row for each key, a fifth more, and two buckets.
    let rows = store.0.shared_rows.table.len(store.0.moment().now);
    assert!(rows <= 64 * 256 * 6 / 5 + 12, "{rows}");
    assert!(met >= rows as u64, "{met} in {rows} rows");
}

#[derive(Debug, Clone)]
enum Operation {
    Take(Vec<(usize, u64)>),
    Settle { ago: usize, spent: u64 },
    Pass(u64),
}

fn limits() -> [Limit; 9] {
    let together = |limit: Limit| limit.when_full(WhenFull::CountTogether);
    [
        together(Limit::per_second(3)),
        together(Limit::per(7, 3 * SECOND).burst(4)),
        together(Limit::fixed_window(3, SECOND)),
        together(Limit::sliding_window(4, SECOND)),
        Limit::sliding_log(4, SECOND),
        Limit::per_second(2).ban(2 * SECOND),
        together(Limit::per_second(9).min_gap(Duration::from_millis(30))),
        Limit::concurrent(3),
        together(Limit::fixed_window(3, SECOND).named("plan").carried()),
    ]
}

fn operation() -> impl Strategy<Value = Operation> {
    let debit = prop::collection::vec((0..limits().len(), 0_u64..40), 1..4);
    prop_oneof![
        8 => debit.prop_map(Operation::Take),
        2 => (0_usize..8, 0_u64..3).prop_map(|(ago, spent)| Operation::Settle { ago, spent }),
        3 => prop_oneof![0_u64..300_000, 0_u64..3_000_000].prop_map(Operation::Pass),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// With any number of rows: a key is never admitted more often than it would be in a table of its own.
    #[test]
    fn nobody_is_admitted_more_than_alone(
        operations in prop::collection::vec(operation(), 1..250),
    ) {
        let (store, clock) = memory(1);
        let mut alone: HashMap<(u64, u64), State> = HashMap::new();
        let mut taken = Vec::new();
        for operation in operations {
            let now = clock.now();
            match operation {
                Operation::Take(debit) => {
                    let mut charge = Charge::new();
                    for (limit, number) in &debit {
                        let _ = charge.add(limits()[*limit], key(*number), 1);
                    }
                    let outcome = match store.take(&charge).now() {
                        Ok(outcome) if outcome.is_admitted() => outcome,
                        Ok(_) => continue,
                        Err(error) => {
                            prop_assert!(error.must_refuse());
                            continue;
                        }
                    };
                    prop_assert!(!outcome.is_uncounted());
                    for (debit, receipt) in charge.debits().zip(outcome.receipts()) {
                        let number = (0..40).find(|number| key(*number) == debit.key).expect("a key");
                        let state = alone.entry((debit.limit.id(), number)).or_default();
                        let mut attempt = [Attempt { limit: &debit.limit, state, cost: debit.cost }];
                        let decision = decide(&mut attempt, now, None, charge.keys());
                        prop_assert!(decision.is_admitted(), "{} for key {}", debit.limit, number);
                        let own = decision.statuses().next().expect("one limit").receipt;
                        taken.push((debit.clone(), number, receipt, own));
                    }
                }
                Operation::Settle { ago, spent } => {
                    let Some(at) = taken.len().checked_sub(ago + 1) else { continue };
                    let (debit, number, receipt, own) = taken.remove(at);
                    let spent = if debit.limit.is_held() { 0 } else { spent };
                    store.settle(&debit, &receipt, spent);
                    let state = alone.entry((debit.limit.id(), number)).or_default();
                    if spent < debit.cost {
                        debit.limit.settle(state, now, &own, debit.cost, spent);
                    }
                }
                Operation::Pass(micros) => clock.advance(Duration::from_micros(micros)),
            }
        }
    }
}
