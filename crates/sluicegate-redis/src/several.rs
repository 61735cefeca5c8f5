//! A charge whose rows lie in several slots of a cluster: asked slot after slot, all or none.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use sluicegate_core::adapter::remote::{self, LimitOutcome};
use sluicegate_core::adapter::{Charge, Debit, Outcome, Receipt};
use sluicegate_core::limit::{LimitStatus, Verdict};

use crate::failure::Failure;
use crate::script::Reply;
use crate::settle::{receipts, settle};
use crate::shared::{Ask, Shared};
use crate::visit::Visit;

/// What a charge owes in one slot.
pub(crate) struct Part {
    slot: u16,
    /// Places in the whole charge.
    places: Vec<usize>,
    charge: Charge,
    keys: Vec<Vec<u8>>,
}

/// The parts of a charge, in the order of their slots: who meets on several, meets on the first.
///
/// They have no patience: the moment at which a part is let in would not be that of the others.
pub(crate) fn parts(charge: &Charge, keys: Vec<Vec<u8>>, slots: &[u16]) -> Vec<Part> {
    let mut parts = BTreeMap::new();
    for (place, ((debit, key), slot)) in charge.debits().zip(keys).zip(slots).enumerate() {
        let part = parts.entry(*slot).or_insert_with(|| Part {
            slot: *slot,
            places: Vec::new(),
            charge: Charge::new(),
            keys: Vec::new(),
        });
        let debit = part.charge.add(debit.limit, debit.key, debit.cost);
        debit.expect("what fits a charge fits a part of it");
        part.places.push(place);
        part.keys.push(key);
    }
    parts.into_values().collect()
}

/// What was charged so far: given back when this is dropped.
struct Charged<'s> {
    shared: &'s Arc<Shared>,
    paid: Vec<(Debit, Receipt)>,
}

impl Charged<'_> {
    fn add(&mut self, part: &Part, reply: &Reply) {
        self.paid.extend(part.charge.debits().cloned().zip(receipts(reply)));
    }

    fn keep(mut self) {
        self.paid.clear();
    }
}

impl Drop for Charged<'_> {
    fn drop(&mut self) {
        for (debit, receipt) in &self.paid {
            settle(self.shared, debit, receipt, 0);
        }
    }
}

/// Asks slot after slot.
pub(crate) async fn ask(
    shared: Arc<Shared>,
    asked: Ask,
    parts: Vec<Part>,
) -> Result<Outcome, Failure> {
    let clock = &shared.runtime.clock;
    let until = clock.now().saturating_add(shared.deadline.as_micros() as u64);
    let left = || Duration::from_micros(until.saturating_sub(clock.now()));
    // What can never be admitted is only looked at: nothing is charged meanwhile, or recorded.
    let is_never = parts.iter().any(|part| part.charge.never_fits());
    let asked = if is_never && asked == Ask::Take { Ask::Peek } else { asked };
    let visit = |ask, part: &Part| {
        Visit::begin(&shared, ask, part.charge.clone(), &part.keys, (part.slot, left()))
    };
    let mut replies = Vec::with_capacity(parts.len());
    let mut charged = Charged { shared: &shared, paid: Vec::new() };
    for part in &parts {
        let reply = visit(asked, part)?.await?;
        let is_now = reply.verdict == Verdict::Admit { wait: Duration::ZERO };
        if asked == Ask::Take && reply.verdict.is_admitted() {
            charged.add(part, &reply);
        }
        replies.push(Some(reply));
        if asked == Ask::Take && !is_now {
            break;
        }
    }
    let verdict = together(replies.iter().flatten().map(|reply| reply.verdict));
    if asked != Ask::Take || verdict == (Verdict::Admit { wait: Duration::ZERO }) {
        charged.keep();
        return Ok(outcome(verdict, &parts, replies));
    }
    // Sent before what is asked next, on the same connections.
    drop(charged);
    let mut known = Vec::with_capacity(parts.len());
    for (i, part) in parts.iter().enumerate() {
        let asked = replies.get_mut(i).and_then(Option::take);
        known.push(match asked.filter(|reply| !reply.verdict.is_admitted()) {
            Some(refused) => Some(refused),
            None => match visit(Ask::Peek, part) {
                Ok(visit) => visit.await.ok(),
                Err(_) => None,
            },
        });
    }
    let refusal = match verdict {
        // It would have to wait for one, and the others would not know.
        Verdict::Admit { wait } => Verdict::Refuse { retry_after: Some(wait) },
        refused => refused,
    };
    let others = known.iter().flatten().map(|reply| reply.verdict);
    Ok(outcome(together(others.chain([refusal])), &parts, known))
}

/// Refused if any is, for as long as the longest; else let in when the last is.
fn together(verdicts: impl Iterator<Item = Verdict>) -> Verdict {
    verdicts.fold(Verdict::Admit { wait: Duration::ZERO }, |all, one| match (all, one) {
        (Verdict::Never, _) | (_, Verdict::Never) => Verdict::Never,
        (Verdict::Refuse { retry_after: all }, Verdict::Refuse { retry_after: one }) => {
            Verdict::Refuse { retry_after: all.zip(one).map(|(all, one)| all.max(one)) }
        }
        (refused @ Verdict::Refuse { .. }, _) | (_, refused @ Verdict::Refuse { .. }) => refused,
        (Verdict::Admit { wait: all }, Verdict::Admit { wait: one }) => {
            Verdict::Admit { wait: all.max(one) }
        }
    })
}

/// In the order of the whole charge. Of a part that could not be looked at, nothing is known.
fn outcome(verdict: Verdict, parts: &[Part], replies: Vec<Option<Reply>>) -> Outcome {
    let mut facts = BTreeMap::new();
    for (part, reply) in parts.iter().zip(replies) {
        let unknown = || {
            part.charge
                .debits()
                .map(|debit| LimitOutcome::of_status(LimitStatus::fresh(debit.limit)))
        };
        let told = reply.map_or_else(|| unknown().collect(), |reply| reply.facts);
        facts.extend(part.places.iter().copied().zip(told));
    }
    remote::outcome(verdict, facts.into_values())
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn admit(seconds: u64) -> Verdict {
        Verdict::Admit { wait: Duration::from_secs(seconds) }
    }

    const fn refuse(seconds: u64) -> Verdict {
        Verdict::Refuse { retry_after: Some(Duration::from_secs(seconds)) }
    }

    #[test]
    fn one_refusal_refuses_all_for_as_long_as_the_longest() {
        let unknown = Verdict::Refuse { retry_after: None };
        for (verdicts, expected) in [
            (vec![admit(0), admit(0)], admit(0)),
            (vec![admit(2), admit(1)], admit(2)),
            (vec![admit(0), refuse(1), admit(5)], refuse(1)),
            (vec![refuse(3), refuse(7)], refuse(7)),
            (vec![refuse(3), unknown], unknown),
            (vec![unknown, Verdict::Never, admit(0)], Verdict::Never),
        ] {
            assert_eq!(together(verdicts.into_iter()), expected);
        }
    }
}
