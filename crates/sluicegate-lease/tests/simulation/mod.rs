//! The real pool and the real client in a simulated world.

mod random;
mod scenarios;
#[cfg(test)]
mod tests;
mod world;

pub(crate) use self::scenarios::{SCENARIOS, scenario};
pub(crate) use self::world::{Seen, Setting};
