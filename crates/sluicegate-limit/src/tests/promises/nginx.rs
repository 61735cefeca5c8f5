//! The leaky bucket compared with the excess formula of nginx's `limit_req`.

use proptest::prelude::*;

use super::super::super::Limit;
use super::super::{NOW, micros, secs};

/// A node of `ngx_http_limit_req_module`: thousandths of requests, milliseconds.
struct Nginx {
    /// Requests per second times 1000.
    rate: i64,
    burst: i64,
    /// `nodelay` is the largest value.
    delay: i64,
    node: Option<(i64, i64)>,
}

impl Nginx {
    /// The excess that is delayed, or `None` for a refusal.
    fn request(&mut self, now: i64) -> Option<i64> {
        let excess = match self.node {
            None => 0,
            Some((last, excess)) => (excess - self.rate * (now - last) / 1_000 + 1_000).max(0),
        };
        if excess > self.burst {
            return None;
        }
        self.node = Some((now, excess));
        Some((excess - self.delay).max(0))
    }
}

proptest! {
    #![proptest_config(crate::tests::cases(100))]

    #[test]
    fn burst_delay_and_nodelay_mean_what_they_do_in_nginx(
        rate in 1_u64..50,
        burst in 0_u64..12,
        delay in prop::option::of(0_u64..12),
        steps in prop::collection::vec(prop_oneof![Just(0_u64), 1_u64..40, 40_u64..3_000], 1..100),
    ) {
        let delay = delay.map(|delay| delay.min(burst));
        let limit = Limit::leaky_bucket(rate, secs(1)).queue(burst)
            .delay_after(delay.unwrap_or(burst));
        let mut nginx = Nginx {
            rate: rate as i64 * 1_000,
            burst: burst as i64 * 1_000,
            delay: delay.map_or(i64::MAX, |delay| delay as i64 * 1_000),
            node: None,
        };
        let mut state = limit.fresh();
        let mut millis = 0;
        for step in steps {
            millis += step;
            let expected = nginx.request(millis as i64);
            let decision = limit.take(&mut state, NOW + millis * 1_000, 1);
            prop_assert_eq!(decision.is_admitted(), expected.is_some(), "at {} ms", millis);
            if let Some(excess) = expected {
                // nginx rounds its delays down to a millisecond. What is rounded is the same.
                let wait = (excess as u64 * 1_000_000).div_ceil(rate * 1_000);
                prop_assert_eq!(decision.wait(), micros(wait));
            }
        }
    }
}
