use std::collections::{HashMap, HashSet};

use foldhash::fast::FixedState;
use sluicegate_core::key::KeyBuf;

/// How many names of waiting flows are kept: eight times those of eight classes with 64 queues each.
const FLOWS: usize = 4_096;

/// The name of a request's key, if keys are shown.
#[derive(Debug, Clone)]
pub(super) struct Names {
    pub(super) flow: Option<KeyBuf>,
    pub(super) key: Option<KeyBuf>,
}

/// The keys of waiting flows, if keys are shown.
#[derive(Debug, Default)]
pub(super) struct FlowNames(HashMap<u64, KeyBuf, FixedState>);

impl FlowNames {
    /// Remembers the name of a waiting flow. `waiting` lists all waiting flows; names of other flows are dropped to
    /// make room.
    pub(super) fn add(&mut self, flow: u64, key: KeyBuf, waiting: impl FnOnce() -> HashSet<u64>) {
        if self.0.len() >= FLOWS && !self.0.contains_key(&flow) {
            let waiting = waiting();
            self.0.retain(|flow, _| waiting.contains(flow));
            // More flows than queues: they are shown without their names.
            if self.0.len() >= FLOWS {
                self.0.clear();
            }
        }
        self.0.insert(flow, key);
    }

    pub(super) fn name(&self, flow: u64) -> Option<&KeyBuf> {
        self.0.get(&flow)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_flows_that_are_gone_make_room() {
        let mut names = FlowNames::default();
        for flow in 0..100_000 {
            names.add(flow, KeyBuf::of("customer"), || HashSet::from([1, 2]));
            assert!(names.0.len() <= FLOWS);
        }
        assert!(names.name(1).is_some() && names.name(3).is_none());
    }
}
