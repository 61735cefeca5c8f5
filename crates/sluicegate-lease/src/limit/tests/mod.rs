mod beside;
mod changes;
mod gauges;
mod promises;
mod rates;

use std::time::Duration;

use sluicegate_core::ManualClock;
use sluicegate_core::adapter::{Charge, Outcome};
use sluicegate_core::key::KeyBuf;
use sluicegate_core::store::Store;

use super::LeasedLimit;
use crate::amount::Amount;

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);

fn rate(clock: &ManualClock) -> LeasedLimit {
    LeasedLimit::rate("db").clock(clock).build().expect("a limit")
}

fn amount(units: f64) -> Amount {
    Amount::from_f64(units).expect("an amount")
}

fn charge(limit: &LeasedLimit, cost: u64) -> Charge {
    Charge::of(limit.limit(), KeyBuf::new(), cost)
}

fn take(limit: &LeasedLimit, cost: u64) -> Outcome {
    limit.take(&charge(limit, cost)).now().expect("a decision")
}

fn wait_for(limit: &LeasedLimit, cost: u64, patience: Duration) -> Outcome {
    limit.take(&charge(limit, cost).patient(patience)).now().expect("a decision")
}

/// Takes one at a time until one is refused.
fn admitted(limit: &LeasedLimit) -> u64 {
    (0..).find(|_| !take(limit, 1).is_admitted()).expect("it refuses at last")
}

/// Grants for a minute.
fn grant(limit: &LeasedLimit, units: f64) {
    limit.grant(amount(units), MINUTE, Amount::ZERO);
}

/// Gives a charge back, as a ticket does.
fn settle(limit: &LeasedLimit, outcome: &Outcome, cost: u64, spent: u64) {
    let charge = charge(limit, cost);
    for (debit, receipt) in charge.debits().zip(outcome.receipts()) {
        limit.settle(debit, &receipt, spent);
    }
}
