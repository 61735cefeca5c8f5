use std::collections::HashSet;
use std::fmt;
use std::net::IpAddr;

use maxminddb::{LookupResult, MaxMindDbError, PathElement, Reader, WithinOptions};

use super::code::Code;
use super::error::GeoError;

const COUNTRY: [PathElement<'_>; 2] = [PathElement::Key("country"), PathElement::Key("iso_code")];

/// Databases list the parts of a country from the largest to the smallest.
const PART: [PathElement<'_>; 3] =
    [PathElement::Key("subdivisions"), PathElement::Index(0), PathElement::Key("iso_code")];

type Lookup<'a> = LookupResult<'a, Vec<u8>>;

/// The contents of a database file. Every record was read once, so lookups do not fail.
pub(crate) struct Records(Reader<Vec<u8>>);

impl Records {
    pub(crate) fn new(bytes: Vec<u8>) -> Result<Self, GeoError> {
        let records = Self(Reader::from_source(bytes).map_err(GeoError::broken)?);
        if records.knows_countries().map_err(GeoError::broken)? {
            Ok(records)
        } else {
            Err(GeoError::no_country(&records.0.metadata().database_type))
        }
    }

    /// The country of `address`, if it is known.
    pub(crate) fn country(&self, address: IpAddr) -> Option<Code> {
        // `new` has read every record, so errors cannot happen here.
        Code::of_country(country(&self.0.lookup(address).ok()?).ok()??)
    }

    /// The region of `address`, if it is known.
    pub(crate) fn region(&self, address: IpAddr) -> Option<Code> {
        let found = self.0.lookup(address).ok()?;
        Code::of_region(country(&found).ok()??, part(&found).ok()??)
    }

    /// Reads every record once; whether any of them has a country.
    fn knows_countries(&self) -> Result<bool, MaxMindDbError> {
        // Many networks share a record.
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

fn country<'a>(found: &Lookup<'a>) -> Result<Option<&'a str>, MaxMindDbError> {
    found.decode_path(&COUNTRY)
}

fn part<'a>(found: &Lookup<'a>) -> Result<Option<&'a str>, MaxMindDbError> {
    found.decode_path(&PART)
}

impl fmt::Debug for Records {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let metadata = self.0.metadata();
        write!(f, "Records({}, built {})", metadata.database_type, metadata.build_epoch)
    }
}
