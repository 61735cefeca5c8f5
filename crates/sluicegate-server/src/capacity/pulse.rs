//! Notices that this process stood still, because it was stopped or its machine was.
//!
//! Messages on their way through it are as late then as the pause was long. An assignment would last from its arrival on,
//! and a report would prove that an assignment has arrived which still waits here. So streams end that began before it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tokio::time::{Instant, sleep};

/// Counts pauses.
#[derive(Debug)]
pub(super) struct Pulse(Mutex<Beats>);

#[derive(Debug)]
struct Beats {
    last: Instant,
    pauses: u64,
}

/// How often it beats.
const BEAT: Duration = Duration::from_millis(100);
/// A shorter pause is within the second that a message may take.
const PAUSE: Duration = Duration::from_secs(1);

impl Pulse {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self(Mutex::new(Beats { last: Instant::now(), pauses: 0 })))
    }

    /// Beats until nobody listens.
    pub(super) async fn beat(pulse: Weak<Self>) {
        while let Some(beating) = pulse.upgrade() {
            let now = Instant::now();
            beating.beats().beat(now);
            drop(beating);
            sleep(BEAT).await;
        }
    }

    /// How often this process stood still. Counts a pause that has just ended even before the next beat.
    pub(super) fn pauses(&self) -> u64 {
        self.beats().pauses_at(Instant::now())
    }

    fn beats(&self) -> MutexGuard<'_, Beats> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Beats {
    fn beat(&mut self, now: Instant) {
        *self = Self { last: now, pauses: self.pauses_at(now) };
    }

    fn pauses_at(&self, now: Instant) -> u64 {
        self.pauses + u64::from(now.saturating_duration_since(self.last) >= PAUSE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_pause_counts_once_before_and_after_the_next_beat() {
        let pulse = Pulse::new();
        tokio::spawn(Pulse::beat(Arc::downgrade(&pulse)));
        sleep(Duration::from_secs(60)).await;
        assert_eq!(pulse.pauses(), 0);
        for pauses in 1..4 {
            tokio::time::advance(Duration::from_secs(1)).await;
            assert_eq!(pulse.pauses(), pauses);
            sleep(Duration::from_secs(60)).await;
            assert_eq!(pulse.pauses(), pauses);
        }
        tokio::time::advance(Duration::from_millis(800)).await;
        assert_eq!(pulse.pauses(), 3);
    }
}
