//! A database is checked before it is used. All records are read when a file is opened or reloaded, so a broken file
//! never replaces the one in use, and no request can fail later. A file without any country is an error; otherwise
//! the whole world would share one budget. Codes are checked against ISO 3166-1, because `UK` looks valid and matches
//! no client.

use std::fs;
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arc_swap::ArcSwap;

use super::code::Code;
use super::error::GeoError;
use super::records::Records;
use crate::adapter::KeyTag;

/// A GeoIP database of countries or cities in the MaxMind DB format: GeoLite2-Country, GeoLite2-City, DB-IP and others.
///
/// [`country`](Self::country) and [`region`](Self::region) turn the address of the client into a key, and [`GeoKey::is_in`]
/// turns that key into a condition.
///
/// The file is read into memory and checked once. Clones share the database. A request that is decided
/// during a [reload](Self::reload) uses the old or the new contents, never a mixture.
///
/// [`GeoKey::is_in`]: crate::condition::GeoKey::is_in
///
/// ```
/// use sluicegate::{Ip, Limit};
/// use sluicegate::condition::{GeoDatabase, Not};
///
/// # mod writer {
/// #     include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/condition/geoip/testing.rs"));
/// # }
/// # let database = writer::Writer::new("Test-Country").country("192.0.2.0/24", "DE").write();
/// # let path = std::env::temp_dir().join(format!("sluicegate-{}.mmdb", std::process::id()));
/// # std::fs::write(&path, database).unwrap();
/// let geo = GeoDatabase::open(&path)?;
/// # std::fs::remove_file(path).unwrap();
///
/// let rule = (
///     // One budget of 10,000 requests per minute for each country.
///     Limit::per_minute(10_000).by(geo.country(Ip::peer())),
///     // A smaller limit for each client from anywhere else.
///     Limit::per_minute(10)
///         .by(Ip::peer())
///         .when(Not(geo.country(Ip::peer()).is_in(["DE", "AT", "CH"])?)),
/// );
/// # let _ = rule;
/// # Ok::<(), sluicegate::condition::GeoError>(())
/// ```
///
/// With a policy file (`sluicegate-config`, feature `geoip`), the same keys and conditions are `"country"`, `"region"` and
/// `when = { country = ["DE"] }`.
///
/// A GeoIP database is an informed guess: networks move between countries, and clients use proxies.
#[derive(Debug, Clone)]
#[must_use]
pub struct GeoDatabase(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    path: Option<PathBuf>,
    records: ArcSwap<Records>,
}

impl GeoDatabase {
    /// Reads the database file at `path`.
    ///
    /// This takes time in proportion to the file: about half a second for a million networks. In an
    /// asynchronous program, call it before the server starts, or on a thread that may block.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read, if it is not a valid MaxMind DB file, or if no record has a
    /// country. A database of network owners (ASN), for example, has none.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, GeoError> {
        let path = path.as_ref();
        let records = read(path)?;
        Ok(Self::new(Some(path.into()), records))
    }

    /// Reads a database from the bytes of a file.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open).
    pub fn from_bytes(bytes: impl Into<Vec<u8>>) -> Result<Self, GeoError> {
        Ok(Self::new(None, Records::new(bytes.into())?))
    }

    /// Reads the file again and uses its new contents in all clones. This undoes an earlier
    /// [`replace`](Self::replace).
    ///
    /// Replace the file by renaming a complete one over it, so that a reload never sees half of it.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open); also if the database was made [from bytes](Self::from_bytes) and has no
    /// file. After an error the old contents stay in use.
    pub fn reload(&self) -> Result<(), GeoError> {
        let path = self.0.path.as_deref().ok_or(GeoError::no_file())?;
        self.0.records.store(Arc::new(read(path)?));
        Ok(())
    }

    /// Uses the database in these bytes from now on, in all clones.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open). After an error the old contents stay in use.
    pub fn replace(&self, bytes: impl Into<Vec<u8>>) -> Result<(), GeoError> {
        self.0.records.store(Arc::new(Records::new(bytes.into())?));
        Ok(())
    }

    /// The code of `address`, if it is known.
    pub(crate) fn code(&self, level: Level, address: IpAddr) -> Option<Code> {
        let records = self.0.records.load();
        match level {
            Level::Country => records.country(address),
            Level::Region => records.region(address),
        }
    }

    fn new(path: Option<PathBuf>, records: Records) -> Self {
        Self(Arc::new(Inner { path, records: ArcSwap::from_pointee(records) }))
    }
}

fn read(path: &Path) -> Result<Records, GeoError> {
    // Reading a pipe or a device may never end.
    let is_file = |about: fs::Metadata| match about.is_file() {
        true => Ok(()),
        false => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file")),
    };
    let bytes = fs::metadata(path).and_then(is_file).and_then(|()| fs::read(path));
    let bytes = bytes.map_err(|error| GeoError::unreadable(path, error))?;
    Records::new(bytes).map_err(|error| error.in_file(path))
}

/// The part of a record that a key reads.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Level {
    Country,
    Region,
}

impl Level {
    pub(crate) fn parse(self, code: &str) -> Result<Code, GeoError> {
        let (read, form) = match self {
            Self::Country => (
                Code::parse_country(code),
                "not the code of a country, expected two upper-case letters of ISO 3166-1 such as `DE`",
            ),
            Self::Region => (
                Code::parse_region(code),
                "not the code of a region, expected an upper-case code of ISO 3166-2 such as `US-CA`",
            ),
        };
        read.ok_or_else(|| GeoError::code_of(code, form))
    }

    pub(crate) fn tag(self) -> KeyTag {
        match self {
            Self::Country => KeyTag::Country,
            Self::Region => KeyTag::Region,
        }
    }
}
