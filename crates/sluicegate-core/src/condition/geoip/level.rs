use crate::adapter::KeyTag;

use super::code::Code;
use super::error::GeoError;

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
