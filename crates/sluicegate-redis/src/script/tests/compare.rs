//! Charges and outcomes, as the model and the scripts see them.

use sluicegate_core::Limit;
use sluicegate_core::adapter::remote::{self, Algorithm, LimitParameters, StateFields};
use sluicegate_core::adapter::{Attempt, Charge, Debit, Outcome, State};
use sluicegate_core::key::KeyBuf;

use super::super::reply::Malformed;
use super::super::{Reply, Row};

/// The charge of one limit on one key.
pub(super) fn charge(limit: Limit, key: &str, cost: u64) -> Charge {
    Charge::of(limit, KeyBuf::of(key), cost)
}

/// The outcome of a charge whose rows were all decided in one call.
pub(super) fn outcome<'o>(
    debit: impl Iterator<Item = &'o Debit>,
    reply: &[u8],
) -> Result<Outcome, Malformed> {
    let reply = Reply::parse(debit, reply)?;
    Ok(remote::outcome(reply.verdict, reply.outcomes))
}

/// Whether a refusal is recorded.
pub(super) fn records(limit: &Limit) -> bool {
    let numbers = LimitParameters::of(limit);
    let counts =
        matches!(numbers.algorithm, Algorithm::SlidingLog { .. } | Algorithm::SlidingWindow { .. });
    numbers.ban > 0 || numbers.count_refused && counts
}

/// Whether numbers that were new to the row have begun an account, which stays.
pub(super) fn has_begun(before: &State, after: &State) -> bool {
    let numbers = |state: &State| {
        let mut all: Vec<_> =
            StateFields::from(state).accounts.iter().map(|account| account.parameters).collect();
        all.sort_unstable();
        all
    };
    !numbers(before).is_empty() && numbers(before) != numbers(after)
}

pub(super) fn with_attempts<T>(
    states: &mut [State],
    charge: &Charge,
    then: impl FnOnce(&mut [Attempt<'_>]) -> T,
) -> T {
    let attempts = states.iter_mut().zip(charge.debits());
    let mut attempts: Vec<_> = attempts
        .map(|(state, debit)| Attempt { limit: &debit.limit, state, cost: debit.cost })
        .collect();
    then(&mut attempts)
}

pub(super) fn rows<'a>(keys: &'a [Vec<u8>], charge: &'a Charge) -> Vec<Row<'a>> {
    keys.iter().zip(charge.debits()).map(|(key, debit)| Row { key, debit }).collect()
}

pub(super) fn assert_equal(given: &Outcome, expected: &Outcome, charge: &Charge) {
    let (told, right) = (given.decision(charge), expected.decision(charge));
    assert_eq!(told.verdict(), right.verdict(), "the verdict over {charge:?}: {right:?}");
    for (told, right) in told.statuses().zip(right.statuses()) {
        assert_eq!(told, right);
    }
    if !charge.debits().any(|debit| debit.limit.is_held()) {
        assert_eq!(given, expected);
    }
}
