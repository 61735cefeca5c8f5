use super::*;

fn take_now(store: &Leased, charge: &Charge) -> Outcome {
    let outcome = answer(store.take(charge)).expect("the store answers");
    assert!(outcome.is_admitted());
    outcome
}

fn settle(store: &Leased, charge: &Charge, outcome: &Outcome, spent: u64) {
    let debit = charge.debits().next().expect("one limit");
    store.settle(debit, &outcome.receipts().next().expect("one limit"), spent);
}

#[test]
fn a_charge_goes_back_to_where_it_came_from() {
    let (store, redis) = pair(shared(), 50..=50);
    let charge = Charge::of(HUNDRED, key("alice"), 5);
    take_now(&store, &charge);
    let outcome = take_now(&store, &charge);
    settle(&store, &charge, &outcome, 2);
    assert_eq!(store.redis().counts().settled, 0);
    assert_eq!((store.counts().spent, store.counts().unspent), (7, 43));
    // The part above the cost is given back to the server in the end.
    flushed(&store);
    assert_eq!(left(&redis, HUNDRED, "alice"), 93);
}

#[test]
fn a_charge_whose_lease_is_gone_goes_back_to_the_server() {
    let (store, redis) = pair(shared(), 50..=50);
    let outcome = take_now(&store, &charge(HUNDRED));
    flushed(&store);
    assert_eq!(left(&redis, HUNDRED, "alice"), 99);
    settle(&store, &charge(HUNDRED), &outcome, 0);
    flushed(&store);
    assert_eq!(left(&redis, HUNDRED, "alice"), 100);
}

#[test]
fn more_is_charged_to_the_share_or_else_to_the_server() {
    let (store, redis) = pair(shared(), 50..=50);
    let outcome = take_now(&store, &charge(HUNDRED));
    settle(&store, &charge(HUNDRED), &outcome, 40);
    assert_eq!((store.counts().spent, store.counts().unspent), (40, 10));
    assert_eq!(left(&redis, HUNDRED, "alice"), 50);
    settle(&store, &charge(HUNDRED), &outcome, 31);
    flushed(&store);
    assert_eq!(left(&redis, HUNDRED, "alice"), 100 - 40 - 30);
}

/// A settlement makes room at once after a refusal.
#[test]
fn what_is_given_back_ends_a_refusal() {
    let (store, _) = pair(shared(), 1..=50);
    let outcome = take_now(&store, &charge(HUNDRED));
    assert_eq!(admitted(&store, &charge(HUNDRED), 4, 50), 99);
    settle(&store, &charge(HUNDRED), &outcome, 0);
    flushed(&store);
    assert_eq!(admitted(&store, &charge(HUNDRED), 1, 5), 1);
}

#[test]
fn a_reset_makes_void_what_was_taken_out() {
    let (store, redis) = pair(shared(), 50..=50);
    take_now(&store, &charge(HUNDRED));
    assert!(answer(store.reset(&charge(HUNDRED))).is_ok());
    assert_eq!((store.counts().unspent, store.counts().expired), (0, 49));
    assert_eq!(left(&redis, HUNDRED, "alice"), 100);
    assert_eq!(admitted(&store, &charge(HUNDRED), 4, 50), 100);
}

/// The deadline has passed, so nothing is left of the lease here when the row is reset. It arrives afterwards.
#[test]
fn a_reset_makes_void_a_lease_that_arrives_late() {
    let (server, prefix) = (Server::start(), own_prefix());
    let builder = || patient().url(&server.url()).prefix(&prefix);
    let store = Leased::new(open(builder().deadline(Duration::from_millis(100))), 50..=50);
    let other = Charge::of(HUNDRED, key("to get connected"), 1);
    until("the connection", || answer(store.take(&other)).ok());
    flushed(&store);
    let before = store.counts();
    server.pause();
    assert!(answer(store.take(&charge(HUNDRED))).is_err_and(|error| error.is_too_slow()));
    // It reaches the server behind the lease.
    assert!(answer(store.reset(&charge(HUNDRED))).is_err_and(|error| error.is_too_slow()));
    server.resume();
    until("the late answer", || (store.counts().leases > before.leases).then_some(()));
    let counts = store.counts();
    assert_eq!((counts.unspent, counts.expired), (before.unspent, before.expired + 50));
    flushed(&store);
    assert_eq!(left(&open(builder()), HUNDRED, "alice"), 100);
}
