//! The rivals that are tower layers, each as its documentation says that it is fastest, all with the
//! same budget for each address.

use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::ConnectInfo;
use axum_governor::{PeerIp, Quota};
use governor::clock::QuantaInstant;
use governor::middleware::{NoOpMiddleware, RateLimitingMiddleware, StateInformationMiddleware};
use rate_net::tower::{KeyExtractor, RateLimitLayer as RateNetLayer, RequestInfo};
use rate_net::{CoarseClock, Key};
use tokio_rate_limit::algorithm::TokenBucket;
use tokio_rate_limit::middleware::RateLimitLayer as TokioRateLimitLayer;
use tower_governor::GovernorLayer;
use tower_governor::governor::{GovernorConfig, GovernorConfigBuilder};
use tower_governor::key_extractor::{GlobalKeyExtractor, PeerIpKeyExtractor};
use tower_resilience_ratelimiter::RateLimiterLayer;

use super::Budget;

type TowerGovernor<K, M> = GovernorLayer<K, M, Body>;

pub(super) fn tower_governor(
    budget: Budget,
) -> TowerGovernor<PeerIpKeyExtractor, NoOpMiddleware<QuantaInstant>> {
    GovernorLayer::new(finished(&mut builder(budget)))
}

pub(super) fn tower_governor_with_headers(
    budget: Budget,
) -> TowerGovernor<PeerIpKeyExtractor, StateInformationMiddleware> {
    GovernorLayer::new(finished(&mut builder(budget).use_headers()))
}

pub(super) fn tower_governor_for_all(
    budget: Budget,
) -> TowerGovernor<GlobalKeyExtractor, NoOpMiddleware<QuantaInstant>> {
    GovernorLayer::new(finished(&mut builder(budget).key_extractor(GlobalKeyExtractor)))
}

type Builder<K, M> = GovernorConfigBuilder<K, M>;

fn builder(budget: Budget) -> Builder<PeerIpKeyExtractor, NoOpMiddleware<QuantaInstant>> {
    Builder::default().const_period(budget.period()).const_burst_size(budget.burst())
}

fn finished<K, M>(builder: &mut Builder<K, M>) -> GovernorConfig<K, M>
where
    K: tower_governor::key_extractor::KeyExtractor,
    M: RateLimitingMiddleware<QuantaInstant>,
{
    builder.finish().expect("neither the period nor the burst is zero")
}

/// Has no way to leave its fields out.
pub(super) fn axum_governor(budget: Budget) -> axum_governor::GovernorLayer<IpAddr> {
    let number = |number: u64| {
        let number = u32::try_from(number).ok().and_then(NonZeroU32::new);
        number.expect("neither the period nor the burst is zero, and both are small")
    };
    let quota = Quota::seconds_per_request(number(budget.period().as_secs()));
    let config = axum_governor::GovernorConfigBuilder::default()
        .with_extractor(PeerIp::default())
        .expect_connect_info()
        .quota_default(quota.burst(number(budget.burst().into())))
        .finish();
    axum_governor::GovernorLayer::new(config.expect("the key has what it needs"))
}

/// Has no way to leave its fields out.
pub(super) fn tokio_rate_limit(budget: Budget) -> TokioRateLimitLayer {
    // It counts in whole tokens a second. The bucket that is exhausted gets none at all, so the field with the time
    // of a full bucket is left out.
    let rate = match budget {
        Budget::Plenty => 1,
        Budget::Spent => 0,
    };
    let bucket = TokenBucket::new(budget.burst().into(), rate);
    TokioRateLimitLayer::new(Arc::new(tokio_rate_limit::RateLimiter::from_algorithm(bucket)))
}

/// By default its fields are only on refusals.
pub(super) fn rate_net(budget: Budget) -> RateNetLayer<impl KeyExtractor> {
    RateNetLayer::new(rate_net_limiter(budget), peer)
}

pub(super) fn rate_net_with_headers(budget: Budget) -> RateNetLayer<impl KeyExtractor> {
    rate_net(budget).with_policy("default").with_headers_on_success(true)
}

/// With the clock that it recommends where reading the time shows: a thread turns it.
pub(super) fn rate_net_on_coarse_clock(
    budget: Budget,
) -> RateNetLayer<impl KeyExtractor, CoarseClock> {
    let clock = CoarseClock::spawn(Duration::from_millis(1)).expect("a thread can be started");
    RateNetLayer::shared(Arc::new(rate_net_limiter(budget).with_clock(clock)), peer)
}

fn rate_net_limiter(budget: Budget) -> rate_net::RateLimiter {
    rate_net::RateLimiter::builder().quota(1, budget.period()).burst(budget.burst()).build()
}

/// Like its `PeerIp`, which does not know where axum stores the address.
fn peer(request: &RequestInfo<'_>) -> Option<Key> {
    let ConnectInfo(address) = request.extensions().get::<ConnectInfo<SocketAddr>>()?;
    Some(Key::ip_prefix(address.ip(), 32, 64))
}

/// It has one limit for all clients. No request waits.
pub(super) fn tower_resilience(budget: Budget) -> RateLimiterLayer {
    let builder = RateLimiterLayer::builder()
        .limit_for_period(budget.burst() as usize)
        .refresh_period(budget.period())
        .timeout_duration(Duration::ZERO);
    builder.build().expect("neither the period nor the limit is zero")
}
