//! Rivals with a clock that can be turned by hand, each in the way that it offers.
//!
//! Left out: limitador, which reads `SystemTime::now` deep inside; tower_governor, actix-governor and axum-governor,
//! which are governor with its own clock; the cached bucket of tokio-rate-limit, which is deprecated, and the
//! probabilistic one, which is random on purpose; tower-rate-limiter, which needs a newer Rust.

mod actix_extensible;
mod governor;
mod leaky_bucket;
mod paused;
mod rate_net;
mod ratelimit;
mod throttlecrab;
mod tokio_rate_limit;
mod tower_resilience;

use super::{Contestant, Rate};

/// Every rival that can be asked for `rate`, in requests that cost `cost` each.
pub fn rivals(rate: Rate, cost: u64) -> Vec<Contestant> {
    let mut rivals = buckets(rate, rate.count);
    rivals.extend(rate_net::windows(rate));
    // All of their requests cost one.
    if cost == 1 {
        rivals.extend(tower_resilience::contestants(rate));
        rivals.push(actix_extensible::contestant(rate));
    }
    rivals
}

/// The token buckets among them, with a burst of `burst` each.
pub fn buckets(rate: Rate, burst: u64) -> Vec<Contestant> {
    let mut buckets = Vec::new();
    buckets.extend(governor::bucket(rate, burst));
    buckets.extend(throttlecrab::bucket(rate, burst));
    buckets.push(ratelimit::bucket(rate, burst));
    buckets.push(leaky_bucket::bucket(rate, burst));
    buckets.extend(tokio_rate_limit::buckets(rate, burst));
    buckets.extend(rate_net::buckets(rate, burst));
    buckets
}
