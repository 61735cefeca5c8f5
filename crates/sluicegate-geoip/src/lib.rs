//! Rate limits by country and region, from a GeoIP database in the MaxMind DB format.
//!
//! [`GeoDatabase`] reads a file such as GeoLite2-Country, GeoLite2-City or DB-IP's. [`GeoDatabase::country`] and
//! [`GeoDatabase::region`] turn the address of the client into a key; [`GeoKey::is_in`] turns that key into a
//! condition.
//!
//! ```
//! use sluicegate::condition::Not;
//! use sluicegate::{Ip, Limit};
//! use sluicegate_geoip::GeoDatabase;
//!
//! # mod writer {
//! #     include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/writer.rs"));
//! # }
//! # let database = writer::Writer::new("Test-Country").country("192.0.2.0/24", "DE").write();
//! # let path = std::env::temp_dir().join(format!("sluicegate-{}.mmdb", std::process::id()));
//! # std::fs::write(&path, database).unwrap();
//! let geo = GeoDatabase::open(&path)?;
//! # std::fs::remove_file(path).unwrap();
//!
//! let rule = (
//!     // One budget of 10,000 requests per minute for each country.
//!     Limit::per_minute(10_000).by(geo.country(Ip::peer())),
//!     // A smaller limit for each client from anywhere else.
//!     Limit::per_minute(10)
//!         .by(Ip::peer())
//!         .when(Not(geo.country(Ip::peer()).is_in(["DE", "AT", "CH"])?)),
//! );
//! # let _ = rule;
//! # Ok::<(), sluicegate_geoip::GeoError>(())
//! ```
//!
//! A GeoIP database is an informed guess: networks move between countries, and clients use proxies.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod code;
mod countries;
mod database;
mod error;
mod key;
mod level;
mod records;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod writer;

pub use self::database::GeoDatabase;
pub use self::error::GeoError;
pub use self::key::{GeoIn, GeoKey};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
