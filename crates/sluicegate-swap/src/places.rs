//! The places of limits of concurrency that this process holds, and the task that renews them.
//!
//! A row is in one flight of this process at a time, and what a flight has done is known in the end. So what this process
//! holds in a row is what the last write that it knows of says.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use crate::Engine;
use crate::decide::Job;
use crate::entry::Entry;
use crate::queue::Key;
use crate::shared::{Shared, lock};

/// A lease is renewed when this fraction of it has passed, which leaves time for a second and a third attempt.
const FRACTION: u64 = 4;

/// The rows in which this process holds places.
#[derive(Debug, Default)]
pub(crate) struct Places(HashMap<Key, RowPlaces>);

#[derive(Debug, Clone, Copy)]
struct RowPlaces {
    count: u64,
    /// When it was written, by this process's clock.
    written: u64,
}

impl<E: Engine> Shared<E> {
    /// This process holds `count` places in a row, which was written now.
    pub(crate) fn hold(self: &Arc<Self>, key: &Key, count: u64) {
        let written = self.runtime.clock.now();
        let mut places = lock(&self.places);
        if count == 0 {
            places.0.remove(&**key);
            return;
        }
        places.0.insert(Arc::clone(key), RowPlaces { count, written });
        drop(places);
        if !self.is_renewing.swap(true, Ordering::AcqRel) {
            // The task does not keep the store alive: without a store nothing can be given back.
            let pause = Duration::from_micros(self.process.lease / FRACTION);
            let sleep = self.runtime.sleep(pause);
            self.runtime.spawn(renew(Arc::downgrade(self), sleep));
        }
    }

    /// The row has nothing of this process.
    pub(crate) fn lose(&self, key: &Key) {
        if let Some(held) = lock(&self.places).0.remove(&**key) {
            self.counters.places_lost.add(held.count);
        }
    }

    /// The rows that have to be renewed. `None` if nothing is held, so that the task may end.
    fn due(&self) -> Option<Vec<Key>> {
        let (now, age) = (self.runtime.clock.now(), self.process.lease / FRACTION);
        let places = lock(&self.places);
        if places.0.is_empty() {
            self.is_renewing.store(false, Ordering::Release);
            return None;
        }
        let is_due = |held: &RowPlaces| held.written > now || now - held.written >= age;
        Some(
            places
                .0
                .iter()
                .filter(|(_, held)| is_due(held))
                .map(|(key, _)| Arc::clone(key))
                .collect(),
        )
    }
}

async fn renew<E: Engine>(
    store: Weak<Shared<E>>,
    mut sleep: sluicegate_core::adapter::Sleep<tokio::time::Sleep>,
) {
    loop {
        sleep.await;
        let Some(shared) = store.upgrade() else { return };
        let Some(due) = shared.due() else { return };
        let pause = shared.process.lease / FRACTION;
        // What is not renewed in this time is tried again then.
        let until = shared.runtime.clock.now().saturating_add(pause);
        for key in due {
            shared.push(Entry::background(Job::Renew, vec![key], (until, None)));
        }
        sleep = shared.runtime.sleep(Duration::from_micros(pause));
    }
}
