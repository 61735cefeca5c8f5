//! The part that every extractor writes first. It keeps the keys of two extractors apart that read the same text: a
//! path `/a` is not a route `/a`.
//!
//! The nodes of a fleet share keys and are not all updated at once, so a number never changes.

use super::KeyBuf;

pub(super) const GLOBAL: u8 = 0;
pub(super) const CONST: u8 = 1;
pub(super) const METHOD: u8 = 2;
pub(super) const PATH: u8 = 3;
pub(super) const ROUTE: u8 = 4;
pub(super) const HOST: u8 = 5;
pub(super) const HEADER: u8 = 6;
pub(super) const COOKIE: u8 = 7;
pub(super) const QUERY: u8 = 8;
pub(super) const EXTENSION: u8 = 9;
pub(super) const FROM_FN: u8 = 10;
pub(super) const IPV4: u8 = 11;
pub(super) const IPV6: u8 = 12;
pub(super) const FIRST: u8 = 13;
pub(super) const CLAIM: u8 = 14;
const COUNTRY: u8 = 15;
const REGION: u8 = 16;

/// The tag of a key that another crate of this project writes.
///
/// Keys start with a tag, so that keys of different kinds never meet, and
/// [`KeyBuf::legible`] names the kind. Tags are stored in Redis and stay the same in all versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeyTag {
    /// The country of the client's address, as written by `sluicegate-geoip`.
    Country,
    /// The region of the client's address, as written by `sluicegate-geoip`.
    Region,
}

impl KeyTag {
    /// Writes the tag and one value.
    pub fn push(self, key: &mut KeyBuf, value: &[u8]) {
        key.push(&[match self {
            Self::Country => COUNTRY,
            Self::Region => REGION,
        }]);
        key.push(value);
    }

    /// What [`KeyBuf::legible`] shows before the value of a key with this tag.
    pub(super) const fn legible(tag: u8) -> Option<&'static str> {
        match tag {
            COUNTRY => Some("country:"),
            REGION => Some("region:"),
            _ => None,
        }
    }
}
