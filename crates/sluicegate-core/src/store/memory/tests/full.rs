//! Requests with some limits that there is room for, and some that there is none for.

use super::*;
use crate::admission::enforcer::Enforcer;
use crate::key::Global;
use crate::key::testing::Request;
use crate::limit::Receipt;
use crate::rule::Rule;

const HOUR: Duration = Duration::from_secs(3_600);

/// Fills the table for rows of `limit` with keys that no test uses.
pub(super) fn fill(store: &Memory, limit: Limit) {
    let limit = limit.when_full(WhenFull::Admit);
    let mut turned_away = 0;
    for number in 1_000_000.. {
        turned_away += u64::from(take(store, limit, number).is_err());
        if turned_away == 100 {
            return;
        }
    }
}

fn both(first: (Limit, u64), second: (Limit, u64)) -> Charge {
    let mut charge = Charge::of(first.0, key(first.1), 1);
    charge.add(second.0, key(second.1), 1).expect("two limits");
    charge
}

fn answers(limit: Limit) -> [Limit; 2] {
    [WhenFull::Admit, WhenFull::CountTogether].map(|answer| limit.when_full(answer))
}

/// `(100/hour by Ip, concurrent(10) by Global)`, with the table of addresses full.
#[test]
fn no_room_for_an_address_does_not_uncount_what_runs_at_once() {
    for by_address in answers(Limit::fixed_window(100, HOUR)) {
        let (store, _clock) = memory(100);
        let (everybody, at_once) = (7, Limit::concurrent(10));
        assert!(admits(&store, at_once, everybody));
        fill(&store, by_address);
        let admitted = (0..300).filter(|number| {
            let charge = both((by_address, 2_000_000 + number), (at_once, everybody));
            let outcome = store.take(&charge).now().expect("the other limit has room");
            let uncounted = by_address.answer_when_full() == WhenFull::Admit;
            assert_eq!(outcome.is_uncounted(), uncounted && outcome.is_admitted());
            outcome.is_admitted()
        });
        assert_eq!(admitted.count(), 9);
    }
}

/// A client with a few requests a minute sends another account with each request.
#[test]
fn invented_accounts_do_not_uncount_the_client() {
    for by_account in answers(Limit::per_hour(3)) {
        let (store, _clock) = memory(100);
        let (client, by_client) = (7, Limit::per_minute(5));
        assert!(admits(&store, by_client, client));
        fill(&store, by_account);
        let admitted = (0..10_000).filter(|number| {
            let charge = both((by_client, client), (by_account, 2_000_000 + number));
            store.take(&charge).now().expect("the client is known").is_admitted()
        });
        assert_eq!(admitted.count(), 4);
    }
}

/// Of the limits that there is room for, all or none are charged.
#[test]
fn a_limit_that_refuses_beside_one_without_room_charges_no_other() {
    let (store, _clock) = memory(100);
    let (limit, other) = (Limit::per_hour(1), Limit::per_hour(9).named("other"));
    let missing = Limit::per_hour(7).when_full(WhenFull::Admit);
    assert!(admits(&store, limit, 1) && admits(&store, other, 1));
    fill(&store, missing);
    let mut charge = both((other, 1), (missing, 2_000_000));
    charge.add(limit, key(1), 1).expect("three limits");
    let decision = store.take(&charge).now().expect("two have room").decision(&charge);
    assert!(!decision.is_admitted());
    assert_eq!(decision.statuses().filter(|status| status.refused).count(), 1);
    assert_eq!(remaining(&store, other, 1), 8);
}

