//! The page about migrating says of each setting of other crates what it is here. This asks those crates.

use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;
use std::time::Duration;

use governor::middleware::NoOpMiddleware;
use sluicegate::{Limit, Limiter, ManualClock, Memory};

/// How many requests pass at once, and the time until the next one.
type Measured = (u32, Duration);

const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// Spends the whole burst. Its crate then says by which numbers it refuses.
macro_rules! there {
    ($config:expr) => {{
        let limiter = $config.limiter().clone();
        let refused = (0..1_000).find_map(|_| limiter.check_key(&CLIENT).err());
        let quota = refused.expect("a burst below a thousand").quota();
        (quota.burst_size().get(), quota.replenish_interval())
    }};
}

fn here(limit: Limit) -> Measured {
    let clock = ManualClock::new();
    let limiter = Limiter::new(limit).store(Memory::builder().clock(&clock).build());
    let mut burst = 0;
    loop {
        let decision = limiter.take("alice").now().unwrap();
        if let Some(wait) = decision.retry_after() {
            return (burst, wait);
        }
        burst += 1;
    }
}

#[test]
fn settings_of_actix_governor_are_the_limits_that_the_page_names() {
    use actix_governor::{GovernorConfig, GovernorConfigBuilder};

    let builder = GovernorConfigBuilder::default;
    let ms = Duration::from_millis;
    #[expect(deprecated, reason = "people migrate from what is deprecated")]
    let rows = [
        (
            "`per_second(2)`",
            there!(builder().per_second(2).finish().unwrap()),
            Limit::per(1, ms(2_000)).burst(8),
        ),
        (
            "`seconds_per_request(2)`",
            there!(builder().seconds_per_request(2).finish().unwrap()),
            Limit::per(1, ms(2_000)).burst(8),
        ),
        (
            "`milliseconds_per_request(500)`",
            there!(builder().milliseconds_per_request(500).finish().unwrap()),
            Limit::per(1, ms(500)).burst(8),
        ),
        (
            "`nanoseconds_per_request(1_000_000)`",
            there!(builder().nanoseconds_per_request(1_000_000).finish().unwrap()),
            Limit::per(1, Duration::from_nanos(1_000_000)).burst(8),
        ),
        (
            "`period(duration)`",
            there!(builder().period(ms(70)).finish().unwrap()),
            Limit::per(1, ms(70)).burst(8),
        ),
        (
            "`requests_per_second(2)`",
            there!(builder().requests_per_second(2).finish().unwrap()),
            Limit::per_second(2).burst(8),
        ),
        (
            "`requests_per_minute(30)`",
            there!(builder().requests_per_minute(30).finish().unwrap()),
            Limit::per_minute(30).burst(8),
        ),
        (
            "`requests_per_hour(360)`",
            there!(builder().requests_per_hour(360).finish().unwrap()),
            Limit::per_hour(360).burst(8),
        ),
        (
            "`.burst_size(5)`",
            there!(builder().seconds_per_request(3).burst_size(5).finish().unwrap()),
            Limit::per(1, ms(3_000)).burst(5),
        ),
        (
            "`GovernorConfig::default()`",
            there!(GovernorConfig::default()),
            Limit::per(1, ms(500)).burst(8),
        ),
        (
            "`GovernorConfig::secure()`",
            there!(GovernorConfig::<_, NoOpMiddleware>::secure()),
            Limit::per(1, ms(4_000)).burst(2),
        ),
    ];
    agree(&rows);
}

#[test]
fn settings_of_tower_governor_are_the_limits_that_the_page_names() {
    use tower_governor::governor::{GovernorConfig, GovernorConfigBuilder};

    let builder = GovernorConfigBuilder::default;
    let ms = Duration::from_millis;
    let rows = [
        (
            "`per_second(2)`",
            there!(builder().per_second(2).finish().unwrap()),
            Limit::per(1, ms(2_000)).burst(8),
        ),
        (
            "`per_millisecond(500)`",
            there!(builder().per_millisecond(500).finish().unwrap()),
            Limit::per(1, ms(500)).burst(8),
        ),
        (
            "`per_nanosecond(1_000_000)`",
            there!(builder().per_nanosecond(1_000_000).finish().unwrap()),
            Limit::per(1, Duration::from_nanos(1_000_000)).burst(8),
        ),
        (
            "`period(duration)`",
            there!(builder().period(ms(70)).finish().unwrap()),
            Limit::per(1, ms(70)).burst(8),
        ),
        (
            "`.burst_size(5)`",
            there!(builder().per_second(3).burst_size(5).finish().unwrap()),
            Limit::per(1, ms(3_000)).burst(5),
        ),
        (
            "`GovernorConfigBuilder::default()`",
            there!(builder().finish().unwrap()),
            Limit::per(1, ms(500)).burst(8),
        ),
        (
            "`GovernorConfig::secure()`",
            there!(GovernorConfig::<_, NoOpMiddleware>::secure()),
            Limit::per(1, ms(4_000)).burst(2),
        ),
    ];
    agree(&rows);
}

fn agree(rows: &[(&str, Measured, Limit)]) {
    let benches = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = benches.join("../crates/sluicegate/src/guide/migrating.md");
    let page = fs::read_to_string(page).unwrap();
    for (setting, there, limit) in rows {
        assert!(page.contains(setting), "the page does not have {setting}");
        assert_eq!(here(*limit), *there, "{setting}");
    }
}
