use std::convert::Infallible;
use std::future::{Ready, ready};
use std::time::Duration;

use tower::{Layer, Service, ServiceExt, service_fn};
use tower_resilience_ratelimiter::{RateLimiterConfigBuilder, RateLimiterLayer, WindowType};

use super::paused::Paused;
use crate::accuracy::{Contestant, Promise, Rate, Weighing};

/// Its windows begin with a request, not at borders that all agree on. Its bucket holds the count at
/// least.
pub(super) fn contestants(rate: Rate) -> [Contestant; 4] {
    let window = |kind| move |layer: RateLimiterConfigBuilder| layer.window_type(kind);
    [
        contestant(
            "tower-resilience, token bucket",
            Promise::bucket(rate, rate.count),
            rate,
            |layer| layer.burst_size(0),
        ),
        contestant(
            "tower-resilience, fixed window",
            Promise::windows(rate, true),
            rate,
            window(WindowType::Fixed),
        ),
        contestant(
            "tower-resilience, sliding window",
            Promise::counter(rate, Weighing { rounded_down: true, from_first: true }),
            rate,
            window(WindowType::SlidingCounter),
        ),
        contestant(
            "tower-resilience, sliding log",
            Promise::log(rate),
            rate,
            window(WindowType::SlidingLog),
        ),
    ]
}

fn contestant(
    name: &'static str,
    promise: Promise,
    rate: Rate,
    finish: impl FnOnce(RateLimiterConfigBuilder) -> RateLimiterConfigBuilder,
) -> Contestant {
    let builder = RateLimiterLayer::builder()
        .limit_for_period(rate.count as usize)
        .refresh_period(rate.every())
        .timeout_duration(Duration::ZERO);
    let layer = finish(builder).build().expect("neither the count nor the period is zero");
    let mut paused = Paused::new();
    let answer: fn(()) -> Ready<Result<(), Infallible>> = |()| ready(Ok(()));
    let mut service = paused.make(|| layer.layer(service_fn(answer)));
    Contestant::at_once(name, promise, move |at, _cost| {
        paused.at(at, async { service.ready().await.is_ok() && service.call(()).await.is_ok() })
    })
}
