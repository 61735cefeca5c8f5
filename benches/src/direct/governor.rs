#![expect(
    clippy::disallowed_types,
    reason = "governor with a quicker hash; no client chooses these keys"
)]

use std::num::NonZeroU32;

use foldhash::fast::RandomState;
use governor::clock::DefaultClock;
use governor::state::keyed::DefaultKeyedStateStore;
use governor::{DefaultDirectRateLimiter, DefaultKeyedRateLimiter, Quota, RateLimiter};

use super::{Bucket, Direct, Verdict};
use crate::keys::Key;

/// governor's keyed limiter with its defaults: a `DashMap` with SipHash, the `quanta` clock.
#[derive(Debug)]
pub struct Governor<K: Key>(DefaultKeyedRateLimiter<K>);

impl<K: Key> Governor<K> {
    /// The map grows with the keys; its constructors take no size.
    pub fn new(bucket: Bucket) -> Self {
        Self(RateLimiter::keyed(quota(bucket)))
    }
}

impl<K: Key> Direct<K> for Governor<K> {
    #[inline]
    fn take(&self, key: &K, _: &mut String) -> Verdict {
        Verdict::of(self.0.check_key(key).is_ok())
    }
}

/// The same with the hash of the floor.
#[derive(Debug)]
pub struct GovernorFoldhash<K: Key>(
    RateLimiter<K, DefaultKeyedStateStore<K, RandomState>, DefaultClock>,
);

impl<K: Key> GovernorFoldhash<K> {
    /// As [`Governor::new`].
    pub fn new(bucket: Bucket) -> Self {
        Self(RateLimiter::dashmap_with_hasher(quota(bucket), RandomState::default()))
    }
}

impl<K: Key> Direct<K> for GovernorFoldhash<K> {
    #[inline]
    fn take(&self, key: &K, _: &mut String) -> Verdict {
        Verdict::of(self.0.check_key(key).is_ok())
    }
}

/// governor's limiter for one stream.
#[derive(Debug)]
pub struct GovernorDirect(DefaultDirectRateLimiter);

impl GovernorDirect {
    /// A limiter without keys.
    pub fn new(bucket: Bucket) -> Self {
        Self(RateLimiter::direct(quota(bucket)))
    }
}

impl Direct<()> for GovernorDirect {
    #[inline]
    fn take(&self, _: &(), _: &mut String) -> Verdict {
        Verdict::of(self.0.check().is_ok())
    }
}

fn quota(bucket: Bucket) -> Quota {
    let burst = NonZeroU32::new(bucket.burst).expect("a burst is not zero");
    let quota = Quota::with_period(bucket.interval).expect("an interval is not zero");
    quota.allow_burst(burst)
}
