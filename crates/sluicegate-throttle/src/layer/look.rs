use std::cmp::Reverse;
use std::time::Duration;

use sluicegate_core::observe::ShowKeys;

#[cfg(feature = "tracing")]
use super::report;
use super::requests::Unread;
use super::shared::{Shared, State};
use super::snapshot::{ClassSnapshot, FlowSnapshot, KeySnapshot, PartitionSnapshot, Snapshot};
use crate::class::Class;

/// The flows that are shown of each class.
const FLOWS: usize = 10;

impl Shared {
    /// Whether the keys of requests are shown anywhere.
    pub(super) const fn shows_keys(&self) -> bool {
        !matches!(self.observing.show, ShowKeys::Hidden)
    }

    /// Counts what could not be read.
    pub(super) fn note_unread(&self, state: &mut State, unread: Unread, now: u64) {
        if !(unread.class || unread.deadline || unread.key) {
            return;
        }
        state.unread.classes += u64::from(unread.class);
        state.unread.deadlines += u64::from(unread.deadline);
        state.unread.keys += u64::from(unread.key);
        #[cfg(feature = "tracing")]
        if now >= state.told_again {
            state.told_again = now.saturating_add(1_000_000);
            report::unreadable(&self.observing.name, state.unread);
        }
        #[cfg(not(feature = "tracing"))]
        let _ = now;
    }

    pub(super) fn snapshot(&self) -> Snapshot {
        let now = self.now();
        let state = self.lock();
        let scheduler = &state.scheduler;
        let sums = state.accuracy.all();
        // At most eight classes.
        let classes = (0..self.classes.len()).map(|rank| self.class(&state, Class::at(rank as u8)));
        Snapshot {
            name: self.observing.name.clone(),
            classes: classes.collect(),
            admitted_classes: scheduler.admitted_classes(now),
            queued: scheduler.len(),
            queued_cost: scheduler.cost(),
            queue_bound: scheduler.bound(),
            running: scheduler.running(),
            limit: scheduler.limit(),
            cost_per_second: scheduler
                .rate()
                .map(|(cost, period)| cost as f64 / period.as_secs_f64()),
            baseline: scheduler.baseline().map(Duration::from_micros),
            counts: scheduler.counts(),
            unreadable: state.unread,
            predicted_cost: sums.predicted,
            actual_cost: sums.actual,
            prediction_error: sums.error,
            partitions: self.partitions(&state),
            keys: keys(&state),
        }
    }

    fn partitions(&self, state: &State) -> Vec<PartitionSnapshot> {
        let names = self.observing.partitions.iter().zip(0..);
        let partition = |(name, at): (&String, u8)| {
            let used = state.scheduler.partition(at)?;
            Some(PartitionSnapshot {
                name: name.clone(),
                running: used.running,
                waiting: used.waiting,
                guaranteed: used.guaranteed,
            })
        };
        names.filter_map(partition).collect()
    }

    fn class(&self, state: &State, class: Class) -> ClassSnapshot {
        let (requests, cost) = state.scheduler.queued(class);
        let mut flows: Vec<_> = state.scheduler.flows(class).collect();
        flows.sort_unstable_by_key(|flow| Reverse(flow.cost));
        let name = |flow| self.observing.show.show(state.flow_names.name(flow)?);
        let flows = flows.into_iter().take(FLOWS).map(|queued| FlowSnapshot {
            flow: queued.flow.and_then(name),
            requests: queued.requests,
            cost: queued.cost,
        });
        ClassSnapshot {
            name: self.classes.name(class).to_owned(),
            requests,
            cost,
            counts: state.scheduler.counts_of(class),
            flows: flows.collect(),
        }
    }
}

fn keys(state: &State) -> Vec<KeySnapshot> {
    let key = |(name, sums): (Option<&str>, super::accuracy::Sums)| KeySnapshot {
        key: name.map(str::to_owned),
        requests: sums.requests,
        predicted_cost: sums.predicted,
        actual_cost: sums.actual,
        error: sums.error,
    };
    let mut keys: Vec<_> = state.accuracy.by_key().map(key).collect();
    keys.sort_by_key(|key| Reverse(key.actual_cost));
    keys
}
