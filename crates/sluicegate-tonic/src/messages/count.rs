use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use sluicegate::cost::RunningCost;

/// The messages of a call so far. Clones count together.
#[derive(Debug, Clone)]
pub(super) struct Count {
    /// At least 1: a call without a message, such as one that fails, is charged as one, or a client could fail without
    /// end.
    cost: RunningCost,
    has_messages: Arc<AtomicBool>,
}

impl Count {
    pub(super) fn new() -> Self {
        Self { cost: RunningCost::of(1), has_messages: Arc::default() }
    }

    pub(super) fn add(&self, messages: u64) {
        // The first message is the one that the call itself was charged for.
        let is_first = messages > 0 && !self.has_messages.swap(true, Ordering::Relaxed);
        self.cost.add(messages - u64::from(is_first));
    }

    pub(super) const fn cost(&self) -> &RunningCost {
        &self.cost
    }

    /// The messages themselves.
    pub(super) fn messages(&self) -> u64 {
        if self.has_messages.load(Ordering::Relaxed) { self.cost.total() } else { 0 }
    }
}
