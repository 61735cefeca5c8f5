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
const GRPC_SERVICE: u8 = 17;
const GRPC_METHOD: u8 = 18;
const BINARY_METADATA: u8 = 19;
const CERTIFICATE: u8 = 20;

/// The tag of a key that another crate of this project writes.
///
/// Keys start with a tag, so that keys of different kinds never meet, and
/// [`KeyBuf::legible`] names the kind. Tags are stored in Redis and stay the same in all versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum KeyTag {
    /// The country of the client's address, as written by `GeoKey`.
    Country,
    /// The region of the client's address, as written by `GeoKey`.
    Region,
    /// The service of a gRPC call, as written by `sluicegate-tonic`.
    GrpcService,
    /// The method of a gRPC call with its service, as written by `sluicegate-tonic`.
    GrpcMethod,
    /// A name, a zero byte, and the value of binary metadata of a gRPC call, as written by `sluicegate-tonic`.
    BinaryMetadata,
    /// The digest of the client's certificate, as written by `sluicegate-tonic`.
    Certificate,
}

impl KeyTag {
    /// Writes the tag and one value.
    pub fn push(self, key: &mut KeyBuf, value: &[u8]) {
        key.push(&[match self {
            Self::Country => COUNTRY,
            Self::Region => REGION,
            Self::GrpcService => GRPC_SERVICE,
            Self::GrpcMethod => GRPC_METHOD,
            Self::BinaryMetadata => BINARY_METADATA,
            Self::Certificate => CERTIFICATE,
        }]);
        key.push(value);
    }

    /// What [`KeyBuf::legible`] shows before the value of a key with this tag.
    pub(super) const fn legible(tag: u8) -> Option<&'static str> {
        match tag {
            COUNTRY => Some("country:"),
            REGION => Some("region:"),
            GRPC_SERVICE => Some("grpc-service:"),
            GRPC_METHOD => Some("grpc-method:"),
            BINARY_METADATA => Some("metadata:"),
            CERTIFICATE => Some("certificate:"),
            _ => None,
        }
    }
}

/// All numbers, in their order.
#[cfg(test)]
pub(super) const ALL: [u8; 21] = [
    GLOBAL,
    CONST,
    METHOD,
    PATH,
    ROUTE,
    HOST,
    HEADER,
    COOKIE,
    QUERY,
    EXTENSION,
    FROM_FN,
    IPV4,
    IPV6,
    FIRST,
    CLAIM,
    COUNTRY,
    REGION,
    GRPC_SERVICE,
    GRPC_METHOD,
    BINARY_METADATA,
    CERTIFICATE,
];

#[cfg(test)]
mod tests {
    use super::*;

    /// Keys are in Redis, where processes of several versions meet.
    #[test]
    fn numbers_stay_the_same_in_all_versions() {
        assert!(ALL.into_iter().eq(0..=20));
    }
}
