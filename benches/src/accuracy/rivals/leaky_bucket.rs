use std::time::Duration;

use leaky_bucket::RateLimiter;

use super::paused::Paused;
use crate::accuracy::{Contestant, Promise, Rate};

/// It refills in steps, and no finer than configured.
pub(super) fn bucket(rate: Rate, burst: u64) -> Contestant {
    let (amount, every) = rate.steps();
    let mut paused = Paused::new();
    let limiter = paused.make(|| {
        RateLimiter::builder()
            .initial(burst as usize)
            .max(burst as usize)
            .refill(amount as usize)
            .interval(Duration::from_micros(every))
            .build()
    });
    let promise = Promise::stepped(rate, burst, amount);
    Contestant::at_once("leaky-bucket, in steps", promise, move |at, cost| {
        paused.at(at, async { limiter.try_acquire(cost as usize) })
    })
}