/// The decision shows a limit that was not counted, and settling it does nothing.
#[test]
fn a_limit_that_was_not_counted_is_told_so_and_owes_nothing() {
    let (store, _clock) = memory(100);
    let (known, missing) = (Limit::per_hour(9), Limit::per_hour(7).when_full(WhenFull::Admit));
    assert!(admits(&store, known, 1));
    fill(&store, missing);
    let before = store.turned_away();
    let charge = both((missing, 2_000_000), (known, 1));
    let outcome = store.take(&charge).now().expect("one has room");
    let decision = outcome.decision(&charge);
    let told: Vec<_> = decision.statuses().map(|it| (it.uncounted, it.charged)).collect();
    assert_eq!(told, [(true, 0), (false, 1)]);
    assert!(outcome.is_admitted() && outcome.is_uncounted() && decision.is_uncounted());
    assert_eq!(decision.remaining(), Some(7));
    let receipts: Vec<Receipt> = outcome.receipts().collect();
    assert!(receipts[0].is_void() && !receipts[1].is_void());
    for (debit, receipt) in charge.debits().zip(&receipts) {
        store.settle(debit, receipt, 0);
    }
    assert_eq!(remaining(&store, known, 1), 8);
    assert_eq!(store.turned_away(), before + 1);
}

#[test]
fn a_limit_that_refuses_when_full_charges_nothing() {
    let (store, _clock) = memory(100);
    let (known, strict) = (Limit::per_hour(2), Limit::per_hour(7).when_full(WhenFull::Refuse));
    assert!(admits(&store, known, 1));
    fill(&store, strict);
    let charge = both((strict, 2_000_000), (known, 1));
    for _ in 0..3 {
        let error = store.take(&charge).now().expect_err("no room");
        assert!(error.is_full() && error.must_refuse());
    }
    assert_eq!(remaining(&store, known, 1), 1);
    let patient = charge.clone().patient(HOUR);
    assert!(store.take(&patient).now().is_err_and(|error| error.must_refuse()));
    // A request that is refused anyway reports the limit that refuses it.
    assert!(admits(&store, known, 1));
    assert!(!store.take(&charge).now().expect("the refusal").is_admitted());
}

#[test]
fn looking_for_a_limit_that_refuses_when_full_loses_no_account_of_another() {
    let (store, _clock) = memory(100);
    let [generous, tight] = [100, 10].map(|count| Limit::per_hour(count).named("known").carried());
    let strict = Limit::per_hour(7).when_full(WhenFull::Refuse);
    assert_eq!((0..200).filter(|_| admits(&store, generous, 1)).count(), 100);
    assert!(!admits(&store, tight, 1));
    fill(&store, strict);
    let charge = both((strict, 2_000_000), (generous, 1));
    assert!(!store.take(&charge).now().expect("the refusal").is_admitted());
}

#[test]
fn a_layer_refuses_what_must_not_pass_and_counts_what_was_not_counted() {
    let (store, _clock) = memory(100);
    let known = Limit::per_hour(9);
    let missing = Limit::per_hour(7);
    fill(&store, missing);
    let enforcer = Enforcer::new(store.clone(), &known.by(Global));
    let is_served = |charge: &mut Charge| {
        let answer = store.take(charge).now();
        Enforcer::judge(enforcer.clone(), answer, charge, None).is_ok()
    };
    let served = |answer| {
        let mut charge = Charge::of(missing.when_full(answer), key(2_000_000), 1);
        let alone = is_served(&mut charge.clone());
        charge.add(known, key(1), 1).expect("two limits");
        [alone, is_served(&mut charge)]
    };
    // The row of the known key has to be made while there is room; here it would share one.
    assert_eq!(served(WhenFull::Refuse), [false, false]);
    assert_eq!(served(WhenFull::Admit), [true, true]);
    let counts = enforcer.observer.counters.read();
    assert_eq!([counts.store_failures, counts.uncounted, counts.refused], [3, 1, 0]);
}

/// A rule that is settled by the response counts failed attempts, so it is always counted.
#[test]
fn what_is_settled_by_the_response_is_counted_together() {
    let (store, _clock) = memory(100);
    let limit = Limit::per_second(5);
    assert_eq!(limit.answer_when_full(), WhenFull::Admit);
    fill(&store, limit);
    let rule = limit.by(Global).count_if(|status| status == 401);
    let mut charge = Charge::new();
    rule.charge(&Request::default(), &mut charge).expect("a key");
    let admitted = [(); 20].map(|()| store.take(&charge).now().expect("a row").is_admitted());
    assert_eq!(admitted.iter().filter(|admitted| **admitted).count(), 5);
}
