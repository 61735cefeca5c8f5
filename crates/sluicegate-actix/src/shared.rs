//! What the workers of one server share.
//!
//! actix-web makes an app for each worker by calling one closure on each worker's thread. Everything that the closure
//! makes comes from one place in the source, for one rule, under one `System`. These three identify the values that
//! belong together.

use std::any::TypeId;
use std::panic::Location;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use actix_web::rt::System;
use sluicegate_core::Memory;
use sluicegate_core::adapter::{Counters, Gate};

static ENTRIES: Mutex<Vec<Entry>> = Mutex::new(Vec::new());

/// Identifies a limiter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Site {
    /// None where the server runs on plain tokio: its workers have none either.
    system: Option<usize>,
    source: &'static Location<'static>,
    rule: TypeId,
}

/// The counters of a limiter, for all workers.
#[derive(Debug)]
pub(crate) struct Shared {
    /// Apart from the rest, so that it is freed where another store is used.
    pub(crate) memory: Arc<Memory>,
    pub(crate) tally: Arc<Tally>,
}

#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) gate: Gate,
    pub(crate) counters: Arc<Counters>,
}

struct Entry {
    site: Site,
    memory: Weak<Memory>,
    tally: Weak<Tally>,
}

impl Site {
    #[track_caller]
    pub(crate) fn of_caller<R: 'static>() -> Self {
        Self {
            system: System::try_current().map(|system| system.id()),
            source: Location::caller(),
            rule: TypeId::of::<R>(),
        }
    }

    /// The data shared at this place in the source: made by the first user, and dropped with the last.
    pub(crate) fn shared(self) -> Shared {
        let mut entries = ENTRIES.lock().unwrap_or_else(PoisonError::into_inner);
        // Adding an entry also removes the entries that are no longer used, so they cannot pile up.
        entries.retain(|entry| entry.tally.strong_count() + entry.memory.strong_count() > 0);
        let known = entries.iter().find(|entry| entry.site == self);
        let shared = Shared {
            memory: known.and_then(|entry| entry.memory.upgrade()).unwrap_or_default(),
            tally: known.and_then(|entry| entry.tally.upgrade()).unwrap_or_default(),
        };
        entries.retain(|entry| entry.site != self);
        entries.push(Entry {
            site: self,
            memory: Arc::downgrade(&shared.memory),
            tally: Arc::downgrade(&shared.tally),
        });
        shared
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site<R: 'static>() -> Site {
        Site::of_caller::<R>()
    }

    fn entries_of(site: Site) -> usize {
        let entries = ENTRIES.lock().unwrap_or_else(PoisonError::into_inner);
        entries.iter().filter(|entry| entry.site == site).count()
    }

    #[test]
    fn one_place_in_the_source_shares_and_another_does_not() {
        let (a, b) = (site::<u8>().shared(), site::<u8>().shared());
        assert!(Arc::ptr_eq(&a.memory, &b.memory));
        assert!(Arc::ptr_eq(&a.tally, &b.tally));
        let other_rule = site::<u16>().shared();
        assert!(!Arc::ptr_eq(&a.tally, &other_rule.tally));
        let other_place = Site::of_caller::<u8>().shared();
        assert!(!Arc::ptr_eq(&a.tally, &other_place.tally));
    }

    #[test]
    fn threads_that_ask_at_once_get_the_same() {
        let asked = || std::thread::spawn(|| site::<[u8; 4]>().shared());
        let threads: Vec<_> = std::iter::repeat_with(asked).take(8).collect();
        let shared: Vec<_> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
        assert!(shared.iter().all(|one| Arc::ptr_eq(&one.tally, &shared[0].tally)));
        assert!(shared.iter().all(|one| Arc::ptr_eq(&one.memory, &shared[0].memory)));
    }

    #[test]
    fn two_systems_share_nothing() {
        let in_new_system = || System::new().block_on(async { site::<u32>().shared() });
        let (a, b) = (in_new_system(), in_new_system());
        assert!(!Arc::ptr_eq(&a.tally, &b.tally));
    }

    #[test]
    fn entries_do_not_pile_up() {
        let gone = site::<u64>();
        drop(gone.shared());
        let kept = site::<i64>();
        let _shared = (kept.shared(), kept.shared());
        assert_eq!(entries_of(gone), 0);
        assert_eq!(entries_of(kept), 1);
    }

    #[test]
    fn the_default_memory_is_freed_where_another_store_is_used() {
        let site = site::<i32>();
        let Shared { memory, tally } = site.shared();
        let freed = Arc::downgrade(&memory);
        drop(memory);
        assert!(freed.upgrade().is_none());
        assert!(Arc::ptr_eq(&site.shared().tally, &tally));
    }
}
