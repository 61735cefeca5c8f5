//! The operations on the rows of a charge, and their answers if some of the rows are missing.

use smallvec::SmallVec;

use super::checkout::Checkout;
use super::table::USUAL_LIMITS;
use crate::limit::{
    Attempt, CountedIn, Outcome, OutcomeInternals as _, State, WhenFull, decide, preview,
};
use crate::store::StoreError;
use crate::store::charge::{Charge, Debit};

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    Take,
    Peek,
    Reset,
}

impl Operation {
    pub(super) fn of(
        self,
        found: &mut [Checkout],
        charge: &Charge,
        now: u64,
    ) -> Result<Outcome, StoreError> {
        match self {
            Self::Take if found.iter().all(|found| found.has_room && !found.is_shared()) => {
                let states = found.iter_mut().map(|found| &mut found.state);
                Ok(with_attempts(states, charge, |attempts| {
                    decide(attempts, now, charge.patience(), charge.keys())
                }))
            }
            Self::Take => taken_in_part(found, charge, now),
            Self::Peek => {
                let (patience, keys) = (charge.patience(), charge.keys());
                let told = preview(&mut all(found, charge), now, patience, keys);
                if !found.iter().any(Checkout::is_shared) {
                    return Ok(told);
                }
                // A shared row has room, by definition. `is_left_out` must not take its limit for one without room.
                found.iter_mut().for_each(|found| found.has_room = true);
                Ok(filled_in(told, found, charge))
            }
            Self::Reset => {
                // A held place stays held until its holder gives it back. A shared row counts other keys too, so it
                // is not reset.
                let rows = found.iter_mut().zip(charge.debits());
                rows.filter(|(found, debit)| !debit.limit.is_held() && !found.is_shared())
                    .for_each(|(found, _)| found.state = State::default());
                let states = found.iter_mut().map(|found| &mut found.state);
                Ok(with_attempts(states, charge, |attempts| {
                    preview(attempts, now, charge.patience(), charge.keys())
                }))
            }
        }
    }
}

/// Charges the limits that there is room for, all or none of them. The others have no part in the decision, unless
/// [`WhenFull`] says otherwise, or they could never admit the cost.
///
/// A request that is refused anyway is refused in any case: no flood frees a key by leaving no room for another of
/// its limits. A shadow limit without room is ignored.
fn taken_in_part(found: &mut [Checkout], charge: &Charge, now: u64) -> Result<Outcome, StoreError> {
    let is_partial = left_out(found, charge).next().is_some();
    let asks = |debit: &Debit| debit.answer_when_full() != WhenFull::Admit;
    let refuses = left_out(found, charge).any(asks);
    let full = if refuses { StoreError::full_and_refusing } else { StoreError::full };
    let (keys, patience) = (charge.keys(), charge.patience());

    let mut attempts = counted(found, charge);
    // Nothing that could refuse is left: the store has not decided, and says so.
    if is_partial && attempts.iter().all(|attempt| attempt.limit.is_shadow()) {
        return Err(full());
    }
    // A preview leaves the states as they are. One that did not could lose an account of a limit that is carried over.
    if refuses && preview(&mut attempts, now, patience, keys).is_admitted() {
        return Err(full());
    }
    let outcome = decide(&mut attempts, now, patience, keys);
    drop(attempts);
    Ok(filled_in(outcome, found, charge))
}

/// Whether the limit has no part in the decision.
fn is_left_out(found: &Checkout, debit: &Debit) -> bool {
    !found.has_room && !debit.limit.is_shadow() && debit.cost <= debit.limit.capacity()
}

fn left_out<'a>(found: &[Checkout], charge: &'a Charge) -> impl Iterator<Item = &'a Debit> {
    let each = found.iter().zip(charge.debits());
    each.filter(|(found, debit)| is_left_out(found, debit)).map(|(_, debit)| debit)
}

fn counted<'a>(
    found: &'a mut [Checkout],
    charge: &'a Charge,
) -> SmallVec<[Attempt<'a>; USUAL_LIMITS]> {
    let each = found.iter_mut().zip(charge.debits());
    each.filter(|(found, debit)| !is_left_out(found, debit)).map(attempt).collect()
}

fn all<'a>(found: &'a mut [Checkout], charge: &'a Charge) -> SmallVec<[Attempt<'a>; USUAL_LIMITS]> {
    found.iter_mut().zip(charge.debits()).map(attempt).collect()
}

fn attempt<'a>((found, debit): (&'a mut Checkout, &'a Debit)) -> Attempt<'a> {
    Attempt { limit: &debit.limit, state: &mut found.state, cost: debit.cost }
}

/// The outcome for the whole charge, with how each limit was counted.
fn filled_in(outcome: Outcome, found: &[Checkout], charge: &Charge) -> Outcome {
    let counted = |found: &Checkout, debit: &Debit| match found.is_shared() {
        true => CountedIn::SharedRow,
        false if is_left_out(found, debit) => CountedIn::Nowhere,
        false => CountedIn::OwnRow,
    };
    let each = found.iter().zip(charge.debits());
    outcome.filled_in(each.map(|(found, debit)| (&debit.limit, debit.cost, counted(found, debit))))
}

/// Runs `run` with an attempt for each state and its debit. A single attempt is common, and does not allocate.
fn with_attempts<'a, R>(
    states: impl Iterator<Item = &'a mut State>,
    charge: &'a Charge,
    run: impl FnOnce(&mut [Attempt<'a>]) -> R,
) -> R {
    let mut attempts = states.zip(charge.debits()).map(|(state, debit)| {
        let (limit, cost) = (&debit.limit, debit.cost);
        Attempt { limit, state, cost }
    });
    match (attempts.next(), charge.len()) {
        (Some(mut attempt), 1) => run(std::slice::from_mut(&mut attempt)),
        (first, _) => {
            let mut attempts: SmallVec<[_; USUAL_LIMITS]> =
                first.into_iter().chain(attempts).collect();
            run(&mut attempts)
        }
    }
}
