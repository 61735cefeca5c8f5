//! The part that every extractor writes first, so that two of them never share a key for having
//! read the same text: a path `/a` is not a route `/a`.
//!
//! A fleet shares its keys, and not every node is updated at once: a number that was given stays.

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
#[cfg(feature = "places")]
pub(crate) const COUNTRY: u8 = 15;
#[cfg(feature = "places")]
pub(crate) const REGION: u8 = 16;
