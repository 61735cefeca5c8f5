//! The real pool and the real client in a simulated world.

mod buckets;
mod random;
#[cfg_attr(not(test), expect(dead_code, reason = "only tests switch rules off"))]
mod rules;
mod scenarios;
mod seen;
mod setting;
#[cfg(test)]
mod tests;
mod wheel;
mod world;

#[cfg(test)]
pub(crate) use self::rules::Rule;
pub(crate) use self::scenarios::{SCENARIOS, crowd, crowded, scenario};
pub(crate) use self::seen::Seen;
pub(crate) use self::setting::Setting;
