use std::sync::Mutex;
use std::time::SystemTime;

use throttlecrab::{PeriodicStore, RateLimiter};

use super::{Bucket, Direct, Verdict};
use crate::keys::Key;

/// throttlecrab with its default store, behind a mutex, which its documentation requires for several threads. Keys
/// are text, and the caller reads the time.
///
/// Its other stores do no better here: `ProbabilisticStore` walks all keys once in a thousand calls, `AdaptiveStore`
/// once in a hundred thousand, this one once a minute.
pub struct Throttlecrab {
    limiter: Mutex<RateLimiter<PeriodicStore>>,
    burst: i64,
    interval: i64,
}

impl Throttlecrab {
    /// With room for `keys` keys and the store's own reserve on top.
    pub fn new(bucket: Bucket, keys: u64) -> Self {
        let store = PeriodicStore::builder().capacity(keys as usize).build();
        Self {
            limiter: Mutex::new(RateLimiter::new(store)),
            // With a burst of one, a key expires at once and is never refused.
            burst: i64::from(bucket.burst.max(2)),
            interval: bucket.interval.as_secs() as i64,
        }
    }
}

impl<K: Key> Direct<K> for Throttlecrab {
    #[inline]
    fn take(&self, key: &K, buffer: &mut String) -> Verdict {
        let key = key.text(buffer);
        let now = SystemTime::now();
        let mut limiter = self.limiter.lock().expect("nobody panics under the lock");
        let answer = limiter.rate_limit(key, self.burst, 1, self.interval, 1, now);
        let (is_admitted, _) = answer.expect("the limit is valid, and nobody else is in the store");
        Verdict::of(is_admitted)
    }
}
