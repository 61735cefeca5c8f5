use std::collections::HashMap;

use limitador::RateLimiter;
use limitador::limit::{Context, Limit, Namespace};

use super::{Bucket, Direct, Verdict};
use crate::keys::Key;

/// limitador with its counters in memory: a fixed window for each value of a variable, checked and updated
/// in one call. Keys are text in a map of variables that the caller makes for every call.
pub struct Limitador {
    limiter: RateLimiter,
    namespace: Namespace,
}

/// No window ends while something is measured.
const WINDOW: u64 = 24 * 3_600;

impl Limitador {
    /// With room for twice as many counters as there are keys, because it evicts before it is full.
    pub fn new(bucket: Bucket, keys: u64) -> Self {
        let limiter = RateLimiter::new(2 * keys.max(1_000));
        let variable = "user_id".try_into().expect("the name of a variable is an expression");
        let no_conditions: [_; 0] = [];
        limiter.add_limit(Limit::new(
            "api",
            bucket.burst.into(),
            WINDOW,
            no_conditions,
            [variable],
        ));
        Self { limiter, namespace: "api".into() }
    }
}

impl<K: Key> Direct<K> for Limitador {
    #[inline]
    fn take(&self, key: &K, buffer: &mut String) -> Verdict {
        let variables = HashMap::from([("user_id".to_owned(), key.text(buffer).to_owned())]);
        let context = Context::from(variables);
        let answer = self.limiter.check_rate_limited_and_update(&self.namespace, &context, 1);
        Verdict::of(!answer.expect("the variable is there").limited)
    }
}
