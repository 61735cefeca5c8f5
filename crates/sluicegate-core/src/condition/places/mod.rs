//! Where addresses are, out of a MaxMind DB file, as keys and conditions.

mod code;
mod countries;
mod database;
mod error;
mod key;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod writer;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arc_swap::ArcSwap;

pub use self::error::PlacesError;
pub use self::key::{InPlaces, PlaceKey};

use self::database::Database;
use self::key::Level;
use crate::key::Ip;

/// Where addresses are: a database of countries or cities in the MaxMind DB format, such as
/// GeoLite2-Country, GeoLite2-City or DB-IP's.
///
/// The file is read into memory, and all of it is looked through once. Clones are the same database; a
/// request that is being decided while it is [reloaded](Self::reload) sees the old or the new one.
///
/// ```
/// use sluicegate::{Ip, Limit};
/// use sluicegate::condition::{Not, Places};
///
/// # mod writer {
/// #     include!(concat!(env!("CARGO_MANIFEST_DIR"), "/src/condition/places/writer.rs"));
/// # }
/// # let database = writer::Writer::new("Test-Country").country("192.0.2.0/24", "DE").write();
/// # let path = std::env::temp_dir().join(format!("sluicegate-{}.mmdb", std::process::id()));
/// # std::fs::write(&path, database).unwrap();
/// let places = Places::open(&path)?;
/// # std::fs::remove_file(path).unwrap();
///
/// let rule = (
///     // The requests of a country together, ten thousand per minute for each.
///     Limit::per_minute(10_000).by(places.country(Ip::peer())),
///     // Those from elsewhere get less, each client for itself.
///     Limit::per_minute(10)
///         .by(Ip::peer())
///         .when(Not(places.country(Ip::peer()).is_in(["DE", "AT", "CH"])?)),
/// );
/// # let _ = rule;
/// # Ok::<(), sluicegate::condition::PlacesError>(())
/// ```
///
/// What such a database says is a good guess: addresses are moved, and clients use proxies.
#[derive(Debug, Clone)]
#[must_use]
pub struct Places(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    path: Option<PathBuf>,
    database: ArcSwap<Database>,
}

impl Places {
    /// Reads the database in the file at `path`.
    ///
    /// It takes time in proportion to the file, about half a second for a million networks: on an
    /// asynchronous runtime, call it before the server starts, or where blocking is allowed.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, is no MaxMind DB or a broken one, or holds no country at all, as
    /// a database of networks' owners does.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, PlacesError> {
        let path = path.as_ref();
        let database = read(path)?;
        Ok(Self::new(Some(path.into()), database))
    }

    /// Takes the database that the bytes of such a file are.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open).
    pub fn from_bytes(bytes: impl Into<Vec<u8>>) -> Result<Self, PlacesError> {
        Ok(Self::new(None, Database::new(bytes.into())?))
    }

    /// Reads the file again, and goes on with what is in it now, in all clones at once; what was
    /// [replaced](Self::replace) is in force no more. Put a new file in the place of the old one by
    /// renaming it, so that nobody reads a half of it.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open), and when there is no file, because it was made
    /// [from bytes](Self::from_bytes). The database that was in force stays.
    pub fn reload(&self) -> Result<(), PlacesError> {
        let path = self.0.path.as_deref().ok_or(PlacesError::no_file())?;
        self.0.database.store(Arc::new(read(path)?));
        Ok(())
    }

    /// Goes on with the database that these bytes are, in all clones at once.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open). The database that was in force stays.
    pub fn replace(&self, bytes: impl Into<Vec<u8>>) -> Result<(), PlacesError> {
        self.0.database.store(Arc::new(Database::new(bytes.into())?));
        Ok(())
    }

    /// The country of the address that `ip` finds, as a key: `DE`, by ISO 3166-1.
    ///
    /// See [`PlaceKey`] for the addresses of which nothing is known.
    pub fn country(&self, ip: Ip) -> PlaceKey {
        PlaceKey::new(self.clone(), ip, Level::Country)
    }

    /// The region of the address that `ip` finds, as a key: `US-CA`, by ISO 3166-2; where the database
    /// knows smaller ones within, the largest.
    ///
    /// Only databases of cities know regions, and not all of them: in one of countries, all is unknown.
    /// See [`PlaceKey`] for the addresses of which nothing is known.
    pub fn region(&self, ip: Ip) -> PlaceKey {
        PlaceKey::new(self.clone(), ip, Level::Region)
    }

    fn new(path: Option<PathBuf>, database: Database) -> Self {
        Self(Arc::new(Inner { path, database: ArcSwap::from_pointee(database) }))
    }
}

fn read(path: &Path) -> Result<Database, PlacesError> {
    // Reading a pipe or a device may never end.
    let is_file = |about: fs::Metadata| match about.is_file() {
        true => Ok(()),
        false => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file")),
    };
    let bytes = fs::metadata(path).and_then(is_file).and_then(|()| fs::read(path));
    let bytes = bytes.map_err(|error| PlacesError::unreadable(path, error))?;
    Database::new(bytes).map_err(|error| error.in_file(path))
}
