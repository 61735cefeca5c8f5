//! A charge with more rows than the engine swaps at once: part by part, all or none by giving back.
//!
//! The parts are decided in the order of their row keys, so requests that meet on several rows meet on the first one. Such
//! a request does not wait, because a place in each part would be a place at another moment. So each part has no patience,
//! and a cost that would have to wait at any time is never admitted.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use sluicegate_core::adapter::remote::{self, LimitOutcome};
use sluicegate_core::adapter::{Charge, Debit, Outcome, Receipt, Reservation};
use sluicegate_core::limit::{LimitStatus, Verdict};
use sluicegate_core::store::StoreError;

use crate::Engine;
use crate::decide::Job;
use crate::entry::{ask, reserve};
use crate::queue::Key;
use crate::shared::Shared;

/// Debits whose rows are swapped at once.
struct Part {
    /// The indices of the debits in the whole charge.
    indices: Vec<usize>,
    charge: Charge,
    rows: Vec<Key>,
}

fn parts(charge: &Charge, rows: &[Key], rows_at_once: usize) -> Vec<Part> {
    let debits: BTreeMap<&Key, (usize, &Debit)> =
        rows.iter().zip(charge.debits().enumerate()).collect();
    let debits: Vec<_> = debits.into_iter().collect();
    let part = |debits: &[(&Key, (usize, &Debit))]| {
        let mut charge = Charge::new().patient(Duration::ZERO);
        for (_, (_, debit)) in debits {
            // A part is no larger than the charge, whose limits are distinct.
            let _ = charge.add(debit.limit, debit.key, debit.cost);
        }
        let indices = debits.iter().map(|(_, (index, _))| *index).collect();
        Part { indices, charge, rows: debits.iter().map(|(key, _)| Arc::clone(key)).collect() }
    };
    debits.chunks(rows_at_once.max(1)).map(part).collect()
}

/// What was charged so far. It is given back when this is dropped.
struct ChargedSoFar<E: Engine> {
    shared: Arc<Shared<E>>,
    /// The place of the whole charge in the background.
    guard: Arc<Reservation>,
    paid: Vec<(Debit, Receipt)>,
}

impl<E: Engine> Drop for ChargedSoFar<E> {
    fn drop(&mut self) {
        for (debit, receipt) in &self.paid {
            self.shared.give_back_one(debit, receipt, Some(&self.guard));
        }
    }
}

/// Decides one part after another.
pub(crate) async fn decide<E: Engine>(
    shared: Arc<Shared<E>>,
    job: fn(Charge) -> Job,
    (charge, rows): (Charge, Vec<Key>),
    rows_at_once: usize,
) -> Result<Outcome, StoreError> {
    let parts = parts(&charge, &rows, rows_at_once);
    // A charge that can never be admitted is only peeked at, so that nothing is charged or recorded meanwhile.
    let is_never = parts.iter().any(|part| part.charge.never_fits());
    let (job, is_take) = match job(Charge::new()) {
        Job::Take(_) if is_never => (Job::Peek as fn(Charge) -> Job, false),
        Job::Take(_) => (job, true),
        _ => (job, false),
    };
    let guard = reserve(&shared)?;
    let ask_for = |job: fn(Charge) -> Job, part: &Part| {
        ask(Arc::clone(&shared), job(part.charge.clone()), part.rows.clone(), Arc::clone(&guard))
    };
    let mut known: Vec<Option<Outcome>> = Vec::with_capacity(parts.len());
    let mut charged =
        ChargedSoFar { shared: Arc::clone(&shared), guard: Arc::clone(&guard), paid: Vec::new() };
    for part in &parts {
        let outcome = ask_for(job, part).await?;
        let is_admitted = outcome.is_admitted();
        if is_take && is_admitted {
            charged.paid.extend(part.charge.debits().cloned().zip(outcome.receipts()));
        }
        known.push(Some(outcome));
        if is_take && !is_admitted {
            // Further parts are not asked in vain.
            break;
        }
    }
    let never = is_never.then_some(Verdict::Never);
    let verdict = remote::joined(known.iter().flatten().map(Outcome::verdict).chain(never));
    if !is_take || verdict.is_admitted() {
        charged.paid.clear();
        return Ok(whole(verdict, &parts, known));
    }
    // Given back before the peeks below.
    drop(charged);
    for (i, part) in parts.iter().enumerate() {
        // What a part said before it was given back is out of date, unless it refused.
        if known
            .get(i)
            .is_some_and(|known| known.as_ref().is_some_and(|known| !known.is_admitted()))
        {
            continue;
        }
        let peeked = ask_for(Job::Peek, part).await.ok();
        match known.get_mut(i) {
            Some(known) => *known = peeked,
            None => known.push(peeked),
        }
    }
    let others = known.iter().flatten().map(Outcome::verdict);
    Ok(whole(remote::joined(others.chain([verdict])), &parts, known))
}

/// The outcome in the order of the whole charge. A part without an answer counts as fresh.
fn whole(verdict: Verdict, parts: &[Part], known: Vec<Option<Outcome>>) -> Outcome {
    let mut statuses = BTreeMap::new();
    for (part, outcome) in parts.iter().zip(known) {
        let told: Vec<LimitStatus> = match outcome {
            Some(outcome) => outcome.decision(&part.charge).statuses().cloned().collect(),
            None => part.charge.debits().map(|debit| LimitStatus::fresh(debit.limit)).collect(),
        };
        statuses.extend(part.indices.iter().copied().zip(told));
    }
    remote::outcome(verdict, statuses.into_values().map(LimitOutcome::of_status))
}
