//! The arithmetic compared with the plain model: equal answers on long random runs.

use std::time::Duration;

use proptest::prelude::*;

use super::super::testing::decide;
use super::super::{Attempt, Decision, Limit, Receipt, State};
use super::model::{Model, ModelReceipt};
use super::strategies::{Turn, changes, small_limit, turn};
use super::{HOUR, NOW, micros};
use crate::internal::LimitInternals as _;

#[derive(Debug, Clone)]
enum Operation {
    Take {
        cost: u64,
        patience: Turn,
    },
    /// Settles one of the charges that are still open, newest first.
    Settle {
        which: usize,
        spent: u64,
    },
    Turn(Turn),
}

fn operation() -> impl Strategy<Value = Operation> {
    let cost = prop_oneof![6 => Just(1_u64), 2 => 2_u64..5, 1 => Just(0), 1 => 5_u64..40];
    let patience = prop_oneof![2 => Just(Turn::Micros(0)), 1 => turn()];
    prop_oneof![
        5 => (cost, patience).prop_map(|(cost, patience)| Operation::Take { cost, patience }),
        1 => (0_usize..4, 0_u64..4).prop_map(|(which, spent)| Operation::Settle { which, spent }),
        3 => turn().prop_map(Operation::Turn),
    ]
}

struct Run {
    limit: Limit,
    state: State,
    model: Model,
    now: u64,
    retry: Option<Duration>,
    open: Vec<(Receipt, ModelReceipt, u64)>,
}

impl Run {
    fn new(limit: Limit, now: u64) -> Self {
        let (state, model) = (limit.fresh(), Model::new(limit));
        Self { limit, state, model, now, retry: None, open: Vec::new() }
    }

    fn apply(&mut self, operation: &Operation) {
        match *operation {
            Operation::Turn(turn) => self.now += turn.micros(&self.limit, self.retry),
            Operation::Take { cost, patience } => {
                // A log keeps only as many refusals as can matter. Only a request that costs nothing could notice the
                // rest.
                let cost = cost.max(u64::from(self.limit.count_refused));
                // A bucket does not drain for a place that a gap or a ban holds back. When carried over, that soon
                // becomes a debt of centuries.
                let is_held_back = self.limit.gap > 0 || self.limit.ban > 0;
                self.model.meet(self.now);
                let is_patient = !(self.limit.carried && is_held_back);
                let patience = patience.micros(&self.limit, self.retry);
                self.take(cost, if is_patient { patience } else { 0 });
            }
            Operation::Settle { which, spent } => {
                // A log that counts refusals drops the oldest stamps, so there is less to give back. Giving back can
                // lift a ban, which has its own tests. So does giving back to other numbers.
                let plain =
                    !self.limit.count_refused && self.limit.ban == 0 && !self.model.has_others();
                if which < self.open.len() && plain {
                    let (mark, receipt, cost) = self.open.remove(self.open.len() - 1 - which);
                    self.settle(&mark, &receipt, cost, spent);
                }
            }
        }
    }

    fn change(&mut self, limit: Limit) {
        if limit == self.limit {
            return;
        }
        // The old numbers are valid until a request comes with the new ones.
        self.limit.tidy_log(&mut self.state, self.now);
        self.model.change(limit, self.now);
        self.limit = limit;
        // Giving back after a change has its own tests.
        self.open.clear();
    }

    fn take(&mut self, cost: u64, patience: u64) {
        let now = self.now;
        let decision = match patience {
            0 => self.limit.take(&mut self.state, now, cost),
            patience => self.limit.take_within(&mut self.state, now, cost, micros(patience)),
        };
        let enters = self.model.enters(now, cost);
        let leaves = enters.and_then(|enters| self.leaves(enters, cost, patience));
        if let Some(leaves) = leaves {
            assert!(decision.is_admitted(), "{decision:?}, expected in {}", leaves - now);
            assert_eq!(decision.wait(), micros(leaves - now));
            let receipt = self.model.spend(now, leaves, cost);
            self.open.push((mark(&decision), receipt, cost));
        } else {
            assert!(!decision.is_admitted(), "{decision:?}, expected at {enters:?} of {now}");
            // If an empty queue is already too long, there is no moment to come back at.
            let alone = self.limit.peek(&self.limit.fresh(), now, cost).wait();
            let is_too_long = patience > 0 && alone > micros(patience);
            let is_never = cost > self.limit.capacity() || is_too_long;
            assert_eq!(decision.never_fits(), is_never, "{decision:?}");
            if !is_never {
                self.model.refuse(now, cost);
            }
            let too_long = self.too_long_in_the_queue(cost, patience);
            let retry = self.model.enters(now, cost);
            let retry = retry.map(|enters| micros((enters - now).max(too_long)));
            assert_eq!(decision.retry_after(), retry.filter(|_| !is_never));
            self.retry = retry;
        }
        assert_eq!(decision.remaining(), Some(self.model.remaining(now)));
    }

