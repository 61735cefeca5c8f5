use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use ratelimit::{Builder, Clock};

use crate::accuracy::{Contestant, Promise, Rate};

/// Microseconds since the start.
#[derive(Debug, Clone, Default)]
struct Hand(Arc<AtomicU64>);

impl Clock for Hand {
    fn elapsed(&self) -> Duration {
        Duration::from_micros(self.0.load(Ordering::Relaxed))
    }
}

/// Full at the start, as its documentation advises for admission control.
pub(super) fn bucket(rate: Rate, burst: u64) -> Contestant {
    let hand = Hand::default();
    let limiter = Builder::with_clock(rate.count, hand.clone())
        .period(rate.every())
        .max_tokens(burst)
        .initial_available(burst)
        .build()
        .expect("neither the period nor the burst is zero");
    Contestant::at_once("ratelimit", Promise::bucket(rate, burst), move |at, cost| {
        hand.0.store(at, Ordering::Relaxed);
        limiter.try_wait_n(cost).is_ok()
    })
}
