//! Stand-ins for what a feature adds, while the feature is off.
//!
//! Nothing makes a value of them, so the rest of the crate is the same with and without the feature.

#[cfg(not(feature = "cpu"))]
mod cpu;
#[cfg(not(feature = "geoip"))]
mod geoip;
#[cfg(not(feature = "hours"))]
mod hours;

#[cfg(not(feature = "cpu"))]
pub(crate) use self::cpu::Cpu;
#[cfg(not(feature = "geoip"))]
pub(crate) use self::geoip::{GeoDatabase, GeoIn, GeoKey};
#[cfg(not(feature = "hours"))]
pub(crate) use self::hours::{Hours, Weekday};
#[cfg(feature = "cpu")]
pub(crate) use sluicegate_core::condition::Cpu;
#[cfg(feature = "geoip")]
pub(crate) use sluicegate_core::condition::{GeoDatabase, GeoIn, GeoKey};
#[cfg(feature = "hours")]
pub(crate) use sluicegate_core::condition::{Hours, Weekday};

/// Says that a file needs a feature that is off.
#[cfg_attr(
    all(
        feature = "cpu",
        feature = "geoip",
        feature = "hours",
        feature = "json",
        feature = "throttle",
        feature = "toml"
    ),
    expect(dead_code, reason = "nothing is absent")
)]
pub(crate) fn needs(feature: &str) -> String {
    format!("this needs the feature `{feature}` of sluicegate-config, which is off in this build")
}
