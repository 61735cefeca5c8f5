//! The messages of the core, as those of the proto file.
//!
//! A message is believed only if it can be right: see [`Unreadable`].

mod answer;
mod ask;
mod release;
#[cfg(test)]
mod tests;

use std::error::Error;
use std::fmt;

use crate::amount::Amount;

pub(super) use self::answer::{ReadResponse, WriteResponse};
pub(super) use self::ask::{ReadRequest, write_request, write_server_request};
pub(super) use self::release::{read_release, write_release};

/// Why a message cannot be right.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Unreadable {
    /// A number of units is negative or not finite.
    Units {
        what: &'static str,
        resource: String,
        units: f64,
    },
    Band {
        resource: String,
        band: i64,
    },
    Weight {
        resource: String,
        weight: i64,
    },
    /// A grant without a length in milliseconds.
    NoLength {
        resource: String,
    },
    /// An answer of a kind that nobody has heard of.
    Kind(i32),
    /// The answer has no number.
    NoSequence,
    /// The answers are not for the resources that were asked for.
    OtherResources,
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Units { what, resource, units } => {
                write!(f, "`{what}` of `{resource}` is a finite number from 0, not {units:?}")
            }
            Self::Band { resource, band } => {
                write!(f, "the priority of `{resource}` is a number from 0 to 255, not {band}")
            }
            Self::Weight { resource, weight } => {
                write!(f, "a weight of `{resource}` is at least 1, not {weight}")
            }
            Self::NoLength { resource } => {
                write!(
                    f,
                    "the grant of `{resource}` does not say in milliseconds how long it lasts"
                )
            }
            Self::Kind(kind) => write!(f, "no kind of answer has the number {kind}"),
            Self::NoSequence => f.write_str("the answer does not say which request it answers"),
            Self::OtherResources => {
                f.write_str("the answers are not for the resources that were asked for")
            }
        }
    }
}

impl Error for Unreadable {}

/// Reads a number of units.
///
/// A double holds every amount in full: a sum of millionths up to [`Amount::MAX`] has fewer than 53 bits.
fn amount(what: &'static str, resource: &str, units: f64) -> Result<Amount, Unreadable> {
    if !units.is_finite() || units < 0.0 {
        return Err(Unreadable::Units { what, resource: resource.to_owned(), units });
    }
    // A cast from a float saturates.
    Ok(Amount::from_millionths((units * 1e6).round() as u64))
}
