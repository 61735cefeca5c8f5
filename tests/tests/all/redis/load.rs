//! Many requests at once.

use std::ops::AddAssign;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use sluicegate_core::adapter::{Answer, Charge, Outcome};
use sluicegate_core::store::{Store, StoreError};
use sluicegate_redis::Redis;
use sluicegate_tests::servers::until;
use tokio::task::JoinSet;

use super::store::runtime;

/// The results of a number of attempts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) admitted: u64,
    pub(crate) refused: u64,
    pub(crate) failed: u64,
    /// The longest time that one attempt took.
    pub(crate) slowest: Duration,
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.admitted += other.admitted;
        self.refused += other.refused;
        self.failed += other.failed;
        self.slowest = self.slowest.max(other.slowest);
    }
}

/// One attempt, awaited.
pub(crate) async fn take(store: &Redis, charge: &Charge) -> Result<Outcome, StoreError> {
    match store.take(charge) {
        Answer::Now(outcome) => outcome,
        Answer::Later(future) => future.await,
    }
}

async fn attempt(store: &Redis, charge: &Charge) -> Tally {
    let started = Instant::now();
    let taken = take(store, charge).await;
    let mut tally = Tally { slowest: started.elapsed(), ..Tally::default() };
    match taken {
        Ok(outcome) if outcome.is_admitted() => tally.admitted = 1,
        Ok(_) => tally.refused = 1,
        Err(_) => tally.failed = 1,
    }
    tally
}

/// Runs this many tasks with this many attempts each.
pub(crate) fn attempts(store: &Redis, charge: &Charge, tasks: usize, each: usize) -> Tally {
    runtime().block_on(async {
        let mut set = JoinSet::new();
        for _ in 0..tasks {
            let (store, charge) = (store.clone(), charge.clone());
            set.spawn(async move {
                let mut all = Tally::default();
                for _ in 0..each {
                    all += attempt(&store, &charge).await;
                }
                all
            });
        }
        sum(set.join_all().await)
    })
}

fn sum(tallies: Vec<Tally>) -> Tally {
    let mut all = Tally::default();
    tallies.into_iter().for_each(|tally| all += tally);
    all
}

/// Tasks that make attempts until they are stopped.
pub(crate) struct Load {
    shared: Arc<Shared>,
    tasks: JoinSet<Tally>,
}

#[derive(Default)]
struct Shared {
    stopped: AtomicBool,
    answered: AtomicU64,
    failed: AtomicU64,
}

impl Load {
    pub(crate) fn start(store: &Redis, charge: &Charge, tasks: usize) -> Self {
        let mut load = Self { shared: Arc::default(), tasks: JoinSet::new() };
        for _ in 0..tasks {
            let (store, charge) = (store.clone(), charge.clone());
            let shared = Arc::clone(&load.shared);
            let task = async move {
                let mut all = Tally::default();
                while !shared.stopped.load(Ordering::Relaxed) {
                    let one = attempt(&store, &charge).await;
                    shared.answered.fetch_add(one.admitted + one.refused, Ordering::Relaxed);
                    shared.failed.fetch_add(one.failed, Ordering::Relaxed);
                    all += one;
                    // A store that answers at once must not starve the other tasks.
                    tokio::task::yield_now().await;
                }
                all
            };
            load.tasks.spawn_on(task, runtime().handle());
        }
        load
    }

    /// Waits until this many more attempts have been answered.
    pub(crate) fn until_answered(&self, more: u64) {
        wait_for_more(&self.shared.answered, more, "answers");
    }

    /// Waits until this many more attempts have failed.
    pub(crate) fn until_failed(&self, more: u64) {
        wait_for_more(&self.shared.failed, more, "failures");
    }

    pub(crate) fn stop(self) -> Tally {
        self.shared.stopped.store(true, Ordering::Relaxed);
        sum(runtime().block_on(self.tasks.join_all()))
    }
}

fn wait_for_more(counter: &AtomicU64, more: u64, what: &str) {
    let wanted = counter.load(Ordering::Relaxed) + more;
    until(what, || (counter.load(Ordering::Relaxed) >= wanted).then_some(()));
}
