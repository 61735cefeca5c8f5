use std::collections::HashSet;
use std::fmt;
use std::net::IpAddr;

use maxminddb::{LookupResult, MaxMindDbError, PathElement, Reader, WithinOptions};

use super::code::Code;
use super::error::PlacesError;

const COUNTRY: [PathElement<'_>; 2] = [PathElement::Key("country"), PathElement::Key("iso_code")];

/// Databases list the parts of a country from the largest to the smallest.
const PART: [PathElement<'_>; 3] =
    [PathElement::Key("subdivisions"), PathElement::Index(0), PathElement::Key("iso_code")];

type Found<'a> = LookupResult<'a, Vec<u8>>;

/// A database whose every record can be read.
pub(super) struct Database(Reader<Vec<u8>>);

impl Database {
    pub(super) fn new(bytes: Vec<u8>) -> Result<Self, PlacesError> {
        let database = Self(Reader::from_source(bytes).map_err(PlacesError::broken)?);
        if database.knows_countries().map_err(PlacesError::broken)? {
            Ok(database)
        } else {
            Err(PlacesError::no_country(&database.0.metadata().database_type))
        }
    }

    /// The country of `address`, if it is known.
    pub(super) fn country(&self, address: IpAddr) -> Option<Code> {
        // An error here would have been one when the database was taken.
        Code::of_country(country(&self.0.lookup(address).ok()?).ok()??)
    }

    /// The region of `address`, if it is known.
    pub(super) fn region(&self, address: IpAddr) -> Option<Code> {
        let found = self.0.lookup(address).ok()?;
        Code::of_region(country(&found).ok()??, part(&found).ok()??)
    }

    /// Reads what is ever going to be read, and says whether there is any country in it.
    fn knows_countries(&self) -> Result<bool, MaxMindDbError> {
        // Many networks have the same record.
        let mut read = HashSet::new();
        let mut any = false;
        let most = 3 * u64::from(self.0.metadata().node_count);
        let networks = self.0.networks(WithinOptions::default().include_networks_without_data())?;
        for (network, count) in networks.zip(1..) {
            let found = network?;
            if count > most {
                return Err(MaxMindDbError::invalid_database(
                    "its tree has more leaves than nodes",
                ));
            }
            if found.offset().is_some_and(|record| read.insert(record)) {
                any |= country(&found)?.and_then(Code::of_country).is_some();
                part(&found)?;
            }
        }
        Ok(any)
    }
}

fn country<'a>(found: &Found<'a>) -> Result<Option<&'a str>, MaxMindDbError> {
    found.decode_path(&COUNTRY)
}

fn part<'a>(found: &Found<'a>) -> Result<Option<&'a str>, MaxMindDbError> {
    found.decode_path(&PART)
}

impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let metadata = self.0.metadata();
        write!(f, "Database({}, built {})", metadata.database_type, metadata.build_epoch)
    }
}
