//! The real pool and the real client in a simulated world.

mod buckets;
mod random;
mod rules;
mod scenarios;
mod seen;
mod setting;
#[cfg(test)]
mod tests;
mod wheel;
mod world;

pub(crate) use self::rules::Rule;
pub(crate) use self::scenarios::{SCENARIOS, crowd, crowded, scenario};
pub(crate) use self::seen::Seen;
pub(crate) use self::setting::Setting;
