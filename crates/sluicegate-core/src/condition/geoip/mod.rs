//! Countries and regions of addresses, from a GeoIP database.

mod code;
mod database;
mod error;
mod key;
mod records;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

pub use self::database::GeoDatabase;
pub use self::error::GeoError;
pub use self::key::{GeoIn, GeoKey};
