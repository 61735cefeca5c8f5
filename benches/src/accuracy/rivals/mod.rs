//! Rivals whose clock can be turned by hand, each through the seam that it has for that.
//!
//! Not among them: limitador, which reads `SystemTime::now` deep inside and has no seam; tower_governor,
//! actix-governor and axum-governor, which are governor on its own clock; the cached bucket of
//! tokio-rate-limit, which is deprecated, and the probabilistic one, which draws lots on purpose and
//! never twice the same; tower-rate-limiter, which asks for a newer Rust.

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
    // Their requests all cost one.
    if cost == 1 {
        rivals.extend(tower_resilience::contestants(rate));
        rivals.push(actix_extensible::contestant(rate));
    }
    rivals
}

/// The buckets among them, with room for `burst` each.
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
