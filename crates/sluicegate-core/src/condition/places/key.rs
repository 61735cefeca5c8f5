use super::Places;
use super::code::Code;
use super::error::PlacesError;
use crate::condition::{ChosenBy, Condition};
use crate::key::{Ip, Key, KeyBuf, Missing, View, tag};

/// The key of an address that is in no place, or in one that has no code.
const UNKNOWN: &[u8] = b"unknown";

/// What is asked of a place.
#[derive(Debug, Clone, Copy)]
pub(super) enum Level {
    Country,
    Region,
}

/// The country or the region of the client's address, as a key; see [`Places`].
///
/// All addresses of which the database knows no country (or no region, where that is asked) share one
/// key: a private address, one that was given out lately, a satellite's. They share one budget then, so
/// a limit by place should be one that the unknown can do with together.
#[derive(Debug, Clone)]
#[must_use]
pub struct PlaceKey {
    places: Places,
    ip: Ip,
    level: Level,
}

impl PlaceKey {
    pub(super) fn new(places: Places, ip: Ip, level: Level) -> Self {
        Self { places, ip, level }
    }

    /// Holds for requests from one of these countries (`DE`) or regions (`US-CA`), in capital letters.
    ///
    /// It does not hold where nothing is known of the address. Where the server does not know the address
    /// itself, that is an error (500), as it is for a key.
    ///
    /// # Errors
    ///
    /// Names what is no country's code by ISO 3166-1, or no region's by the form of ISO 3166-2.
    pub fn is_in<C: AsRef<str>>(
        self,
        codes: impl IntoIterator<Item = C>,
    ) -> Result<InPlaces, PlacesError> {
        let codes = codes.into_iter().map(|code| self.level.parse(code.as_ref()));
        let codes = codes.collect::<Result<_, _>>()?;
        Ok(InPlaces { key: self, codes })
    }

    /// The code for the request of `view`, if one is known.
    fn code<V: View>(&self, view: &V) -> Result<Option<Code>, Missing> {
        let address = self.ip.address(view)?;
        let database = self.places.0.database.load();
        Ok(match self.level {
            Level::Country => database.country(address),
            Level::Region => database.region(address),
        })
    }
}

impl Level {
    fn parse(self, code: &str) -> Result<Code, PlacesError> {
        let (read, form) = match self {
            Self::Country => (
                Code::parse_country(code),
                "no country's code: ISO 3166-1 has two capital letters for each, such as `DE`",
            ),
            Self::Region => (
                Code::parse_region(code),
                "no region's code: ISO 3166-2 has such as `US-CA`, in capital letters",
            ),
        };
        read.ok_or_else(|| PlacesError::code_of(code, form))
    }

    fn tag(self) -> u8 {
        match self {
            Self::Country => tag::COUNTRY,
            Self::Region => tag::REGION,
        }
    }
}

impl<V: View> Key<V> for PlaceKey {
    fn write(&self, view: &V, key: &mut KeyBuf) -> Result<(), Missing> {
        let code = self.code(view)?;
        key.push(&[self.level.tag()]);
        key.push(code.as_ref().map_or(UNKNOWN, Code::as_bytes));
        Ok(())
    }
}

/// Holds for requests from some countries or regions; see [`PlaceKey::is_in`].
#[derive(Debug, Clone)]
#[must_use]
pub struct InPlaces {
    key: PlaceKey,
    codes: Box<[Code]>,
}

impl<V: View> Condition<V> for InPlaces {
    fn holds(&self, view: &V) -> Result<bool, Missing> {
        let code = self.key.code(view)?;
        Ok(code.is_some_and(|code| self.codes.contains(&code)))
    }

    fn chosen_by(&self) -> ChosenBy {
        ChosenBy::Server
    }
}
