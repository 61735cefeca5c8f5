//! How many processors the handlers of a throttle can keep busy.
//!
//! The processors of the machine say too much: a runtime of one thread keeps one of them busy, however many there are. A
//! throttle is often made before its runtime, so it learns from its requests in which runtimes they are served. actix-web
//! has a runtime of one thread for each worker.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::runtime::{Handle, Id};

/// A runtime that had no request for this long has ended, or does not matter, in microseconds.
const FORGET: u64 = 10_000_000;

/// How often each thread looks at its runtime, as a power of two in microseconds: about 15 times in a second. To look for
/// each request would make all threads write to the runtime's count of references.
const LOOK: u32 = 16;

thread_local! {
    /// The throttle for which this thread looked last, and when.
    static LOOKED: Cell<(u64, u64)> = const { Cell::new((0, 0)) };
}

/// The share of the processors that a throttle may use, and where its requests are served.
#[derive(Debug)]
pub(super) struct Processors {
    share: f64,
    /// How many this process may use: the limits of its container count.
    available: usize,
    /// At most as many as there are processors: each uses at least one.
    runtimes: Vec<Runtime>,
    id: u64,
}

#[derive(Debug)]
struct Runtime {
    id: Id,
    workers: usize,
    /// When it last had a request.
    used: u64,
}

impl Processors {
    pub(super) fn new(share: f64) -> Self {
        static IDS: AtomicU64 = AtomicU64::new(1);
        let available = std::thread::available_parallelism().map_or(1, usize::from);
        let id = IDS.fetch_add(1, Ordering::Relaxed);
        Self { share, available, runtimes: Vec::new(), id }
    }

    /// The microseconds of polling that the share allows in each second.
    pub(super) fn cost_per_second(&self) -> u64 {
        (self.share * self.usable() as f64 * 1e6) as u64
    }

    /// All of them while no runtime is known.
    fn usable(&self) -> usize {
        match self.runtimes.iter().map(|runtime| runtime.workers).sum() {
            0 => self.available,
            workers => self.available.min(workers),
        }
    }

    /// Other settings, for the same runtimes.
    pub(super) fn change(&mut self, new: &Self) {
        self.share = new.share;
    }

    /// A request is served by the present thread. Returns whether more or fewer processors can be used than before.
    #[inline]
    pub(super) fn observe(&mut self, now: u64) -> bool {
        let looked = (self.id, now >> LOOK);
        LOOKED.try_with(|last| last.replace(looked)).ok() != Some(looked) && self.look(now)
    }

    #[cold]
    fn look(&mut self, now: u64) -> bool {
        // Outside of tokio nothing tells how many threads there are.
        let Ok(handle) = Handle::try_current() else { return false };
        let (before, id) = (self.usable(), handle.id());
        self.runtimes.retain(|other| other.id != id && now.saturating_sub(other.used) < FORGET);
        // More runtimes than processors cannot all be busy, so the list need not be longer.
        if self.runtimes.len() >= self.available {
            let oldest = (0..self.runtimes.len()).min_by_key(|&at| self.runtimes[at].used);
            oldest.map(|at| self.runtimes.swap_remove(at));
        }
        self.runtimes.push(Runtime { id, workers: handle.metrics().num_workers(), used: now });
        self.usable() != before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn processors(available: usize) -> Processors {
        Processors { available, ..Processors::new(0.5) }
    }

    fn run<T>(workers: usize, run: impl FnOnce() -> T) -> T {
        let mut builder = match workers {
            0 => tokio::runtime::Builder::new_current_thread(),
            _ => tokio::runtime::Builder::new_multi_thread(),
        };
        let runtime = builder.worker_threads(workers.max(1)).build().unwrap();
        let _context = runtime.enter();
        run()
    }

    #[test]
    fn a_runtime_of_one_thread_uses_one_processor() {
        let mut processors = processors(4);
        assert_eq!(processors.cost_per_second(), 2_000_000);
        assert!(!processors.observe(1), "there is no runtime");
        assert!(run(0, || processors.look(2)));
        assert_eq!(processors.cost_per_second(), 500_000);
    }

    #[test]
    fn a_runtime_uses_as_many_processors_as_it_has_threads_and_the_process_may_use() {
        for (workers, used) in [(1, 1), (3, 3), (4, 4), (9, 4)] {
            let mut processors = processors(4);
            run(workers, || processors.look(1));
            assert_eq!(processors.usable(), used, "{workers}");
        }
    }

    #[test]
    fn runtimes_of_one_thread_each_add_up_to_what_the_process_may_use() {
        let mut processors = processors(3);
        let used: Vec<_> =
            (0..5).map(|now| run(0, || (processors.look(now), processors.usable()).1)).collect();
        assert_eq!(used, [1, 2, 3, 3, 3]);
        assert_eq!(processors.runtimes.len(), 3);
    }

    #[test]
    fn a_runtime_without_requests_is_forgotten() {
        let mut processors = processors(4);
        run(0, || processors.look(0));
        run(2, || {
            processors.look(FORGET - 1);
            assert_eq!(processors.usable(), 3);
            processors.look(FORGET);
            assert_eq!(processors.usable(), 2);
        });
    }

    #[test]
    fn each_throttle_looks_at_the_runtime_of_its_thread() {
        run(0, || {
            let (mut one, mut other) = (processors(4), processors(4));
            assert!(one.observe(0) && other.observe(0) && !one.observe(0));
            assert_eq!((one.usable(), other.usable()), (1, 1));
        });
    }
}
