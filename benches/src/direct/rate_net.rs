use std::net::IpAddr;
use std::time::Duration;

use rate_net::{
    Builder, CoarseClock, DEFAULT_MAX_KEYS, DirectLimiter, Eviction, Quota, RateLimiter,
};

use super::{Bucket, Direct, Verdict};

/// rate-net's keyed limiter with its defaults, and room for all keys.
#[derive(Debug)]
pub struct RateNet(RateLimiter);

impl RateNet {
    /// Its documentation recommends one and a half to two times as much room as there are keys. Its default of a
    /// million is kept if that is more.
    pub fn new(bucket: Bucket, keys: u64) -> Self {
        Self(builder(bucket, roomy(keys)).build())
    }

    /// Room for no more than `keys` keys.
    pub fn bounded(bucket: Bucket, keys: u64) -> Self {
        Self(builder(bucket, keys as usize).build())
    }
}

/// The same with its `CoarseClock`, which it recommends for speed: a thread reads the time every millisecond.
#[derive(Debug)]
pub struct RateNetCoarse(RateLimiter<CoarseClock>);

impl RateNetCoarse {
    /// As [`RateNet::new`].
    ///
    /// # Panics
    ///
    /// When the thread cannot be started.
    pub fn new(bucket: Bucket, keys: u64) -> Self {
        Self(builder(bucket, roomy(keys)).clock(coarse()).build())
    }
}

/// Numbers and addresses are stored in place. Text of more than 22 bytes is borrowed with `check_bytes`, as
/// its documentation advises: `check` would copy it for every call.
macro_rules! direct {
    ($limiter:ty) => {
        impl Direct<u64> for $limiter {
            #[inline]
            fn take(&self, key: &u64, _: &mut String) -> Verdict {
                Verdict::of(self.0.check(*key).is_allow())
            }
        }

        impl Direct<IpAddr> for $limiter {
            #[inline]
            fn take(&self, key: &IpAddr, _: &mut String) -> Verdict {
                Verdict::of(self.0.check(*key).is_allow())
            }
        }

        impl Direct<String> for $limiter {
            #[inline]
            fn take(&self, key: &String, _: &mut String) -> Verdict {
                Verdict::of(self.0.check_bytes(key).is_allow())
            }
        }
    };
}

direct!(RateNet);
direct!(RateNetCoarse);

/// rate-net's limiter for one stream.
#[derive(Debug)]
pub struct RateNetDirect(DirectLimiter);

impl RateNetDirect {
    /// A limiter without keys.
    pub fn new(bucket: Bucket) -> Self {
        Self(DirectLimiter::with_quota(quota(bucket)))
    }
}

impl Direct<()> for RateNetDirect {
    #[inline]
    fn take(&self, _: &(), _: &mut String) -> Verdict {
        Verdict::of(self.0.check().is_allow())
    }
}

/// The same on its `CoarseClock`.
#[derive(Debug)]
pub struct RateNetDirectCoarse(DirectLimiter<CoarseClock>);

impl RateNetDirectCoarse {
    /// A limiter without keys.
    ///
    /// # Panics
    ///
    /// When the thread that reads the time cannot be started.
    pub fn new(bucket: Bucket) -> Self {
        Self(DirectLimiter::with_quota(quota(bucket)).with_clock(coarse()))
    }
}

impl Direct<()> for RateNetDirectCoarse {
    #[inline]
    fn take(&self, _: &(), _: &mut String) -> Verdict {
        Verdict::of(self.0.check().is_allow())
    }
}

fn builder(bucket: Bucket, room: usize) -> Builder {
    let builder = RateLimiter::builder().quota(1, bucket.interval).burst(bucket.burst);
    builder.eviction(Eviction::capacity(room))
}

fn roomy(keys: u64) -> usize {
    DEFAULT_MAX_KEYS.max(2 * keys as usize)
}

fn quota(bucket: Bucket) -> Quota {
    let quota = Quota::rate(1, bucket.interval).expect("an interval is not zero");
    quota.with_burst(bucket.burst)
}

fn coarse() -> CoarseClock {
    CoarseClock::spawn(Duration::from_millis(1)).expect("a thread can be started")
}
