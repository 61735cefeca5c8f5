//! Countries and regions of addresses, from a GeoIP database.

mod code;
mod database;
mod error;
mod key;
mod records;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod writer;

pub use self::database::GeoDatabase;
pub use self::error::GeoError;
pub use self::key::{GeoIn, GeoKey};
