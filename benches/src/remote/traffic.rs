//! Requests, with a fixed number of them in flight.

use std::sync::Arc;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use super::Remote;
use crate::Histogram;

/// The keys that are used.
#[derive(Debug, Clone)]
pub(super) struct Keys(Arc<[String]>);

impl Keys {
    pub(super) fn new(count: usize) -> Self {
        Self((0..count).map(|number| format!("user-{number:06}")).collect())
    }

    /// Another key each time, in random order.
    fn next(&self, state: &mut u64) -> &str {
        *state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        &self.0[(*state >> 33) as usize % self.0.len()]
    }
}

/// Keys that are asked about at the same time when all are.
const PRIMING: usize = 64;

/// The result of a turn.
#[derive(Debug, Default)]
pub(super) struct Asked {
    pub(super) count: u64,
    pub(super) admitted: u64,
    pub(super) took: Duration,
    /// In nanoseconds.
    pub(super) latencies: Histogram,
}

/// Asks about every key once, so that all have rows.
pub(super) async fn prime(remote: &impl Remote, keys: &Keys) {
    let mut tasks = JoinSet::new();
    for first in 0..PRIMING.min(keys.0.len()) {
        let (remote, keys) = (remote.clone(), keys.clone());
        tasks.spawn(async move {
            for key in keys.0.iter().skip(first).step_by(PRIMING) {
                remote.decide(key).await;
            }
        });
    }
    tasks.join_all().await;
}

/// Asks for so long, with `in_flight` requests under way: each that is answered is followed by the next.
pub(super) async fn ask(
    remote: &impl Remote,
    keys: &Keys,
    in_flight: usize,
    time: Duration,
) -> Asked {
    let all = Arc::new(Mutex::new(Asked::default()));
    let began = Instant::now();
    let mut tasks = JoinSet::new();
    for number in 0..in_flight {
        let (remote, keys, all) = (remote.clone(), keys.clone(), Arc::clone(&all));
        tasks.spawn(async move {
            let mut state = number as u64;
            let mut before = Instant::now();
            loop {
                let admitted = remote.decide(keys.next(&mut state)).await;
                let now = Instant::now();
                let mut all = all.lock().expect("no thread has panicked");
                all.count += 1;
                all.admitted += u64::from(admitted);
                all.latencies.record((now - before).as_nanos() as u64);
                if now - began >= time {
                    return;
                }
                before = now;
            }
        });
    }
    tasks.join_all().await;
    let mut asked = std::mem::take(&mut *all.lock().expect("no thread has panicked"));
    asked.took = began.elapsed();
    asked
}
