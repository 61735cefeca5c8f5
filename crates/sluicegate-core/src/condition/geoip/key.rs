use crate::Ip;
use crate::condition::{ChosenBy, Condition};
use crate::key::{Key, KeyBuf, Missing, View};

use super::code::Code;
use super::database::{GeoDatabase, Level};
use super::error::GeoError;

/// The key of every address without a known code.
const UNKNOWN: &[u8] = b"unknown";

/// The country or region of the client's address, as a key.
///
/// Made by [`GeoDatabase::country`] and [`GeoDatabase::region`].
///
/// All addresses without a known country (or region) share the key `unknown`, and with it one budget:
/// private addresses, for example, and addresses that were assigned recently. Choose a limit that is
/// large enough for all of them together.
#[derive(Debug, Clone)]
#[must_use]
pub struct GeoKey {
    database: GeoDatabase,
    ip: Ip,
    level: Level,
}

impl GeoDatabase {
    /// A key: the country of the address that `ip` finds, as an ISO 3166-1 code such as `DE`.
    ///
    /// Addresses without a known country share one key; see [`GeoKey`].
    pub fn country(&self, ip: Ip) -> GeoKey {
        GeoKey::new(self.clone(), ip, Level::Country)
    }

    /// A key: the region of the address that `ip` finds, as an ISO 3166-2 code such as `US-CA`. If the
    /// database lists nested regions, this is the largest.
    ///
    /// Only databases of cities contain regions. Addresses without a known region share one key; see
    /// [`GeoKey`].
    pub fn region(&self, ip: Ip) -> GeoKey {
        GeoKey::new(self.clone(), ip, Level::Region)
    }
}

impl GeoKey {
    pub(crate) fn new(database: GeoDatabase, ip: Ip, level: Level) -> Self {
        Self { database, ip, level }
    }

    /// A condition: the client's address is in one of these countries (`DE`) or regions (`US-CA`).
    /// Codes are in upper case.
    ///
    /// The condition does not hold for addresses without a known code. If the server does not provide
    /// the client's address at all, the condition is an error (500), like a key.
    ///
    /// # Errors
    ///
    /// Fails if a code is not an ISO 3166-1 country, or does not have the form of an ISO 3166-2 region.
    pub fn is_in<C: AsRef<str>>(
        self,
        codes: impl IntoIterator<Item = C>,
    ) -> Result<GeoIn, GeoError> {
        let codes = codes.into_iter().map(|code| self.level.parse(code.as_ref()));
        let codes = codes.collect::<Result<_, _>>()?;
        Ok(GeoIn { key: self, codes })
    }

    /// The code for the request of `view`, if it is known.
    fn code<V: View>(&self, view: &V) -> Result<Option<Code>, Missing> {
        Ok(self.database.code(self.level, self.ip.address(view)?))
    }
}

impl<V: View> Key<V> for GeoKey {
    fn write(&self, view: &V, key: &mut KeyBuf) -> Result<(), Missing> {
        let code = self.code(view)?;
        self.level.tag().push(key, code.as_ref().map_or(UNKNOWN, Code::as_bytes));
        Ok(())
    }
}

/// A condition on the country or region of the client's address; made by [`GeoKey::is_in`].
#[derive(Debug, Clone)]
#[must_use]
pub struct GeoIn {
    key: GeoKey,
    codes: Box<[Code]>,
}

impl<V: View> Condition<V> for GeoIn {
    fn holds(&self, view: &V) -> Result<bool, Missing> {
        let code = self.key.code(view)?;
        Ok(code.is_some_and(|code| self.codes.contains(&code)))
    }

    fn chosen_by(&self) -> ChosenBy {
        ChosenBy::Server
    }
}
