//! A charge whose rows lie in several slots of a cluster: one call for each slot, all or none.
//!
//! The slots are asked in order. Requests that meet on several slots meet on the first one, and are refused
//! there before anything is charged on the others. Such a request does not wait, because a place in each
//! slot would be a place at another moment.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use sluicegate_core::adapter::remote::{self, LimitOutcome};
use sluicegate_core::adapter::{Charge, Debit, Outcome, Receipt, Reservation};
use sluicegate_core::limit::{LimitStatus, Verdict};

use super::settle::{CallReservation, receipts};
use crate::exchange::call;
use crate::exchange::settle::settle_within;
use crate::exchange::shared::Shared;
use crate::failure::Failure;
use crate::script::{Operation, Reply};

/// The debits of a charge in one slot.
pub(crate) struct SlotCharge {
    slot: u16,
    /// The indices of the debits in the whole charge.
    indices: Vec<usize>,
    charge: Charge,
    keys: Vec<Vec<u8>>,
}

/// Divides a charge by slot, in the order of the slots: two charges that share several slots meet in the first one.
///
/// The parts do not wait, because each slot could admit its part at another moment.
pub(crate) fn by_slot(charge: &Charge, keys: Vec<Vec<u8>>, slots: &[u16]) -> Vec<SlotCharge> {
    let mut parts = BTreeMap::new();
    for (index, ((debit, key), slot)) in charge.debits().zip(keys).zip(slots).enumerate() {
        let part = parts.entry(*slot).or_insert_with(|| SlotCharge {
            slot: *slot,
            indices: Vec::new(),
            charge: Charge::new(),
            keys: Vec::new(),
        });
        // Costs and keys stay; patience is left out, since a place in this slot would be booked for another moment.
        let debit = part.charge.add(debit.limit, debit.key, debit.cost);
        debit.expect("a part is no larger than the charge");
        part.indices.push(index);
        part.keys.push(key);
    }
    parts.into_values().collect()
}

/// What was charged so far. It is given back when this is dropped.
struct PartialCharge<'s> {
    shared: &'s Arc<Shared>,
    /// The place of the whole charge in the background. Giving back uses it too, so that there is room for it however many
    /// settlements are under way.
    reservation: Arc<Reservation>,
    paid: Vec<(Debit, Receipt)>,
}

impl PartialCharge<'_> {
    fn add(&mut self, part: &SlotCharge, reply: &Reply) {
        self.paid.extend(part.charge.debits().cloned().zip(receipts(reply)));
    }

    fn keep(mut self) {
        self.paid.clear();
    }
}

impl Drop for PartialCharge<'_> {
    fn drop(&mut self) {
        for (debit, receipt) in &self.paid {
            self.reservation.leave();
            let reserve = || Some(CallReservation::Shared(Arc::clone(&self.reservation)));
            settle_within(self.shared, debit, receipt, 0, reserve);
        }
    }
}

/// Calls one slot after another.
pub(crate) async fn decide(
    shared: Arc<Shared>,
    operation: Operation,
    parts: Vec<SlotCharge>,
) -> Result<Outcome, Failure> {
    let clock = &shared.runtime.clock;
    // One deadline for all slots: a charge over three of them must not take three times as long.
    let until = clock.now().saturating_add(shared.deadline.as_micros() as u64);
    let left = || Duration::from_micros(until.saturating_sub(clock.now()));
    // A charge that can never be admitted is only peeked at, so that nothing is charged or recorded meanwhile. As it does not
    // wait, a cost that would have to wait at any time is one of those.
    let never_fits = |part: &SlotCharge| part.charge.clone().patient(Duration::ZERO).never_fits();
    let is_never = operation == Operation::Take && parts.iter().any(never_fits);
    let operation = if is_never { Operation::Peek } else { operation };
    let reservation = Arc::new(call::reserve(&shared)?);
    let begin = |operation, part: &SlotCharge| {
        let (charge, within) = (part.charge.clone(), (part.slot, left()));
        let reserve = || Ok(CallReservation::Shared(Arc::clone(&reservation)));
        call::begin_within(&shared, operation, charge, &part.keys, within, reserve)
    };
    let mut replies = Vec::with_capacity(parts.len());
    let reservation = Arc::clone(&reservation);
    let mut charged = PartialCharge { shared: &shared, reservation, paid: Vec::new() };
    for part in &parts {
        // If this fails, or the future is dropped here, `charged` gives back the slots before.
        let reply = begin(operation, part)?.await?;
        let is_now = reply.verdict == Verdict::Admit { wait: Duration::ZERO };
        if operation == Operation::Take && reply.verdict.is_admitted() {
            charged.add(part, &reply);
        }
        replies.push(Some(reply));
        // Slots further on are not asked in vain: this is refused, and what was charged is given back.
        if operation == Operation::Take && !is_now {
            break;
        }
    }
    let never = is_never.then_some(Verdict::Never);
    let verdict = remote::joined(replies.iter().flatten().map(|reply| reply.verdict).chain(never));
    if operation != Operation::Take || verdict == (Verdict::Admit { wait: Duration::ZERO }) {
        charged.keep();
        return Ok(outcome(verdict, &parts, replies));
    }
    // Given back before the peeks below, which use the same connections.
    // Settlements are handed to their connections at once, so a peek that follows is answered after them.
    drop(charged);
    let mut known = Vec::with_capacity(parts.len());
    for (i, part) in parts.iter().enumerate() {
        // What a slot said before it was given back is out of date, unless it refused.
        let reply = replies.get_mut(i).and_then(Option::take);
        known.push(match reply.filter(|reply| !reply.verdict.is_admitted()) {
            Some(refused) => Some(refused),
            None => match begin(Operation::Peek, part) {
                Ok(call) => call.await.ok(),
                Err(_) => None,
            },
        });
    }
    let refusal = match verdict {
        // It would have to wait in one slot, and the other slots would not know.
        Verdict::Admit { wait } => Verdict::Refuse { retry_after: Some(wait) },
        refused => refused,
    };
    let others = known.iter().flatten().map(|reply| reply.verdict);
    Ok(outcome(remote::joined(others.chain([refusal])), &parts, known))
}

/// The outcome in the order of the whole charge. A part without a reply counts as fresh.
fn outcome(verdict: Verdict, parts: &[SlotCharge], replies: Vec<Option<Reply>>) -> Outcome {
    let mut outcomes = BTreeMap::new();
    for (part, reply) in parts.iter().zip(replies) {
        let unknown = || {
            part.charge
                .debits()
                .map(|debit| LimitOutcome::of_status(LimitStatus::fresh(debit.limit)))
        };
        let told = reply.map_or_else(|| unknown().collect(), |reply| reply.outcomes);
        outcomes.extend(part.indices.iter().copied().zip(told));
    }
    remote::outcome(verdict, outcomes.into_values())
}
