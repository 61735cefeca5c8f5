//! A process and its server, without a network.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use sluicegate_core::ManualClock;
use sluicegate_core::adapter::remote::{LimitOutcome, LimitParameters, Role, StateFields};
use sluicegate_core::adapter::{Attempt, Charge, Debit, Outcome, Receipt, State, decide, preview};
use sluicegate_core::clock::Clock;
use sluicegate_core::key::KeyBuf;

use crate::refusals::Refusals;
use crate::script::Operation;
use crate::script::Reply;
use crate::wire::epochs::Epochs;

/// The server: every state, and a clock that is ahead of the process's.
pub(super) struct Server {
    pub(super) states: HashMap<(u64, KeyBuf), State>,
    clock: ManualClock,
}

fn ahead(clock: &ManualClock) -> u64 {
    clock.now() + 3_600_000_000
}

impl Server {
    pub(super) fn new(clock: &ManualClock) -> Self {
        Self { states: HashMap::new(), clock: clock.clone() }
    }

    fn decide(
        &mut self,
        charge: &Charge,
        decide: impl FnOnce(&mut [Attempt<'_>], u64) -> Outcome,
    ) -> Outcome {
        let at = |debit: &Debit| (debit.limit.id(), debit.key);
        let states =
            charge.debits().map(|debit| self.states.remove(&at(debit)).unwrap_or_default());
        let mut states: Vec<State> = states.collect();
        let attempts = charge.debits().zip(&mut states);
        let attempts =
            attempts.map(|(debit, state)| Attempt { limit: &debit.limit, state, cost: debit.cost });
        let outcome = decide(&mut attempts.collect::<Vec<_>>(), ahead(&self.clock));
        self.states.extend(charge.debits().map(at).zip(states));
        outcome
    }

    pub(super) fn take(&mut self, charge: &Charge) -> Outcome {
        self.decide(charge, |attempts, now| decide(attempts, now, charge.patience(), charge.keys()))
    }

    /// The server's answer.
    pub(super) fn expected(&mut self, charge: &Charge) -> Outcome {
        self.decide(charge, |attempts, now| {
            preview(attempts, now, charge.patience(), charge.keys())
        })
    }

    pub(super) fn reply(&self, charge: &Charge, outcome: &Outcome) -> Reply {
        let now = ahead(&self.clock);
        let decision = outcome.decision(charge);
        let outcomes = charge.debits().zip(decision.statuses()).map(|(debit, status)| {
            let role = match status.charged {
                0 if !outcome.is_admitted() => Role::Refused(status.refused),
                _ => Role::Charged,
            };
            if LimitParameters::of(&debit.limit).extra_state {
                return LimitOutcome::of_status(status.clone());
            }
            let words = StateFields::from(&self.states[&(debit.limit.id(), debit.key)]).words;
            LimitOutcome::of_words(words, now, role)
        });
        Reply { verdict: outcome.verdict(), now, outcomes: outcomes.collect() }
    }

    pub(super) fn settle(&mut self, debit: &Debit, receipt: &Receipt, spent: u64) {
        let state = self.states.entry((debit.limit.id(), debit.key)).or_default();
        debit.limit.settle(state, ahead(&self.clock), receipt, debit.cost, spent);
    }
}

/// A process that remembers refusals, and how often it called.
pub(super) struct Process {
    pub(super) refusals: Refusals,
    pub(super) server: Server,
    pub(super) clock: ManualClock,
    pub(super) epochs: Arc<Epochs>,
    pub(super) asked: u64,
}

impl Process {
    pub(super) fn new(rows: usize, longest: Duration) -> Self {
        let clock = ManualClock::new();
        let epochs = Arc::default();
        let refusals = Refusals::new((rows, longest), &Clock::from(&clock), &epochs);
        Self { refusals, server: Server::new(&clock), clock, epochs, asked: 0 }
    }

    /// Charges, as the store does.
    pub(super) fn take(&mut self, charge: &Charge) -> Outcome {
        self.refusals.recall(charge).unwrap_or_else(|| self.ask(charge, [Duration::ZERO; 2]))
    }

    /// Calls the server, which is at this distance.
    pub(super) fn ask(&mut self, charge: &Charge, [there, back]: [Duration; 2]) -> Outcome {
        let mut watch = self.refusals.observe(Operation::Take, charge);
        watch.sent(self.epochs.current(0));
        self.asked += 1;
        self.clock.advance(there);
        let outcome = self.server.take(charge);
        let reply = self.server.reply(charge, &outcome);
        self.clock.advance(back);
        watch.learn(charge, Some(&reply));
        outcome
    }

    pub(super) fn settle(&mut self, debit: &Debit, receipt: &Receipt, spent: u64) {
        let _change = self.refusals.invalidate(debit);
        self.server.settle(debit, receipt, spent);
    }

    pub(super) fn reset(&mut self, charge: &Charge) {
        let _watch = self.refusals.observe(Operation::Reset, charge);
        for debit in charge.debits().filter(|debit| !debit.limit.is_held()) {
            self.server.states.remove(&(debit.limit.id(), debit.key));
        }
    }
}