    /// When the request leaves, if it is admitted.
    fn leaves(&self, enters: u64, cost: u64, patience: u64) -> Option<u64> {
        let now = self.now;
        let leaves = match self.limit.to_string() {
            // The queue has its fixed length. A request that finds it full does not wait for a place in it.
            text if text.starts_with("leaky") => {
                let in_time = self.too_long_in_the_queue(cost, patience) == 0;
                return (enters == now && in_time).then(|| self.model.leaves(now, cost));
            }
            _ if !self.model.books(now, enters) => return None,
            _ => enters,
        };
        (leaves - now <= patience).then_some(leaves)
    }

    /// How much longer than its patience a request that arrives now would wait in the queue.
    fn too_long_in_the_queue(&self, cost: u64, patience: u64) -> u64 {
        if patience == 0 || !self.limit.to_string().starts_with("leaky") {
            return 0;
        }
        (self.model.leaves(self.now, cost) - self.now).saturating_sub(patience)
    }

    fn settle(&mut self, mark: &Receipt, receipt: &ModelReceipt, cost: u64, spent: u64) {
        self.limit.settle(&mut self.state, self.now, mark, cost, spent);
        if spent > cost {
            self.model.force(self.now, spent - cost);
        } else {
            self.model.give(self.now, receipt, cost, cost - spent);
        }
    }
}

fn mark(decision: &Decision) -> Receipt {
    decision.statuses().next().expect("one limit, one status").receipt
}

proptest! {
    #![proptest_config(crate::tests::cases(250))]

    #[test]
    fn every_algorithm_answers_like_the_plain_model(
        limit in small_limit(),
        start in prop_oneof![Just(NOW), 0_u64..HOUR, NOW..NOW + HOUR],
        operations in prop::collection::vec(operation(), 1..80),
    ) {
        let mut run = Run::new(limit, start);
        for operation in &operations {
            run.apply(operation);
        }
    }

    #[test]
    fn what_was_spent_is_carried_over_like_in_the_plain_model(
        limits in changes(),
        start in prop_oneof![Just(NOW), 0_u64..HOUR, NOW..NOW + HOUR],
        operations in prop::collection::vec((operation(), prop::option::weighted(0.2, 0_usize..4)), 1..80),
    ) {
        // A log keeps no refusals beyond its count. A higher count could notice them.
        let is_kept = |limit: &Limit| limit.most_entries() == 0 || !limit.count_refused;
        prop_assume!(limits.iter().all(is_kept));
        let mut run = Run::new(limits[0], start);
        for (operation, change) in &operations {
            if let Some(change) = change {
                run.change(limits[change % limits.len()]);
            }
            run.apply(operation);
        }
    }

    #[test]
    fn several_limits_answer_like_their_models_together(
        limits in prop::collection::vec(small_limit(), 2..5),
        operations in prop::collection::vec((1_u64..4, turn(), turn()), 1..60),
    ) {
        // Queues and sliding windows refuse places that the others could book. Other tests cover that.
        let limits: Vec<_> = limits.into_iter().filter(|limit| {
            let text = limit.to_string();
            !(text.starts_with("leaky") || text.starts_with("sliding"))
        }).collect();
        prop_assume!(!limits.is_empty());
        let mut states: Vec<_> = limits.iter().map(Limit::fresh).collect();
        let mut models: Vec<_> = limits.iter().copied().map(Model::new).collect();
        let (mut now, mut retry) = (NOW, None);
        for (cost, turned, patience) in operations {
            now += turned.micros(&limits[0], retry);
            let patience = patience.micros(&limits[0], retry);
            let mut attempts: Vec<_> = limits.iter().zip(&mut states)
                .map(|(limit, state)| Attempt { limit, state, cost })
                .collect();
            let decision = decide(&mut attempts, now, Some(micros(patience)), crate::Keys::One);

            let enters = |models: &[Model]| -> Option<u64> {
                models.iter().map(|model| model.enters(now, cost)).try_fold(now, |latest, enters| {
                    Some(latest.max(enters?))
                })
            };
            match enters(&models).filter(|leaves| leaves - now <= patience) {
                Some(leaves) => {
                    prop_assert!(decision.is_admitted(), "{:?}", decision);
                    prop_assert_eq!(decision.wait(), micros(leaves - now));
                    for model in &mut models {
                        model.spend(now, leaves, cost);
                    }
                }
                None => {
                    prop_assert!(!decision.is_admitted(), "{:?}", decision);
                    let is_never = limits.iter().any(|limit| cost > limit.capacity());
                    prop_assert_eq!(decision.never_fits(), is_never);
                    for (model, status) in models.iter_mut().zip(decision.statuses()) {
                        if status.refused && !is_never {
                            model.refuse(now, cost);
                        }
                    }
                    retry = enters(&models).map(|enters| micros(enters - now));
                    prop_assert_eq!(decision.retry_after(), retry);
                }
            }
            for (model, status) in models.iter().zip(decision.statuses()) {
                prop_assert_eq!(status.remaining, model.remaining(now));
            }
        }
    }
}
