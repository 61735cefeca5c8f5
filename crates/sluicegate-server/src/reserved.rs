use sluicegate_core::adapter::{Charge, Debit, Reply};
use sluicegate_core::cost::llm::{TokenUsage, Usage};
use sluicegate_core::limit::{Decision, LimitStatus};
use sluicegate_core::store::{BoxStore, Store};

/// A request that was admitted, and whose cost is not known yet.
pub(crate) struct Reserved {
    store: BoxStore,
    charge: Charge,
    decision: Decision,
}

impl Reserved {
    pub(crate) fn new(store: &BoxStore, charge: Charge, decision: Decision) -> Self {
        Self { store: store.clone(), charge, decision }
    }

    /// Changes the charge into what the request cost, within the bound of each rule, and gives places back.
    pub(crate) fn settle(self, spent: u64) {
        let used = Used::Spent(spent);
        settle(&self.store, &self.charge, &self.decision, |debit| debit.spent(&used));
    }

    /// Settles by the tokens that the request used: each limit as its rule says.
    pub(crate) fn settle_tokens(self, used: Usage) {
        let usage = TokenUsage::new();
        usage.report(used);
        usage.finish();
        let used = Used::Tokens(usage);
        settle(&self.store, &self.charge, &self.decision, |debit| debit.spent(&used));
    }

    /// Keeps the charge as it is, and gives places back.
    pub(crate) fn keep(self) {
        release(&self.store, &self.charge, &self.decision);
    }
}

/// A response of which only what it cost is known.
enum Used {
    Spent(u64),
    Tokens(TokenUsage),
}

impl Reply for Used {
    fn status(&self) -> u16 {
        200
    }

    fn header(&self, _: &str) -> Option<&[u8]> {
        None
    }

    fn cost(&self) -> Option<u64> {
        None
    }

    fn is_refusal(&self) -> bool {
        false
    }

    fn spent(&self) -> Option<u64> {
        match self {
            Self::Spent(spent) => Some(*spent),
            Self::Tokens(_) => None,
        }
    }

    fn usage(&self) -> Option<TokenUsage> {
        match self {
            Self::Spent(_) => None,
            Self::Tokens(usage) => Some(usage.clone()),
        }
    }
}

/// Gives back the places of a request that nobody will settle.
pub(crate) fn release(store: &BoxStore, charge: &Charge, decision: &Decision) {
    settle(store, charge, decision, |debit| if is_held(debit) { 0 } else { debit.cost });
}

fn settle(store: &BoxStore, charge: &Charge, decision: &Decision, spent: impl Fn(&Debit) -> u64) {
    for (debit, status) in charge.debits().zip(decision.statuses()) {
        let spent = spent(debit);
        if spent != debit.cost && is_counted(status) {
            store.settle(debit, &status.receipt, spent);
        }
    }
}

/// Whether the limit is one of concurrency, in which a request holds a place.
const fn is_held(debit: &Debit) -> bool {
    debit.limit.period().is_none()
}

fn is_counted(status: &LimitStatus) -> bool {
    !status.uncounted && !status.receipt.is_void()
}
